"""OBPE on a few words: what is shared comes first, and which languages are of high resources."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from vocabshift import _core
from vocabshift.cli.main import main
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.overlap import OverlapReport, OverlapTrainer, high_resource

FOLDER = Path(str(resources.files("vocabshift.demo"))) / "texts"
CORPUS = Corpus.from_files({label: FOLDER / f"{label}.txt" for label in ("eng", "hin", "ben")})


def first_token(texts: dict[str, list[str]], **options: Any) -> bytes:
    trainer = OverlapTrainer(vocab_size=257, high_resource=("hi",), **options)
    return str(list(trainer.train(Corpus.from_texts(texts)).model.vocab)[256]).encode()


def test_what_both_languages_have_comes_first() -> None:
    """ "xy" occurs 5 times in one language; "ab" 4 times, half of them in each."""
    texts = {"hi": ["xy"] * 5 + ["ab"] * 2, "low": ["ab"] * 2}
    assert b"xy" == first_token(texts, overlap_alpha=1.0)
    assert b"xy" == first_token(texts, overlap_alpha=0.7)  # 3.5 and 2.8 + 0.3 * 2
    assert b"ab" == first_token(texts, overlap_alpha=0.5)  # 2.5 and 2 + 0.5 * 2
    assert b"ab" == first_token(texts, overlap_alpha=0.5, overlap_power="min")


@pytest.mark.parametrize("order", [("h1", "h2"), ("h2", "h1")])
def test_the_best_high_resource_language_counts(order: tuple[str, str]) -> None:
    """One relative is enough: "ab" is frequent in a low language and in one high one of two.

    "xy" scores 20 / 2, and "ab" (8 + 1 + 8) / 2 + min(8, 8) / 2 = 12.5. With the worst language it
    would be 8.5 + min(1, 8) / 2 = 9.
    """
    of_high = dict(zip(order, (8, 1), strict=True))
    texts = {name: ["ab"] * times + ["xy"] * 10 for name, times in of_high.items()}
    texts["low"] = ["ab"] * 8
    trainer = OverlapTrainer(vocab_size=257, high_resource=("h1", "h2"), overlap_power="min")
    assert "ab" == list(trainer.train(Corpus.from_texts(texts)).model.vocab)[256]


def test_the_power_of_the_mean() -> None:
    """Counts of 9 and 1 share less the lower the power is."""
    texts = {"hi": ["ab"] * 9 + ["xy"] * 12, "low": ["ab"]}
    assert b"xy" == first_token(texts, overlap_power="min")  # 6, and 5 + 0.5 * 1
    assert b"xy" == first_token(texts)  # 5 + 0.5 * 1.41
    assert b"ab" == first_token(texts, overlap_power=-0.01)  # 5 + 0.5 * 2.98


def test_the_larger_half_is_high() -> None:
    sizes = {"a": 5, "b": 9, "c": 5, "d": 1}
    assert {"b", "a"} == high_resource(sizes, ())
    assert {"b", "a"} == high_resource({"a": 5, "b": 9, "c": 5}, ())
    assert {"d"} == high_resource(sizes, ("d",))


def test_the_report() -> None:
    report = OverlapTrainer(vocab_size=800).run(CORPUS).report
    assert isinstance(report, OverlapReport)
    sizes = {label: (FOLDER / f"{label}.txt").stat().st_size for label in ("eng", "hin", "ben")}
    smallest = min(sizes, key=sizes.__getitem__)
    assert (smallest,) == report.low_resource
    assert tuple(sorted(set(sizes) - {smallest})) == report.high_resource
    assert ("overlap", 800, 544) == (report.recipe, report.vocab_size, report.merges)


def test_counts_do_as_well(tmp_path: Path) -> None:
    specs = [f"{label}={FOLDER / label}.txt" for label in ("eng", "hin", "ben")]
    assert 0 == main(["count", *specs, "--pattern", "o200k", "-o", str(tmp_path / "counts")])
    trainer = OverlapTrainer(vocab_size=700)
    from_counts = trainer.train(CountFolder.open(tmp_path / "counts"))
    assert trainer.train(CORPUS).model.merges == from_counts.model.merges


@pytest.mark.parametrize(
    ("texts", "high", "message"),
    [
        (["ab"], (), "some of the text has no label"),
        ({"hi": ["ab"]}, (), "has only hi; give at least two"),
        ({"hi": ["ab"], "bn": ["ab"]}, ("ta",), "names 'ta', and the corpus has bn, hi"),
        ({"hi": ["ab"], "bn": ["ab"]}, ("hi", "bn"), "names all languages"),
    ],
)
def test_bad_languages(texts: Any, high: tuple[str, ...], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        OverlapTrainer(vocab_size=300, high_resource=high).run(Corpus.from_texts(texts))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overlap_alpha": 0}, "overlap_alpha is 0"),
        ({"overlap_alpha": 1.5}, "overlap_alpha is 1.5"),
        ({"overlap_power": 0}, "overlap_power is 0"),
        ({"overlap_power": 2.0}, "overlap_power is 2.0"),
        ({"overlap_power": -math.inf}, "overlap_power is -inf"),
        ({"overlap_power": "max"}, "overlap_power is 'max'"),
        ({"vocab_size": 255}, "below the alphabet"),
        ({"grapheme_safe": True}, "grapheme_safe puts syllables first"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OverlapTrainer(**{"vocab_size": 300, **options})


def test_no_memory_budget() -> None:
    with pytest.raises(ValueError, match="knows no budget"):
        OverlapTrainer(vocab_size=300).run(CORPUS, RunContext(memory_bytes=1 << 30))


@pytest.mark.parametrize(
    ("is_high", "alpha", "power"),
    [([True, True], 0.5, -2.0), ([True, False], 0.0, -2.0), ([True, False], 0.5, 0.0)],
)
def test_the_core_refuses_what_is_no_score(is_high: list[bool], alpha: float, power: float) -> None:
    with pytest.raises(ValueError, match=r"must be|need a language"):
        _core.PairScore(is_high, alpha, power)
