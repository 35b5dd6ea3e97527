"""The public face: every name is there whatever was imported before, and none costs much."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vocabshift as vs


def module_names() -> list[str]:
    found = pkgutil.walk_packages(vs.__path__, "vocabshift.")
    return sorted(name for _, name, _ in found if not name.endswith("__main__"))


def test_every_module_can_be_imported_and_the_face_stays() -> None:
    """Importing a sub-package binds its name on the parent: none may shadow a public function."""
    pytest.importorskip("torch")
    for name in module_names():
        importlib.import_module(name)
    for name in vs.__all__:
        value = getattr(vs, name)
        assert name in ("METRICS", "__version__") or callable(value), name
    assert set(vs.METRICS) > {"fertility", "bytes_per_token"}


def test_every_name_is_offered_by_dir() -> None:
    assert set(vs.__all__) == set(dir(vs))


def test_no_package_has_the_name_of_a_function() -> None:
    packages = {name.split(".")[1] for name in module_names()}
    assert set() == packages & set(vs.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = vs.nothing


def test_type_checkers_see_what_is_loaded_on_first_touch() -> None:
    tree = ast.parse(Path(str(vs.__file__)).read_text(encoding="utf-8"))
    seen = {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vocabshift.")
        for alias in node.names
    }
    assert set(vs.__all__) - {"__version__"} == set(seen)
    for name, module in seen.items():
        pytest.importorskip("torch")
        assert getattr(vs, name) is getattr(importlib.import_module(str(module)), name)


def loaded_by(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after `code`."""
    report = "import sys; print(' '.join({name.split('.')[0] for name in sys.modules}))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    heavy = {"numpy", "torch", "tokenizers", "transformers", "regex", "datasets", "pyarrow"}
    assert set() == heavy & loaded_by("import vocabshift")


def test_training_loads_neither_torch_nor_transformers() -> None:
    code = "import vocabshift as vs; vs.BpeTrainer, vs.SuperwordTrainer, vs.Encoder, vs.check"
    heavy = {"torch", "transformers", "datasets", "pyarrow"}
    assert set() == heavy & loaded_by(code)


def test_the_version_is_written_once() -> None:
    """The build reads it from the package, by the pattern that scikit-build-core documents."""
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert "version" not in project["project"]
    source = project["tool"]["scikit-build"]["metadata"]["version"]
    assert "scikit_build_core.metadata.regex" == source["provider"]
    text = (root / source["input"]).read_text(encoding="utf-8")
    pattern = r"(?im)^(?:__version__|VERSION)(?: ?\:.*?)? *= *(['\"])v?(.+?)\1"
    assert [vs.__version__] == [match[2] for match in re.finditer(pattern, text)]
