"""Comparisons of subjects over languages."""

from __future__ import annotations

import sys
from io import StringIO
from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from vocabshift.evaluation.significance import (
    compare_subjects,
    holm,
    rank_biserial,
)
from vocabshift.report.tables import subject_comparisons
from vocabshift.results import Result, Results

LANGUAGES = ["as", "bn", "gu", "hi", "kn", "ta"]


def _results(metric: str = "fertility", **subjects: list[float]) -> Results:
    return Results(
        Result(subject, language, metric, value, 9)
        for subject, values in subjects.items()
        for language, value in zip(LANGUAGES, values, strict=False)
    )


def test_a_clear_winner() -> None:
    """Lower fertility everywhere: all wins, effect 1, the smallest exact p value there is."""
    (found,) = compare_subjects(
        _results(a=[1, 1.1, 1.2, 1.3, 1.4, 1.5], b=[2, 2.3, 2.6, 2.9, 3.2, 3.5])
    )
    assert ("fertility", "a", "b", 6, 6, 0) == (
        *(found.metric, found.a, found.b, found.n),
        *(found.wins_a, found.wins_b),
    )
    assert (1.0, 1.0) == (found.win_rate, found.effect_size)
    assert pytest.approx(2 / 2**6) == found.p_value == found.p_holm
    assert pytest.approx(-1.5) == found.mean_difference


def test_the_better_direction_counts() -> None:
    """More bytes in a token are better, and a tie is half a win."""
    (found,) = compare_subjects(
        _results("bytes_per_token", a=[5, 5, 5, 5, 5, 5], b=[4, 4.5, 4.25, 5, 6, 4.75])
    )
    assert (4, 1, 0.75) == (found.wins_a, found.wins_b, found.win_rate)
    assert found.effect_size > 0


def test_exact_p_values_are_counted_out() -> None:
    """The p value is the share of sign patterns at least as extreme, of what is not zero; equal
    sizes have one rank."""
    ties = ([0.25] * 5, [0.25] * 6, [0.25, 0.5, 0.5, -0.25, 0.5, 0.0], [0.5, 0, 0, 0.25, 0.75, 1])
    for gains in (*ties, [0, -0.5, 0, 0, 0, 0], [0.5, -0.25, 1, 0.75, -2, 3]):
        padded = [*gains, 0][:6]
        (found,) = compare_subjects(_results(b=[4.0] * 6, a=[4.0 - gain for gain in padded]))
        nonzero = [gain for gain in padded if gain]
        ranks = rankdata(np.abs(nonzero))
        observed = abs((ranks * np.sign(nonzero)).sum())
        patterns = product((1, -1), repeat=len(nonzero))
        sums = [abs((ranks * np.array(signs)).sum()) for signs in patterns]
        assert np.mean([total >= observed for total in sums]) == found.p_value


def test_the_effect_has_the_sign_of_the_better_one() -> None:
    """`a` is worse where its fertility is higher."""
    gains = [0.5, -0.1, 0.7, 0.3, -0.2, 0.9]
    (found,) = compare_subjects(_results(b=[2.0] * 6, a=[2.0 - gain for gain in gains]))
    ranks = rankdata(np.abs(gains))
    assert ("b", "a") == (found.a, found.b)
    assert pytest.approx(-(ranks * np.sign(gains)).sum() / ranks.sum()) == found.effect_size


def test_exact_p_values_are_those_of_scipy() -> None:
    """To the last bit, whichever differences have the ranks."""
    generator = np.random.default_rng(4)
    for n in (5, 6, 17, 50):
        values = generator.normal(size=(2, n))
        rows = [
            Result(subject, f"l{number}", "fertility", value, 9)
            for subject, of_subject in zip("ab", values.tolist(), strict=True)
            for number, value in enumerate(of_subject)
        ]
        (found,) = compare_subjects(Results(rows))
        assert wilcoxon(values[1] - values[0], method="exact").pvalue == found.p_value


def test_rank_biserial_by_hand() -> None:
    """Zeros are left out, ties share their mean rank."""
    assert 0.0 == rank_biserial([0, 0])
    assert 1.0 == rank_biserial([0.5, 2])
    assert pytest.approx((1.5 - 1.5 + 3) / 6) == rank_biserial([1, -1, 4, 0])


def test_holm_by_hand() -> None:
    """The smallest is multiplied by all, the next by one less, and never falls below."""
    assert pytest.approx([0.03, 0.08, 0.08]) == holm([0.01, 0.04, 0.045])
    assert pytest.approx([0.09, 0.06, 0.09]) == holm([0.05, 0.02, 0.045])
    assert [1.0, 1.0] == holm([0.7, 0.9])


def test_pairs_are_corrected_together() -> None:
    """Three subjects are three pairs, and Holm's p values are those of the three."""
    found = compare_subjects(
        _results(a=[1, 2, 3, 4, 5, 6], b=[1.1, 2.2, 3.4, 4.1, 5.7, 6.9], c=[2, 1, 4, 3, 9, 5])
    )
    assert [("a", "b"), ("a", "c"), ("b", "c")] == [(row.a, row.b) for row in found]
    assert holm([row.p_value for row in found]) == [row.p_holm for row in found]


def test_ties_everywhere_are_no_difference() -> None:
    """Equal subjects: p is 1, no effect, half of the wins."""
    (found,) = compare_subjects(_results(a=[1, 2, 3, 4, 5, 6], b=[1, 2, 3, 4, 5, 6]))
    assert (1.0, 0.0, 0.5) == (found.p_value, found.effect_size, found.win_rate)


def test_what_cannot_be_compared_is_left_out() -> None:
    """Too few languages, metrics without a direction, and languages where text is lost."""
    assert [] == compare_subjects(_results(a=[1, 2, 3, 4], b=[2, 3, 4, 5]))
    assert [] == compare_subjects(_results("script_share", a=[1] * 6, b=[2] * 6))
    assert [] == compare_subjects(_results("an_unknown_metric", a=[1] * 6, b=[2] * 6))
    results = _results(a=[1, 2, 3, 4, 5, 6], b=[2, 3, 4, 5, 6, 7])
    lossy = Results([*results, Result("a", "hi", "loss_rate", 0.5, 9)])
    assert [5] == [row.n for row in compare_subjects(lossy)]
    with pytest.raises(ValueError, match="script_share has no better direction"):
        compare_subjects(results, ["script_share"])


def test_mixed_text_and_code_are_no_languages() -> None:
    """They are shown, and not counted among the languages of a test."""
    more = Results(
        Result(subject, label, "fertility", 9, 9) for subject in "ab" for label in ("hi+en", "code")
    )
    (found,) = compare_subjects(_results(a=[1, 2, 3, 4, 5, 6], b=[2, 3, 4, 5, 6, 8]) + more)
    assert 6 == found.n


def test_the_table_holds_the_pairs() -> None:
    """A row for each pair, with names as plain text."""
    from rich.console import Console

    found = compare_subjects(_results(**{"[red]a": [1, 2, 3, 4, 5, 6], "b": [2, 3, 4, 5, 7, 8]}))
    console = Console(file=StringIO(), width=120)
    console.print(subject_comparisons(found, "fertility"))
    text = console.file.getvalue()
    assert "[red]a" in text
    assert "+1.00" in text


def test_the_extra_is_named(monkeypatch) -> None:
    """Without scipy few languages are compared; of many the error says what to install."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    assert 1 == len(compare_subjects(_results(a=[1, 2, 3, 4, 5, 6], b=[2, 3, 4, 5, 6, 8])))
    many = [
        Result(subject, f"l{number}", "fertility", number * factor, 9)
        for subject, factor in (("a", 1.0), ("b", 2.0))
        for number in range(1, 52)
    ]
    with pytest.raises(ImportError, match=r"more than 50.*vocabshift\[stats\]"):
        compare_subjects(Results(many))
