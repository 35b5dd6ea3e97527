"""The recipes' own programs, as modules."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

RECIPES = Path(__file__).resolve().parents[3] / "recipes"


@pytest.fixture(scope="session")
def program() -> Callable[[str], ModuleType]:
    """Loads a program by its path under recipes/."""

    def load(path: str) -> ModuleType:
        name = "recipes_" + path.replace("/", "_").removesuffix(".py")
        spec = importlib.util.spec_from_file_location(name, RECIPES / path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module

    return load
