"""The merge loop's fast paths: threads, lowered floors, wider tokens. None may change a result."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import bpe
from reference.peer import merges_of_tokenizers
from strategies import documents, examples
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED
from vocabshift.trainers.byte_level import BpeTrainer

# Words of one chunk, and words of several that merges must see across.
lines = st.one_of(
    documents(max_documents=8),
    st.lists(st.text("ab", min_size=1, max_size=300), min_size=1, max_size=8),
)


def trained_on(
    texts: list[str], vocab_size: int, weights: list[int] | None = None, **options: int
) -> tuple[object, ...]:
    reader = CorpusReader(Corpus.from_texts(texts), ())
    trained = _core.train_bpe(
        reader.count_words(), _core.WordWeights(weights or [1]), vocab_size, **options
    )
    return (
        trained.merges.tolist(),
        trained.counts.tolist(),
        trained.tokens,
        trained.stopped,
        trained.training_tokens,
    )


@examples(75)
@given(
    texts=lines,
    vocab_size=st.sampled_from((257, 270, 400)),
    weight=st.sampled_from((1, 3, 2**33)),
    chunks_per_thread=st.integers(1, 3),
)
def test_threads_change_nothing(
    texts: list[str], vocab_size: int, weight: int, chunks_per_thread: int
) -> None:
    expected = trained_on(texts, vocab_size, [weight])
    for threads in (2, 3, 7):
        assert expected == trained_on(
            texts, vocab_size, [weight], threads=threads, chunks_per_thread=chunks_per_thread
        )


@examples(60)
@given(
    words=st.lists(st.text("abcdé", min_size=1, max_size=12), min_size=1, max_size=30, unique=True),
    long_word=st.text("ab", min_size=65, max_size=200),
    largest=st.integers(1, 40_000),
    vocab_size=st.sampled_from((257, 300, 5000)),
)
def test_lowered_floors_equal_the_reference(
    words: list[str], long_word: str, largest: int, vocab_size: int
) -> None:
    """Counts from `largest` down to 1: the index is built for the high ones, then again."""
    counts = {word.encode(): max(1, largest // 4**i) for i, word in enumerate(words)}
    counts.setdefault(long_word.encode(), 1)
    data = b"".join(counts)
    counter = _core.WordCounter(_core.PreTokenizer([]))
    at = 0
    for word, count in counts.items():
        starts = [at] * count
        counter.add(data, starts, [at + len(word)] * count)
        at += len(word)
    trained = _core.train_bpe(
        counter, _core.WordWeights([1]), vocab_size, threads=2, chunks_per_thread=4
    )
    tokens, merges = bpe.train(Counter(counts), vocab_size)
    assert tokens == trained.tokens
    assert [merge[:3] for merge in merges] == [tuple(row) for row in trained.merges.tolist()]
    assert [merge[3] for merge in merges] == trained.counts.tolist()


@examples(60)
@given(
    counts=st.dictionaries(
        st.text("abc", min_size=1, max_size=9) | st.text("ab", min_size=60, max_size=200),
        st.integers(1, 3),
        min_size=1,
        max_size=20,
    ),
    vocab_size=st.sampled_from((257, 300)),
)
def test_pairs_counted_in_parts_equal_the_reference(
    counts: dict[str, int], vocab_size: int
) -> None:
    """Words on both sides of a part's border, or across it; and many ties."""
    tokens, merges = bpe.train(
        Counter({word.encode(): count for word, count in counts.items()}), vocab_size
    )
    texts = [word for word, count in counts.items() for _ in range(count)]
    for threads in (1, 2, 3, 5):
        found = trained_on(texts, vocab_size, threads=threads, chunks_per_thread=1)
        assert ([list(merge[:3]) for merge in merges], [merge[3] for merge in merges], tokens) == (
            found[:3]
        )


@pytest.mark.parametrize("weight", [1, 3])
@pytest.mark.parametrize("counting", [1, 2])
def test_words_are_laid_out_by_several_threads(weight: int, counting: int) -> None:
    """Words of several tables, and so many that they are joined in parts."""
    source = random.Random(7)
    words = ["".join(source.choices("abcdeé", k=source.randint(1, 20))) for _ in range(9000)]
    texts = [*words, *source.choices(words, k=2000)]

    def train(threads: int) -> tuple[object, ...]:
        reader = CorpusReader(Corpus.from_texts(texts), ())
        trained = _core.train_bpe(
            reader.count_words(threads=counting),
            _core.WordWeights([weight]),
            400,
            threads=threads,
            chunks_per_thread=1,
        )
        return trained.merges.tolist(), trained.counts.tolist(), trained.training_tokens

    expected = train(1)
    for threads in (2, 3, 7):
        assert expected == train(threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_more_tokens_than_sixteen_bits_number(threads: int) -> None:
    """Tokens are stored in 16 bits up to id 65535; then the sequences are written anew."""
    source = random.Random(5)
    texts = [" ".join("".join(source.choices("abcdefgh", k=8)) for _ in range(42_000))]
    trainer = BpeTrainer(vocab_size=67_000)
    merges = trainer.train(Corpus.from_texts(texts), threads=threads).model.merges
    assert len(merges) == 67_000 - 256
    assert merges_of_tokenizers(texts, NAMED["o200k"], 67_000) == list(merges)


def test_stops_inside_the_first_merges_of_a_huge_word() -> None:
    word = bytes(random.Random(1).choices(b"abcdefghijklmnop", k=8_000_000))
    counter = _core.WordCounter(_core.PreTokenizer([]))
    counter.add(word, [0], [len(word)])
    seen = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.train_bpe(counter, _core.WordWeights([1]), 1000, progress=stop, threads=2)
    assert seen == [(seen[0][0], 744)]
    assert seen[0][0] < 64
