"""CONFIG.toml and `key=value` instead of flags: one form for `train` and `cpt`.

Owns how such a file is read, where `key=value` words may appear on the command line, and how
values become command-line words, so that flags and config values pass the same checks. `key=value`
overrides the file. A key may be written with hyphens or underscores. Paths are relative to the
working directory, not to the file. Knows no key by name.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

from vocabshift.cli.options import Parser, UsageError

_NOT_IN_FILES = {"config", "help", "json", "traceback"}
_KEY = re.compile(r"[A-Za-z_][\w.-]*=")
_WITH_VALUE = ("-j", "--threads", "--config", "--export", "-o", "--out")
"""Flags of `cpt` that take a value."""


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
    """Move CONFIG and every key=value to the position right after the verb.

    argparse needs them next to each other. With `cpt` they may appear anywhere. Some flags of
    `train` take several words that contain an equals sign, so there they must come first or
    after `--config CONFIG.toml`.
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
    """Return the path of the TOML file, or None, and the `key=value` words."""
    keys = [word for word in args.given if _KEY.match(word)]
    files = [word for word in args.given if not _KEY.match(word)]
    files += [args.config] if args.config else []
    if len(files) > 1:
        raise UsageError(
            f"{files[1]!r} is no key=value, and {files[0]!r} is the CONFIG.toml already"
        )
    return (files[0] if files else None), keys


def read_toml(path: str) -> dict[str, Any]:
    """Read a TOML file, with underscores in its keys; UsageError if it is not valid TOML."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # invalid TOML, or bytes that are not UTF-8
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    return with_underscores(table, path)


def with_underscores(table: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Replace hyphens in keys by underscores; UsageError if both spellings occur."""
    renamed: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in renamed:
            raise UsageError(f"{path}: {name!r} is given twice, with hyphens and underscores")
        renamed[name] = value
    return renamed


def parse_key(text: str) -> tuple[str, Any]:
    """Name (with underscores) and value of a `key=value`; a value that is not TOML is a string."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"{text!r} is no key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    return key.replace("-", "_"), parsed


def fill_from_config(args: argparse.Namespace) -> None:
    """Fill the options that no flag set from `key=value` words, then from the TOML file.

    `args.parser` is the verb's parser. Raises UsageError (a ValueError) for an unknown key, naming
    the nearest option, for a value of the wrong kind, and for an invalid file.
    """
    path, keys = split_given(args)
    table = (read_toml(path) if path else {}) | dict(map(parse_key, keys))
    if table:
        fill(args, table, f"{path} and key=value" if path and keys else path or "key=value")


def fill(args: argparse.Namespace, table: Mapping[str, Any], path: str) -> None:
    """Fill the options that are still unset from `table`, which was read from `path`."""
    parser: Parser = args.parser
    options = {
        flag.removeprefix("--").replace("-", "_"): action
        for action in parser._actions  # argparse has no public way to list the options
        for flag in action.option_strings
        if flag.startswith("--")
    }
    words: list[str] = []
    filled: list[str] = []
    for key, value in table.items():
        name = parser.current(f"--{key.replace('_', '-')}")[2:].replace("-", "_")
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
    """The command-line words equivalent to `key = value`."""
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
