"""`vocabshift evaluate`: everything that can be said arrives, and what comes back is shown."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.evaluation.evaluate import evaluate as the_function
from vocabshift.results import Result, Results


@pytest.fixture
def calls(monkeypatch, tmp_path: Path) -> list[tuple]:
    """Puts stand-ins in place of what measures and loads; gives the list of their calls."""
    calls: list[tuple] = []

    def evaluate(tokenizers, texts, metrics, *, base, threads, note, progress, **options):
        given = {*options, "base", "threads", "note", "progress", "tokenizers", "texts", "metrics"}
        assert set(inspect.signature(the_function).parameters) == given
        paths = [path.name for path in texts.paths]
        calls.append((tokenizers, paths, metrics, base, threads, options))
        note("gini is left out")
        return Results([Result("ist", "hin", "fertility", 1.5, 3, 1.25, 1.75)])

    monkeypatch.setattr("vocabshift.evaluation.evaluate.evaluate", evaluate)
    monkeypatch.setattr(
        "vocabshift.tokenizer.formats.load.load_tokenizer", lambda source: f"<{source}>"
    )
    monkeypatch.chdir(tmp_path)
    for name in ("x.txt", "y.txt", "f.txt"):
        Path(name).write_text("one line\n", encoding="utf-8")
    return calls


def printed_by(capsys, *words: str) -> dict:
    assert 0 == main(["evaluate", *words, "--json"]), capsys.readouterr().err
    found: dict = json.loads(capsys.readouterr().out)
    return found


def test_rows_are_printed_and_written(calls, capsys, tmp_path: Path) -> None:
    """A second time needs --force."""
    output = tmp_path / "results.jsonl"
    words = ("a", "b", "--text", "x.txt", "--text", "y.txt", "--base", "c", "-j", "1")
    printed = printed_by(capsys, *words, "--output", str(output))
    row = {"subject": "ist", "language": "hin", "metric": "fertility", "value": 1.5, "n": 3}
    assert {"results": [{**row, "ci_low": 1.25, "ci_high": 1.75}], "comparisons": []} == printed
    options = {"reference": None, "frequencies": None, "renyi_alpha": 2.5, "parallel": False}
    options |= {"code_switch": (), "morphemes": None, "leading_space": False}
    assert [({"a": "<a>", "b": "<b>"}, ["x.txt", "y.txt"], None, "<c>", 1, options)] == calls
    assert printed["results"] == Results.from_jsonl(output.read_text("utf-8")).to_dicts()
    assert {output, *(tmp_path / f"{name}.txt" for name in "xyf")} == set(tmp_path.iterdir())
    assert 2 == main(["evaluate", *words, "--output", str(output)])
    assert "exists already" in capsys.readouterr().err
    assert 1 == len(calls)  # refused before anything is measured
    printed_by(capsys, *words, "--output", str(output), "--force")


def test_options(calls, capsys) -> None:
    """Everything that can be said about the measuring arrives; notes go to stderr."""
    words = ("--metrics", "all", "--reference", "hi", "--renyi-alpha", "3", "--parallel")
    words += ("--code-switch", "hi+en", "--frequencies", "f.txt", "-j", "1")
    assert 0 == main(["evaluate", "a", "--text", "x.txt", *words])
    printed = capsys.readouterr()
    assert "note: gini is left out" in printed.err
    assert "note" not in printed.out
    (call,) = calls
    assert ({"a": "<a>"}, ["x.txt"], ["all"], None, 1) == call[:-1]
    assert ["f.txt"] == [path.name for path in call[-1].pop("frequencies").paths]
    options = {"reference": "hi", "renyi_alpha": 3.0, "parallel": True, "leading_space": False}
    assert {**options, "code_switch": ["hi+en"], "morphemes": None} == call[-1]


@pytest.mark.parametrize("order", ["0", "-1", "x", "nan"])
def test_an_order_that_is_none(calls, capsys, order: str) -> None:
    assert 2 == main(["evaluate", "a", "--text", "x.txt", "--renyi-alpha", order])
    assert "is not a number above 0" in capsys.readouterr().err
    assert [] == calls


def test_what_people_see(calls, capsys) -> None:
    """A table on stdout, and why there are no comparisons; nothing that steers the terminal."""
    assert 0 == main(["evaluate", "a", "--text", "x.txt", "--compare-subjects"])
    out = capsys.readouterr().out
    assert "fertility" in out
    assert "1.50 ±0.25" in out
    assert "two tokenizers and five languages are needed" in out
    assert "\x1b" not in out


def test_the_list_of_metrics_is_the_registrys(capsys) -> None:
    from vocabshift import METRICS

    assert 0 == main(["evaluate", "--help"])
    words = capsys.readouterr().out.replace(",", " ").replace(":", " ").split()
    assert set(METRICS) <= set(words)
