"""Results are an immutable table that survives its JSON lines."""

from __future__ import annotations

import operator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from vocabshift.results import Result, Results, read_results, sha256_of, with_sources

ROWS = Results(
    [
        Result("old", "hin", "fertility", 2.5, 100),
        Result("old", "हिन्दी", "fertility", 1.0, 20, 0.9, 1.1),
        Result("new", "hin", "fertility", 1.25, 100),
        Result("new", "hin", "bytes_per_token", 7.125, 100),
    ]
)


def test_json_lines_round_trip(tmp_path: Path) -> None:
    assert ROWS == Results.from_jsonl(ROWS.to_jsonl())
    ROWS.save(tmp_path / "results.jsonl")
    text = (tmp_path / "results.jsonl").read_text(encoding="utf-8")
    assert ROWS == Results.from_jsonl(text)
    assert "हिन्दी" in text
    assert 4 == text.count("\n")


def test_blank_lines_are_skipped_and_nothing_is_nothing() -> None:
    assert ROWS == Results.from_jsonl("\n" + ROWS.to_jsonl().replace("\n", "\n\n"))
    assert Results() == Results.from_jsonl("")
    assert "" == Results().to_jsonl()


def test_a_row_has_the_keys_of_the_contract() -> None:
    keys = ["subject", "language", "metric", "value", "n", "ci_low", "ci_high"]
    assert keys == list(ROWS.to_dicts()[0])


def test_where_and_value() -> None:
    assert ROWS == ROWS.where()
    assert Results(ROWS[2:]) == ROWS.where(subject="new")
    assert isinstance(ROWS.where(subject="new"), Results)
    assert Results() == ROWS.where(language="tam")
    assert 7.125 == ROWS.value("new", "hin", "bytes_per_token")
    assert 1.25 == ROWS.where(language="hin").value("new", "hin", "fertility")


def test_value_needs_exactly_one_row() -> None:
    with pytest.raises(KeyError, match="0 rows"):
        ROWS.value("new", "tam", "fertility")
    with pytest.raises(KeyError, match="2 rows"):
        (ROWS + ROWS[:1]).value("old", "hin", "fertility")


def test_sum_and_distinct() -> None:
    both = ROWS[:1] + ROWS
    assert 5 == len(both)
    assert isinstance(ROWS + ROWS, Results)
    assert ["old", "new"] == ROWS.distinct("subject")
    assert ["hin", "हिन्दी"] == ROWS.distinct("language")
    with pytest.raises(TypeError):
        operator.add(ROWS, [1])


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ROWS[0].value = 3.0  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        ROWS.extra = 1  # type: ignore[attr-defined]


def test_names_with_separators_of_unicode_come_back() -> None:
    """Only a newline ends a row."""
    rows = Results([Result("a\u2028b\x85", "hi", "fertility", 1.5, 3)])
    assert rows == Results.from_jsonl(rows.to_jsonl())


def test_rows_that_are_there_twice(tmp_path: Path) -> None:
    """The same row twice is one; the same with another value is an error that names its line."""
    rows = Results(
        [
            Result("ist", "hin", "fertility", 1.25, 9, 1.2, 1.3),
            Result("ist", "tam", "fertility", 1.75, 9, 1.7, 1.8),
        ]
    )
    file = tmp_path / "results.jsonl"
    rows.save(file)
    assert rows == read_results([file, file])
    other = tmp_path / "other.jsonl"
    Results([rows[1], Result("ist", "hin", "fertility", 1.5, 9)]).save(other)
    with pytest.raises(ValueError, match=r"other\.jsonl, line 2: fertility of ist on hin"):
        read_results([file, other])


def test_checksums_are_kept_where_they_are_known_and_do_not_tell_rows_apart() -> None:
    """A row without them reads and writes as before."""
    known = Result("s", "x", "m", 1.0, 2, tokenizer_sha256="ab", text_sha256="cd")
    unknown = Result("s", "x", "m", 1.0, 2)
    assert known == unknown
    (again,) = Results.from_jsonl(Results([known]).to_jsonl())
    assert ("ab", "cd") == (again.tokenizer_sha256, again.text_sha256)
    (plain,) = Results([unknown]).to_dicts()
    assert not {"tokenizer_sha256", "text_sha256"} & set(plain)


def test_rows_get_the_checksums_of_their_sources() -> None:
    """Of the text of their language, or of all but what stands apart."""
    rows = [Result(s, x, "m", 1.0, 2) for s in ("a", "b") for x in ("en", "all", "en+hi")]
    texts = {"en": ["x", "y"], "hi": ["z"]}
    found = with_sources(rows, texts, {"a": "ab"}, apart={"en+hi": ["x z"]})
    assert ["ab"] * 3 + [None] * 3 == [row.tokenizer_sha256 for row in found]
    expected = [sha256_of(own) for own in (["x", "y"], ["x", "y", "z"], ["x z"])]
    assert expected * 2 == [row.text_sha256 for row in found]
    assert {None} == {row.text_sha256 for row in with_sources(rows, {}, {})}


def test_checksums_come_back_from_files(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = Results([Result("s", "x", "m", 1.0, 2, tokenizer_sha256="ab", text_sha256="cd")])
    rows.save(file)
    (again,) = read_results([file])
    assert ("ab", "cd") == (again.tokenizer_sha256, again.text_sha256)
    file.write_text(rows.to_jsonl().replace('"cd"', "3"), encoding="utf-8")
    with pytest.raises(ValueError, match="no row of results"):
        read_results([file])
