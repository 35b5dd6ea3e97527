"""Flags from the fields of a dataclass: the field defines name, type, choices, default and help.

The help is the docstring under the field. `Annotated[..., "word"]` narrows the type: "share" is a
number above 0 and up to 1, "any" an integer of any sign, "mean power" a number below 0 or "min".
A word in capitals is the metavar. A mapping from names to their meanings lists the choices. A flag
that is not given is None in the arguments, so the dataclass alone defines the defaults.
Knows no dataclass by name.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import math
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from vocabshift.cli.options import positive, share

if TYPE_CHECKING:
    from vocabshift.workflows.train import Recipe

_FEW = 3  # most recipes that a flag's help names


@dataclasses.dataclass(frozen=True)
class Flag:
    """The argparse arguments of one field."""

    name: str  # name of the field
    help: str
    default: Any  # None: the help shows no default
    kind: Any  # type of the field, without None
    word: Any  # from its annotation

    def add(
        self, parser: argparse._ActionsContainer, *, of: str = "", with_default: bool = True
    ) -> None:
        """Add the flag to a parser; the help names the default, and `of`, who takes the flag."""
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
        if not text[1:2].isupper():  # unless it is an acronym
            text = text[:1].lower() + text[1:]
        if isinstance(self.word, Mapping):
            text += "".join(f"; {name}: {what}" for name, what in self.word.items())
        said = f" (default: {self.default})" if with_default and self.default is not None else ""
        return (f"{of}: " if of else "") + (text + said).replace("%", "%%")

    def _conversion(self) -> tuple[Callable[[str], Any], str]:
        """argparse's `type` and metavar for a single value."""
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


@cache
def flags_of(kind: type) -> dict[str, Flag]:
    """The flags of a dataclass by field name, inherited fields first."""
    said, hints = _docstrings(kind), get_type_hints(kind, include_extras=True)
    flags = {}
    for field in dataclasses.fields(kind):
        hint, word = hints[field.name], ""
        if get_origin(hint) is Annotated:
            hint, word = get_args(hint)
        is_told = not any(field.default is each for each in (dataclasses.MISSING, False, ()))
        default = field.default if is_told else None
        flags[field.name] = Flag(field.name, said.get(field.name, ""), default, _single(hint), word)
    return flags


def add_fields(
    parser: argparse._ActionsContainer,
    kind: type,
    names: Iterable[str] | None = None,
    *,
    prefix: str = "",
) -> None:
    """Add the flags of a dataclass, or only those of the named fields; `prefix`: of their names."""
    flags = flags_of(kind)
    for name in flags if names is None else names:
        dataclasses.replace(flags[name], name=prefix + name).add(parser)


def add_recipe_flags(
    parser: argparse._ActionsContainer,
    recipes: Mapping[str, Recipe],
    *,
    without: Collection[str] = (),
) -> None:
    """Add one flag per recipe option, less those of `without`.

    The help of a flag names a few of the recipes that take it.
    """
    from vocabshift.workflows.train import VARIANT

    takers: dict[str, list[Recipe]] = {}
    for recipe in recipes.values():
        for name in recipe.options:
            if name not in without:
                takers.setdefault(name, []).append(recipe)
    for name, of_name in takers.items():
        names = ", ".join(recipe.name for recipe in of_name) if len(of_name) <= _FEW else ""
        if name == VARIANT:
            [recipe] = of_name
            parser.add_argument(
                "--variant", choices=recipe.variants, help=f"{names}: {recipe.variants_help}"
            )
            continue
        trainers: list[type] = [recipe.trainer for recipe in of_name]
        flags = [flags_of(trainer)[name] for trainer in trainers]
        is_one = len({flag.default for flag in flags}) == 1
        flags[0].add(parser, of=names, with_default=is_one)


def given(args: argparse.Namespace, names: Iterable[str], *, prefix: str = "") -> dict[str, Any]:
    """The values given for these fields, by name."""
    found = {name: getattr(args, prefix + name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def mean_power(text: str) -> float | str:
    """Parse a number below 0, or "min", as argparse's `type`."""
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
    """The type without None; for a union of others, the first member."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def _docstrings(kind: type) -> dict[str, str]:
    """Field docstrings, each on one line; a subclass overrides inherited ones."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if dataclasses.is_dataclass(each):
            found |= _own_docstrings(each)
    return found


@cache
def _syntax(file: str) -> ast.Module:
    """Parse a module once for all its classes: inspect.getsource parses it for each of them."""
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def _defines(node: ast.AST, kind: type) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef) and node.name == kind.__name__


@cache
def _own_docstrings(kind: type) -> dict[str, str]:
    """The field docstrings of the class itself, without its bases."""
    tree = _syntax(inspect.getfile(kind))
    nodes = chain(tree.body, ast.walk(tree))  # most classes are at the top level
    found: dict[str, str] = {}
    for field, after in pairwise(next(node for node in nodes if _defines(node, kind)).body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                found[name] = " ".join(str(text).split())
    return found
