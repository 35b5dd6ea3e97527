"""All linguistic families of one subject at once: the rows of each family alone."""

from __future__ import annotations

import pytest

import vocabshift as vs
from vocabshift.evaluation import measure
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.measure import linguistic_rows, prepare
from vocabshift.evaluation.metrics.code_switching import code_switching, mix
from vocabshift.evaluation.metrics.morph_score import Morphemes, morph_score
from vocabshift.evaluation.metrics.numbers import numbers
from vocabshift.evaluation.metrics.registry import by_group
from vocabshift.evaluation.metrics.robustness import robustness
from vocabshift.evaluation.metrics.syllable_alignment import syllable_alignment

TEXTS = {"hi": ["नदी की क्षमा 12", "यह कीमत"], "en": ["the river's pardon", "this price"]}
WORDS = {"en": [Morphemes("prices", ("price", "s")), Morphemes("river", ("river",))]}
ENGINE = engine_of(
    vs.BpeTrainer(vocab_size=290).train(vs.Corpus.from_texts({"all": [*TEXTS["hi"]] * 4}))
)
GROUPS = ("alignment", "numbers", "robustness", "code switching", "morphemes")
ALL = [metric.name for group in GROUPS for metric in by_group()[group]]


def test_rows_are_those_of_the_families() -> None:
    one = {"own": ENGINE}
    expected = [
        *syllable_alignment(one, TEXTS),
        *numbers(one),
        *robustness(one, TEXTS),
        *code_switching(one, TEXTS, ["hi+en"]),
        *morph_score(one, WORDS),
    ]
    task = prepare(ALL, TEXTS, mixed=mix(TEXTS, ["hi+en"]), words=WORDS)
    rows = linguistic_rows("own", ENGINE, task)
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


def test_only_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of other families cost nothing: their texts are not even prepared."""
    monkeypatch.setattr(measure.robustness, "change_lines", None)
    task = prepare(["fertility", "syllable_cut_rate"], TEXTS, words=WORDS)
    rows = linguistic_rows("own", ENGINE, task)
    assert [(row.metric, row.language) for row in rows] == [
        ("syllable_cut_rate", "hi"),
        ("syllable_cut_rate", "en"),
    ]
    assert not linguistic_rows("own", ENGINE, prepare(["fertility"], TEXTS))


def test_a_leading_space() -> None:
    task = prepare(["morph_single_token_rate"], {}, words=WORDS, leading_space=True)
    rows = linguistic_rows("own", ENGINE, task)
    assert rows == [
        row
        for row in morph_score({"own": ENGINE}, WORDS, leading_space=True)
        if row.metric == "morph_single_token_rate"
    ]


def test_ids_that_are_known_change_no_row() -> None:
    """Alignment and robustness give the same rows whether ids are given or not."""
    task = prepare(ALL, TEXTS)
    encoded = {language: ENGINE.encode_batch(lines) for language, lines in TEXTS.items()}
    rows = linguistic_rows("own", ENGINE, task)
    assert rows
    assert rows == linguistic_rows("own", ENGINE, task, encoded=encoded)
