"""Text made to hurt, in small: benchmarks/adversarial.py has the hundred megabytes.

One endless word, one letter, pairs, nothing but spaces or marks, words that never come back: what
was trained is what the file does, and every text comes back. Quadratic work would not end here.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vocabshift.errors import CorpusError
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.recipes import RECIPES
from vocabshift.workflows.prune import prune

N = 60_000  # characters
rng = np.random.default_rng(0)
TEXTS = {
    "one word": bytes(rng.integers(97, 123, N, dtype=np.uint8)).decode(),
    "a": "a" * N,
    "three bytes": "क" * N,
    "pairs": "ab" * (N // 2),
    "pairs apart": "a b " * (N // 4),
    "one word again": " the" * (N // 4),
    "distinct words": " ".join(f"w{i:x}q" for i in range(N // 8)),
    "spaces": " " * N,
    "newlines": "\n" * N,
    "digits": "1" * N,
    "marks": "a" + "\u0301" * N,
    "joiners": "क्\u200d" * (N // 3),
    "terminals": "।" * N,
    "noise": "".join(map(chr, rng.integers(0x20, 0xD7FF, N // 4).tolist())),
}
TRAINED = ("bpe", "ist", "matra", "vocabshift", "boundless", "picky", "stacked", "overlap")


@pytest.mark.parametrize("recipe", TRAINED)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_training(recipe: str, text: str) -> None:
    trainer: Any = RECIPES[recipe].trainer(vocab_size=300)
    # Recipe vocabshift compares languages by their first documents, and holds these out.
    texts = ["words to hold out", "two languages, for what compares them", text, "the rest"]
    corpus = Corpus.from_texts({"x": texts[::2], "y": texts[1::2]})
    training = trainer.run(corpus, RunContext(threads=2))
    encoder = Encoder(training.tokenizer)
    ids, offsets = encoder.encode_batch(texts)
    assert training.report.training_tokens == len(ids)
    assert training.report.vocab_size <= 300
    if training.tokenizer.normalizer is None:
        assert texts == encoder.decode_batch(ids, offsets)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """Superwords over all of it, so that long pieces have something to merge."""
    texts = [text[:2_000] for text in TEXTS.values()]
    trainer: Any = RECIPES["ist"].trainer(vocab_size=1_000)
    return Encoder(trainer.train(Corpus.from_texts(texts)))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_encoding(encoder: Encoder, text: str) -> None:
    expected = encoder.tokenizer.backend.encode(text, add_special_tokens=False).ids
    assert expected == encoder.encode(text).tolist()
    data = text.encode()
    ends = np.array([len(data)])
    assert expected == encoder.encode_documents(data, ends - len(data), ends)[0].tolist()


@pytest.mark.parametrize("text", ["one word", "pairs", "distinct words", "spaces", "marks"])
def test_extending_and_pruning(encoder: Encoder, text: str) -> None:
    corpus = Corpus.from_texts([TEXTS[text]])
    extension = extend_with_report(encoder.tokenizer, corpus, ExtensionOptions(n_tokens=30))
    for changed in (extension.tokenizer, prune(encoder.tokenizer, corpus, n_tokens=100)):
        again = Encoder(changed)
        assert TEXTS[text] == again.decode(again.encode(TEXTS[text]))


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "noise.txt"
    path.write_bytes(b"a line\n" + bytes(rng.integers(128, 256, N, dtype=np.uint8)))
    (tmp_path / "text.txt").write_text("a line\n")
    corpus = Corpus.from_files({"x": tmp_path / "text.txt", "y": path})
    for recipe in TRAINED:
        with pytest.raises(CorpusError, match=r"noise.txt: not UTF-8 at byte offset 7"):
            RECIPES[recipe].trainer(vocab_size=300).train(corpus)


@pytest.mark.parametrize("recipe", ["bpe", "ist", "matra", "boundless", "picky"])
def test_a_signal_is_answered_inside_the_core(recipe: str) -> None:
    """Ctrl-C in the middle of a merge loop, or wherever it finds it, ends the training."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    text = "".join(TEXTS[name] for name in ("one word", "distinct words", "noise"))
    trainer: Any = RECIPES[recipe].trainer(vocab_size=60_000)
    corpus = Corpus.from_texts([text] * 4)
    try:
        with pytest.raises(KeyboardInterrupt):
            # Once: a second signal could find the test on its way out.
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            trainer.train(corpus)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert BpeTrainer(vocab_size=260).train(corpus).vocab_size == 260  # nothing is left locked
