"""Syllable alignment: by hand, against a slow reference, and on hostile text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import vocabshift as vs
from real_text import vendor_engine
from reference import linguistic as reference
from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.texts import read_lines
from vocabshift.evaluation.metrics.syllable_alignment import METRICS, syllable_alignment
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.tokenizer import Tokenizer

MakeTokenizer = Callable[..., Tokenizer]
TRAINED = engine_of(
    vs.BpeTrainer(vocab_size=300).train(
        vs.Corpus.from_texts({"all": ["क्षेत्र की नदी, क्षमा", "கடல் நீலம் க்ஷ ஸ்ரீ", "café 12"] * 5})
    )
)
LINES = st.text(st.sampled_from("क्षेत्रिन aé\u0301🙂\u200d\u200cகஷ்ீ\0\r\t1"), max_size=12)


def pieces(engine: Engine, line: str) -> list[bytes]:
    tokens = engine.tokenizer.backend.encode(line, add_special_tokens=False).tokens
    return [byte_level.to_bytes(token) for token in tokens]


@given(st.lists(LINES, min_size=1, max_size=6))
def test_equals_the_reference(lines: list[str]) -> None:
    """Lone marks and NULs among them; blank lines are left out, and so are metrics that say
    nothing."""
    assume("".join(lines).strip())
    found = syllable_alignment({"own": TRAINED}, {"xx": lines})
    expected = reference.alignment(
        [(line, pieces(TRAINED, line)) for line in read_lines(lines)["all"]]
    )
    assert {row.metric: row.value for row in found} == pytest.approx(expected)


def test_values_by_hand(make_tokenizer: MakeTokenizer) -> None:
    """ "क्षa": क | three bytes of ् | ष in two pieces, of which two bytes join as in क | a."""
    image = byte_level.to_image("क".encode())
    engine = engine_of(make_tokenizer([(image[0], image[1]), (image[:2], image[2])]))
    found = syllable_alignment({"own": engine}, {"hi": ["क्षa", "aa"]})
    values = {row.metric: (row.value, row.n) for row in found}
    assert values == {
        # nine tokens; five of them begin or end inside a character
        "character_cut_rate": (5 / 9, 2),
        # and क ends inside the cluster, which is the syllable
        "grapheme_cut_rate": (6 / 9, 2),
        "syllable_cut_rate": (6 / 9, 2),
        # of six borders inside the first line and one in the second: before an a
        "syllable_border_rate": (2 / 7, 2),
        "whole_syllable_rate": (0, 1),
    }
    assert {metric.name for metric in METRICS} == set(values)


def test_a_tokenizer_of_whole_syllables_cuts_none() -> None:
    """Only the border between syllables is left to cut at."""
    corpus = vs.Corpus.from_texts({"hi": ["नम नम नम नम"] * 9})
    engine = engine_of(vs.BpeTrainer(vocab_size=262).train(corpus))
    found = syllable_alignment({"own": engine}, {"hi": ["नम"]})
    assert found.value("own", "hi", "whole_syllable_rate") == 1
    assert found.value("own", "hi", "syllable_cut_rate") == 0
    assert found[0].ci_low is None  # a single line


def test_rows_are_by_language_metric_and_subject() -> None:
    texts = {"hi": ["नदी की", "क्षमा"], "ta": ["கடல்", "நீலம்"]}
    found = syllable_alignment({"b": TRAINED, "a": TRAINED}, texts)
    assert [(row.language, row.metric, row.subject) for row in found[:4]] == [
        ("hi", "character_cut_rate", "b"),
        ("hi", "character_cut_rate", "a"),
        ("hi", "grapheme_cut_rate", "b"),
        ("hi", "grapheme_cut_rate", "a"),
    ]
    alone = syllable_alignment({"a": TRAINED}, {"ta": texts["ta"]}, threads=2)
    assert set(alone) <= set(found)


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ({"hi": []}, CorpusError),
        ({"hi": ["\ud800"]}, CorpusError),
        ({"hi": "नदी"}, TypeError),
        ({"hi": [b"x"]}, TypeError),
    ],
)
def test_bad_texts(texts: dict[str, list[str]], error: type[Exception]) -> None:
    with pytest.raises(error, match="hi"):
        syllable_alignment({"own": TRAINED}, texts)


@pytest.mark.shared
@pytest.mark.parametrize("language", ["hi", "ml", "sat", "ur", "en"])
def test_real_text(shared_data: Path, language: str) -> None:
    """Llama-3 on FLORES: the reference's figures."""
    engine = vendor_engine(shared_data / "tokenizers-hf" / "llama3")
    path = shared_data / "eval" / "sib200-flores" / f"{language}.txt"
    lines = path.read_text(encoding="utf-8").splitlines()[:60]
    found = syllable_alignment({"llama3": engine}, {language: lines})
    expected = reference.alignment([(line, pieces(engine, line)) for line in lines])
    assert {row.metric: row.value for row in found} == pytest.approx(expected)
