"""A changed file leads to the tests that could notice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import programs


@pytest.fixture(scope="module")
def tests_of() -> Callable[..., list[str]]:
    """The function of the program."""
    found: Callable[..., list[str]] = programs.load("tools/check_changed.py").tests_of
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of a few tests."""
    texts = {
        "tests/unit/text/test_lines.py": "",
        "tests/unit/text/test_other.py": "from vocabshift.text import lines, words\n",
        "tests/unit/text/test_words.py": "from vocabshift.text.lines_of import x\n",
        "tests/property/test_all.py": 'monkeypatch.setattr("vocabshift.text.lines.read", None)\n',
        "tests/integration/test_slow.py": "import vocabshift.text.lines\n",
        "tests/unit/test_layers.py": "",
        "tests/unit/cli/test_main_docs.py": "from small_models import train\n",
        "tests/golden/test_hashes.py": "",
        "tests/small_models.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (
            "src/vocabshift/text/lines.py",
            [
                "tests/property/test_all.py",
                "tests/unit/test_layers.py",
                "tests/unit/text/test_lines.py",
                "tests/unit/text/test_other.py",
            ],
        ),
        ("tests/integration/test_slow.py", ["tests/integration/test_slow.py"]),
        ("tests/integration/test_gone.py", []),
        ("tests/small_models.py", ["tests/unit/cli/test_main_docs.py"]),
        ("tests/unit/cli/conftest.py", ["tests/unit/cli"]),
        ("docs/cpt.md", ["tests/unit/cli/test_main_docs.py"]),
        ("src/vocabshift/cli/x.py", ["tests/unit/cli", "tests/unit/test_layers.py"]),
        ("cpp/core/merges.h", ["tests/golden", "tests/property"]),
        ("LICENSE", []),
    ],
)
def test_tests_of_a_file(tests_of, root: Path, changed: str, tests: list[str]) -> None:
    assert tests == tests_of([changed], root)


def test_a_file_inside_a_listed_folder_is_not_named_twice(tests_of, root: Path) -> None:
    assert ["tests/unit/cli"] == tests_of(["tests/unit/cli/conftest.py", "docs/cpt.md"], root)
