"""Programs of recipes/, benchmarks/ and tools/ as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = tuple(str(ROOT / name) for name in ("recipes", "benchmarks", "tools"))


def load(path: str) -> ModuleType:
    """A program by its path in the repository; each call runs it anew.

    It finds the files next to it, as if it were run. They are forgotten afterwards: several folders
    have a measure.py or a tables.py.
    """
    file, name = ROOT / path, path.replace("/", "_").removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    search, known = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = search
        for other in set(sys.modules) - known:
            if str(getattr(sys.modules[other], "__file__", "")).startswith(FOLDERS):
                del sys.modules[other]
    return module
