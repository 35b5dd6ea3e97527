"""MorphScore: read, scored as defined and as published, and held against a slow reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabshift as vs
from real_text import vendor_engine
from reference import morph_score as reference
from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.metrics.morph_score import (
    METRICS,
    Morphemes,
    morph_score,
    read_morphemes,
)
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.tokenizer import Tokenizer

MakeTokenizer = Callable[..., Tokenizer]
TRAINED = engine_of(
    vs.BpeTrainer(vocab_size=290).train(
        vs.Corpus.from_texts({"all": ["walk walked walking walks talk", "वन वनों घर घरों"] * 5})
    )
)
PARTS = st.lists(st.text(st.sampled_from("walkedingsघरोंवन"), min_size=1, max_size=4), max_size=3)


@st.composite
def rows(draw: st.DrawFn) -> Morphemes:
    """A word with its parts; now and then with the parts of another one."""
    parts = tuple(draw(PARTS.filter(bool)))
    word = draw(st.sampled_from(["".join(parts), "walked"]))
    return Morphemes(word, parts)


def pieces(engine: Engine, word: str) -> list[bytes]:
    tokens = engine.tokenizer.backend.encode(word, add_special_tokens=False).tokens
    return [byte_level.to_bytes(token) for token in tokens]


@given(st.lists(rows(), min_size=1, max_size=12))
def test_equals_the_reference(words: list[Morphemes]) -> None:
    """Every value is the reference's, and a metric that says nothing has no row."""
    found = morph_score({"own": TRAINED}, {"xx": words})
    expected = reference.scores([(row.word, row.parts, pieces(TRAINED, row.word)) for row in words])
    assert {row.metric: row.value for row in found} == pytest.approx(expected)
    assert {metric.name for metric in METRICS} >= {row.metric for row in found}


@pytest.fixture
def engine(make_tokenizer: MakeTokenizer) -> Engine:
    """Knows "walk", "ed", "ing", "walks" and "talked"."""
    merges = [("w", "a"), ("l", "k"), ("wa", "lk"), ("e", "d"), ("i", "n"), ("in", "g")]
    merges += [("walk", "s"), ("t", "a"), ("ta", "lk"), ("talk", "ed")]
    return engine_of(make_tokenizer(merges))


WORDS = [
    Morphemes("walked", ("walk", "ed")),  # walk|ed
    Morphemes("walks", ("walk", "s")),  # one token
    Morphemes("bakes", ("bake", "s")),  # b|a|k|e|s
    Morphemes("talked", ("talk", "ed")),  # one token
    Morphemes("walkings", ("walk", "ing", "s")),  # walk|ing|s
    Morphemes("sing", ("si", "ng")),  # s|ing
    Morphemes("sun", ("sun",)),  # s|u|n
    Morphemes("ring", ("walk", "ed")),  # damaged: r|ing
]


def test_values_by_hand(engine: Engine) -> None:
    """Words in one token, of one morpheme, and damaged ones take part where they say something."""
    found = morph_score({"own": engine}, {"en": WORDS})
    values = {row.metric: (row.value, row.n) for row in found}
    # scored: walked, bakes, walkings (hits), sing (a miss)
    assert values["morph_score"] == (3 / 4, 4)
    assert values["morph_segment_score"] == ((1 + 1 / 2 + 1 + 0) / 4, 4)
    # token borders 1 + 4 + 2 + 1 + 2, morpheme borders 1 + 1 + 1 + 1 + 2 + 1, both 1 + 1 + 2
    assert values["morph_border_precision"] == (4 / 10, 5)
    assert values["morph_border_recall"] == (4 / 7, 6)
    assert values["morph_border_f1"] == (8 / 17, 7)
    assert values["morph_single_token_rate"] == (2 / 7, 7)
    assert "morph_score_as_published" not in values  # a word of three parts


def test_as_published_counts_damaged_rows_and_cut_characters_as_misses(engine: Engine) -> None:
    """The authors' program decodes tokens one by one; a character in pieces spells no part."""
    words = [WORDS[0], WORDS[1], WORDS[6], WORDS[7], Morphemes("éed", ("é", "ed"))]
    found = morph_score({"own": engine}, {"en": words})
    published = found.where(metric="morph_score_as_published")
    assert [(row.value, row.n) for row in published] == [(1 / 4, 4)]
    assert found.value("own", "en", "morph_score") == 1  # walked, and é|ed at its border


def test_a_leading_space_belongs_to_no_word(make_tokenizer: MakeTokenizer) -> None:
    """ " walk" is one token in a text; where the space stands alone it is no border of the word."""
    merges = [("w", "a"), ("l", "k"), ("wa", "lk"), ("Ġ", "walk")]
    engine = engine_of(make_tokenizer(merges))
    words = {"en": [Morphemes("walk", ("wal", "k")), Morphemes("a", ("a",))]}
    found = morph_score({"own": engine}, words, leading_space=True)
    assert found.value("own", "en", "morph_single_token_rate") == 1
    assert not found.where(metric="morph_score_as_published")


def test_no_words_and_half_a_surrogate_pair(engine: Engine) -> None:
    with pytest.raises(CorpusError, match="no word of gu"):
        morph_score({"own": engine}, {"gu": []})
    with pytest.raises(CorpusError, match="surrogate"):
        morph_score({"own": engine}, {"gu": [Morphemes("\ud800", ("\ud800",))]})


def test_columns_of_every_shape(tmp_path: Path) -> None:
    """MorphScore's parts, an empty one, and any number of segments."""
    two, many = tmp_path / "two.csv", tmp_path / "many.csv"
    two.write_text(",full_word,pt1,rest\n0,walked,walk,ed\n1,sun,sun,\n", encoding="utf-8")
    many.write_text("word,segments\nwalkings,walk ing s\n", encoding="utf-8-sig")
    assert read_morphemes(two) == [
        Morphemes("walked", ("walk", "ed")),
        Morphemes("sun", ("sun",)),
    ]
    assert read_morphemes(many) == [Morphemes("walkings", ("walk", "ing", "s"))]
    assert read_morphemes(many)[0].borders == {4, 7}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has the columns none"),
        (b"full_word,pt1\na,a\n", "'full_word', 'pt1'.*pt1 and rest, or segments"),
        (b"pt1,rest\na,b\n", "a column of words"),
        (b"full_word,pt1,rest\n", "no row with a word"),
        (b"full_word,pt1,rest\na\n", "line 2 has no word, or no parts"),
        (b"full_word,pt1,rest\n,a,b\n", "line 2 has no word"),
        (b"full_word,pt1,rest\n\xff,a,b\n", "not UTF-8 at byte offset"),
        (b'full_word,pt1,rest\n"a"b,a,b\n', "no CSV file"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message) as error:
        read_morphemes(path)
    assert str(path) in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="cannot be read"):
        read_morphemes(tmp_path / "none.csv")
    with pytest.raises(CorpusError, match="cannot be read"):
        read_morphemes(tmp_path)


@pytest.mark.shared
@pytest.mark.parametrize("tokenizer", ["llama3", "qwen25"])
@pytest.mark.parametrize("language", ["gujarati", "tamil"])
def test_published_sets(shared_data: Path, tokenizer: str, language: str) -> None:
    """On the published words the figures are the reference's, for real tokenizers."""
    engine = vendor_engine(shared_data / "tokenizers-hf" / tokenizer)
    words = read_morphemes(shared_data / "tasks" / "morphscore" / f"{language}_morph_data.csv")
    assert (language == "gujarati") == any(not row.spells_the_word for row in words)
    found = morph_score({"vendor": engine}, {language: words})
    expected = reference.scores([(row.word, row.parts, pieces(engine, row.word)) for row in words])
    assert {row.metric: row.value for row in found} == pytest.approx(expected)
    assert all(row.ci_low <= row.value <= row.ci_high for row in found)
