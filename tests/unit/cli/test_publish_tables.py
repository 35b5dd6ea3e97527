"""`vocabshift tables`, from files to files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.results import Result, Results, read_results

ROWS = Results(
    [
        Result("ist", "hin", "fertility", 1.25, 9, 1.2, 1.3),
        Result("ist", "tam", "fertility", 1.75, 9, 1.7, 1.8),
        Result("bpe", "hin", "fertility", 2.0, 9),
        Result("bpe", "tam", "fertility", 3.0, 9),
    ]
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    ROWS.save(tmp_path / "results.jsonl")
    return tmp_path / "results.jsonl"


def test_the_table_is_printed_alone(file: Path, capsys) -> None:
    assert 0 == main(["tables", str(file), "--shape", "matra-3", "--intervals"])
    assert capsys.readouterr().out.splitlines()[:6] == [
        "### Fertility on some languages (Matra, Table 3)",
        "",
        "| language | ist | bpe |",
        "| --- | ---: | ---: |",
        "| Hindi | **1.25** ±0.05 | 2.00 |",
        "| Tamil | **1.75** ±0.05 | 3.00 |",
    ]


def test_it_is_written_and_not_replaced(file: Path, capsys) -> None:
    out = file.with_name("t.csv")
    words = ["tables", str(file), "--format", "csv", "--shape", "families", "-o", str(out)]
    assert 0 == main([*words, "--json"])
    told = json.loads(capsys.readouterr().out)
    expected = "tokenizer,Dravidian,Indo-European,mean\nist,1.75,1.25,1.5\nbpe,3.0,2.0,2.5\n"
    assert expected == out.read_text(encoding="utf-8") == told["text"]
    assert (str(out), "families", 1) == (told["out"], told["shape"], told["tables"])
    assert 2 == main(words)
    assert "exists already" in capsys.readouterr().err
    assert 0 == main([*words, "--force"])
    assert f"written: {out}\n" == capsys.readouterr().out
    assert [] == list(file.parent.glob("*.partial"))


def test_an_input_is_never_replaced(file: Path, capsys) -> None:
    assert 2 == main(["tables", str(file), "-o", str(file), "--force"])
    assert "also an input" in capsys.readouterr().err
    assert ROWS == read_results([file])


@pytest.mark.parametrize(
    "line",
    [
        *("no json", "[]", "{}", "[" * 100_000, '{"subject": "a"}'),
        '{"subject": "a", "language": "hi", "metric": "m", "value": NaN, "n": 1}',
        '{"subject": "a", "language": "hi", "metric": "m", "value": "1", "n": 1}',
        '{"subject": 1, "language": "hi", "metric": "m", "value": 1, "n": 1}',
        '{"subject": "a", "language": "hi", "metric": "m", "value": 1, "n": 1, "ci_low": "x"}',
    ],
)
def test_what_is_no_row_is_refused(file: Path, line: str, capsys) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write("\n" + line)
    assert 2 == main(["tables", str(file)])
    error = capsys.readouterr().err
    assert "results.jsonl, line 6 is no row of results" in error
    assert 1 == error.count("\n")


def test_bytes_that_are_no_text_are_refused(file: Path, capsys) -> None:
    file.write_bytes(b"\xff\xfe")
    assert 2 == main(["tables", str(file)])
    assert "not UTF-8" in capsys.readouterr().err
