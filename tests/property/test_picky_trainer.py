"""PickyBPE: event for event what the plain reference does; the export, and how far it is away."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import picky, stacked
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples, patterns
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import Pattern
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import RunContext, make_reader
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.picky import PickyReport, PickyTrainer

thresholds = st.sampled_from((0.01, 0.2, 0.5, 0.7, 0.9, 0.95, 1.0))

# Few letters and short words, so that tokens go and come back; long ones for what long words do.
letters = st.sampled_from(("ab", "abc", "abcde", "aé", "क्ा"))
small_words = letters.flatmap(
    lambda some: st.dictionaries(
        st.text(some, min_size=1, max_size=10).map(str.encode),
        st.sampled_from((1, 1, 2, 3, 5, 9, 40, 1 << 40)),
        min_size=1,
        max_size=12,
    )
)
long_words = st.dictionaries(
    st.text("ab", min_size=60, max_size=300).map(str.encode), st.integers(1, 3), min_size=1
)
NO_TOKEN = 0xFFFFFFFF


def counter_of(words: dict[bytes, int]) -> _core.WordCounter:
    counter = _core.WordCounter(_core.PreTokenizer([]), 1)
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    counter.add_words(b"".join(words), ends, np.array(list(words.values()), dtype=np.uint64), 0)
    return counter


def check_events(expected: picky.Picky, trained: _core.PickyTrained) -> None:
    assert expected.tokens == trained.tokens
    assert expected.present == trained.present
    events = [
        (e.left, *(NO_TOKEN if i is None else i for i in (e.right, e.product)))
        for e in expected.events
    ]
    assert events == [tuple(event) for event in trained.events.tolist()]
    assert [event.count for event in expected.events] == trained.counts.tolist()
    parts = [list(event.parts) for event in expected.events if event.right is None]
    assert parts == trained.parts


@examples(150)
@given(
    words=small_words,
    threshold=thresholds,
    vocab_size=st.sampled_from((256, 258, 262, 270, 400)),
    min_frequency=st.integers(1, 3),
    max_bytes=st.sampled_from((0, 0, 3, 5)),
)
def test_events_equal_the_reference(
    words: dict[bytes, int],
    threshold: float,
    vocab_size: int,
    min_frequency: int,
    max_bytes: int,
) -> None:
    expected = picky.train(
        words,
        vocab_size,
        threshold,
        min_frequency=min_frequency,
        max_token_bytes=max_bytes or None,
    )
    trained = _core.train_picky(
        counter_of(words),
        [(1, 0)],
        vocab_size,
        min_frequency,
        _core.MergeRule(max_token_bytes=max_bytes),
        threshold=threshold,
    )
    check_events(expected, trained)
    tokens = sum(len(expected.words[word]) * count for word, count in words.items())
    assert tokens == trained.replayed_tokens


@examples(25)
@given(words=long_words, threshold=thresholds, vocab_size=st.sampled_from((262, 290)))
def test_long_words(words: dict[bytes, int], threshold: float, vocab_size: int) -> None:
    expected = picky.train(words, vocab_size, threshold)
    trained = _core.train_picky(counter_of(words), [(1, 0)], vocab_size, threshold=threshold)
    check_events(expected, trained)


@examples(50)
@given(
    by_language=st.lists(
        st.tuples(documents(max_documents=3), st.sampled_from((0.25, 0.5, 1.0, 1.0, 2.0))),
        min_size=1,
        max_size=3,
    ),
    pattern=patterns,
    threshold=thresholds,
    vocab_size=st.sampled_from((256, 257, 270, 300)),
)
def test_a_corpus_with_weights(
    by_language: list[tuple[list[str], float]], pattern: Pattern, threshold: float, vocab_size: int
) -> None:
    """The same events through the trainer's own reading, weights and groups included."""
    corpus = Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(by_language)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(by_language)},
    )
    unit = 4096 if len({weight for _, weight in by_language}) > 1 else 1
    words: Counter[bytes] = Counter()
    split = pre_tokenizer(pattern)
    for texts, weight in by_language:
        for text in texts:
            for word in split(text):
                words[word.encode()] += int(weight * unit) if unit > 1 else 1
    trainer = PickyTrainer(vocab_size=vocab_size, pre_tokenizer=pattern, threshold=threshold)
    reader = make_reader(
        corpus, pattern, (), normalizer=None, special_tokens=(), sampling_alpha=None
    )
    check_events(
        picky.train(words, vocab_size, threshold, min_frequency=unit),
        trainer.learn(reader, RunContext()),
    )


@examples(50)
@given(
    texts=documents(),
    pattern=patterns,
    threshold=thresholds,
    vocab_size=st.sampled_from((256, 257, 270, 300, 330, 5000)),
)
def test_the_export(texts: list[str], pattern: Pattern, threshold: float, vocab_size: int) -> None:
    """All in reach, as large as asked for, as `tokenizers` reads it, and measured truly."""
    trainer = PickyTrainer(vocab_size=vocab_size, pre_tokenizer=pattern, threshold=threshold)
    training = trainer.run(Corpus.from_texts(texts))
    report, tokenizer = training.report, training.tokenizer
    assert isinstance(report, PickyReport)
    assert () == unreachable_tokens(tokenizer)
    assert vocab_size >= report.vocab_size == 256 + report.merges
    assert report.kept_tokens + report.returned - report.left_out == report.vocab_size
    encodings = tokenizer.backend.encode_batch(texts)
    assert sum(len(encoding.ids) for encoding in encodings) == report.training_tokens
    ids, _ = Encoder(tokenizer).encode_batch(texts)
    assert ids.tolist() == [i for encoding in encodings for i in encoding.ids]
    assert texts == [tokenizer.backend.decode(encoding.ids) for encoding in encodings]

    split = pre_tokenizer(pattern)
    words = Counter(word.encode() for text in texts for word in split(text))
    state = picky.train(words, vocab_size, threshold)
    merges = [tuple(map(byte_level.to_bytes, merge)) for merge in tokenizer.model.merges]
    replayed, differing, tokens_differing = 0, 0, 0
    for word, count in words.items():
        one, other = picky.replay(state, word), stacked.encode(word, merges)
        replayed += count * len(one)
        differing += count * (one != other)
        tokens_differing += count * len(spans(other) - spans(one))
    assert words.total() == report.words
    assert replayed == report.replayed_tokens
    assert differing == pytest.approx(report.words_differing * report.words)
    assert tokens_differing == pytest.approx(report.tokens_differing * report.training_tokens)


def spans(tokens: list[bytes]) -> set[tuple[int, int]]:
    ends = np.cumsum([len(token) for token in tokens]).tolist()
    return set(zip([0, *ends], ends, strict=False))


@examples(60)
@given(texts=documents(), pattern=patterns, vocab_size=st.sampled_from((257, 300, 400)))
def test_threshold_one_is_bpe(texts: list[str], pattern: Pattern, vocab_size: int) -> None:
    options = {"vocab_size": vocab_size, "pre_tokenizer": pattern}
    plain = BpeTrainer(**options).run(Corpus.from_texts(texts))
    training = PickyTrainer(**options, threshold=1.0).run(Corpus.from_texts(texts))
    assert plain.tokenizer.model.merges == training.tokenizer.model.merges
    assert plain.report.training_tokens == training.report.training_tokens
    assert isinstance(training.report, PickyReport)
    assert (0, 0, 0) == (
        training.report.removals,
        training.report.returned,
        training.report.left_out,
    )


@examples(30)
@given(texts=documents(max_documents=12), threshold=thresholds)
def test_threads_and_document_order_change_nothing(texts: list[str], threshold: float) -> None:
    trainer = PickyTrainer(vocab_size=320, threshold=threshold)
    expected = to_json(trainer.train(Corpus.from_texts(texts)))
    for threads, order in ((2, texts), (3, texts[::-1])):
        assert expected == to_json(trainer.train(Corpus.from_texts(order), threads=threads))
