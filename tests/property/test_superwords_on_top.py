"""Superwords on top of a tokenizer: the plain reference, and every promise about the base."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference import bpe, superword
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples
from strategies import text as texts_of_any_kind
from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.checks.text import drift
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, Split
from vocabshift.text.writing import TERMINALS
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.boundary_choice import candidates
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.on_top import SuperwordsOnTopTrainer

SAMPLE = [
    "the cat sat on the mat and the dog ran to the cat, not to the mat! !mat ?dog",
    "राम घर गया और सीता घर आई। राम घर आया। वह घर से आया।राम",
    "don't stop; it's the DogCat's 12345 mats  \n\n and a \t cat...",
    "தமிழ் நாடு தமிழ் மொழி. ᱥᱟᱱᱛᱟᱲᱤ ᱯᱟᱹᱨᱥᱤ᱾",
]
PATTERNS = ("cl100k", "o200k", "qwen2", "tekken", "gpt2", "deepseek")
TERMINAL = "".join(TERMINALS.values())


@cache
def base(pattern: str, *, skipping: bool = True, inside: bool = False) -> Tokenizer:
    """A small tokenizer as vendors make them: merge skipping with a token that only it reaches,
    special tokens behind the vocabulary or before it."""
    trained = BpeTrainer(vocab_size=330, pre_tokenizer=pattern).train(Corpus.from_texts(SAMPLE))
    tokens = [*trained.model.vocab, "qzx", "Ġzqx"]
    specials = ("<s>", "<|end|>")
    if inside:
        names = (*specials, *tokens)
        vocab = {token: i if i < 200 else i + 7 for i, token in enumerate(names)}  # ids with a hole
        added = tuple(AddedToken(text, i) for i, text in enumerate(specials))
    else:
        vocab = {token: i for i, token in enumerate(tokens)}
        added = tuple(AddedToken(text, len(vocab) + i) for i, text in enumerate(specials))
    model = replace(trained.model, vocab=vocab, ignore_merges=skipping)
    return replace(trained, model=model, added_tokens=added, name=f"base-{pattern}")


def train(texts: list[str], **options: object) -> tuple[Tokenizer, Tokenizer, object]:
    given_base = options.pop("base")
    trainer = SuperwordsOnTopTrainer(base=given_base, **options)  # type: ignore[arg-type]
    training = trainer.run(Corpus.from_texts(texts))
    return given_base, training.tokenizer, training.report  # type: ignore[return-value]


bases = st.builds(base, st.sampled_from(PATTERNS), skipping=st.booleans(), inside=st.booleans())


@examples(60)
@given(
    texts=documents(),
    base=bases,
    n_tokens=st.integers(1, 60),
    boundaries=st.sampled_from(("own", "own", "own-sentences", "ist-stage2", "superbpe-stage2")),
    max_words=st.sampled_from((None, None, 2)),
    max_token_bytes=st.sampled_from((None, None, 9)),
    min_frequency=st.integers(1, 2),
)
def test_merges_equal_the_reference(
    texts: list[str], base: Tokenizer, n_tokens: int, boundaries: str, **limits: int | None
) -> None:
    _, tokenizer, report = train(
        texts, base=base, n_tokens=n_tokens, stage2_pre_tokenizer=boundaries, **limits
    )
    n_base = len(base.model.merges)
    assert base.model.merges == tokenizer.model.merges[:n_base]
    expected = reference_merges(texts, base, boundaries, n_tokens, **limits)
    assert expected == list(tokenizer.model.merges[n_base:])
    assert len(expected) == report.new_tokens == report.stage2_merges  # type: ignore[attr-defined]


def reference_merges(
    texts: list[str],
    base: Tokenizer,
    boundaries: str,
    n_tokens: int,
    max_words: int | None,
    max_token_bytes: int | None,
    min_frequency: int,
) -> list[tuple[str, str]]:
    contents = {token.content for token in base.added_tokens}
    cut = pre_tokenizer(candidates(base)[boundaries])
    pieces: Counter[bytes] = Counter()
    for text in texts:
        assert not any(content in text for content in contents)
        for piece in cut(text):
            pieces[piece.encode()] += 1
    alphabet = bpe.alphabet()
    names = [byte_level.to_image(byte) for byte in alphabet]
    names += [token for token in base.model.vocab if token not in names]
    order = {token: i for i, token in enumerate(names)}
    tokens = [
        token.encode() if token in contents else byte_level.to_bytes(token) for token in names
    ]
    tokens += [text.encode() for text in contents if text not in order]
    merges = [
        (order[left], order[right], order[left + right], 0) for left, right in base.model.merges
    ]

    def refused(product: bytes) -> bool:
        return boundaries == "own" and (holds_terminal(product) or joins_the_rest_of_one(product))

    found, more = superword.train(
        pieces.items(),
        tokens,
        merges,
        len(tokens) + n_tokens,
        min_frequency=min_frequency,
        max_words=max_words,
        max_token_bytes=max_token_bytes,
        refused=refused,
    )
    images = [*names, *(map(byte_level.to_image, found[len(names) :]))]
    return [(images[left], images[right]) for left, right, _, _ in more]


def holds_terminal(product: bytes) -> bool:
    return any(character.encode() in product for character in (*TERMINAL, "\r", "\n"))


def joins_the_rest_of_one(product: bytes) -> bool:
    """Whether it begins inside a character and goes on behind it."""
    rest = product.lstrip(bytes(range(0x80, 0xC0)))
    return 0 < len(rest) < len(product)


@example(texts=["E.\r\n "] * 3, base=base("cl100k"), n_tokens=5)
@examples(60)
@given(texts=documents(), base=bases, n_tokens=st.sampled_from((5, 40, 300)))
def test_every_promise_about_the_base(texts: list[str], base: Tokenizer, n_tokens: int) -> None:
    _, tokenizer, report = train(texts, base=base, n_tokens=n_tokens)
    old, new = base.model.vocab, tokenizer.model.vocab
    assert old.items() <= new.items()
    assert base.added_tokens == tokenizer.added_tokens
    added = {token.content: token.id for token in base.added_tokens}
    learned = {token: i for token, i in new.items() if token not in old and token not in added}
    assert list(range(base.row_count, base.row_count + len(learned))) == list(learned.values())
    assert not {*unreachable_tokens(tokenizer)} & {*learned}
    # What stands behind a last space must not go with it in the base: no context is sure of that.
    dead = {token for token in unreachable_by_pipeline(tokenizer) if not token.endswith("Ġ")}
    assert not dead & {*learned}
    for token in map(byte_level.to_bytes, learned):
        text = token.decode(errors="ignore")
        assert not re.search(rf"[{TERMINAL}][^{TERMINAL}]|\.\s", text)
        assert not joins_the_rest_of_one(token)
    again = Tokenizer.from_json(to_json(tokenizer))
    assert new == again.model.vocab
    encodings = again.backend.encode_batch(texts, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == report.training_tokens  # type: ignore[attr-defined]
    ids, _ = Encoder(tokenizer).encode_batch(texts)
    assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    decoded = [again.backend.decode(e.ids, skip_special_tokens=False) for e in encodings]
    assert texts == decoded


@examples(25)
@given(texts=documents(), base=bases)
def test_threads_change_nothing(texts: list[str], base: Tokenizer) -> None:
    trainer = SuperwordsOnTopTrainer(base=base, n_tokens=30)
    expected = to_json(trainer.train(Corpus.from_texts(texts)))
    assert expected == to_json(trainer.train(Corpus.from_texts(texts[::-1]), threads=3))


@examples(100)
@given(texts=st.lists(texts_of_any_kind, min_size=1, max_size=4), base=bases)
def test_drift_counts_tokens_that_left_their_place(texts: list[str], base: Tokenizer) -> None:
    after = SuperwordsOnTopTrainer(base=base, n_tokens=1).base.lifted(NAMED["superbpe-stage2"])
    names = {i: token for token, i in base.model.vocab.items()}
    lengths = np.zeros(base.row_count, dtype=np.int64)
    for token_id, token in names.items():
        lengths[token_id] = len(token)
    for token in base.added_tokens:
        lengths[token.id] = len(token.content)
    both = [Encoder(tokenizer).encode_batch(texts) for tokenizer in (base, after)]
    got = drift(both[0], both[1], lengths)
    changed = [len(placed(base, text, names) - placed(after, text, names)) for text in texts]
    assert sum(changed) == got.changed_tokens
    assert sum(map(bool, changed)) == got.changed_documents
    assert len(both[0][0]) == got.tokens
    assert len(texts) == got.documents


def placed(tokenizer: Tokenizer, text: str, names: dict[int, str]) -> set[tuple[int, int]]:
    at, result = 0, set()
    for token_id in tokenizer.backend.encode(text, add_special_tokens=False).ids:
        result.add((at, token_id))
        at += len(names[token_id])
    return result


@pytest.mark.parametrize("pattern", PATTERNS[:5])
@examples(60)
@given(texts=st.lists(texts_of_any_kind, min_size=1, max_size=4))
def test_the_own_pattern_changes_only_what_merge_skipping_held(
    pattern: str, texts: list[str]
) -> None:
    """Without merge skipping the base's tokens stay as they are, whatever the text."""
    plain = base(pattern, skipping=False)
    lifted = SuperwordsOnTopTrainer(base=plain, n_tokens=1).base.lifted(candidates(plain)["own"])
    before, after = (Encoder(one).encode_batch(texts)[0] for one in (plain, lifted))
    assert before.tolist() == after.tolist()


def test_a_pattern_of_several_steps_is_lifted_where_it_cuts_words() -> None:
    own = candidates(base("deepseek"))["own"]
    assert NAMED["deepseek"][:2] == own[:2]
    assert isinstance(own[2], Split)
    assert NAMED["deepseek"][2].regex in own[2].regex
    assert NAMED["deepseek"][2] != own[2]
