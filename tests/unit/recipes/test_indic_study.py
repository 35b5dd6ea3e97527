"""The Indic study: tables from few figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

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
    means = {"2k NN": pytest.approx(18.5 / 6), "2k N": pytest.approx(17.5 / 6)}
    assert means == {name: own["BPE"] for name, own in study.table_1().items()}
    changed = {"Δ": pytest.approx(1 / 6), "%": pytest.approx(100 / 18.5)}
    assert changed == {name: study.table_2()[name]["BPE 2k"] for name in changed}
    # All five that differ are lower: exactly 2 / 2^5.
    expected = {"p": 0.0625, "lower": 5, "higher": 0}
    assert expected == {name: own["BPE 2k"] for name, own in study.table_3().items()}


def test_languages_that_do_not_differ_decide_nothing(program: Program) -> None:
    assert 1.0 == program("indic_study/tables.py").wilcoxon([1.0, 2.0], [1.0, 2.0])
