"""The recipes' own programs, as modules."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

import programs


@pytest.fixture(scope="session")
def program() -> Callable[[str], ModuleType]:
    """Loads a program by its path under recipes/."""
    return lambda path: programs.load(f"recipes/{path}")
