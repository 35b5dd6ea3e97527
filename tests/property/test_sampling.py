"""Temperature sampling over languages: the formula, and what it may not change."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import bpe
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED
from vocabshift.text.weighing import Group, sampled_weights
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.byte_level import BpeTrainer, ByteLevelTrainer
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.trainers.superword import SuperwordTrainer

groups_of_any = st.lists(
    st.builds(
        Group,
        st.sampled_from(("hin", "eng", "tam", None)),
        st.sampled_from((1.0, 0.5, 2.0, 7.25, 1e-3)),
        st.integers(0, 10**12),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=6,
)


@examples(300)
@given(groups=groups_of_any, alpha=st.floats(0.01, 1.0))
def test_weights_are_those_of_the_formula(groups: list[Group], alpha: float) -> None:
    """Language l counts p_l ** alpha / sum(p ** alpha) of the whole; groups in it stay apart."""
    weights = sampled_weights(groups, alpha)
    assert len(groups) == len(weights)
    sizes: dict[str | None, Fraction] = {}
    for group in groups:
        size = Fraction(group.weight) * group.n_bytes
        sizes[group.language] = sizes.get(group.language, Fraction(0)) + size
    whole = sum(sizes.values())
    if whole == 0:
        assert weights == [group.weight for group in groups]
        return
    powers = {name: float(size / whole) ** alpha for name, size in sizes.items() if size}
    for name, size in sizes.items():
        if not size:
            continue
        sampled = sum(
            weight * group.n_bytes
            for weight, group in zip(weights, groups, strict=True)
            if group.language == name
        )
        assert sampled / float(whole) == pytest.approx(powers[name] / sum(powers.values()))
        factors = {
            round(weight / group.weight / (powers[name] / float(size)), 9)
            for weight, group in zip(weights, groups, strict=True)
            if group.language == name
        }
        assert max(factors) == pytest.approx(min(factors))
    total = sum(weight * group.n_bytes for weight, group in zip(weights, groups, strict=True))
    assert total == pytest.approx(float(whole))
    assert sampled_weights(groups, None) == [group.weight for group in groups]


@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
@examples(20)
@given(texts=documents(), alpha=st.floats(0.01, 1.0))
def test_one_language_is_as_it_is(
    kind: type[ByteLevelTrainer], texts: list[str], alpha: float
) -> None:
    corpus = Corpus.from_texts({"hin": texts})
    plain = kind(vocab_size=320).train(corpus)
    sampled = kind(vocab_size=320, sampling_alpha=alpha).train(corpus)
    assert to_json(plain) == to_json(sampled)


@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
@examples(10)
@given(by_language=st.lists(documents(max_documents=3), min_size=2, max_size=3))
def test_alpha_one_is_as_it_is(kind: type[ByteLevelTrainer], by_language: list[list[str]]) -> None:
    corpus = Corpus.from_texts({f"l{i}": texts for i, texts in enumerate(by_language)})
    plain = kind(vocab_size=320).train(corpus)
    sampled = kind(vocab_size=320, sampling_alpha=1.0).train(corpus)
    assert to_json(plain) == to_json(sampled)


@examples(60)
@given(
    by_language=st.lists(
        st.tuples(documents(max_documents=3), st.sampled_from((1.0, 2.0, 0.5))),
        min_size=2,
        max_size=3,
    ),
    alpha=st.floats(0.05, 1.0),
    min_frequency=st.integers(1, 2),
)
def test_merges_and_counts_equal_the_reference(
    by_language: list[tuple[list[str], float]], alpha: float, min_frequency: int
) -> None:
    corpus = Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(by_language)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(by_language)},
    )
    reader = CorpusReader(corpus, NAMED["o200k"], sampling_alpha=alpha)
    counter = reader.count_words()
    fixed = reader.fixed_point_weights()
    trained = _core.train_bpe(
        counter, _core.WordWeights(fixed), 310, reader.min_count(min_frequency)
    )
    sizes = [weight * sum(len(t.encode()) for t in texts) for texts, weight in by_language]
    powers = [(size / sum(sizes)) ** alpha for size in sizes]
    weights = [
        weight * power / sum(powers) / (size / sum(sizes))
        for (_, weight), power, size in zip(by_language, powers, sizes, strict=True)
    ]
    unit = 1.0 if len(set(fixed)) == 1 and fixed[0] == 1 else max(4096, 1 / min(weights))
    assert fixed == pytest.approx([weight * unit for weight in weights], abs=1.01) or unit == 1
    words: Counter[bytes] = Counter()
    split = pre_tokenizer(NAMED["o200k"])
    for (texts, _), weight in zip(by_language, fixed, strict=True):
        for text in texts:
            for word in split(text):
                words[word.encode()] += weight
    tokens, merges = bpe.train(words, 310, min_frequency=reader.min_count(min_frequency))
    assert tokens == trained.tokens
    assert [merge[3] for merge in merges] == trained.counts.tolist()


@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
@examples(10)
@given(
    by_language=st.lists(
        st.tuples(documents(max_documents=3), st.integers(1, 4)), min_size=1, max_size=3
    ),
    min_frequency=st.integers(1, 2),
)
def test_whole_weights_equal_text_repeated(
    kind: type[ByteLevelTrainer], by_language: list[tuple[list[str], int]], min_frequency: int
) -> None:
    """A weight of 3 is the text three times (where one weight is 1: alike they change nothing)."""
    by_language = [*by_language, (["a b"], 1)]
    corpus = Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(by_language)},
        weights={f"l{i}": float(times) for i, (_, times) in enumerate(by_language)},
    )
    repeated = Corpus.from_texts([text for texts, times in by_language for text in texts * times])
    trainer = kind(vocab_size=320, min_frequency=min_frequency)
    assert to_json(trainer.train(repeated)) == to_json(trainer.train(corpus))
