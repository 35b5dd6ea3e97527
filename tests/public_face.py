"""What users rely on, as plain values: Python names, flags, JSON and files; and a change in words.

`tests/golden/test_public.py` compares these with the files in `tests/golden/public`. A face maps a
section (a function, a verb, an output) to its items, and each item to a description. Help texts
and docstrings are no part of it: wording may change at any time.
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import vocabshift as vs
from vocabshift.cli.main import build_parser

Face = dict[str, dict[str, str]]


def python_face() -> Face:
    """Every public name: of a function the parameters, of a class those and its members."""
    face: Face = {"vs.METRICS": dict.fromkeys(sorted(vs.METRICS), "a metric")}
    for name in sorted(set(vs.__all__) - {"METRICS", "__version__"}):
        value = getattr(vs, name)
        if inspect.isclass(value) and issubclass(value, Exception):
            bases = [base.__name__ for base in value.__mro__[1:-2]]
            face[f"vs.{name}"] = {"is": f"an exception: {', '.join(bases)}"}
            continue
        face[f"vs.{name}"] = parameters(value)
        for member, of_class in sorted(members(value).items() if inspect.isclass(value) else ()):
            bare = getattr(of_class, "__func__", of_class)
            if callable(bare):
                for item, said in parameters(bare, is_method=True).items():
                    face[f"vs.{name}"][f".{member}() {item}"] = said
            else:
                face[f"vs.{name}"][f".{member}"] = "an attribute"
    return face


def members(kind: type) -> dict[str, Any]:
    """Public members of a class that are defined in the package, by name."""
    own = [base for base in reversed(kind.__mro__) if base.__module__.startswith("vocabshift")]
    found = {name: value for base in own for name, value in vars(base).items()}
    fields = getattr(kind, "__dataclass_fields__", {})
    return {
        name: None if name in fields else value
        for name, value in {**found, **fields}.items()
        if not name.startswith("_")
    }


def parameters(value: Any, *, is_method: bool = False) -> dict[str, str]:
    """Parameters in order, and what is returned, each in words."""
    signature = inspect.signature(value)
    listed = list(signature.parameters.values())
    if is_method and listed and listed[0].name in ("self", "cls"):
        del listed[0]
    said = {}
    for number, one in enumerate(listed, start=1):
        by_name = one.kind is inspect.Parameter.KEYWORD_ONLY
        text = "by name" if by_name else f"parameter {number}"
        text += f": {annotation(one.annotation)}"
        if one.default is not inspect.Parameter.empty:
            text += f" = {default(one.default)}"
        said[one.name] = text
    return {**said, "returns": annotation(signature.return_annotation)}


def annotation(value: Any) -> str:
    """A type as the source spells it."""
    if value is inspect.Signature.empty:
        return "not said"
    return value if isinstance(value, str) else getattr(value, "__name__", str(value))


def default(value: Any) -> str:
    """A default without addresses and versions."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__qualname__
    text = repr(value)
    return f"{type(value).__name__}(…)" if " at 0x" in text else text


def command_line_face() -> Face:
    """Every verb with its arguments: values, whether they are required, and defaults."""
    parser = build_parser()
    [verbs] = [each for each in parser._actions if isinstance(each.choices, dict)]
    face = {"vocabshift": arguments(parser)}
    for verb, own in verbs.choices.items():
        face[f"vocabshift {verb}"] = arguments(own.filled())
    return face


def arguments(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The arguments of one parser by their spellings."""
    found = {}
    for action in parser._actions:
        if isinstance(action.choices, dict):
            continue
        name = ", ".join(action.option_strings) or action.metavar or action.dest
        said = ["required"] if action.required else []
        said.append({None: "one value", 0: "no value"}.get(action.nargs, f"values: {action.nargs}"))
        if action.choices is not None:
            said.append(f"of {', '.join(map(str, action.choices))}")
        if action.default not in (None, False, argparse.SUPPRESS):
            said.append(f"default {action.default}")
        found[str(name)] = "; ".join(said)
    return found


def shape(value: Any, data_keys: Collection[str] = ()) -> dict[str, str]:
    """Every path of a JSON value with the kinds of values there.

    Keys that are data count as one key, `*`: `data_keys`, and names of files. Objects and lists
    are named only if they are empty.
    """
    kinds: dict[str, set[str]] = {}

    def visit(one: Any, path: str) -> None:
        if isinstance(one, Mapping) and one:
            for key, inner in one.items():
                name = "*" if key in data_keys or "." in key else key
                visit(inner, f"{path}.{name}".lstrip("."))
        elif isinstance(one, list) and one:
            for inner in one:
                visit(inner, f"{path}[]")
        else:
            names = {bool: "boolean", int: "integer", float: "number", str: "string"}
            names |= {dict: "empty object", list: "empty list"}
            kinds.setdefault(path, set()).add(names.get(type(one), "null"))

    visit(value, "")
    return {path: " or ".join(sorted(found)) for path, found in sorted(kinds.items())}


def in_words(old: Face, new: Face) -> list[str]:
    """How a face differs from what it was, a line for each thing: gone, changed or new."""
    lines = []
    for section in sorted({*old, *new}):
        before, after = old.get(section), new.get(section)
        if before is None or after is None:
            lines.append(f"{'new' if before is None else 'gone'}: {section}")
            continue
        for item in sorted({*before, *after}):
            was, now = before.get(item), after.get(item)
            if was is None:
                lines.append(f"new: {section}: {item} ({now})")
            elif now is None:
                lines.append(f"gone: {section}: {item} (was: {was})")
            elif was != now:
                lines.append(f"changed: {section}: {item} (was: {was}; is: {now})")
    return lines


def read(file: Path) -> Face:
    """A face from its golden file."""
    face: Face = json.loads(file.read_text(encoding="utf-8"))
    return face


def write(file: Path, face: Face) -> None:
    """The golden file of a face: one item on each line, so that a diff can be read."""
    text = json.dumps(face, ensure_ascii=False, indent=1)
    file.write_text(text + "\n", encoding="utf-8")
