"""Parity-aware BPE: merge for merge the plain reference, and those of `tokenizers` on text."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reference import parity
from reference.pre_tokenize import pre_tokenizer
from strategies import examples, patterns, shared_words, texts_by_language
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import Pattern
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.parity import ParityReport, ParityTrainer


@examples(50)
@given(
    texts=texts_by_language,
    lines=st.one_of(
        st.just([]), st.lists(st.lists(shared_words, min_size=5, max_size=5), max_size=3)
    ),
    pattern=patterns,
    vocab_size=st.sampled_from((256, 258, 270, 300)),
    global_merges=st.sampled_from((0, 0, 1, 7)),
    window=st.sampled_from((0, 0, 1, 2, 5)),
    alpha=st.sampled_from((2.0, 2.0, 1.0, 0.5, 3.3)),
    min_frequency=st.sampled_from((1, 1, 2, 3)),
)
def test_merges_equal_the_reference(
    texts: dict[str, list[str]],
    lines: list[list[str]],
    pattern: Pattern,
    vocab_size: int,
    global_merges: int,
    window: int,
    alpha: float,
    min_frequency: int,
) -> None:
    """`lines`: of parallel text, in more languages than there are."""
    parallel = {label: [line[i] for line in lines] for i, label in enumerate(texts)}
    global_merges = min(global_merges, max(vocab_size - 257, 0))
    with tempfile.TemporaryDirectory() as folder:
        specs = []
        for label, of_label in parallel.items() if lines else ():
            (Path(folder) / f"{label}.txt").write_text("\n".join(of_label), encoding="utf-8")
            specs.append(f"{label}={folder}/{label}.txt")
        trainer = ParityTrainer(
            vocab_size=vocab_size,
            pre_tokenizer=pattern,
            parallel=tuple(specs),
            global_merges=global_merges,
            window_size=window or None,
            window_alpha=alpha,
            min_frequency=min_frequency,
        )
        training = trainer.run(Corpus.from_texts(texts), RunContext(threads=2))
    split = pre_tokenizer(pattern)

    def counted(of_language: dict[str, list[str]]) -> list[Counter[bytes]]:
        return [
            Counter(word.encode() for text in of_label for word in split(text))
            for of_label in of_language.values()
        ]

    tokens, merges, served = parity.train(
        counted(texts),
        vocab_size,
        parallel=counted(parallel) if lines else (),
        global_merges=global_merges,
        window=window,
        alpha=alpha,
        min_frequency=min_frequency,
    )
    assert byte_level.all_to_images(tokens) == list(training.tokenizer.model.vocab)
    images = byte_level.all_to_images(tokens)
    expected = [(images[left], images[right]) for left, right, _ in merges]
    assert expected == list(training.tokenizer.model.merges)
    report = training.report
    assert isinstance(report, ParityReport)
    of_language = Counter(served)
    assert [of_language[i] for i in range(len(texts))] == list(report.language_merges.values())


@examples(25)
@given(
    texts=texts_by_language,
    vocab_size=st.sampled_from((257, 290, 400)),
    transition=st.sampled_from((1.0, 0.9)),
)
def test_what_is_written(texts: dict[str, list[str]], vocab_size: int, transition: float) -> None:
    trainer = ParityTrainer(vocab_size=max(vocab_size, 290), transition=transition)
    training = trainer.run(Corpus.from_texts(texts))
    assert () == unreachable_tokens(training.tokenizer)
    backend = training.tokenizer.backend
    lines = [text for documents_of in texts.values() for text in documents_of]
    encodings = backend.encode_batch(lines)
    assert training.report.training_tokens == sum(len(encoding.ids) for encoding in encodings)
    assert lines == [backend.decode(encoding.ids) for encoding in encodings]
    again = trainer.train(Corpus.from_texts(texts), threads=3)
    assert to_json(training.tokenizer) == to_json(again)
