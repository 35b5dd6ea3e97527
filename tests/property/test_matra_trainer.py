"""Matra: merges and counts of both stages equal the plain reference; its promises hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference import matra
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples, text
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.languages import MATRA_SCRIPTS, MEETEI_MAYEK_LETTERS
from vocabshift.text.patterns import get_pattern
from vocabshift.text.writing import TERMINALS
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import RunContext, Training
from vocabshift.trainers.matra import MatraTrainer, variant_options
from vocabshift.trainers.stages import Stage

ENDS = "".join(TERMINALS.values()) + ".\n"
Parts = list[tuple[list[str], float]]

by_weight = st.lists(
    st.tuples(documents(max_documents=4), st.sampled_from((1.0, 1.0, 1.0, 0.5, 2.0, 3.25))),
    min_size=1,
    max_size=2,
)
alphas = st.one_of(st.sampled_from((0.75, 0.5, 1.0, 0.3)), st.floats(0.01, 1.0))


def corpus_of(parts: Parts) -> Corpus:
    return Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(parts)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(parts)},
    )


@dataclass(frozen=True, kw_only=True)
class Open(MatraTrainer):
    """Keeps its stages, for their counts."""

    def _finish(self, stages: list[Stage], reader: CorpusReader, work: RunContext) -> Training:
        training = super()._finish(stages, reader, work)
        object.__setattr__(self, "stages", stages)
        return training


def expected(parts: Parts, trainer: MatraTrainer) -> tuple[Any, Any, Any, int]:
    is_weighted = len({weight for _, weight in parts}) > 1
    unit = 4096 if is_weighted else 1
    words, pieces = get_pattern(trainer.pre_tokenizer), get_pattern(trainer.stage2_pre_tokenizer)
    settings = matra.Settings(
        vocab_size=trainer.vocab_size,
        stage1_size=round(trainer.transition * trainer.vocab_size),
        cut_words=pre_tokenizer((*pieces, *words)),
        cut_pieces=pre_tokenizer(pieces),
        terminals=ENDS if trainer.terminal_prohibition else "\n",
        alpha=trainer.alpha,
        word_weight=trainer.word_weight,
        min_frequency=trainer.min_frequency,
        max_token_bytes=trainer.max_token_bytes,
        max_words=trainer.max_words,
    )
    weighted = [(texts, int(weight * unit) if is_weighted else 1) for texts, weight in parts]
    return matra.train(weighted, settings, unit)


def assert_equals_reference(parts: Parts, options: dict[str, Any], threads: int) -> None:
    trainer = Open(**options)
    training = trainer.run(corpus_of(parts), RunContext(threads=threads))
    stages: list[Stage] = trainer.stages  # type: ignore[attr-defined]
    tokens, merges, more, n_tokens = expected(parts, trainer)
    for stage, reference in zip(stages, (merges, more), strict=False):
        assert [merge[:3] for merge in reference] == [tuple(row) for row in stage.merges.tolist()]
        assert [merge[3] for merge in reference] == stage.counts.tolist()
    assert 2 == len(stages)
    assert tokens == list(stages[-1].tokens)
    report = training.report
    assert (len(merges), len(more)) == (report.stage1_merges, report.stage2_merges)
    assert n_tokens == report.training_tokens


@example(
    parts=[(["क। a क। a ", "क a. क a"], 1.0)],
    options={"vocab_size": 300},
    variant="E",
    stage1=10,
    threads=1,
)
@examples(85)
@given(
    parts=by_weight,
    options=st.fixed_dictionaries(
        {"vocab_size": st.integers(270, 340)},
        optional={
            "alpha": alphas,
            "min_frequency": st.integers(1, 3),
            "max_token_bytes": st.sampled_from((4, 9, 15)),
            "max_words": st.integers(1, 3),
        },
    ),
    variant=st.sampled_from("EEEACD"),
    stage1=st.integers(0, 60),
    threads=st.integers(1, 3),
)
def test_merges_and_counts_equal_the_reference(
    parts: Parts, options: dict[str, Any], variant: str, stage1: int, threads: int
) -> None:
    size = min(256 + stage1, options["vocab_size"] - 1)
    options = {**options, "transition": size / options["vocab_size"]}
    assert_equals_reference(parts, variant_options(variant, options), threads)


@examples(30)
@given(
    parts=by_weight,
    alpha=st.floats(0.05, 0.99),
    min_frequency=st.integers(1, 2),
    threads=st.integers(1, 3),
)
def test_smoothed_counts_equal_the_reference(
    parts: Parts, alpha: float, min_frequency: int, threads: int
) -> None:
    options = {
        "vocab_size": 310,
        "transition": 0.92,
        "alpha": alpha,
        "word_weight": "smoothed",
        "min_frequency": min_frequency,
    }
    assert_equals_reference(parts, options, threads)


@examples(30)
@given(parts=by_weight, alpha=alphas, words=st.sampled_from(("o200k", "gpt2", "indic", "matra")))
def test_other_patterns_equal_the_reference(parts: Parts, alpha: float, words: str) -> None:
    """A stage-2 pattern without boundaries at newlines, too: only the sentences part the merges."""
    for pieces in ("superbpe-stage2", "ist-stage2", "o200k", ()):
        options = {
            "vocab_size": 300,
            "transition": 0.9,
            "alpha": alpha,
            "pre_tokenizer": words,
            "stage2_pre_tokenizer": pieces,
        }
        assert_equals_reference(parts, options, 1)


@examples(30)
@given(
    texts=st.lists(st.text("ab क।. ", min_size=1, max_size=150), min_size=1, max_size=3),
    alpha=alphas,
    threads=st.integers(1, 3),
)
def test_dense_repeats_and_ties(texts: list[str], alpha: float, threads: int) -> None:
    """Overlaps across which the weight changes: "a a a. a a"."""
    options = {"vocab_size": 290, "transition": 0.92, "alpha": alpha}
    assert_equals_reference([(texts, 1.0)], options, threads)
    long = {**options, "pre_tokenizer": "o200k", "stage2_pre_tokenizer": ()}
    assert_equals_reference([([text * 8 for text in texts], 1.0)], long, threads)


sentence_weights = st.builds(
    lambda alpha: (
        round(4096 / alpha),
        _core.SentenceWeights(
            scripts=[*MATRA_SCRIPTS.values(), MEETEI_MAYEK_LETTERS],
            terminals=ENDS,
            unit=4096,
            target=round(4096 / alpha),
        ),
    ),
    st.floats(0.001, 1.0),
)


@examples(300)
@given(document=text, weights=sentence_weights)
def test_sentences_and_their_weights(
    document: str, weights: tuple[int, _core.SentenceWeights]
) -> None:
    target, core = weights
    end, found = 0, []
    for sentence in matra.sentences(document, ENDS):
        end += len(sentence.encode())
        found.append((end, matra.sentence_weight(sentence, target)))
    assert (found or [(0, 4096)]) == core.split(document)


@pytest.mark.parametrize("variant", "ABCDE")
@examples(20)
@given(texts=documents(), vocab_size=st.sampled_from((290, 320, 1000)))
def test_promises(variant: str, texts: list[str], vocab_size: int) -> None:
    """The file gives the training tokens; stage 2 made no terminal, unless it may (C)."""
    options = variant_options(variant, {"vocab_size": vocab_size})
    if variant != "B":
        options["transition"] = 0.925
    trainer = MatraTrainer(**options)
    training = trainer.run(Corpus.from_texts(texts))
    tokenizer = training.tokenizer
    encodings = tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == training.report.training_tokens
    ids, _ = Encoder(tokenizer).encode_batch(texts)
    assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    assert texts == tokenizer.backend.decode_batch([encoding.ids for encoding in encodings])
    assert () == unreachable_tokens(tokenizer)
    made = tokenizer.model.merges[training.report.stage1_merges :]
    products = [byte_level.to_bytes(left + right) for left, right in made]
    if variant == "B":
        assert [] == products
    for product in products:
        assert b"\n" not in product
        if variant != "C":
            assert not any(terminal.encode() in product for terminal in ENDS)


@examples(15)
@given(parts=by_weight)
def test_threads_and_document_order_change_nothing(parts: Parts) -> None:
    trainer = MatraTrainer(vocab_size=330, transition=0.85)
    wanted = to_json(trainer.train(corpus_of(parts)))
    for threads, order in ((2, parts), (3, parts), (1, parts[::-1]), (2, parts[::-1])):
        assert wanted == to_json(trainer.train(corpus_of(order), threads=threads))
