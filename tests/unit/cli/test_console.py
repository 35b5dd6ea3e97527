"""The two streams."""

from __future__ import annotations

import io
import json
import sys

import pytest

from vocabshift.cli import console


def test_json_survives_a_narrow_encoding(monkeypatch) -> None:
    """Where stdout cannot carry a character it is escaped, and the value is the same."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    console.print_json({"token": "क", "path": "\udcff"})
    sys.stdout.flush()
    assert {"token": "क", "path": "\udcff"} == json.loads(raw.getvalue())


def test_json_has_no_nan() -> None:
    """NaN is not JSON: it is refused rather than printed."""
    with pytest.raises(ValueError, match="JSON"):
        console.print_json({"value": float("nan")})


def test_progress_is_silent_without_a_terminal(capsys) -> None:
    """A log file is not filled with bars."""
    with console.progress_bar() as report:
        report("count", 0, 10)
        report("count", 10, 10)
        report("merge", 3, None)
    streams = capsys.readouterr()
    assert ("", "") == (streams.out, streams.err)


def test_summary(capsys) -> None:
    """Numbers are grouped, and the next command stands on one line at the end."""
    command = "vocabshift check " + "x" * 200
    console.show_summary(console.stdout(), "train", {"vocabulary": 32000, "out": "[x]"}, command)
    out = capsys.readouterr().out
    assert "32,000" in out
    assert "[x]" in out
    assert f"next: {command}" == out.splitlines()[-1]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("wrong"), "vocabshift: error: wrong; kept in DIR\n"),
        (OSError(28, "disk is full", "f"), "vocabshift: error: f: disk is full; kept in DIR\n"),
        (KeyboardInterrupt(), "vocabshift: interrupted; kept in DIR\n"),
    ],
)
def test_how_to_go_on_is_said_on_the_same_line(capsys, error: BaseException, said: str) -> None:
    """What an error was noted with: where the checkpoints are."""
    error.add_note("kept in DIR")
    console.report_error(error, with_traceback=False)
    assert said == capsys.readouterr().err


@pytest.mark.parametrize("package", ["scipy", "rapidfuzz", "tiktoken"])
def test_a_package_that_is_missing_is_no_fault_of_ours(capsys, package: str) -> None:
    """What says itself what to install is told in its own words."""
    error = ImportError(f"this needs {package}: pip install it")
    assert 2 == console.report_error(error, with_traceback=False)
    assert f"vocabshift: error: this needs {package}: pip install it\n" == capsys.readouterr().err
