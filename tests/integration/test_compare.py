"""`vocabshift compare`, and the files of `evaluate`, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vocabshift as vs
from vocabshift.cli.main import main

LINES = {
    "en": ["The river runs past the old mill.", "The mill turns all day and all night."],
    "hi": ["नदी पुराने घर के पास से बहती है।", "सुबह नाव नदी में आती है।"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tokenizers and the text."""
    base = tmp_path_factory.mktemp("compare")
    corpus = vs.Corpus.from_texts({name: lines * 4 for name, lines in LINES.items()})
    for name, size in (("small", 260), ("large", 400)):
        vs.BpeTrainer(vocab_size=size).train(corpus).save_pretrained(base / name)
    for name, lines in LINES.items():
        (base / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return base


def words(folder: Path, *more: str) -> list[str]:
    text = [f"{name}={folder / name}.txt" for name in LINES]
    return ["compare", str(folder / "small"), str(folder / "large"), "--text", *text, *more]


def test_json_is_the_comparison(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(words(folder, "--json", "--lines", "1", "--changes", "3"))
    found = json.loads(capsys.readouterr().out)
    assert ("small", "large", None) == (found["a"], found["b"], found["html"])
    assert ["en", "hi"] == [row["language"] for row in found["languages"]]
    assert 2 == len(found["lines"])
    assert 3 == len(found["shorter"])
    small = vs.load_tokenizer(folder / "small").backend
    for row in found["languages"]:
        tokens = sum(len(small.encode(line).ids) for line in LINES[row["language"]])
        assert tokens == row["tokens_a"] > row["tokens_b"]


def test_people_see_tokens_even_without_colours(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(words(folder, "--ascii"))
    shown = capsys.readouterr().out
    assert "what became shorter" in shown
    assert "|" in shown
    signs = {c for c in shown if not c.isascii()} - set("".join(LINES["hi"]))
    assert set() == signs


def test_the_page_is_written_and_not_replaced_unasked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "compare.html"
    assert 0 == main(words(folder, "--html", str(page)))
    before = page.read_bytes()
    assert b"Lines that changed most" in before
    assert 2 == main(words(folder, "--html", str(page)))
    assert "exists already" in capsys.readouterr().err
    assert 0 == main(words(folder, "--html", str(page), "--force"))
    assert before == page.read_bytes()
    assert 2 == main(words(folder, "--html", str(tmp_path / "none" / "a.html")))
    assert 2 == main(words(folder, "--html", str(tmp_path), "--force"))
    assert ["compare.html"] == [path.name for path in tmp_path.iterdir()]


def test_evaluate_writes_its_page_and_figures(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    text = [f"{name}={folder / name}.txt" for name in LINES]
    run = ["evaluate", str(folder / "small"), str(folder / "large"), "--text", *text]
    files = ["--html", str(tmp_path / "a.html"), "--figures", str(tmp_path / "figures")]
    assert 0 == main([*run, *files])
    shown = capsys.readouterr().out
    assert "a.html" in shown
    assert "Languages by tokenizers" in (tmp_path / "a.html").read_text(encoding="utf-8")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"bars.svg", "bars.png", "heatmap.svg", "heatmap.png"} == names
    assert 2 == main([*run, *files[:2]])
    assert 2 == main([*run, *files[2:]])
    assert 0 == main([*run, *files, "--force", "--json"])
    assert 1 == capsys.readouterr().out.count("\n")
