"""The two streams."""

from __future__ import annotations

import io
import json
import sys
import warnings

import pytest
from rich.table import Table
from rich.text import Text

from vocabshift.cli import console, summary
from vocabshift.errors import VocabshiftWarning
from vocabshift.progress import in_phase


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


def test_progress_of_short_work_is_silent_without_a_terminal(capsys) -> None:
    """A log file is not filled with bars."""
    with console.progress_bar() as report:
        report("count", 0, 10)
        report("count", 10, 10)
        report("merge", 3, None)
    streams = capsys.readouterr()
    assert ("", "") == (streams.out, streams.err)


def test_progress_of_long_work_is_a_line_now_and_then(capsys, monkeypatch) -> None:
    """With rate and time left, on stderr alone; the clock here is the test's own."""
    clock = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    with console.progress_bar(unit="tokens") as report:
        report("base", 0, 11_000)
        for clock[0], done in ((110.0, 1_000), (131.0, 3_100), (132.0, 3_200), (162.0, 6_200)):
            report("base", done, 11_000)
        clock[0] = 192.0
        report("merge", 3, None)
    streams = capsys.readouterr()
    assert "" == streams.out
    assert [
        "vocabshift: base: 3,100 of 11,000 tokens, 100 tokens/s, 0:01:19 left",
        "vocabshift: base: 6,200 of 11,000 tokens, 100 tokens/s, 0:00:48 left",
        "vocabshift: merge: 3 tokens",
    ] == streams.err.splitlines()


@pytest.mark.parametrize("then", [(9_000, 6_000), (400, 11_000), (9_000, None)])
def test_a_phase_that_begins_again_has_a_new_rate(then, capsys, monkeypatch) -> None:
    """Other work under the same name: less is done, or there is more or less to do."""
    clock = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    first, total = then
    with console.progress_bar() as report:
        report("base", 0, 11_000)
        clock[0] = 120.0
        report("base", 8_000, 11_000)
        clock[0] = 129.0
        report("base", first, total)
        clock[0] = 139.0
        report("base", first + 20, total)
    (line,) = capsys.readouterr().err.splitlines()
    assert f"base: {first + 20:,}" in line
    assert ", 2.0/s" in line


def test_an_unknown_total_shows_no_time_left(capsys, monkeypatch) -> None:
    """The core does not know how many runs of a large text it will merge, and reports 0."""
    clock = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    with console.progress_bar() as report:
        in_stage = in_phase(report, "stage 2")
        in_stage(0, 0)
        clock[0] = 160.0
        in_stage(958, 0)
    assert ["vocabshift: stage 2: 958, 16/s"] == capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("options", "shown"),
    [({"unit": "tokens"}, "tokens/s"), ({"in_bytes": True}, "kB"), ({}, "0:00:00")],
)
def test_a_terminal_shows_a_bar_with_rate_and_time_left(
    options, shown, capsys, monkeypatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    with console.progress_bar(**options) as report:
        for done in (0, 5_000, 11_000):
            report("base", done, 11_000)
    streams = capsys.readouterr()
    assert "" == streams.out
    assert "base" in streams.err
    assert shown in streams.err


def test_summary(capsys) -> None:
    """Numbers are grouped, and the next command stands on one line at the end."""
    command = "vocabshift check " + "x" * 200
    summary.show_summary(console.stdout(), "train", {"vocabulary": 32000, "out": "[x]"}, command)
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


NAME = "a[/b]\x1b[31m:dog:\udcff"
SHOWN = r"a[/b]\x1b[31m:dog:\udcff"


def test_names_of_files_and_tokens_are_no_markup(capsys) -> None:
    """No closing tag ends a command, and the terminal obeys no control character."""
    table = Table("language", NAME, title=NAME)
    table.add_row(NAME, Text(NAME))
    out = console.stdout()
    out.print(table)
    out.print(NAME, "x\ny")
    console.print_line(NAME)
    streams = capsys.readouterr()
    assert (5, 1) == (streams.out.count(SHOWN[:12]), streams.err.count(SHOWN))
    assert f"{SHOWN} x\ny\n" in streams.out
    assert "\x1b" not in streams.out + streams.err


def test_phases_are_no_markup(monkeypatch) -> None:
    """On a terminal, where they stand before the bars."""
    stream = io.StringIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", stream)
    with console.progress_bar() as report:
        report(NAME, 1, 2)
    assert SHOWN[:12] in stream.getvalue()


def test_our_warning_is_a_line_of_text_once() -> None:
    """Others keep their place in the code, also those that a library gives for ours."""
    place = (str(console.__file__), 1)
    with console.plain_warnings():
        ours = [warnings.formatwarning("text\x1b", VocabshiftWarning, *place) for _ in range(2)]
        theirs = warnings.formatwarning("divide by zero", RuntimeWarning, *place)
    assert ours == ["vocabshift: warning: text\\x1b\n", ""]
    assert theirs.startswith(f"{place[0]}:1: RuntimeWarning: divide by zero\n")
    assert "VocabshiftWarning" in warnings.formatwarning("text", VocabshiftWarning, *place)
