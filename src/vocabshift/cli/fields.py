"""Flags from the fields of a dataclass: name, kind, choices, default and help are the field's own.

The help is the string under the field. `Annotated[..., "word"]` says more than the type: "share" is
a number above 0 and up to 1, "any" a whole number of any sign, "mean power" a number below 0 or
"min"; a word in capitals is the metavar; a mapping from names to what they mean, the choices. A
flag that is not given is None in the arguments, so that the dataclass alone knows the defaults.
Knows no dataclass by name.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import math
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from vocabshift.cli.options import positive, share


@dataclasses.dataclass(frozen=True)
class Flag:
    """What a field asks of argparse."""

    name: str  # of the field
    help: str
    default: Any  # None where there is none to tell of
    kind: Any  # the type of the field, without None
    word: Any  # of its annotation

    def add(
        self, parser: argparse._ActionsContainer, *, of: str = "", with_default: bool = True
    ) -> None:
        """Add it to a parser; the help names `of`, who takes it, and a default."""
        options: dict[str, Any] = {"help": self._help_text(of, with_default=with_default)}
        if self.kind is bool:
            options |= {"action": "store_true", "default": None}
        elif get_origin(self.kind) is tuple:
            options |= {"nargs": "+", "action": "extend", "metavar": self._metavar("TEXT")}
        elif isinstance(self.word, Mapping):
            options["choices"] = tuple(self.word)
        elif get_origin(self.kind) is Literal:
            options["choices"] = get_args(self.kind)
        else:
            convert, metavar = self._conversion()
            options |= {"type": convert, "metavar": self._metavar(metavar)}
        parser.add_argument("--" + self.name.replace("_", "-"), **options)

    def _help_text(self, of: str, *, with_default: bool) -> str:
        text = self.help.replace("None:", "Not given:").rstrip(".")
        if not text[1:2].isupper():  # of an acronym
            text = text[:1].lower() + text[1:]
        if isinstance(self.word, Mapping):
            text += "".join(f"; {name}: {what}" for name, what in self.word.items())
        said = f" (default: {self.default})" if with_default and self.default is not None else ""
        return (f"{of}: " if of else "") + (text + said).replace("%", "%%")

    def _conversion(self) -> tuple[Callable[[str], Any], str]:
        """argparse's `type` and the metavar for a single value."""
        named: dict[str, tuple[Callable[[str], Any], str]] = {
            "share": (share, "SHARE"),
            "any": (int, "N"),
            "mean power": (mean_power, "P|min"),
        }
        if self.word in named:
            return named[self.word]
        if self.kind is int:
            return positive, "N"
        return (float, "X") if self.kind is float else (str, "NAME|REGEX")

    def _metavar(self, usual: str) -> str:
        return str(self.word) if self.word.isupper() else usual


_KNOWN: dict[type, dict[str, Flag]] = {}  # reading source files takes milliseconds each


def flags_of(kind: type) -> dict[str, Flag]:
    """The flags of a dataclass by the names of its fields, inherited ones first."""
    if kind in _KNOWN:
        return _KNOWN[kind]
    said, hints = _docstrings(kind), get_type_hints(kind, include_extras=True)
    flags = _KNOWN[kind] = {}
    for field in dataclasses.fields(kind):
        hint, word = hints[field.name], ""
        if get_origin(hint) is Annotated:
            hint, word = get_args(hint)
        is_told = not any(field.default is each for each in (dataclasses.MISSING, False, ()))
        default = field.default if is_told else None
        flags[field.name] = Flag(field.name, said.get(field.name, ""), default, _single(hint), word)
    return flags


def add_fields(
    parser: argparse._ActionsContainer, kind: type, names: Iterable[str] | None = None
) -> None:
    """Add the flags of a dataclass, or of these fields of it."""
    flags = flags_of(kind)
    for name in flags if names is None else names:
        flags[name].add(parser)


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """What was given for these fields, by name."""
    found = {name: getattr(args, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def mean_power(text: str) -> float | str:
    """A number below 0, or "min", as argparse's `type`."""
    if text == "min":
        return text
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not -math.inf < value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number below 0 nor min")
    return value


def _single(hint: Any) -> Any:
    """The type without None; of a union of others, the first."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def _docstrings(kind: type) -> dict[str, str]:
    """The string under each field, on one line; those of a subclass replace inherited ones."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if dataclasses.is_dataclass(each):
            found |= _own_docstrings(each)
    return found


@cache
def _own_docstrings(kind: type) -> dict[str, str]:
    """Those that stand in the class itself."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in pairwise(tree.body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                found[name] = " ".join(str(text).split())
    return found
