"""Words of hundreds and thousands of letters have the ids of `tokenizers`, whatever the merges."""

from __future__ import annotations

import functools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.encode import encode_piece
from strategies import examples
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import to_spec
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.superword import SuperwordTrainer

LETTERS = "abcdकख"
"""Two of these share their first two bytes."""

WINDOW = 4096
"""Bytes of a long word that are looked at together; tests stand on either side of it."""


def whole_text_tokenizer(merges: list[tuple[str, str]], *, reverse: bool = False) -> Tokenizer:
    """A byte-level tokenizer that never cuts; merges are spelt as the vocabulary spells them."""
    tokens = list(dict.fromkeys([*byte_level.ALPHABET, *(a + b for a, b in merges)]))
    if reverse:
        tokens.reverse()
    model = BpeModel({token: i for i, token in enumerate(tokens)}, tuple(merges))
    return Tokenizer(model, pre_tokenizer=to_spec(()))


def peer_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """What `tokenizers` makes of it."""
    return list(tokenizer.backend.encode(text, add_special_tokens=False).ids)


def agree(tokenizer: Tokenizer, text: str) -> None:
    assert peer_ids(tokenizer, text) == Encoder(tokenizer).encode(text).tolist()


@st.composite
def merges_of(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Merges of products up to 24 bytes, in the order they are made or in any other."""
    known = sorted({image for c in LETTERS for image in byte_level.to_image(c.encode())})
    merges = []
    for _ in range(draw(st.integers(0, 40))):
        left, right = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        if len(left + right) <= 24:
            merges.append((left, right))
            known.append(left + right)
    order = draw(st.sampled_from(("made", "made", "any", "other ways")))
    if order == "other ways":
        for token in list(dict.fromkeys(known)):
            cut = draw(st.integers(0, max(len(token) - 1, 0)))
            if cut and {token[:cut], token[cut:]} <= set(known):
                merges.append((token[:cut], token[cut:]))
    return merges if order == "made" else draw(st.permutations(merges))


@st.composite
def words(draw: st.DrawFn) -> str:
    """64 letters and more: drawn ones, and stretches that repeat."""
    some = st.text(LETTERS, min_size=1, max_size=12)
    stretches = st.builds(lambda part, n: part * n, some, st.integers(1, 60))
    word = "".join(draw(st.lists(some | stretches, min_size=1, max_size=12)))
    return word * -(-64 // len(word))


@examples(300)
@given(merges=merges_of(), word=words(), reverse=st.booleans())
def test_any_merges_on_long_words(
    merges: list[tuple[str, str]], word: str, *, reverse: bool
) -> None:
    """Parts that repeat a merge's spelling, products out of order, pairs listed twice."""
    tokenizer = whole_text_tokenizer(merges, reverse=reverse)
    agree(tokenizer, word)


@examples(40)
@given(merges=merges_of(), word=words())
def test_the_plain_rule_on_long_words(merges: list[tuple[str, str]], word: str) -> None:
    """The reference, as slow as it is, of the first 200 letters."""
    tokenizer = whole_text_tokenizer(merges)
    text = byte_level.to_image(word[:200].encode())
    expected = encode_piece(text, tokenizer.model.vocab, tokenizer.model.merges)
    assert expected == Encoder(tokenizer).encode(word[:200]).tolist()


@functools.cache
def trained(name: str) -> Tokenizer:
    """On a few hundred words of LETTERS in which some combinations are frequent."""
    syllables = ["ab", "ba", "cab", "dab", "कख", "खक", "dक", "c", "aab"]
    words = ["".join(syllables[i * j % 9] for j in range(1, 2 + i % 5)) for i in range(1, 400)]
    corpus = Corpus.from_texts([" ".join(words[at : at + 20]) for at in range(0, 400, 20)])
    trainers = {"bpe": BpeTrainer, "ist": SuperwordTrainer}
    return trainers[name](vocab_size=340).train(corpus)


@pytest.mark.parametrize("name", ["bpe", "ist"])
@examples(60)
@given(word=words(), repeat=st.sampled_from((1, 1, 1, 30)), end=st.sampled_from(("", " ", " ab")))
def test_trained_tokenizers_on_long_words(name: str, word: str, repeat: int, end: str) -> None:
    """Words inside pre-tokens of many words, too; some are longer than a window."""
    agree(trained(name), end + word * repeat + end)


@pytest.mark.parametrize("length", [WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW, 10_007])
def test_one_letter_for_several_windows(length: int) -> None:
    doubles = ["a" * 2**i for i in range(6)]
    tokenizer = whole_text_tokenizer([(token, token) for token in doubles] + [("aa", "a")])
    agree(tokenizer, "a" * length)
    agree(tokenizer, "b" + "a" * length + "b")


@pytest.mark.parametrize("after", [0, 1, 2, 100, 255, 256, 300])
def test_a_token_that_grows_leftwards_out_of_the_next_window(after: int) -> None:
    """The last letter decides on 400 letters before it: more than a window keeps back."""
    grown = ["a" * i + "b" for i in range(400)]
    merges = [("a", token) for token, _ in pairwise(grown)] + [("a", "a")]
    tokenizer = whole_text_tokenizer(merges)
    agree(tokenizer, "a" * (WINDOW + after) + "b")
    agree(tokenizer, "a" * (3 * WINDOW + after) + "b" + "a" * WINDOW)


def test_a_token_longer_than_a_window() -> None:
    doubles = ["a" * 2**i for i in range(13)]
    tokenizer = whole_text_tokenizer([(token, token) for token in doubles])
    agree(tokenizer, "a" * 40_000)
