"""OBPE: merge for merge what the plain reference learns, and plain BPE where nothing is shared."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reference import overlap
from reference.pre_tokenize import pre_tokenizer
from strategies import examples, patterns, texts_by_language
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.overlap import OverlapTrainer

powers = st.sampled_from((-2.0, -2.0, -1.0, -0.3, -7.5, "min"))
alphas = st.sampled_from((0.5, 0.5, 0.1, 0.9, 1.0))


@examples(85)
@given(
    texts=texts_by_language,
    weights=st.lists(st.sampled_from((1.0, 1.0, 0.5, 2.0)), min_size=5, max_size=5),
    n_high=st.integers(1, 4),
    pattern=patterns,
    alpha=alphas,
    power=powers,
    vocab_size=st.sampled_from((256, 258, 270, 300)),
)
def test_merges_equal_the_reference(
    texts: dict[str, list[str]],
    weights: list[float],
    n_high: int,
    pattern: Pattern,
    alpha: float,
    power: float,
    vocab_size: int,
) -> None:
    labels = sorted(texts)
    high = labels[: min(n_high, len(labels) - 1)]
    weight_of = dict(zip(labels, weights, strict=False))
    corpus = Corpus.from_texts(texts, weights=weight_of)
    trainer = OverlapTrainer(
        vocab_size=vocab_size,
        pre_tokenizer=pattern,
        high_resource=tuple(high),
        overlap_alpha=alpha,
        overlap_power=power,
    )
    reader = CorpusReader(corpus, get_pattern(pattern), by_language=True)
    trained, learned_high = trainer.learn(reader, RunContext())
    unit = 4096 if len(set(weight_of.values())) > 1 else 1
    split = pre_tokenizer(pattern)
    counts: dict[bytes, Counter[str]] = {}
    for label, documents_of in texts.items():
        for word in (word.encode() for text in documents_of for word in split(text)):
            count = int(weight_of[label] * unit) if unit > 1 else 1
            counts.setdefault(word, Counter())[label] += count
    tokens, merges = overlap.train(
        {word: [of_word[label] for label in labels] for word, of_word in counts.items()},
        vocab_size,
        [label in high for label in labels],
        alpha=alpha,
        power=float("-inf") if power == "min" else power,
        min_frequency=unit,
    )
    assert set(high) == learned_high
    assert tokens == trained.tokens
    assert [merge[:3] for merge in merges] == [tuple(row) for row in trained.events.tolist()]


@examples(40)
@given(texts=texts_by_language, power=powers, vocab_size=st.sampled_from((257, 290, 400)))
def test_what_is_written(texts: dict[str, list[str]], power: float, vocab_size: int) -> None:
    corpus = Corpus.from_texts(texts)
    trainer = OverlapTrainer(vocab_size=vocab_size, overlap_power=power)
    training = trainer.run(corpus)
    assert () == unreachable_tokens(training.tokenizer)
    backend = training.tokenizer.backend
    lines = [text for documents_of in texts.values() for text in documents_of]
    encodings = backend.encode_batch(lines)
    assert training.report.training_tokens == sum(len(encoding.ids) for encoding in encodings)
    assert lines == [backend.decode(encoding.ids) for encoding in encodings]
    backwards = Corpus.from_texts({label: texts[label] for label in reversed(texts)})
    again = trainer.train(backwards, threads=3)
    assert to_json(training.tokenizer) == to_json(again)


@examples(60)
@given(texts=texts_by_language, pattern=patterns, vocab_size=st.sampled_from((257, 300, 400)))
def test_alpha_one_is_bpe(texts: dict[str, list[str]], pattern: Pattern, vocab_size: int) -> None:
    options = {"vocab_size": vocab_size, "pre_tokenizer": pattern}
    plain = BpeTrainer(**options).run(Corpus.from_texts(texts))
    training = OverlapTrainer(**options, overlap_alpha=1.0).run(Corpus.from_texts(texts))
    assert plain.tokenizer.model.merges == training.tokenizer.model.merges
    assert plain.report.training_tokens == training.report.training_tokens
