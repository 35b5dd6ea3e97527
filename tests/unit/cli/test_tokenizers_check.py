"""`vocabshift check`: counts, the tokens themselves, and what they mean for an extension."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from vocabshift.checks.portability import EngineParts
from vocabshift.checks.runtime_reports import RuntimeReport
from vocabshift.cli.main import main

HINDI = {
    "language": "hi",
    "lines": 4,
    "n_bytes": 100,
    "tokens": 20,
    "round_trip_failures": 1,
    "ceiling_bytes_per_token": 5.2,
    "repaired_ceiling_bytes_per_token": 11.75,
    "bytes_per_token": 5.0,
}
CHECKED = SimpleNamespace(
    vocab_size=300,
    unreachable=("ab",),
    unreachable_by_pipeline=("ab", "\x1b[31m"),
    only_in_rare_contexts=(),
    only_by_merge_skipping=("ab",),
    byte_pieces=256,
    missing_byte_pieces=("À", "ñ", "Ą"),
    losing_bytes=("04",),
    unassigned_bytes=("F1",),
    never_bytes=("C0",),
    lost_characters=("U+0004",),
    pattern_limits=(),
    engine=EngineParts("core behind tokenizers", "core", ((r"\d", "tokenizers"), ("x", "o200k"))),
    partial_utf8=(),
    superwords=(),
    terminal_spanning=(),
    duplicates=(),
    merge_residue=("ab", "abc"),
    shadowed=(),
    special_tokens=("<s>",),
    other_added_tokens=(),
    id_holes=(7, 9),
    rows=310,
    padding=10,
    missing_rows=54,
    round_trip_failures=1,
    languages=(
        SimpleNamespace(
            language="hi", is_bound=True, lost_lines=["x \x1b"], to_dict=lambda: dict(HINDI)
        ),
    ),
    ok=False,
)


@pytest.fixture
def calls(monkeypatch, tmp_path: Path) -> list[tuple]:
    """Puts stand-ins in place of what checks and loads; gives the list of their calls."""
    calls: list[tuple] = []

    def check(tokenizer, corpus=None, *, threads, model_rows):
        texts = None if corpus is None else [path.name for path in corpus.paths]
        calls.append((tokenizer, texts, threads, model_rows))
        return CHECKED

    monkeypatch.setattr("vocabshift.checks.check.check", check)
    monkeypatch.setattr(
        "vocabshift.tokenizer.formats.load.load_tokenizer", lambda source: f"<{source}>"
    )
    monkeypatch.chdir(tmp_path)
    Path("x.txt").write_text("one line\n", encoding="utf-8")
    return calls


def printed_by(capsys, *words: str) -> dict:
    assert 0 == main(["check", *words, "--json"]), capsys.readouterr().err
    found: dict = json.loads(capsys.readouterr().out)
    return found


def test_tokenizers_check(calls, capsys) -> None:
    """Counts for each tokenizer; the tokens themselves with --details."""
    (entry,) = printed_by(capsys, "t")["tokenizers"]
    assert {
        "tokenizer": "t",
        "vocab_size": 300,
        "unreachable": 1,
        "unreachable_by_pipeline": 2,
        "only_in_rare_contexts": 0,
        "only_by_merge_skipping": 1,
        "byte_pieces": 256,
        "missing_byte_pieces": 3,
        "lost_characters": 1,
        "partial_utf8": 0,
        "superwords": 0,
        "terminal_spanning": 0,
        "merge_residue": 2,
        "duplicates": 0,
        "shadowed": 0,
        "special_tokens": 1,
        "other_added_tokens": 0,
        "id_holes": 2,
        "rows": 310,
        "padding": 10,
        "round_trip_failures": 1,
        "languages": [HINDI | {"is_bound": True}],
        "ok": False,
        "missing_bytes": {
            "losing": ["04"],
            "unassigned": ["F1"],
            "never": ["C0"],
            "lost_characters": ["U+0004"],
        },
        "engine": {
            "engine": "core behind tokenizers",
            "normalizer": "core",
            "steps": [{"step": r"\d", "run_by": "tokenizers"}, {"step": "x", "run_by": "o200k"}],
        },
    } == entry
    (entry,) = printed_by(capsys, "t", "--details", "--text", "x.txt", "-j", "3")["tokenizers"]
    assert ["ab"] == entry["details"]["unreachable"]
    assert [7, 9] == entry["details"]["id_holes"]
    assert {"hi": ["x \x1b"]} == entry["details"]["lost_lines"]
    assert ("<t>", ["x.txt"], 3, None) == calls[1]


def test_strict(calls, capsys) -> None:
    """--strict exits with 2 once the report was printed."""
    assert 2 == main(["check", "t", "--strict", "--json"])
    assert not json.loads(capsys.readouterr().out)["tokenizers"][0]["ok"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("t",), ["unreachable_by_pipeline", "next: the same with --details"]),
        (("t",), [r"t is encoded slowly: the core lacks the step \d."]),
        (
            ("t",),
            [
                "vocabshift extend t --pre-tokenizer repaired lifts the ceiling",
                "hi 5.20 -> 11.75",
                "at most: hi 4.0%",
            ],
        ),
        (
            ("t",),
            [
                "t lacks 1 that no UTF-8 text holds (C0)",
                "1 that only unassigned characters are spelt with (F1): no text needs them",
                "t lacks 1 that text may hold (04): of the assigned characters it loses 1 (U+0004)",
                "--complete-bytes",
            ],
        ),
        (("t",), ["2 tokens of t are merge residue in 20 (10 for each token of the vocabulary"]),
        (("t", "--details"), ["merge_residue: 'ab' 'abc'"]),
        (
            ("t", "--details"),
            ["unreachable_by_pipeline: 'ab' '\\x1b[31m'", "lines lost, hi: 'x \\x1b'"],
        ),
    ],
)
def test_what_people_see(calls, capsys, words, shown) -> None:
    """Tables on stdout, what to type next, and nothing that steers the terminal."""
    assert 0 == main(["check", *words])
    out = capsys.readouterr().out
    for text in shown:
        assert text in out
    assert "\x1b" not in out


VERDICTS = (
    RuntimeReport("kitoken", "ok", "0.11.1", texts=110),
    RuntimeReport("pytorch-tokenizers", "lost text", "1.5.0", texts=109, differing=9, lost=8),
    RuntimeReport("tuetoken", "refuses", "0.1.3", reason="no \x1b[31mvocab"),
    RuntimeReport("morpheme", "not installed"),
)


@pytest.fixture
def asked(calls, monkeypatch) -> list:
    """The names and options that runtimes were asked with."""
    asked: list = []

    def compare(tokenizer, source, chosen, *, corpus, time_limit):
        asked.append((tokenizer, source, chosen, corpus, time_limit))
        return VERDICTS

    monkeypatch.setattr("vocabshift.checks.runtime_reports.choose", lambda names: names)
    monkeypatch.setattr("vocabshift.checks.runtime_reports.compare_runtimes", compare)
    return asked


def test_runtimes(asked, capsys) -> None:
    """Their verdicts, with the reason in a line that cannot move the cursor."""
    assert 0 == main(["check", "t", "--runtimes", "all", "--time-limit", "7"])
    out = capsys.readouterr().out
    assert [("<t>", "t", "all", None, 7)] == asked
    assert "ExecuTorch (pytorch-tokenizers)" in out
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in out.splitlines()]
    assert ["kitoken", "0.11.1", "ok", "110", "0", "0"] in rows
    assert ["tuetoken", "0.1.3", "refuses", "–", "–", "–"] in rows
    assert ["morpheme", "–", "not installed", "–", "–", "–"] in rows
    assert r"tuetoken, refuses: no \x1b[31mvocab" in out


def test_runtimes_as_json(asked, capsys) -> None:
    (entry,) = printed_by(capsys, "t", "--runtimes", "kitoken,tuetoken", "--text", "x.txt")[
        "tokenizers"
    ]
    assert "kitoken,tuetoken" == asked[0][2]
    assert ["x.txt"] == [path.name for path in asked[0][3].paths]
    assert [False, True, True, True] == [row["is_fault"] for row in entry["runtimes"]]
    assert "lost text" == entry["runtimes"][1]["status"]


def test_runtimes_as_markdown(asked, capsys) -> None:
    """Nothing else is printed: it can be pasted."""
    assert 0 == main(["check", "t", "--runtimes", "all", "--markdown"])
    out = capsys.readouterr().out.splitlines()
    assert (
        "|  | kitoken 0.11.1 | ExecuTorch (pytorch-tokenizers) 1.5.0 | tuetoken 0.1.3 |" == out[0]
    )
    assert "| t | ok | **lost text, 9 of 109** | refuses |" == out[2]
    assert 1 == len(asked)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--markdown",), "--markdown is about runtimes; give --runtimes too"),
        (("--time-limit", "3"), "--time-limit is about runtimes; give --runtimes too"),
        (("--runtimes", "all", "--time-limit", "0"), "'0' is not a whole number of at least 1"),
        (("--runtimes", "kitten"), "'kitten': no such runtime; known are tokenizers, "),
    ],
)
@pytest.mark.usefixtures("calls")
def test_runtimes_asked_for_wrongly(capsys, words: tuple[str, ...], message: str) -> None:
    """Before anything is loaded, in one line."""
    assert 2 == main(["check", "no/such/folder", *words])
    assert message in capsys.readouterr().err


def test_markdown_or_json(asked, capsys) -> None:
    assert 2 == main(["check", "t", "--runtimes", "all", "--markdown", "--json"])
    assert "give one" in capsys.readouterr().err
    assert [] == asked
