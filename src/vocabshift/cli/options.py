"""Options shared by several verbs, and the parser class of all of them.

Owns the spelling of shared flags. A bad argument is raised as a UsageError, which `main` prints
as one line. Imports nothing heavy. Knows nothing of any verb.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, Self

from vocabshift.errors import deprecation
from vocabshift.progress import cores

MOST = 1 << 62
"""Numbers beyond it fit nothing that counts in 64 bits."""

MOST_THREADS = 1024


_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)")


class UsageError(ValueError):
    """The command line itself is wrong."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError instead of printing its usage and exiting."""

    about: Callable[[], str] | None = None  # builds the description, for --help only

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)
        self._add_later: Callable[[Parser], None] | None = None
        self._renamed: dict[str, tuple[str, str]] = {}

    def renamed(self, old: str, new: str, gone: str) -> None:
        """Take the flag `old`, which help does not show, for `new` until the version `gone`.

        Each use says so in a line on stderr. So does its key of a CONFIG.toml.
        """
        self._renamed[old] = (new, gone)

    def current(self, word: str) -> str:
        """The word, or if it is or begins with a deprecated flag, the same with today's flag."""
        flag, equals, value = word.partition("=")
        if flag not in self._renamed:
            return word
        new, gone = self._renamed[flag]
        sys.stderr.write(f"vocabshift: warning: {deprecation(flag, new, gone)}\n")
        return new + equals + value

    def later(self, add: Callable[[Parser], None]) -> None:
        """Defer `add(self)` until the arguments are needed, so that others skip its imports.

        `vocabshift --help` and the other verbs never call it.
        """
        self._add_later = add

    def filled(self) -> Self:
        """Run the deferred additions; return this parser."""
        add, self._add_later = self._add_later, None
        if add is not None:
            add(self)
        return self

    def parse_known_args(self, args: Any = None, *others: Any, **options: Any) -> Any:
        """Parse as argparse does, after running the deferred additions; here too none is unknown.

        argparse leaves what a verb does not know to the parser of all verbs, which cannot name the
        verb's nearest option.
        """
        self.filled()
        words = list(sys.argv[1:] if args is None else args)
        end = words.index("--") if "--" in words else len(words)
        words[:end] = map(self.current, words[:end])
        found, unknown = super().parse_known_args(words, *others, **options)
        if unknown:
            near = _near(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
        return found, unknown

    def format_help(self) -> str:
        """Format the help; `about` is called here because its imports may be slow."""
        if self.about is not None:
            self.description = self.about()
        return super(Parser, self.filled()).format_help()

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError with the message and the command that prints the help."""
        if choice := _CHOICE.search(message):
            known = choice["known"].split(", ")  # in quotes or not: it depends on Python
            message += _near(choice["given"], [name.strip("'") for name in known])
        raise UsageError(f"{message} (see: {self.prog} --help)")


def _near(given: str, known: Iterable[str]) -> str:
    names = {name.lstrip("-"): name for name in known}
    nearest = get_close_matches(given.lstrip("-"), names, n=1)
    return f"; did you mean {names[nearest[0]]}?" if nearest else ""


def add_verb(subparsers: Any, verb: str, summary: str, description: str, examples: str) -> Parser:
    """Add a verb's parser, with `examples` at the end of its help, `--json` and `--traceback`."""
    parser: Parser = subparsers.add_parser(
        verb,
        help=summary,
        description=description,
        epilog="examples:\n" + examples,
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on stdout and nothing else"
    )
    parser.add_argument(
        "--traceback", action="store_true", help="show where an error arose, for a bug report"
    )
    return parser


def add_output(parser: argparse.ArgumentParser, *, what: str, required: bool = True) -> None:
    """Add `-o DIR` and `--force`."""
    parser.add_argument("-o", "--out", metavar="DIR", required=required, help=what)
    parser.add_argument(
        "--force", action="store_true", help="replace the output where it exists already"
    )


def check_inputs_stay(out: str | Path, values: Iterable[object]) -> None:
    """ValueError if a word in `values` names a file or folder inside the folder `out`.

    `out` is replaced as a whole, so that an input in it would be deleted. A word may have a label
    ("hi=PATH") or a kind ("file:PATH").
    """
    folder = Path(out).resolve()
    for value in values:
        for word in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(word, str | Path):
                continue
            for place in (str(word), *re.split("[=:]", str(word), maxsplit=1)[1:]):
                if _is_in(place, folder):
                    raise ValueError(f"{out} would replace the input {place}; name another output")


def _is_in(place: str, folder: Path) -> bool:
    with suppress(OSError, ValueError):  # the name is too long, or has a zero byte
        return Path(place).exists() and folder in Path(place).resolve().parents
    return False


def add_complete_bytes(parser: argparse.ArgumentParser) -> None:
    """Add --complete-bytes."""
    parser.add_argument(
        "--complete-bytes",
        action="store_true",
        help="add tokens for the bytes that the vocabulary lacks and that UTF-8 can hold",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add `-j N`; None means all cores available to this process."""
    parser.add_argument(
        "-j",
        "--threads",
        metavar="N",
        type=positive,
        help="threads (default: all cores); the result does not depend on it",
    )


def add_many(
    parser: argparse._ActionsContainer,
    flag: str,
    *,
    metavar: str,
    help: str,
    required: bool = False,
) -> None:
    """Add an option written `X...`: one flag takes several values and may be repeated."""
    parser.add_argument(
        flag, metavar=metavar, nargs="+", action="extend", required=required, help=help
    )


def threads(args: argparse.Namespace) -> int:
    """The requested number of threads, or all cores available to this process.

    At most MOST_THREADS, because each thread allocates its own tables.
    """
    if args.threads is not None:
        return min(int(args.threads), MOST_THREADS)
    return cores()


def positive(text: str) -> int:
    """Parse an integer from 1 to MOST, as argparse's `type`."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    if value > MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is too large")
    return value


def natural(text: str) -> int:
    """Parse an integer from 0 to MOST, as argparse's `type`."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    if value > MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is too large")
    return value


def share(text: str) -> float:
    """Parse a number above 0 and up to 1, as argparse's `type`."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0 and up to 1")
    return value


def percentage(text: str) -> float:
    """Parse "0.5%" as 0.005, as argparse's `type`; without its sign 0.5 could be either."""
    try:
        value = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not text.strip().endswith("%") or not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0% to 100%; write 0.5%")
    return value


def size(text: str) -> int:
    """Parse a positive number of bytes, such as "8GB" or "512MiB", as argparse's `type`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write for example 8GB or 512MB")
    number, prefix, is_binary = match.groups()
    step = 1024 if is_binary else 1000
    value = float(number) * step ** " KMGT".index(prefix.upper() or " ")
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no room at all; write for example 8GB")
    if value > MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no size that could be meant")
    return int(value)
