"""A flat TOML file in place of a verb's flags: its keys are the names of the options.

Owns the translation of TOML values into the same words that a command line holds, so that both
go through the same checks. Flags given on the command line win. Knows no verb by name.
"""

from __future__ import annotations

import argparse
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from vocabshift.cli.options import UsageError

_NOT_IN_FILES = {"config", "help", "json", "traceback"}


def fill_from_toml(args: argparse.Namespace, parser: argparse.ArgumentParser, path: str) -> None:
    """Set in `args` what the command line left open and the TOML at `path` gives.

    A key may be written with hyphens or underscores. Raises UsageError, a ValueError, for an
    unknown key (the nearest option is named), a value of the wrong kind or a damaged file.
    """
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:  # damaged TOML, or bytes that are not UTF-8
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    options = {
        flag.removeprefix("--").replace("-", "_"): action
        for action in parser._actions  # public argparse has no way to list the options
        for flag in action.option_strings
        if flag.startswith("--")
    }
    words: list[str] = []
    filled: list[str] = []
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in options or name in _NOT_IN_FILES:
            raise UsageError(_unknown(path, key, sorted(set(options) - _NOT_IN_FILES)))
        given = getattr(args, options[name].dest)
        if given is None or given is False:
            words += _words(path, key, value, options[name])
            filled.append(options[name].dest)
    try:
        from_file = parser.parse_args(words)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    for dest in filled:
        setattr(args, dest, getattr(from_file, dest))


def _unknown(path: str, key: str, known: list[str]) -> str:
    nearest = get_close_matches(key.replace("-", "_"), known, n=1, cutoff=0.0)
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
