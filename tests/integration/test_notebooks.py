"""The notebooks run from top to bottom, on a small model in place of the one that they name."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import small_models

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHOWN = {
    "judge": ("one: 0 tokens cannot be produced", "fertility", " places", "all"),
    "swap": ("bytes_per_token", "before", "swapped", "trained", "control"),
    "trim": (" parameters -> ", "before", "trimmed"),
}


def cells(notebook: Path) -> list[str]:
    """The code, cell by cell."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small models, and text of two languages to learn from and to measure on."""
    place = tmp_path_factory.mktemp("notebooks")
    tokenizer = small_models.old_tokenizer()
    for name, kind in (("one", "llama-tied"), ("two", "llama")):
        model = small_models.build(kind, tokenizer, max_position_embeddings=256)
        small_models.save(model, tokenizer, place / name)
    small_models.new_tokenizer().save_pretrained(place / "other")
    for name, texts in (("hi", small_models.HINDI), ("en", small_models.ENGLISH)):
        lines = [f"{text}, {number}." for number, text in enumerate(texts * 4)]
        (place / f"{name}.txt").write_text("\n".join(lines[::2]) + "\n", encoding="utf-8")
        (place / f"{name}.held.txt").write_text("\n".join(lines[1::2]) + "\n", encoding="utf-8")
    return place


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(
    notebook: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The first cell has names of models and files, and is all that a reader changes."""
    monkeypatch.chdir(tmp_path)
    one, two = str(place / "one"), str(place / "two")
    ours = {
        "MODEL": one,
        "MODELS": [one, two],
        "TOKENIZERS": {"one": one, "other": str(place / "other")},
        "TEXT": {name: str(place / f"{name}.txt") for name in ("hi", "en")},
        "HELD_OUT": {name: str(place / f"{name}.held.txt") for name in ("hi", "en")},
        "VOCAB_SIZE": 300,
        "TRAIN_BYTES": 2_000,
        "WORSE": 0.5,
    }
    given, *rest = cells(notebook)
    named = {node.targets[0].id for node in ast.parse(given).body if isinstance(node, ast.Assign)}
    assert named <= set(ours)
    names: dict[str, Any] = {}
    exec(compile(given, notebook.name, "exec"), names)
    names |= {name: ours[name] for name in named}
    for cell in rest:
        exec(compile(cell, notebook.name, "exec"), names)
    shown = capsys.readouterr().out
    assert [] == [each for each in SHOWN[notebook.stem] if each not in shown]
    for folder in tmp_path.iterdir():  # what the notebook saved
        assert {"config.json", "tokenizer.json"} <= {file.name for file in folder.iterdir()}


def test_outputs_are_stripped() -> None:
    assert set(SHOWN) == {notebook.stem for notebook in NOTEBOOKS}
    for notebook in NOTEBOOKS:
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
