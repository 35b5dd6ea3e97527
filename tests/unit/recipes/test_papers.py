"""The papers' tables: each stands where the index says, and our figures stand next to theirs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

RECIPES = Path(__file__).resolve().parents[3] / "recipes"
NUMBERS = {"ist": 22, "matra": 4, "indic_study": 31, "continued_bpe": 18}
FIGURES = {"ist": 5, "matra": 2, "indic_study": 4, "continued_bpe": 13}


@pytest.fixture
def beside(program) -> Any:
    return program("papers/beside.py")


def headings(readme: Path) -> set[str]:
    """Those of a file."""
    return set(re.findall(r"^#+ (.+)$", readme.read_text(encoding="utf-8"), flags=re.MULTILINE))


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_table_stands_where_the_index_says_or_has_a_reason(beside, paper: str) -> None:
    tables = beside.papers()[paper]["tables"]
    assert [str(n) for n in range(1, NUMBERS[paper] + 1)] == [n for n in tables if n.isdigit()]
    figures = [f"Figure {n}" for n in range(1, FIGURES[paper] + 1)]
    assert figures == [n for n in tables if n.startswith("Figure")]
    for number, entry in tables.items():
        assert ("recipe" in entry) != ("missing" in entry), number
        if "recipe" in entry:
            readme = RECIPES / entry["recipe"] / "README.md"
            assert beside.heading(number, entry) in headings(readme), number
            assert entry.get("mark", "text") in beside.MARKS
        beside.figures(entry)  # as many numbers as columns, in every row


def test_a_table_with_the_papers_text_and_method_has_its_figures(beside, program) -> None:
    """Digit for digit: so much is claimed by the mark, which one table has."""
    of_continued = RECIPES / "continued_bpe"
    found = program("continued_bpe/tables.py").by_id(
        program("data/record.py").read(of_continued / "results.jsonl")
    )
    ours = {row["row"]: row["values"] for row in found if row["table"] != "made"}
    same = {
        (paper, number): entry
        for paper, own in beside.papers().items()
        for number, entry in own["tables"].items()
        if entry.get("mark") == "same"
    }
    [(where, entry)] = same.items()
    assert ("continued_bpe", "4 by id") == where
    printed = beside.figures(entry)
    assert set(printed) == set(ours)
    for name, values in ours.items():
        assert len(values) >= 4
        assert values == {size: printed[name][size] for size in values}


def test_the_index_is_that_of_the_papers_files(program) -> None:
    record = program("data/record.py")
    readme = (RECIPES / "README.md").read_text(encoding="utf-8")
    assert record.written(readme, record.tables_of(RECIPES)) == readme


ENTRY = {
    "shows": "Where it ends",
    "mark": "text",
    "base": "90",
    "columns": ["hi", "brx", "ta", "code"],
    "figures": {"90": [2.0, 9.0, 4.0, 1.0], "60": [1.8, 9.0, 3.6, 1.0]},
}
OURS = {
    "60": {"hi": 1.0, "ta": 2.4, "code": 7.0, "de": 5.0},
    "90": {"hi": 2.0, "ta": 2.0, "code": 8.0, "de": 5.0},
}


def test_differences_are_paired_over_the_languages_of_both(beside) -> None:
    """hi falls by half and ta rises by a fifth; brx, de and code are in no mean."""
    lines = beside.effects(ENTRY, OURS).splitlines()
    assert "|  | ours: mean | ours, against 90 | paper: mean | paper, against 90 |" == lines[0]
    assert (
        "| 60 | 1.700 | -15.00% (-50.00% to +20.00%) | 2.700 | -10.00% (-10.00% to -10.00%) |"
        == (lines[2])
    )
    assert "| 90 | 2.000 | – | 3.000 | – |" == lines[3]
    assert "| hi | 1.00 | 1.80 | 2.00 | 2.00 |" in lines
    assert "| code | 7.00 | 1.00 | 8.00 | 1.00 |" in lines
    assert "| mean | 1.70 | 2.70 | 2.00 | 3.00 |" in lines
    assert not any("brx" in line or "| de |" in line for line in lines)


def test_a_paper_without_figures_has_no_columns(beside) -> None:
    open_entry = {key: ENTRY[key] for key in ("shows", "base", "columns")}
    lines = beside.effects(open_entry, OURS).splitlines()
    assert "|  | ours: mean | ours, against 90 |" == lines[0]
    assert "*The paper has no figures.*" == beside._how(open_entry, None)


def test_a_paper_with_figures_of_some_languages_has_no_mean(beside) -> None:
    """It would be of other languages than ours."""
    lines = beside.effects({**ENTRY, "figures": {"90": {"hi": 2.0}}}, OURS).splitlines()
    assert "|  | ours: mean | ours, against 90 |" == lines[0]
    assert "| hi | 1.00 | 2.00 | 2.00 |" in lines


def test_how_our_side_was_made_is_written_under_it(beside) -> None:
    made = {"size": "64000 tokens", "command": "a.sh", "seconds": 1234.0, "machine": "2 cores of X"}
    assert (
        "*Compared with the paper: another quantity ([errata](../../docs/errata.md)); in bits. "
        "64,000 tokens, `a.sh`, 1,234 s of training on 2 cores of X.*"
    ) == beside._how({"mark": "quantity", "note": "in bits"}, made)
    del made["machine"]
    assert "64,000 tokens, `a.sh`, 1,234 s of training" == beside.how(made)


def test_tables_of_a_paper_are_those_that_have_rows(beside, monkeypatch) -> None:
    paper = {"name": "P", "tables": {"14": ENTRY, "15": ENTRY, "Section 6.1": ENTRY}}
    monkeypatch.setattr(beside, "papers", lambda: {"p": paper})
    rows = [{"table": "p-14", "row": row, "values": values} for row, values in OURS.items()]
    rows += [{**row, "table": "p-section-6.1"} for row in rows]
    found = beside.tables("p", rows)
    assert ["p-14", "p-section-6.1"] == list(found)
    assert found["p-14"].startswith("### Where it ends (Table 14)\n\n| ")
    assert found["p-section-6.1"].startswith("### Where it ends (Section 6.1)\n\n| ")


@pytest.mark.parametrize(
    ("title", "fragment"),
    [
        ("Fertility, CPT, WFR (Table 17)", "fertility-cpt-wfr-table-17"),
        ("Latency (`vocabshift latency`)", "latency-vocabshift-latency"),
        ("Rényi entropy", "rényi-entropy"),
    ],
)
def test_fragments_of_headings(beside, title: str, fragment: str) -> None:
    assert fragment == beside.anchor(title)


def test_rows_stand_in_the_order_of_their_numbers(beside) -> None:
    assert ["60", "90", "128000"] == beside._in_order(["128000"], ["90", "60", "90"])
    assert ["9.9 MB", "25 MB", "1000 MB"] == beside._in_order([], ["25 MB", "9.9 MB"], ["1000 MB"])
    assert ["none", "60"] == beside._in_order(["none"], ["60"])


def test_a_line_over_the_logarithm_is_found(program) -> None:
    """Fertility falls by a quarter with each doubling; then one point lies off the line."""
    log_law = program("matra/tables.py").log_law
    curve = {str(2**i): {"hi": 5 - i / 4, "ta": 7 - i / 4, "hi+en": i} for i in range(8, 12)}
    assert "by -0.250 (R² = 1.000; the largest distance from the line is 0.000)" in log_law(curve)
    assert "From size to size it is -0.250, -0.250, -0.250." in log_law(curve)
    curve["4096"] = {"hi": 9.0, "ta": 9.0}
    assert "R² = 1.000" not in log_law(curve)


def test_rows_of_the_card_are_named_as_in_the_paper(program) -> None:
    rows = [
        {"subject": "o200k", "language": "hi", "metric": "fertility", "value": 1.5},
        {"subject": "o200k", "language": "hi", "metric": "renyi_entropy", "value": 6.0},
        {"subject": "o200k", "language": "ta", "metric": "renyi_entropy", "value": 7.0},
        {"subject": "o200k", "language": "code", "metric": "renyi_entropy", "value": 99.0},
        {"subject": "cl100k", "language": "hi", "metric": "fertility", "value": 9.0},
    ]
    found = {
        (row["table"], row["row"]): row["values"] for row in program("ist/tables.py").of_card(rows)
    }
    assert {"hi": 1.5} == found["ist-3", "GPT-oss"]
    assert {"GPT-oss": 6.5} == found["ist-6", "Entropy"]
    assert not any(9.0 in own.values() for own in found.values())


@pytest.mark.parametrize("language", ["hindi", "tamil"])
def test_code_switched_sentences_are_the_same_in_both_spellings(language: str) -> None:
    native, latin = (
        (RECIPES / "matra" / "mixed" / f"{language}-english{end}.txt").read_text("utf-8")
        for end in ("", "-latin")
    )
    assert latin.isascii() and not native.isascii()
    words = [[line.split() for line in text.splitlines()] for text in (native, latin)]
    assert 20 == len(words[0]) == len(words[1])
    for one, other in zip(*words, strict=True):
        english = [re.match("[A-Za-z]*", word).group() for word in one]
        assert any(english)
        assert all(b.startswith(a) for a, b in zip(english, other, strict=True))
