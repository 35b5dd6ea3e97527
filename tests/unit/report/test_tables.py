"""Tables from Results alone."""

from __future__ import annotations

from io import StringIO

import pytest

from vocabshift.report import tables
from vocabshift.results import Result, Results

RESULTS = Results(
    [
        Result("ist", "hi", "fertility", 1.25, 9, 1.2, 1.3),
        Result("bpe", "hi", "fertility", 2.0, 9),
        Result("ist", "ta", "fertility", 1.75, 9, 1.7, 1.8),
        Result("ist", "hi", "sequence_reduction", 0.7512, 9),
    ]
)


def _text(results: Results, metric: str, *, intervals: bool = False) -> str:
    from rich.console import Console

    console = Console(file=StringIO(), width=100, force_terminal=False)
    console.print(tables.to_rich(results, metric, intervals=intervals))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_rich_table_holds_languages_and_subjects() -> None:
    """Languages go down, subjects across; a missing value is a dash and has no mean."""
    rows = [line.replace("│", " ").split() for line in _text(RESULTS, "fertility").splitlines()]
    assert ["hi", "1.25", "2.00"] in rows
    assert ["ta", "1.75", "–"] in rows
    assert ["mean", "1.50", "–"] in rows


def test_intervals_are_shown_as_half_widths() -> None:
    """With intervals a value carries half its interval, where it has one."""
    text = _text(RESULTS, "fertility", intervals=True)
    assert "1.25 ±0.05" in text
    assert "2.00 ±" not in text


def test_shares_have_three_decimals_and_one_language_has_no_mean() -> None:
    """Small values keep more digits; the mean of one language would repeat it."""
    text = _text(RESULTS, "sequence_reduction")
    assert "0.751" in text
    assert "mean" not in text


def test_names_cannot_inject_markup() -> None:
    """Markup, control and direction characters in a name are shown, not obeyed."""
    results = Results([Result("[red]x[/red]", "a\x1b[31m\u202eb", "fertility", 2.0, 1)])
    text = _text(results, "fertility")
    assert "[red]x[/red]" in text
    assert "a\\x1b[31m\\u202eb" in text


def test_markdown() -> None:
    """Markdown holds a table for each metric, with bars escaped."""
    results = Results(
        [Result("a|b", "hi", "fertility", 2.0, 9), Result("a|b", "ta", "fertility", 3.0, 9)]
    )
    expected = (
        "### fertility\n\n| language | a\\|b |\n| --- | ---: |\n"
        "| hi | 2.00 |\n| ta | 3.00 |\n| mean | 2.50 |\n"
    )
    assert expected == tables.to_markdown(results)
    assert "### sequence_reduction" in tables.to_markdown(RESULTS)


def test_a_metric_that_is_not_there_is_refused() -> None:
    """The metrics that are there are named."""
    with pytest.raises(ValueError, match="they hold fertility, sequence_reduction"):
        tables.to_rich(RESULTS, "gini")


LOSSY = Results(
    [
        Result("a", "hi", "fertility", 1.25, 9),
        Result("a", "ta", "fertility", 2.0, 9),
        Result("b", "hi", "fertility", 1.5, 9),
        Result("b", "ta", "fertility", 1.75, 9),
        Result("b", "all", "gini", 0.25, 9),
        Result("b", "hi", "unk_rate", 0.25, 9),
        Result("b", "hi", "loss_rate", 0.5, 9),
        Result("a", "hi", "loss_rate", 0.0, 9),
    ]
)


def test_figures_of_lost_text_are_marked() -> None:
    """A dagger and a note where compression is measured on lost text, and on means over it."""
    text = _text(LOSSY, "fertility")
    rows = [line.replace("│", " ").split() for line in text.splitlines()]
    assert ["hi", "1.25", "1.50†"] in rows
    assert ["ta", "2.00", "1.75"] in rows
    assert ["mean", "1.62", "1.62†"] in rows
    assert tables.NOTE in " ".join(text.split())
    assert "0.250†" in _text(LOSSY, "gini")
    for metric in ("unk_rate", "loss_rate"):
        assert "†" not in _text(LOSSY, metric)
    assert "†" not in _text(RESULTS, "fertility")


def test_markdown_has_the_note_too() -> None:
    """Below the table that it is about, and no other."""
    parts = tables.to_markdown(LOSSY).split("### ")
    assert ["fertility", "gini"] == [part.split()[0] for part in parts if tables.NOTE in part]
    assert "| hi | 1.25 | 1.50† |" in parts[1]


def test_counts_are_whole_and_scripts_have_no_mean() -> None:
    """A number of tokens has no decimals; the mean share of scripts says nothing."""
    results = Results(
        [
            Result("a", "all", "vocab_size", 32000, 32000),
            Result("a", "Latin", "script_share", 0.25, 32000),
            Result("a", "Tamil", "script_share", 0.75, 32000),
        ]
    )
    assert "32000 " in _text(results, "vocab_size")
    assert "mean" not in _text(results, "script_share")


def test_means_are_over_natural_languages() -> None:
    """Code, text without a label and mixed languages are shown, and no part of the mean."""
    labels = {"hi": 1.0, "ta": 3.0, "code": 9.0, "all": 9.0, "hi+en": 9.0}
    results = Results(Result("a", label, "fertility", v, 9) for label, v in labels.items())
    rows = [line.replace("│", " ").split() for line in _text(results, "fertility").splitlines()]
    assert ["mean", "2.00"] in rows
    assert ["hi+en", "9.00"] in rows
    assert ["code", "all"] == tables.averaged(["code", "all"])


def test_what_an_unknown_token_does_well_at_is_not_valid_either() -> None:
    """A token that says nothing cuts no syllable, and a typo leaves it as it is."""
    flattered = ("syllable_cut_rate", "whole_syllable_rate", "swap_change", "code_switch_premium")
    lossy = Results(Result("a", "hi", metric, 0.5, 9) for metric in ("loss_rate", *flattered))
    for metric in flattered:
        assert {("a", "hi")} == tables.invalid_rows(lossy, metric)


def test_rows_of_scripts_are_headed_so() -> None:
    """Not every row is a language."""
    row = Result("a", "Latin", "vocabulary_overlap", 0.5, 9)
    assert "script" in _text(Results([row]), "vocabulary_overlap").splitlines()[2]


def test_names_are_no_markup_in_markdown() -> None:
    """A subject's name may come from anybody's file."""
    page = tables.to_markdown(Results([Result("<img src=x>[a](b)", "h|i", "fertility", 1.5, 9)]))
    assert r"| language | &lt;img src=x&gt;\[a\](b) |" in page
    assert r"| h\|i | 1.50 |" in page
