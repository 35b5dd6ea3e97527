"""CONFIG.toml and `key=value` in place of a verb's flags: one form for `train` and `cpt`.

Owns the reading of such a file, the `key=value` words that go before it, where both stand on a
command line, and the translation of values into the words of flags, so that all go through the
same checks. A key may be written with hyphens or underscores. Paths are relative to the directory
of the call, not to the file's. Knows no key by name.
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

from vocabshift.cli.options import UsageError

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
