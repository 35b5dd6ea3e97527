"""The recipes' own tables: means against a base, time and memory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from vocabshift.results import Result, Results

RESULTS = Results(
    [
        Result("ist", "hi", "fertility", 1.1, 10),
        Result("ist", "en", "fertility", 1.2, 10),
        Result("ist", "code", "fertility", 2.5, 10),
        Result("o|200k", "hi", "fertility", 2.0, 10),
        Result("o|200k", "en", "fertility", 1.0, 10),
        Result("o|200k", "code", "fertility", 2.25, 10),
    ]
)


def run(program, monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["table.py", *map(str, arguments)])
    program("ist/table.py").main()


def test_a_subject_to_compare_with(program, tmp_path: Path, monkeypatch, capsys) -> None:
    RESULTS.save(tmp_path / "results.jsonl")
    run(program, monkeypatch, tmp_path / "results.jsonl", "--against", "ist")
    assert capsys.readouterr().out == (
        "### fertility (tokens per word) ↓\n\n"
        "| tokenizer | en | hi | mean | code | mean, against ist |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| ist | 1.20 | **1.10** | **1.15** | 2.50 | 0.00% |\n"
        "| o\\|200k | **1.00** | 2.00 | 1.50 | **2.25** | 30.43% |\n\n"
    )


def test_no_mean_where_a_language_is_missing(program, tmp_path: Path, monkeypatch, capsys) -> None:
    Results(RESULTS[:4]).save(tmp_path / "results.jsonl")
    run(program, monkeypatch, tmp_path / "results.jsonl", "--against", "ist")
    assert "| o\\|200k | – | 2.00 | – | – | – |" in capsys.readouterr().out


def test_phases(program, tmp_path: Path, monkeypatch, capsys) -> None:
    phases = [{"name": "stage 1", "seconds": 1.25, "peak_rss_bytes": 3_000_000_000}]
    (tmp_path / "ist.json").write_text(json.dumps({"phases": phases}), encoding="utf-8")
    run(program, monkeypatch, "--phases", f"ist={tmp_path}/ist.json")
    assert "| ist | stage 1 | 1.2 | 3,000 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [(), ("RESULTS",), ("--against", "ist"), ("RESULTS", "--against", "nobody")]
)
def test_nothing_to_show_is_an_error(program, tmp_path: Path, monkeypatch, arguments) -> None:
    RESULTS.save(tmp_path / "RESULTS")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as error:
        run(program, monkeypatch, *arguments)
    assert 2 == error.value.code
