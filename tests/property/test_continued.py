"""Continued BPE: the plain reference, and every promise about the tokenizer that is extended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import continued as reference
from strategies import documents, examples
from vocabshift.errors import CorpusError
from vocabshift.extension.continued import TrainingBase, extended, learn
from vocabshift.extension.counting import count_byte_level
from vocabshift.extension.effect import measure
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer

SAMPLE = [
    "the cat sat on the mat and the dog ran to the cat, not to the mat! !mat ?dog",
    "राम घर गया और सीता घर आई। राम घर आया। वह घर से आया।राम",
    "don't stop; it's the DogCat's 12345 mats  \n\n and a \t cat...",
    "தமிழ் நாடு தமிழ் மொழி. ᱥᱟᱱᱛᱟᱲᱤ ᱯᱟᱹᱨᱥᱤ᱾",
]
PATTERNS = ("cl100k", "o200k", "deepseek")
TIES: tuple[str, ...] = ("id", "lexicographic")


@cache
def base(pattern: str, *, skipping: bool, all_splits: bool, inside: bool) -> Tokenizer:
    """A small tokenizer as vendors make them.

    With tokens that merges do not reach ("ho", "atz" and what "hor" is made of: some of them can be
    repaired), ids with holes, and special tokens before, inside or behind the vocabulary.
    """
    trained = BpeTrainer(vocab_size=330, pre_tokenizer=pattern).train(Corpus.from_texts(SAMPLE))
    tokens = [*trained.model.vocab, "ho", "hor", "atz", "Ġz", "zz"]
    specials = ("<s>", "<|end|>")
    if inside:
        names = (*specials, *tokens)
        vocab = {token: i if i < 200 else i + 7 for i, token in enumerate(names)}
        added = tuple(AddedToken(text, i, lstrip=i == 1) for i, text in enumerate(specials))
    else:
        vocab = {token: i for i, token in enumerate(tokens)}
        added = tuple(AddedToken(text, len(vocab) + i) for i, text in enumerate(specials))
    merges = [*trained.model.merges, ("ho", "r")]
    if all_splits:  # as transformers writes tiktoken's vocabularies
        order = {token: i for i, token in enumerate(tokens)}
        learned = {left + right for left, right in merges}
        merges = sorted(
            ((t[:i], t[i:]) for t in learned for i in range(1, len(t))),
            key=lambda merge: (order[merge[0] + merge[1]], order.get(merge[0], 0)),
        )
        merges = [merge for merge in merges if merge[0] in order and merge[1] in order]
    model = BpeModel(vocab, tuple(merges), ignore_merges=skipping)
    return replace(trained, model=model, added_tokens=added, name=f"base-{pattern}")


BASES = st.builds(
    base,
    st.sampled_from(PATTERNS),
    skipping=st.booleans(),
    all_splits=st.booleans(),
    inside=st.booleans(),
)
TEXTS = documents()


def segmented(tokenizer: Tokenizer, texts: list[str]) -> Counter[tuple[str, ...]]:
    """The words of texts, as tokens in the order of their pieces, run by `tokenizers`."""
    words: Counter[tuple[str, ...]] = Counter()
    backend = tokenizer.backend
    splitter = Encoder(tokenizer)._with_special._core  # its added tokens
    assert splitter is not None
    for text in texts:
        for part, token_id in splitter.split_added(text, True):
            if token_id is None:
                for piece, _ in backend.pre_tokenizer.pre_tokenize_str(part):
                    words[tuple(token.value for token in backend.model.tokenize(piece))] += 1
    return words


@given(BASES, TEXTS, st.integers(1, 40), st.integers(1, 3), st.sampled_from(TIES))
@examples(60)
def test_learning_is_the_reference(
    tokenizer: Tokenizer, texts: list[str], n_tokens: int, min_frequency: int, tie_break: str
) -> None:
    """Tokens, merges, counts and the segmentation that training ends with are the plain ones."""
    form = TrainingBase(tokenizer)
    words = segmented(tokenizer, texts)
    held = {part for merge in tokenizer.model.merges for part in merge}
    special = {token.content for token in tokenizer.added_tokens}
    tokens, merges, end = reference.learn(
        words,
        form.names,
        n_tokens,
        lexicographic=tie_break == "lexicographic",
        held=None if tie_break == "lexicographic" else held,
        min_frequency=min_frequency,
        allowed=lambda product: product not in special,
    )

    text = count_byte_level(form, Corpus.from_texts(texts))
    learned = learn(form, text, n_tokens=n_tokens, tie_break=tie_break, min_frequency=min_frequency)

    assert list(learned.tokens) == tokens
    known = set(tokenizer.model.merges)
    listed = [row for row in merges if row[0] not in known]
    if tie_break == "id":
        assert listed == merges
        assert list(zip(learned.merges, learned.counts, strict=True)) == merges
        result = extended(tokenizer, learned)
        assert segmented(result, texts) == Counter(end)
    else:
        assert list(learned.merges) == list(dict.fromkeys(merge for merge, _ in listed))


@given(BASES, TEXTS, st.integers(1, 40), st.sampled_from(TIES))
@examples(40)
def test_nothing_of_the_base_moves(
    tokenizer: Tokenizer, texts: list[str], n_tokens: int, tie_break: str
) -> None:
    """Ids, merges and special tokens stay; no token becomes unreachable; text comes back alike."""
    try:
        extension = extend_with_report(
            tokenizer,
            Corpus.from_texts(texts),
            ExtensionOptions(n_tokens=n_tokens, tie_break=tie_break),
        )
    except CorpusError:  # there was nothing to learn
        return
    result = extension.tokenizer

    assert result.model.merges[: len(tokenizer.model.merges)] == tuple(tokenizer.model.merges)
    assert {**result.model.vocab, **tokenizer.model.vocab} == result.model.vocab
    assert result.added_tokens == tokenizer.added_tokens
    new = {id_ for token, id_ in result.model.vocab.items() if token not in tokenizer.model.vocab}
    first = tokenizer.row_count
    assert new == set(range(first, first + len(new)))
    assert set(unreachable_tokens(result)) <= set(unreachable_tokens(tokenizer))
    before, after = Encoder(tokenizer), Encoder(result)
    for text in [*texts, *SAMPLE]:
        ids = after.encode(text)
        assert after.decode(ids) == before.decode(before.encode(text))
        assert ids.tolist() == result.backend.encode(text, add_special_tokens=False).ids


@given(BASES, st.dictionaries(st.sampled_from("xyz"), TEXTS, min_size=1), st.integers(1, 30))
@examples(20)
def test_the_effect_is_what_encoding_gives(
    tokenizer: Tokenizer, texts: dict[str, list[str]], n_tokens: int
) -> None:
    """Tokens after every number of new tokens, by language, as if each had been written out."""
    form = TrainingBase(tokenizer)
    specials = [token.content for token in tokenizer.added_tokens]
    texts = {
        label: [text for text in listed if text and not any(s in text for s in specials)] or ["a"]
        for label, listed in texts.items()
    }
    text = count_byte_level(form, Corpus.from_texts(texts))
    learned = learn(form, text, n_tokens=n_tokens)

    effect = measure(form, learned, text)

    for k in range(effect.n_new + 1):
        n_merges = len(learned.merges)
        if k < effect.n_new:
            made = [left + right for left, right in learned.merges]
            n_merges = made.index(learned.tokens[k])
        part = replace(learned, tokens=learned.tokens[:k], merges=learned.merges[:n_merges])
        encoder = Encoder(extended(tokenizer, part))
        for row, (label, listed) in enumerate(texts.items()):
            ids, _ = encoder.encode_batch(listed)
            assert effect.languages[row].language == label
            assert effect.tokens[row, k] == len(ids)
            if k == effect.n_new:
                new = ids[ids >= tokenizer.row_count].tolist()
                assert effect.languages[row].new_tokens_used == len(set(new))
                assert effect.languages[row].new_tokens_share == round(
                    len(new) / max(len(ids), 1), 4
                )


@given(BASES, TEXTS, st.integers(1, 30))
@examples(20)
def test_threads_and_document_order_change_nothing(
    tokenizer: Tokenizer, texts: list[str], n_tokens: int
) -> None:
    """The same tokens and merges on three threads, with the documents turned round."""
    form = TrainingBase(tokenizer)
    one = learn(form, count_byte_level(form, Corpus.from_texts(texts)), n_tokens=n_tokens)
    turned = count_byte_level(form, Corpus.from_texts(texts[::-1]), threads=3)
    assert learn(form, turned, n_tokens=n_tokens, threads=3) == one


def test_a_token_that_nothing_holds_is_repaired() -> None:
    """A pair whose product the base has takes that id, and the token becomes reachable."""
    tokenizer = base("o200k", skipping=False, all_splits=False, inside=False)
    assert {"atz", "hor", "zz"} <= set(unreachable_tokens(tokenizer))

    extension = extend_with_report(
        tokenizer, Corpus.from_texts(["fizz buzz fuzz zz"]), ExtensionOptions(n_tokens=3)
    )

    assert ("z", "z") in extension.tokenizer.model.merges
    assert "zz" not in unreachable_tokens(extension.tokenizer)
    assert extension.report.n_repaired == 1
    assert extension.report.n_added == 3


def test_a_token_that_a_merge_holds_is_not_made_again() -> None:
    """ "ho" is a part of "hor": making it anew would let that merge happen out of turn."""
    tokenizer = base("o200k", skipping=False, all_splits=False, inside=False)
    extension = extend_with_report(
        tokenizer, Corpus.from_texts(["oho oho oho"]), ExtensionOptions(n_tokens=1)
    )
    assert ("h", "o") not in extension.tokenizer.model.merges
    assert extension.report.n_repaired == 0


@pytest.mark.parametrize("text", ["a b c", "1 2 3"])
def test_text_without_pairs_is_an_error(text: str) -> None:
    """Where every pre-token is one token already, there is nothing to learn."""
    tokenizer = base("o200k", skipping=True, all_splits=False, inside=False)
    small = Corpus.from_texts([text.replace(" ", "")[:1]])
    with pytest.raises(CorpusError, match="nothing to learn"):
        extend_with_report(tokenizer, small, ExtensionOptions(n_tokens=5))
