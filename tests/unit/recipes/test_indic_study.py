"""The Indic study: what counts as too Roman, samples by language, and tables from few figures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from vocabshift.results import Result, Results

Program = Callable[[str], ModuleType]


@pytest.mark.parametrize(
    ("line", "n"),
    [
        ("यह एक वाक्य है।", 0),
        ("the quick, (brown) fox", 4),
        ("यह WhatsApp पर है", 1),
        ("COVID-19 कोvid naïve 42", 0),
        ("", 0),
    ],
)
def test_roman_words(program: Program, line: str, n: int) -> None:
    assert n == program("indic_study/texts.py").roman_words(line)


def test_a_sample_has_as_many_bytes_of_each_language(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "train"
    source.mkdir()
    hindi = [f"वाक्य {i}\n" for i in range(4000)]
    (source / "hi.txt").write_text("".join(hindi), encoding="utf-8")
    (source / "ta.txt").write_text("வரி\n" * 10 + "one two three four\n" * 5, encoding="utf-8")
    module = program("indic_study/texts.py")

    def sample(name: str, *languages: str) -> Path:
        words = [str(source), str(tmp_path / name), "--languages", *languages]
        monkeypatch.setattr(sys, "argv", ["texts.py", *words, "--mb", "0.02", "--roman-words", "3"])
        module.main()
        return tmp_path / name

    first = sample("a", "hi", "ta")
    kept = (first / "hi.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    assert 16_000 < sum(len(line.encode()) for line in kept) < 24_000
    assert kept == [line for line in hindi if line in set(kept)]
    assert "வரி\n" * 10 == (first / "ta.txt").read_text(encoding="utf-8")
    assert (sample("b", "hi") / "hi.txt").read_bytes() == (first / "hi.txt").read_bytes()
    with pytest.raises(SystemExit):
        sample("c", "gu")


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
