"""The public face: every name is there whatever was imported before, and none costs much."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from importlib.util import find_spec
from inspect import Parameter, getsource, isclass, isfunction, signature
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.errors import renamed_keyword


def module_names() -> list[str]:
    found = pkgutil.walk_packages(vs.__path__, "vocabshift.")
    return sorted(name for _, name, _ in found if not name.endswith("__main__"))


def test_every_module_can_be_imported_and_the_face_stays() -> None:
    """Importing a sub-package binds its name on the parent: none may shadow a public function."""
    pytest.importorskip("torch")
    for name in module_names():
        if name != "vocabshift.engines.datatrove" or find_spec("datatrove"):
            importlib.import_module(name)
    for name in vs.__all__:
        value = getattr(vs, name)
        assert name in ("METRICS", "__version__") or callable(value), name
    assert set(vs.METRICS) > {"fertility", "bytes_per_token"}


def test_every_name_is_offered_by_dir() -> None:
    assert set(vs.__all__) == set(dir(vs))


def functions() -> dict[str, Callable[..., Any]]:
    return {name: getattr(vs, name) for name in vs.__all__ if isfunction(getattr(vs, name))}


def test_functions_say_what_they_take() -> None:
    """A caller sees every option with its default: no **options, and no Any."""
    pytest.importorskip("torch")
    vague = [
        f"{name}({parameter})"
        for name, function in functions().items()
        for parameter in signature(function).parameters.values()
        if parameter.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        or parameter.annotation is Parameter.empty
        or re.search(r"\bAny\b", str(parameter.annotation))
    ]
    assert [] == vague


def test_docstrings_name_every_parameter_and_what_is_raised() -> None:
    pytest.importorskip("torch")
    silent = [
        f"{name}: {parameter}"
        for name, function in functions().items()
        for parameter in signature(function).parameters
        if not re.search(rf"\b{parameter}\b", str(function.__doc__))
    ]
    assert [] == silent
    without_errors = [
        name
        for name, function in functions().items()
        if not re.search(r"\w+Error\b|\bErrors\b", str(function.__doc__))
    ]
    assert [] == without_errors


def test_fields_say_what_they_hold() -> None:
    """By a comment after the field, a docstring below it, or its name in the class's docstring."""
    pytest.importorskip("torch")
    silent = []
    for name in vs.__all__:
        value = getattr(vs, name)
        if isclass(value) and is_dataclass(value):
            own = [base for base in value.__mro__ if base.__module__.startswith("vocabshift.")]
            source = "\n".join(getsource(base) for base in own)
            for each in fields(value):
                field = each.name
                said = (
                    rf"`{field}`|^    {field}: [^\n]*  #|"
                    rf'^    {field}: (?:[^\n]*|\w+\((?:.|\n)*?\n    \))\n    r?"""'
                )
                if not field.startswith("_") and not re.search(said, source, re.MULTILINE):
                    silent.append(f"{name}.{field}")
    assert [] == silent


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


def test_documented_names_of_0_1_still_import() -> None:
    """README and docs named these modules; they leave with 0.2."""
    pytest.importorskip("torch")
    for module, name in (
        ("vocabshift.evaluation.harness", "TASKS"),
        ("vocabshift.cpt.loop", "Phase"),
        ("vocabshift.cpt.loop", "LoopConfig"),
    ):
        assert hasattr(importlib.import_module(module), name), (module, name)


def test_a_deprecated_name_is_the_new_one_and_says_so(monkeypatch) -> None:
    """As an attribute and in `from vocabshift import`; the warning names the caller's file."""
    monkeypatch.setattr(vs, "_RENAMED", {"OldCorpus": ("Corpus", "0.3")})
    said = r"vocabshift.OldCorpus is deprecated and goes with version 0.3; write vocabshift.Corpus"
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match=f"^{re.escape(said)}$") as caught:
            assert vs.Corpus is vs.OldCorpus  # type: ignore[attr-defined]
        assert [__file__] == [each.filename for each in caught]
    with pytest.warns(DeprecationWarning, match=re.escape(said)):
        from vocabshift import OldCorpus  # type: ignore[attr-defined]
    assert vs.Corpus is OldCorpus
    assert "OldCorpus" not in dir(vs)


@renamed_keyword("size", "vocab_size", "0.3")
def _train(text: str, *, vocab_size: int = 1) -> tuple[str, int]:
    """A function with a parameter that had another name."""
    return text, vocab_size


@renamed_keyword("size", "vocab_size", "0.3")
@dataclass(frozen=True)
class _Options:
    """A dataclass likewise."""

    text: str
    vocab_size: int = 1


@pytest.mark.parametrize("called", [_train, _Options])
def test_a_deprecated_keyword_is_the_new_one_and_says_so(called: Callable[..., Any]) -> None:
    """The new spelling says nothing, both are an error, and the signature has the new one alone."""
    said = r"^size= is deprecated and goes with version 0\.3; write vocab_size=$"
    with pytest.warns(DeprecationWarning, match=said) as caught:
        old = called("a", size=3)
    assert [__file__] == [each.filename for each in caught]
    assert called("a", vocab_size=3) == old
    assert called("a", vocab_size=1) == called("a")
    with pytest.raises(TypeError, match=f"{called.__name__}: size is vocab_size; give one"):
        called("a", size=3, vocab_size=3)
    assert ["text", "vocab_size"] == list(signature(called).parameters)
