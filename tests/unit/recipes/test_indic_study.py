"""The Indic study: tables from few figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from vocabshift.results import Result, Results

Program = Callable[[str], ModuleType]


def test_tables_hold_the_figures(program: Program, tmp_path: Path) -> None:
    study_of = program("indic_study/tables.py").Study
    values = {"": (2.0, 3.0, 2.5, 4.0, 5.0, 2.0), "-n": (1.9, 2.8, 2.4, 3.9, 4.5, 2.0)}
    rows = [
        Result(f"{recipe}-2000{end}", f"l{i}", "fertility", value, 10)
        for recipe in ("bpe", "unigram")
        for end, of in values.items()
        for i, value in enumerate(of)
    ]
    rows.append(Result("bpe-2000", "unigram-2000", "pairwise_overlap", 0.5, 10))
    (tmp_path / "results.jsonl").write_text(Results(rows).to_jsonl(), encoding="utf-8")
    study = study_of(tmp_path, [2000], 2000, [])
    assert 50.0 == study.overlap("unigram-2000", "bpe-2000")
    assert "| BPE | 3.083 | 2.917 |" in study.table_1()
    assert "| BPE 2k | 3.083 | 2.917 | 0.167 | 5.41 |" in study.table_2()
    # All five that differ are lower: exactly 2 / 2^5.
    assert "| BPE | 0.0625 (5 lower, 0 higher) |" in study.table_3()


def test_languages_that_do_not_differ_decide_nothing(program: Program) -> None:
    assert 1.0 == program("indic_study/tables.py").wilcoxon([1.0, 2.0], [1.0, 2.0])
