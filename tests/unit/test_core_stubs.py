"""The typed stubs name what the built core offers, and nothing else."""

from __future__ import annotations

import ast
import enum
import os
from pathlib import Path
from typing import Any

import pytest

import vocabshift
from vocabshift import _core

STUBS = ast.parse((Path(vocabshift.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
CLASSES = {node.name: node for node in STUBS.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUBS.body if isinstance(node, ast.FunctionDef)}


def public(value: Any) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_classes_and_functions() -> None:
    assert public(_core) == set(CLASSES) | set(FUNCTIONS)


@pytest.mark.parametrize("name", CLASSES)
def test_members_of_a_class(name: str) -> None:
    built = getattr(_core, name)
    body = CLASSES[name].body
    methods = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    if issubclass(built, enum.Enum):
        values = {
            target.id
            for node in body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        assert set(built.__members__) == values
        return
    assert public(built) == {method for method in methods if not method.startswith("_")}
    for method, node in methods.items():
        if method == "__init__" or method in public(built):
            is_property = any(ast.unparse(d) == "property" for d in node.decorator_list)
            assert isinstance(getattr(built, method), property) == is_property, method
            if not is_property:
                assert_same_arguments(getattr(built, method), node)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_of_a_function(name: str) -> None:
    assert_same_arguments(getattr(_core, name), FUNCTIONS[name])


def assert_same_arguments(built: Any, stub: ast.FunctionDef) -> None:
    """The docstring of a bound function begins with its signature."""
    signature = built.__doc__.split("(", 1)[1]
    named = [arg.arg for arg in (*stub.args.args, *stub.args.kwonlyargs) if arg.arg != "self"]
    for name in named:
        assert f"{name}: " in signature, f"{stub.name} has no argument {name}"
    assert signature.split(") ->")[0].count(": ") - ("self: " in signature) >= len(named)


def test_there_is_a_class_with_a_constructor_for_each_that_can_be_made() -> None:
    """Trained is only returned; what pybind11 cannot construct has no `__init__` in the stubs."""
    assert "__init__" not in {
        node.name for node in CLASSES["Trained"].body if hasattr(node, "name")
    }
    with pytest.raises(TypeError, match="No constructor defined"):
        _core.Trained()


def test_the_sanitized_core_is_the_one_that_is_loaded() -> None:
    """`make sanitize` says which sanitizer it has built in; any other core has none."""
    built = Path(_core.__file__).read_bytes()
    found = {name for name in ("address", "thread") if f"__{name[0]}san_init".encode() in built}
    wanted = os.environ.get("VOCABSHIFT_SANITIZER")
    assert found == ({wanted} if wanted else set())
