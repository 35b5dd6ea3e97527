"""Options that several verbs share, and the parser class that they are all built with.

Owns the spelling of shared flags and how a bad argument is reported: as a UsageError, so that
`main` prints one line. Imports nothing heavy. Knows nothing of what any verb does.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from typing import Any, NoReturn, Self

MOST = 1 << 62
"""Numbers beyond it fit nothing that counts in 64 bits."""

MOST_THREADS = 1024


class UsageError(ValueError):
    """The command line itself is wrong."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError instead of printing its usage and exiting."""

    about: Callable[[], str] | None = None  # the description, where it is made for help alone

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)
        self._add_later: Callable[[Parser], None] | None = None

    def later(self, add: Callable[[Parser], None]) -> None:
        """Add arguments by `add(self)` when they are needed: what it imports costs others nothing.

        `vocabshift --help` and the other verbs never call it.
        """
        self._add_later = add

    def filled(self) -> Self:
        """This parser with all of its arguments."""
        add, self._add_later = self._add_later, None
        if add is not None:
            add(self)
        return self

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """As argparse has it, once all arguments are there."""
        return super(Parser, self.filled()).parse_known_args(*args, **options)

    def format_help(self) -> str:
        """The help; `about` is only asked now, as it may import what others need not wait for."""
        if self.about is not None:
            self.description = self.about()
        return super(Parser, self.filled()).format_help()

    def error(self, message: str) -> NoReturn:
        """Raise the message, with the command that explains the arguments."""
        raise UsageError(f"{message} (see: {self.prog} --help)")


def add_verb(subparsers: Any, verb: str, summary: str, description: str, examples: str) -> Parser:
    """A verb's parser: its help ends with `examples`, and `--json` and `--traceback` are there."""
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
    """`-o DIR` and `--force`."""
    parser.add_argument("-o", "--out", metavar="DIR", required=required, help=what)
    parser.add_argument(
        "--force", action="store_true", help="replace the output where it exists already"
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """`-j N`; None means all cores that this process may use."""
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
    """An option written `X...`: several values after one flag, and the flag may be repeated."""
    parser.add_argument(
        flag, metavar=metavar, nargs="+", action="extend", required=required, help=help
    )


def threads(args: argparse.Namespace) -> int:
    """The number of threads asked for, or all cores that this process may use.

    At most MOST_THREADS: every one takes memory for tables of its own.
    """
    if args.threads is not None:
        return min(int(args.threads), MOST_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def positive(text: str) -> int:
    """An integer from 1 to MOST, as argparse's `type`."""
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
    """An integer from 0 to MOST, as argparse's `type`."""
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
    """A number above 0 and up to 1, as argparse's `type`."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0 and up to 1")
    return value


def size(text: str) -> int:
    """A number of bytes above 0, "8GB" or "512MiB", as argparse's `type`."""
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
