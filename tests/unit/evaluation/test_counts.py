"""Per-line counts."""

from __future__ import annotations

import numpy as np
import pytest

from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.tokenizer import AddedToken, Tokenizer
from vocabshift.errors import CorpusError
from vocabshift.evaluation import counts as module
from vocabshift.evaluation.counts import count_texts, encode_lines, single_character_tokens
from vocabshift.text.corpus import Corpus


def test_counts_by_hand(make_tokenizer) -> None:
    """Tokens, bytes, characters and words of two lines are what one counts by hand."""
    tokenizer = make_tokenizer([("a", "b"), ("Ġ", "ab")])
    (counts,) = count_texts([tokenizer], {"x": ["ab ab", "é c"]})["x"]
    assert [2, 4] == counts.n_tokens.tolist()  # ab|Ġab, Ã|©|Ġ|c
    assert [0, 2] == counts.n_single_character_tokens.tolist()
    assert [5, 4] == counts.n_bytes.tolist()
    assert [5, 3] == counts.n_characters.tolist()
    assert [2, 2] == counts.n_words.tolist()
    assert 2 == counts.n_lines


def test_lines_lose_their_ending_and_blank_ones_are_skipped(make_tokenizer) -> None:
    """A document is cut at newlines only; CRLF goes with the line, other separators stay."""
    text = "ab\r\n\n \t\ncd\u2028e\r\n"
    (counts,) = count_texts([make_tokenizer()], {"x": [text, "\n", "f\n"]})["x"]
    assert [2, 4, 1] == counts.n_characters.tolist()


def test_batches_change_nothing(make_tokenizer, monkeypatch) -> None:
    """Many small batches give the counts of one large batch, languages interleaved or not."""
    tokenizer = make_tokenizer([("a", "b")])
    corpus = {"x": ["ab " * n for n in range(1, 40)], "y": ["ba"] * 30}
    whole = count_texts([tokenizer, tokenizer], corpus)
    monkeypatch.setattr(module, "_BATCH_CHARACTERS", 7)
    split = count_texts([tokenizer, tokenizer], corpus)
    assert ["x", "y"] == list(split)
    for language, of_language in whole.items():
        for one, other in zip(of_language, split[language], strict=True):
            for name in one.__slots__:
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_no_bos_or_eos(make_tokenizer) -> None:
    """The template of a tokenizer is not applied."""
    import dataclasses

    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    }
    plain = make_tokenizer(added_tokens=[AddedToken("<s>", 256)])
    tokenizer = dataclasses.replace(plain, post_processor=template)
    assert 3 == len(tokenizer.backend.encode("ab").ids)
    ids, offsets = encode_lines(tokenizer, ["ab", "", "<s>a"])
    assert [0, 2, 2, 4] == offsets.tolist()
    assert 256 == ids[2]  # "<s>" in a text is the token, as everywhere


def test_single_character_tokens(make_tokenizer) -> None:
    """Whole characters count, pieces of them and longer tokens do not; a space is one."""
    tokenizer = make_tokenizer([("Ã", "©"), ("Ġ", "a")], added_tokens=[AddedToken("§", 258)])
    flags = single_character_tokens(tokenizer)
    vocab = tokenizer.model.vocab
    assert 259 == len(flags)
    expected = {"a": True, "Ġ": True, "Ã": False, "Ã©": True, "Ġa": False}
    assert expected == {token: bool(flags[vocab[token]]) for token in expected}
    assert flags[258]


def test_single_character_tokens_of_other_spellings() -> None:
    """Byte pieces stand for ASCII only; a vocabulary that lacks bytes is still spelled in them."""
    tokens = ["<0x41>", "<0xC3>", "▁", "▁a", "é"]
    pieces = Tokenizer(BpeModel({token: i for i, token in enumerate(tokens)}, ()))
    assert [True, False, True, False, True] == single_character_tokens(pieces).tolist()
    few = BpeModel({"Ã": 0, "©": 1, "Ã©": 2}, (("Ã", "©"),))
    images = Tokenizer(few, decoder={"type": "ByteLevel"})
    assert [False, False, True] == single_character_tokens(images).tolist()


def test_a_corpus_is_read_by_its_labels(make_tokenizer) -> None:
    """A Corpus gives its labels; text without a label is called "all"."""
    labelled = count_texts([make_tokenizer()], Corpus.from_texts({"hi": ["a b"], "ta": ["c"]}))
    assert ["hi", "ta"] == list(labelled)
    assert ["all"] == list(count_texts([make_tokenizer()], Corpus.from_texts(["a b"])))
    assert ["all"] == list(count_texts([make_tokenizer()], {None: ["a b"]}))


def test_a_language_without_text_is_refused(make_tokenizer) -> None:
    """Each language needs a line that is not blank."""
    with pytest.raises(CorpusError, match="no line of text for ta"):
        count_texts([make_tokenizer()], {"hi": ["a"], "ta": ["\n", " "]})
    with pytest.raises(CorpusError, match="texts are empty"):
        count_texts([make_tokenizer()], {})


@pytest.mark.parametrize("texts", ["text", {"hi": "text"}, {"hi": [b"text"]}, {"hi": 3}, [b"text"]])
def test_texts_of_another_kind_are_refused(make_tokenizer, texts) -> None:
    """A bare string would be read character by character: it is refused, as are bytes."""
    with pytest.raises(TypeError, match="str"):
        count_texts([make_tokenizer()], texts)


def test_half_a_surrogate_pair_is_refused(make_tokenizer) -> None:
    """A lone surrogate is not text."""
    with pytest.raises(CorpusError, match="surrogate"):
        count_texts([make_tokenizer()], {"hi": ["a\ud800"]})


def test_a_plain_list_is_one_text_of_all_languages(make_tokenizer) -> None:
    """Labels are needed only where there are several languages."""
    tokenizer = make_tokenizer()
    labelled = count_texts([tokenizer], {"all": ["one two", "three"]})["all"][0]
    (plain,) = count_texts([tokenizer], ["one two", "three"])["all"]
    assert labelled.n_tokens.tolist() == plain.n_tokens.tolist()
