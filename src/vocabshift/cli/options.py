"""Options that several verbs share, and the parser class that they are all built with.

Owns the spelling of shared flags and how a bad argument is reported: as a UsageError, so that
`main` prints one line. Imports nothing heavy. Knows nothing of what any verb does.
"""

from __future__ import annotations

import argparse
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

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

    def format_help(self) -> str:
        """The help; `about` is only asked now, as it may import what others need not wait for."""
        if self.about is not None:
            self.description = self.about()
        return super().format_help()

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


# CONFIG.toml and `key=value` in place of a verb's flags: one form for `train` and `cpt`.
#
# Owns the reading of such a file, the `key=value` words that go before it, where both stand on a
# command line, and the translation of values into the words of flags, so that all go through the
# same checks. A key may be written with hyphens or underscores. Paths are relative to the directory
# of the call, not to the file's. Knows no key by name.


_NOT_IN_FILES = {"config", "help", "json", "traceback"}
_KEY = re.compile(r"[A-Za-z_][\w.-]*=")
_WITH_VALUE = ("-j", "--threads", "--config")  # flags of `cpt` that a value follows


def add_config(parser: argparse.ArgumentParser, *, keys: str) -> None:
    """`CONFIG.toml key=value ...` and `--config CONFIG.toml`; `keys` says what a key is."""
    parser.add_argument(
        "given",
        metavar="CONFIG.toml|key=value",
        nargs="*",
        help=f"a TOML file of {keys}, and single keys that override it",
    )
    parser.add_argument("--config", metavar="CONFIG.toml", help="the same file, named by a flag")


def config_first(words: Sequence[str]) -> list[str]:
    """The command line with CONFIG and every key=value right after the verb.

    argparse wants them together. For `cpt` they may stand anywhere; for `train`, some of whose
    flags take several words with an equals sign, first of all or after `--config CONFIG.toml`.
    """
    if words[:1] == ["cpt"]:
        is_given = [
            not word.startswith("-") and before not in _WITH_VALUE
            for before, word in pairwise(words)
        ]
    elif words[:1] == ["train"] and "--config" in words:
        begin = words.index("--config") + 1
        is_given = [False] * (len(words) - 1)
        for at in range(begin + 1, len(words)):
            if not _KEY.match(words[at]):
                break
            is_given[at - 1] = True
    else:
        return list(words)
    pairs = list(zip(words[1:], is_given, strict=True))
    return [words[0], *(w for w, given in pairs if given), *(w for w, given in pairs if not given)]


def split_given(args: argparse.Namespace) -> tuple[str | None, list[str]]:
    """Path of the TOML file, if one was named, and the `key=value` words."""
    keys = [word for word in args.given if _KEY.match(word)]
    files = [word for word in args.given if not _KEY.match(word)]
    files += [args.config] if args.config else []
    if len(files) > 1:
        raise UsageError(
            f"{files[1]!r} is no key=value, and {files[0]!r} is the CONFIG.toml already"
        )
    return (files[0] if files else None), keys


def read_toml(path: str) -> dict[str, Any]:
    """The table of a TOML file, its keys with underscores; UsageError for what is no TOML."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # damaged TOML, or bytes that are not UTF-8
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    return with_underscores(table, path)


def with_underscores(table: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The table with `n-bytes` written `n_bytes`; UsageError where both spellings are there."""
    renamed: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in renamed:
            raise UsageError(f"{path}: {name!r} is given twice, with hyphens and underscores")
        renamed[name] = value
    return renamed


def parse_key(text: str) -> tuple[str, Any]:
    """Name (with underscores) and value of a `key=value`; what is no TOML value is a string."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"{text!r} is no key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    return key.replace("-", "_"), parsed


def fill_from_config(args: argparse.Namespace) -> None:
    """Set in `args` what flags left open and `key=value` words or the TOML file give.

    Flags go before key=value, and these before the file. `args.parser` is the verb's parser.
    Raises UsageError, a ValueError, for an unknown key (the nearest option is named), a value of
    the wrong kind or a damaged file.
    """
    path, keys = split_given(args)
    table = (read_toml(path) if path else {}) | dict(map(parse_key, keys))
    if table:
        fill(args, table, f"{path} and key=value" if path and keys else path or "key=value")


def fill(args: argparse.Namespace, table: Mapping[str, Any], path: str) -> None:
    """Set in `args` what is open there and `table`, which came from `path`, gives."""
    parser: argparse.ArgumentParser = args.parser
    options = {
        flag.removeprefix("--").replace("-", "_"): action
        for action in parser._actions  # public argparse has no way to list the options
        for flag in action.option_strings
        if flag.startswith("--")
    }
    words: list[str] = []
    filled: list[str] = []
    for name, value in table.items():
        if name not in options or name in _NOT_IN_FILES:
            raise UsageError(_unknown(path, name, sorted(set(options) - _NOT_IN_FILES)))
        given = getattr(args, options[name].dest)
        if given is None or given is False:
            words += _words(path, name, value, options[name])
            filled.append(options[name].dest)
    try:
        from_file = parser.parse_args(words)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    for dest in filled:
        setattr(args, dest, getattr(from_file, dest))


def _unknown(path: str, key: str, known: list[str]) -> str:
    nearest = get_close_matches(key, known, n=1, cutoff=0.0)
    return f"{path}: unknown key {key!r}; the nearest option is {nearest[0]!r}"


def _words(path: str, key: str, value: Any, action: argparse.Action) -> list[str]:
    """The command-line words that say the same as `key = value`."""
    flag = action.option_strings[-1]
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise UsageError(f"{path}: {key} = {value!r}; true or false is needed")
        return [flag] if value else []
    values = value if isinstance(value, list) and action.nargs == "+" else [value]
    if any(isinstance(item, bool | list | dict) for item in values):
        kind = "a list or one value" if action.nargs == "+" else "one value"
        raise UsageError(f"{path}: {key} = {value!r}; {kind} is needed")
    return [f"{flag}={item}" for item in values]
