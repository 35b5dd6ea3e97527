"""BPE training: merge for merge what `tokenizers` learns and what the plain reference learns."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference import bpe
from reference.peer import merges_of_tokenizers
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples, patterns
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import Pattern
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.byte_level import BpeTrainer


@examples(150)
@given(
    texts=documents(),
    pattern=patterns,
    vocab_size=st.sampled_from((256, 257, 270, 300, 400, 5000)),
    min_frequency=st.integers(1, 3),
)
def test_merges_equal_those_of_tokenizers(
    texts: list[str], pattern: Pattern, vocab_size: int, min_frequency: int
) -> None:
    trainer = BpeTrainer(vocab_size=vocab_size, pre_tokenizer=pattern, min_frequency=min_frequency)
    training = trainer.run(Corpus.from_texts(texts))
    expected = merges_of_tokenizers(texts, pattern, vocab_size, min_frequency=min_frequency)
    assert expected == list(training.tokenizer.model.merges)
    backend = training.tokenizer.backend
    tokens = sum(len(encoding.ids) for encoding in backend.encode_batch(texts))
    assert tokens == training.report.training_tokens
    assert () == unreachable_tokens(training.tokenizer)


@examples(60)
@given(
    by_language=st.lists(
        st.tuples(documents(max_documents=3), st.sampled_from((0.25, 0.5, 1.0, 1.0, 2.0, 3.75))),
        min_size=1,
        max_size=3,
    ),
    pattern=patterns,
    vocab_size=st.integers(256, 310),
    min_frequency=st.integers(1, 3),
    max_bytes=st.sampled_from((None, None, 3, 6)),
)
def test_merges_and_counts_equal_the_reference(
    by_language: list[tuple[list[str], float]],
    pattern: Pattern,
    vocab_size: int,
    min_frequency: int,
    max_bytes: int | None,
) -> None:
    """Weights, fixed point as they are, move counts exactly; all alike they change nothing."""
    corpus = Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(by_language)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(by_language)},
    )
    is_weighted = len({weight for _, weight in by_language}) > 1
    unit = 4096 if is_weighted else 1
    words: Counter[bytes] = Counter()
    split = pre_tokenizer(pattern)
    for texts, weight in by_language:
        for text in texts:
            for word in split(text):
                words[word.encode()] += int(weight * unit) if is_weighted else 1
    tokens, merges = bpe.train(
        words, vocab_size, min_frequency=min_frequency * unit, max_token_bytes=max_bytes
    )
    reader = CorpusReader(corpus, pattern)
    trained = _core.train_bpe(
        reader.count_words(),
        _core.WordWeights(reader.fixed_point_weights()),
        vocab_size,
        reader.min_count(min_frequency),
        _core.MergeRule(max_token_bytes=max_bytes or 0),
    )
    assert tokens == trained.tokens
    assert [merge[:3] for merge in merges] == [tuple(row) for row in trained.merges.tolist()]
    assert [merge[3] for merge in merges] == trained.counts.tolist()


@examples(40)
@given(texts=documents(max_documents=12), seed=st.integers(0, 1000))
def test_threads_and_document_order_change_nothing(texts: list[str], seed: int) -> None:
    trainer = BpeTrainer(vocab_size=320)
    expected = to_json(trainer.train(Corpus.from_texts(texts)))
    shuffled = random.Random(seed).sample(texts, len(texts))
    for threads, order in ((2, texts), (3, texts), (1, shuffled), (2, shuffled)):
        trained = trainer.train(Corpus.from_texts(order), threads=threads)
        assert expected == to_json(trained)


@examples(60)
@given(texts=documents(), normalizer=st.sampled_from(("nfc", "nfd", "nfkc", "nfkd")))
def test_training_sees_what_the_normalizer_leaves(texts: list[str], normalizer: str) -> None:
    trainer = BpeTrainer(vocab_size=300, normalizer=normalizer)
    training = trainer.run(Corpus.from_texts(texts))
    backend = training.tokenizer.backend
    normalized = [backend.normalizer.normalize_str(text) for text in texts]
    plain = BpeTrainer(vocab_size=300).train(Corpus.from_texts(normalized))
    assert plain.model.merges == training.tokenizer.model.merges
    ids, offsets = Encoder(training.tokenizer).encode_batch(texts)
    assert training.report.training_tokens == len(ids)
    assert len(texts) + 1 == len(offsets)


@pytest.mark.parametrize("unit", ["a", "ab", "aab", "abcabd", "क्", "a b"])
@pytest.mark.parametrize("length", [63, 64, 65, 128, 129, 1000])
def test_words_longer_than_a_chunk(unit: str, length: int) -> None:
    """Sequences are stored in chunks of 64 tokens: merges across their borders are seen."""
    text = (unit * length)[:length]
    texts = [text, text[1:], "x" + text]
    expected = merges_of_tokenizers(texts, (), 400)
    trained = BpeTrainer(vocab_size=400, pre_tokenizer=()).train(Corpus.from_texts(texts))
    assert expected == list(trained.model.merges)


@examples(60)
@given(
    texts=st.lists(st.text("ab", min_size=1, max_size=400), min_size=1, max_size=3),
    vocab_size=st.sampled_from((270, 400, 1000)),
)
def test_long_words_of_two_letters(texts: list[str], vocab_size: int) -> None:
    """Runs, ties and chunk borders, as dense as they can be."""
    assume(any(len(text) > 1 for text in texts))
    expected = merges_of_tokenizers(texts, (), vocab_size)
    trained = BpeTrainer(vocab_size=vocab_size, pre_tokenizer=()).train(Corpus.from_texts(texts))
    assert expected == list(trained.model.merges)
