"""Superwords from counts: equal to training on the text, however it is divided over machines."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference import run_counts
from reference.superword import encode
from run_counting import Rows, count_runs, count_words, sketch
from strategies import documents, examples
from vocabshift.engines import RunPlan
from vocabshift.errors import BoundTooHighError
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import get_pattern
from vocabshift.text.scanners import compile_pattern
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import Training
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer

Texts = list[tuple[list[str], float]]

by_language = st.lists(
    st.tuples(documents(max_documents=4), st.sampled_from((1.0, 1.0, 0.5, 3.25))),
    min_size=1,
    max_size=3,
)
trainers: Any = st.one_of(
    st.builds(
        SuperwordTrainer,
        vocab_size=st.sampled_from((290, 330)),
        transition=st.sampled_from((0.9, 0.95)),
        min_frequency=st.sampled_from((1, 1, 3)),
        max_words=st.sampled_from((None, 2)),
        sampling_alpha=st.sampled_from((None, 0.5)),
        grapheme_safe=st.booleans(),
        normalizer=st.sampled_from((None, "nfkc")),
        special_tokens=st.sampled_from(((), ("a ", "।"))),
        stage2_pre_tokenizer=st.sampled_from(("ist-stage2", "superbpe-stage2", "[.।]+")),
    ),
    st.builds(SuperBpeTrainer, vocab_size=st.just(320)),
    st.builds(
        MatraTrainer,
        vocab_size=st.just(320),
        alpha=st.sampled_from((0.5, 0.75, 1.0)),
        word_weight=st.sampled_from(("constant", "constant", "smoothed", "none")),
        terminal_prohibition=st.booleans(),
    ),
)


def corpus_of(texts: Texts) -> Corpus:
    return Corpus.from_texts(
        {f"l{i}": own for i, (own, _) in enumerate(texts)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(texts)},
    )


def divided(texts: Texts, seed: int) -> list[list[Rows]]:
    """The documents in any order, in batches, on some machines; one of them may see none."""
    rng = random.Random(seed)
    rows = [(f"l{i}", text) for i, (own, _) in enumerate(texts) for text in own]
    rng.shuffle(rows)
    parts: list[list[Rows]] = [[[]] for _ in range(rng.randint(1, 4))]
    for row in rows:
        part = rng.choice(parts)
        if rng.random() < 0.3:
            part.append([])
        part[-1].append(row)
    return parts


def facts(training: Training) -> dict[str, Any]:
    report = asdict(training.report)
    del report["phases"]
    return report


@examples(40)
@given(texts=by_language, trainer=trainers, seed=st.integers(0, 1 << 20))
def test_equal_to_training_on_the_text(
    tmp_path_factory: pytest.TempPathFactory, texts: Texts, trainer: SuperwordTrainer, seed: int
) -> None:
    base = tmp_path_factory.mktemp("runs")
    local = trainer.run(corpus_of(texts))
    words = count_words(corpus_of(texts), trainer, base / "words")
    plan = trainer.plan_runs(words)
    parts = divided(texts, seed)
    borders = sketch(plan, parts)
    bound = borders.guess_bound()
    while True:
        options = {"memory_bytes": random.Random(seed).choice((0, 1 << 28))}
        runs = count_runs(borders, bound, divided(texts, seed + 1), base / str(bound), **options)
        try:
            counted = trainer.run(replace(words, runs=runs))
            break
        except BoundTooHighError as error:
            assert error.lower < bound
            bound = error.lower
    assert to_json(local.tokenizer) == to_json(counted.tokenizer)
    assert facts(local) == facts(counted)


@examples(20)
@given(texts=by_language, seed=st.integers(0, 1 << 20), n_merges=st.integers(1, 25))
def test_the_bound_is_held_against_the_merges(
    tmp_path_factory: pytest.TempPathFactory, texts: Texts, seed: int, n_merges: int
) -> None:
    """With the last merge's count as bound all merges are found, with twice as much they are not
    taken for all."""
    trainer = SuperwordTrainer(vocab_size=280 + n_merges, transition=280 / (280 + n_merges))
    base = tmp_path_factory.mktemp("runs")
    words = count_words(corpus_of(texts), trainer, base / "words")
    plan = trainer.plan_runs(words)
    parts = divided(texts, seed)
    borders = sketch(plan, parts)
    stage = trainer.train_runs(plan, words, count_runs(borders, 1, parts, base / "all"))
    assume(len(stage.merges))
    last = int(stage.counts[-1])
    exact = trainer.train_runs(plan, words, count_runs(borders, last, parts, base / "last"))
    assert stage.merges.tolist() == exact.merges.tolist()
    assert stage.training_tokens == exact.training_tokens
    too_high = count_runs(borders, 2 * last, parts, base / "too high")
    with pytest.raises(BoundTooHighError, match="--bound") as error:
        trainer.train_runs(plan, words, too_high)
    assert error.value.lower < 2 * last


@examples(30)
@given(texts=by_language, bound=st.integers(1, 6), seed=st.integers(0, 1 << 20))
def test_borders_and_runs_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory, texts: Texts, bound: int, seed: int
) -> None:
    base = tmp_path_factory.mktemp("runs")
    texts = [(own, 1.0) for own, _ in texts]
    trainer = SuperwordTrainer(vocab_size=300, transition=280 / 300)
    plan = trainer.plan_runs(count_words(corpus_of(texts), trainer, base / "words"))
    parts = divided(texts, seed)
    borders = sketch(plan, parts)

    split = compile_pattern(get_pattern(trainer.stage2_pre_tokenizer))
    assert split is not None
    pieces: list[list[int]] = []
    for own, _ in texts:
        for text in own:
            pieces += [encoded(plan, piece) for piece in split.split(text)]
    expected = run_counts.borders((ids, 1) for ids in pieces)
    assert sum(expected.values()) == int(borders.counts.sum())
    assume(len(expected) == np.count_nonzero(borders.counts))  # no two share a cell
    assert sorted(expected.values()) == sorted(borders.counts[borders.counts > 0].tolist())

    frequent = {pair for pair, count in expected.items() if count >= bound}
    runs = count_runs(borders, bound, parts, base / "runs")
    found: Counter[tuple[int, ...]] = Counter()
    for group in range(len(runs.groups)):
        for data, ends, counts in runs.read(group):
            begin = 0
            for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
                found[tuple(np.frombuffer(data[begin:end], "<u4").tolist())] += count
                begin = end
    assert run_counts.runs(pieces, frequent) == found
    assert sum(map(len, pieces)) == runs.tokens


def encoded(plan: RunPlan, piece: str) -> list[int]:
    """A piece by the merges of stage 1, rank by rank."""
    return encode(piece.encode(), plan.tokens, [(*merge, 0) for merge in plan.merges.tolist()])
