"""The program that measures engines: what it reads, and that nothing is measured twice."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

import programs


@pytest.fixture(scope="module")
def engines() -> ModuleType:
    return programs.load("benchmarks/engines.py")


def test_a_result_is_not_measured_again(
    engines: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("some words and more words\n" * 500, encoding="utf-8")
    words = ["--text", str(text), "--ways", "words-local", "--megabytes", "0.01", "--threads", "1"]
    words += ["--results", str(tmp_path / "results.jsonl")]
    monkeypatch.setattr(sys, "argv", ["engines.py", *words])
    engines.main()
    table = capsys.readouterr().out.splitlines()[:3]
    assert "| 0.01 | words-local | words | 1 threads |" in table[2]
    [row] = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert (4, True) == (row["found"], row["peak_mb"]["command"] > 10)
    monkeypatch.setattr(engines, "observe", None)
    engines.main()
    assert table == capsys.readouterr().out.splitlines()[:3]
    monkeypatch.setattr(sys, "argv", ["engines.py", *words, "--megabytes", "1"])
    with pytest.raises(SystemExit, match="fewer than 1 MB"):
        engines.main()


def test_our_samples_are_enough(
    engines: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --text and --megabytes."""
    monkeypatch.setattr(sys, "argv", ["engines.py", "--ways", "words-local", "--threads", "1"])
    engines.main()
    assert "| 0.1 | words-local | words | 1 threads |" in capsys.readouterr().out


def test_parts_hold_the_lines_of_the_text(
    engines: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_PART_BYTES", 5)
    (tmp_path / "text").write_bytes(b"four\nsix\n\nand more\nrest")
    (tmp_path / "parts").mkdir()
    engines.write_parts(tmp_path / "text", 15e-6, tmp_path / "parts")
    parts = [file.read_bytes() for file in sorted((tmp_path / "parts").iterdir())]
    assert [b"four\nsix\n", b"\nand more\n"] == parts


def test_an_event_log_says_what_moved_and_what_was_lost(
    engines: ModuleType, tmp_path: Path
) -> None:
    metrics = {"Shuffle Write Metrics": {"Shuffle Bytes Written": 7}}
    done = {"Event": "SparkListenerTaskEnd", "Stage ID": 3, "Task Metrics": metrics}
    events = [
        {"Event": "SparkListenerJobStart"},
        {**done, "Task End Reason": {"Reason": "Success"}},
        {**done, "Task End Reason": {"Reason": "Success"}},
        {"Event": done["Event"], "Stage ID": 4, "Task End Reason": {"Reason": "ExecutorLost"}},
    ]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    assert ({"3": 14}, {"4": 1}) == engines.engine_ways.of_event_log(tmp_path)
