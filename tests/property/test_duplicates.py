"""Strings that are made twice: special tokens, and given merges that repeat one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference import bpe
from reference.bpe import merged
from strategies import documents, examples
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED
from vocabshift.text.scanners import compile_pattern
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import compile_merges
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.trainers.byte_level import BpeTrainer, ByteLevelTrainer
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.trainers.superword import SuperwordTrainer

Triple = tuple[int, int, int]


def by_rank(piece: bytes, merges: list[Triple]) -> list[int]:
    """Lowest rank first, the leftmost of these: a repeated string may make room for earlier ones"""
    id_of = {token[0]: token_id for token_id, token in enumerate(bpe.alphabet())}
    ids = [id_of[byte] for byte in piece]
    rank = {(left, right): i for i, (left, right, _) in enumerate(merges)}
    while found := [(rank[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in rank]:
        best, at = min(found)
        ids[at : at + 2] = [merges[best][2]]
    return ids


def learn(
    tokens: list[bytes], sequences: list[tuple[list[int], int]], vocab_size: int, reuse: bool
) -> list[tuple[int, int, int, int]]:
    """Merge; a pair whose product is a token already reuses its id, or is refused."""
    merges = []
    while len(tokens) < vocab_size:
        counts: Counter[tuple[int, int]] = Counter()
        for ids, count in sequences:
            for pair in pairwise(ids):
                counts[pair] += count
        candidates = [
            (-count, pair)
            for pair, count in counts.items()
            if count > 0 and (reuse or tokens[pair[0]] + tokens[pair[1]] not in tokens)
        ]
        if not candidates:
            break
        negative, (left, right) = min(candidates)
        product = tokens[left] + tokens[right]
        if product not in tokens:
            tokens.append(product)
        at = tokens.index(product)
        merges.append((left, right, at, -negative))
        sequences[:] = [(merged(ids, (left, right), at), count) for ids, count in sequences]
    return merges


@st.composite
def given_merges(draw: st.DrawFn) -> tuple[list[bytes], list[Triple]]:
    """Merges over a few letters, in an order that no trainer would choose, strings repeated."""
    tokens = bpe.alphabet()
    used = [tokens.index(letter.encode()) for letter in "ab c"]
    merges: list[Triple] = []
    for _ in range(draw(st.integers(1, 10))):
        left, right = draw(st.sampled_from(used)), draw(st.sampled_from(used))
        if (left, right) in [merge[:2] for merge in merges]:
            continue
        product = tokens[left] + tokens[right]
        if product not in tokens:
            tokens.append(product)
        merges.append((left, right, tokens.index(product)))
        used.append(merges[-1][2])
    return tokens, merges


texts_of_letters = st.lists(
    st.one_of(
        st.text("abc ", min_size=1, max_size=60),
        st.builds(
            lambda unit, n: unit * n,
            st.sampled_from(("a", "ab", "aab", "ab ", "abc")),
            st.integers(1, 40),
        ),
    ),
    min_size=1,
    max_size=5,
)


@example(
    start=(
        [*bpe.alphabet(), b"ab", b"bc", b"abc"],
        [(64, 65, 256), (65, 66, 257), (256, 66, 258), (64, 257, 258)],
    ),
    texts=["abc abc abcbc"],
    vocab_size=264,
    threads=1,
)
@examples(125)
@given(
    start=given_merges(),
    texts=texts_of_letters,
    vocab_size=st.integers(257, 290),
    threads=st.integers(1, 3),
)
def test_superwords_on_given_merges_refuse_what_is_there(
    start: tuple[list[bytes], list[Triple]], texts: list[str], vocab_size: int, threads: int
) -> None:
    tokens, merges = list(start[0]), start[1]
    encoder = compile_merges(start[0], np.array(merges, np.uint32))
    stage = _core.SuperwordStage(encoder, start[0], _core.PreTokenizer([]), threads)
    for text in texts:
        stage.add(text.encode(), np.array([0]), np.array([len(text)]))
    stage.finish()
    sequences = [(by_rank(text.encode(), merges), 1) for text in texts]
    assert stage.tokens == sum(len(ids) for ids, _ in sequences)
    trained = stage.train([1], vocab_size)
    more = learn(tokens, sequences, vocab_size, reuse=False)
    assert [tuple(row) for row in trained.merges.tolist()] == [merge[:3] for merge in more]
    assert trained.counts.tolist() == [merge[3] for merge in more]
    assert trained.tokens == tokens
    assert trained.training_tokens == sum(len(ids) for ids, _ in sequences)
    every = merges + [merge[:3] for merge in more]
    assert trained.training_tokens == sum(len(by_rank(text.encode(), every)) for text in texts)


@examples(125)
@given(
    start=given_merges(),
    texts=texts_of_letters,
    vocab_size=st.integers(257, 290),
    weight=st.sampled_from((1, 3, 4096)),
    threads=st.integers(1, 3),
)
def test_words_on_given_merges_reuse_what_is_there(
    start: tuple[list[bytes], list[Triple]],
    texts: list[str],
    vocab_size: int,
    weight: int,
    threads: int,
) -> None:
    tokens, merges = list(start[0]), start[1]
    scanner = compile_pattern(NAMED["gpt2"])
    assert scanner is not None
    counter = _core.WordCounter(scanner, threads)
    words: Counter[bytes] = Counter()
    for group, text in enumerate(texts):
        counter.add(text.encode(), np.array([0]), np.array([len(text)]), group % 2)
        for word in scanner.split(text):
            words[word.encode()] += (weight, 1)[group % 2]
    trained = _core.train_bpe(
        counter,
        _core.WordWeights([weight, 1]),
        vocab_size,
        encoder=compile_merges(start[0], np.array(merges, np.uint32)),
        tokens=start[0],
        threads=threads,
        chunks_per_thread=2,
    )
    sequences = [(by_rank(word, merges), count) for word, count in words.items()]
    more = learn(tokens, sequences, vocab_size, reuse=True)
    assert [tuple(row) for row in trained.merges.tolist()] == [merge[:3] for merge in more]
    assert trained.counts.tolist() == [merge[3] for merge in more]
    assert trained.tokens == tokens


@example(tokens=["b", "bb"], words=[[1, 1, 0, 0, 1, 0], [0, 0, 1]], n_more=4)
@example(tokens=["a", "aab", "b", "ab"], words=[[1, 3, 0, 2, 1, 2, 0]], n_more=3)
@examples(125)
@given(
    tokens=st.lists(st.sampled_from(["b", "ba", "a", "ab", "aa", "bb"]), min_size=2, unique=True),
    words=st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=12), min_size=1, max_size=4),
    n_more=st.integers(1, 8),
)
def test_groups_of_given_tokens_reuse_what_is_there(
    tokens: list[str], words: list[list[int]], n_more: int
) -> None:
    """Subtle: a token that is made again may stand before the pair already."""
    words = [[token % len(tokens) for token in word] for word in words]
    vocabulary = [token.encode() for token in tokens]
    groups = _core.TokenGroups(_core.PieceRule(), vocabulary, [])
    counter = _core.WordCounter(_core.PreTokenizer([]))
    offsets = np.cumsum([0, *map(len, words)])
    groups.add_to(counter, np.array([i for ids in words for i in ids], np.int32), offsets)
    trained = _core.continue_bpe(
        counter,
        _core.WordWeights([1]),
        len(tokens) + n_more,
        None,
        vocabulary,
        [],
        duplicates=_core.Duplicates.REUSE_ID,
    )
    more = learn(vocabulary, [(ids, 1) for ids in words], len(tokens) + n_more, reuse=True)
    assert [tuple(row) for row in trained.merges.tolist()] == [merge[:3] for merge in more]
    assert trained.counts.tolist() == [merge[3] for merge in more]
    assert trained.tokens == vocabulary


@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
@pytest.mark.parametrize("is_safe", [False, True])
@examples(20)
@given(
    texts=st.one_of(documents(), texts_of_letters),
    data=st.data(),
)
def test_special_tokens_that_text_holds(
    kind: type[ByteLevelTrainer], is_safe: bool, texts: list[str], data: st.DataObject
) -> None:
    """No merge makes one, and the file reads the text as training did."""
    contents = []
    for _ in range(data.draw(st.integers(1, 3))):
        text = data.draw(st.sampled_from(texts))
        begin = data.draw(st.integers(0, len(text) - 1))
        content = text[begin : begin + data.draw(st.integers(1, 6))]
        if data.draw(st.booleans()):  # as the vocabulary spells it
            content = byte_level.to_image(content.encode())
        is_byte = len(content.encode()) == 1 or content in byte_level.ALPHABET
        if not is_byte and content not in contents:
            contents.append(content)
    trainer = kind(vocab_size=320, special_tokens=tuple(contents), grapheme_safe=is_safe)
    training = trainer.run(Corpus.from_texts([*texts, "a b"]))
    tokenizer = training.tokenizer
    images = {byte_level.to_image(content.encode()) for content in contents}
    assert not (images | set(contents)) & set(tokenizer.model.vocab)
    assert () == unreachable_tokens(tokenizer)
    read = [*texts, "a b"]
    encodings = tokenizer.backend.encode_batch(read, add_special_tokens=False)
    ids, _ = Encoder(tokenizer).encode_batch(read)
    assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    assert len(ids) == training.report.training_tokens
