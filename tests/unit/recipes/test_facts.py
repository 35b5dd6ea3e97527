"""Figures of the papers' tables that no verb of the command line prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vocabshift as vs


def test_facts_of_text_by_language(program, tmp_path: Path) -> None:
    (tmp_path / "hi.txt").write_text("एक दो\nतीन\n", encoding="utf-8")
    (tmp_path / "en.txt").write_text("one\n", encoding="utf-8")
    specs = [f"{name}={tmp_path / name}.txt" for name in ("hi", "en")]
    lines = program("data/rows.py").by_label(vs.Corpus.from_specs(specs).texts())
    found = {row["row"]: row["values"] for row in program("ist/facts.py").of_text(lines)}
    assert {
        "Size (MB)": {"hi": 22e-6, "en": 3e-6},
        "# Lines (K)": {"hi": 0.002, "en": 0.001},
        "Avg W/Line": {"hi": 1.5, "en": 1.0},
    } == found


def test_facts_of_what_training_reported(program, tmp_path: Path) -> None:
    facts = program("ist/facts.py")
    vocabulary = [
        {"name": "Latin", "training_share": 0.25, "share": 0.5},
        {"name": "Tamil", "training_share": None, "share": 0.125},
    ]
    scripts = [{"script": "Latin", "budget": 7}, {"script": "Tamil", "budget": 100}]
    figures = {"vocabulary": vocabulary, "scripts": scripts, "training_bytes": 24_843_000}
    figures["vocab_size"] = 64000
    (tmp_path / "vocabshift.json").write_text(json.dumps({"figures": figures}), encoding="utf-8")
    assert 356 == facts.budget(tmp_path, "Tamil")  # the bytes are in no budget
    sizes = {row["row"]: row["size"] for row in facts.how_made(tmp_path)}
    assert {"ist-2": "The evaluation text", "ist-10": "64,000 tokens, 24.8 MB"} == sizes
    assert {
        "Percentage": {"Latin": 25, "Tamil": 0},
        "Vocab perc dist": {"Latin": 50, "Tamil": 12.5},
    } == {row["row"]: row["values"] for row in facts.of_vocabulary(tmp_path)}


def test_fertility_by_rank_is_a_mean_over_languages(program, tmp_path: Path) -> None:
    lines = [
        {"subject": "E", "metric": f"fertility_bin_{ranks}", "language": language, "value": value}
        for ranks, language, value in (
            *(("1_10", "hi", 1.0), ("1_10", "ta", 2.0)),
            *(("10001_up", "hi", 3.0), ("unseen", "hi", 4.0)),
        )
    ]
    file = tmp_path / "bins.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    [row] = program("matra/open.py").bins(file)
    assert {"1 to 10": 1.5, "10001 and up": 3.0, "unseen": 4.0} == row["values"]


@pytest.mark.parametrize(
    ("token", "is_between"),
    [("a. b", True), ("है। यह", True), ("है।\n", False), (". b", False), ("a.\n  (b", True)],
)
def test_tokens_between_words(program, token: str, is_between: bool) -> None:
    assert is_between == bool(program("matra/open.py").BETWEEN_WORDS.search(token))
