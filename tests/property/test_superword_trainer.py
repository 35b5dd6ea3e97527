"""Superword training: the plain reference merge for merge, and tokens that the file gives."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference import bpe, superword
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples
from vocabshift import _core
from vocabshift.checks.check import check
from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, Pattern, Split, sentence_split
from vocabshift.text.writing import TERMINALS, SentencePolicy
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer

# Known to the core, run by `tokenizers`, and none at all.
STAGE1 = {**NAMED, "a regex": (Split(r"\s?[a-k]+"),)}
STAGE2 = {
    "ist-stage2": NAMED["ist-stage2"],
    "superbpe-stage2": NAMED["superbpe-stage2"],
    "o200k": NAMED["o200k"],
    "terminals": sentence_split(SentencePolicy()),
    "a regex": (Split(r"[.।]+", "MergedWithPrevious"),),
    "no cut": (),
}
stage1_patterns = st.sampled_from(("o200k", "gpt2", "cl100k", "deepseek", "a regex")).map(
    STAGE1.get
)
stage2_patterns = st.sampled_from(("ist-stage2", *STAGE2)).map(STAGE2.get)

by_weight = st.lists(
    st.tuples(documents(max_documents=4), st.sampled_from((1.0, 1.0, 0.5, 2.0, 3.25))),
    min_size=1,
    max_size=2,
)


def corpus_of(parts: list[tuple[list[str], float]]) -> Corpus:
    return Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(parts)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(parts)},
    )


def reference_merges(
    parts: list[tuple[list[str], float]], trainer: SuperwordTrainer
) -> list[tuple[str, str]]:
    """The merges of both stages, in the byte-level image, from the plain twins."""
    is_weighted = len({weight for _, weight in parts}) > 1
    unit = 4096 if is_weighted else 1
    stage2 = tuple(trainer.stage2_pre_tokenizer)
    cut_pieces, cut_words = pre_tokenizer(stage2), pre_tokenizer((*stage2, *trainer.pre_tokenizer))
    pieces: Counter[bytes] = Counter()
    words: Counter[bytes] = Counter()
    for texts, weight in parts:
        count = int(weight * unit) if is_weighted else 1
        for text in texts:
            for piece in cut_pieces(text):
                pieces[piece.encode()] += count
            for word in cut_words(text):
                words[word.encode()] += count
    stage1_size = round(trainer.transition * trainer.vocab_size)
    limits = {
        "min_frequency": trainer.min_frequency * unit,
        "max_token_bytes": trainer.max_token_bytes,
    }
    tokens, merges = bpe.train(words, stage1_size, **limits)
    more = []
    if stage1_size < trainer.vocab_size:
        tokens, more = superword.train(
            pieces.items(),
            tokens,
            merges,
            trainer.vocab_size,
            max_words=trainer.max_words,
            **limits,
        )
    images = [byte_level.to_image(token) for token in tokens]
    return [(images[left], images[right]) for left, right, _, _ in (*merges, *more)]


@examples(100)
@given(
    parts=by_weight,
    vocab_size=st.integers(258, 330),
    transition=st.sampled_from((0.5, 0.85, 0.9, 0.97, 1.0)),
    stage1=stage1_patterns,
    stage2=stage2_patterns,
    max_words=st.sampled_from((None, None, 1, 2, 4)),
    max_token_bytes=st.sampled_from((None, None, 4, 9)),
    min_frequency=st.integers(1, 3),
)
def test_merges_equal_the_reference(
    parts: list[tuple[list[str], float]],
    vocab_size: int,
    transition: float,
    stage1: Pattern,
    stage2: Pattern,
    max_words: int | None,
    max_token_bytes: int | None,
    min_frequency: int,
) -> None:
    trainer = SuperwordTrainer(
        vocab_size=vocab_size,
        transition=max(transition, 256.5 / vocab_size),
        pre_tokenizer=stage1,
        stage2_pre_tokenizer=stage2,
        max_words=max_words,
        max_token_bytes=max_token_bytes,
        min_frequency=min_frequency,
    )
    training = trainer.run(corpus_of(parts))
    assert reference_merges(parts, trainer) == list(training.tokenizer.model.merges)
    report = training.report
    assert report.merges == report.stage1_merges + report.stage2_merges
    assert report.merges == len(training.tokenizer.model.merges)


@pytest.mark.parametrize("kind", [SuperwordTrainer, SuperBpeTrainer])
@examples(35)
@given(parts=by_weight, vocab_size=st.sampled_from((280, 320, 400, 1000)))
def test_the_saved_file_gives_the_training_tokens(
    kind: type[SuperwordTrainer], parts: list[tuple[list[str], float]], vocab_size: int
) -> None:
    training = kind(vocab_size=vocab_size, transition=0.925).run(corpus_of(parts))
    texts = [text for documents, _ in parts for text in documents]
    tokenizer = training.tokenizer
    encodings = tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == training.report.training_tokens
    ids, _ = Encoder(tokenizer).encode_batch(texts)
    assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    assert texts == tokenizer.backend.decode_batch([encoding.ids for encoding in encodings])
    assert () == unreachable_tokens(tokenizer)


@example(texts=["//\n// "], vocab_size=290)  # "\n//" stands behind punctuation, and only there
@examples(75)
@given(texts=documents(), vocab_size=st.sampled_from((290, 320, 400, 1000)))
def test_every_invariant_of_ist(texts: list[str], vocab_size: int) -> None:
    """Each token can be produced; none spans a terminal or joins digits beyond three."""
    trainer = SuperwordTrainer(vocab_size=vocab_size, transition=0.9)
    tokenizer = trainer.train(Corpus.from_texts(texts))
    report = check(tokenizer, Corpus.from_texts(texts))
    assert () == report.unreachable
    assert () == unreachable_by_pipeline(tokenizer)
    assert 0 == report.round_trip_failures
    assert report.ok or report.unreachable_by_pipeline  # in a usual context
    for token in map(byte_level.to_bytes, tokenizer.model.vocab):
        text = token.decode(errors="ignore")
        assert not spans_a_terminal(text)
        assert not re.search(r"\d{4}", text)
        digits = sum(bool(_core.char_class(ord(character)) & 16) for character in text)
        assert digits <= 3
        assert digits in (0, len(text))


@examples(30)
@given(texts=documents())
def test_check_counts_no_spanning_token_in_ist(texts: list[str]) -> None:
    tokenizer = SuperwordTrainer(vocab_size=300).train(Corpus.from_texts(texts))
    assert () == check(tokenizer).terminal_spanning


def spans_a_terminal(text: str) -> bool:
    """A terminal that is not followed by terminals alone, or a period with a space inside."""
    terminals = "".join(TERMINALS.values())
    return bool(re.search(rf"[{terminals}][^{terminals}]|\.\s", text))


@example(texts=["\n \n"], stage1=STAGE1["o200k"], stage2=STAGE2["ist-stage2"])
@examples(50)
@given(texts=documents(), stage1=stage1_patterns, stage2=stage2_patterns)
def test_no_token_is_out_of_the_pipelines_reach(
    texts: list[str], stage1: Pattern, stage2: Pattern
) -> None:
    """Stage 1 takes its words inside the pieces of stage 2, so every token can be produced."""
    trainer = SuperwordTrainer(
        vocab_size=330, transition=0.9, pre_tokenizer=stage1, stage2_pre_tokenizer=stage2
    )
    tokenizer = trainer.train(Corpus.from_texts(texts))
    assert () == unreachable_tokens(tokenizer)
    assert () == unreachable_by_pipeline(tokenizer)


@examples(20)
@given(parts=by_weight, seed=st.integers(0, 1000))
def test_threads_and_document_order_change_nothing(
    parts: list[tuple[list[str], float]], seed: int
) -> None:
    trainer = SuperwordTrainer(vocab_size=340, transition=0.85)
    expected = to_json(trainer.train(corpus_of(parts)))
    rng = random.Random(seed)
    shuffled = [(rng.sample(texts, len(texts)), weight) for texts, weight in parts[::-1]]
    for threads, order in ((2, parts), (3, parts), (1, shuffled), (2, shuffled)):
        assert expected == to_json(trainer.train(corpus_of(order), threads=threads))


@example(text="a b " * 300, vocab_size=300)
@example(text="ab" * 500, vocab_size=300)
@examples(60)
@given(
    text=st.text("ab  ", min_size=1, max_size=600),
    vocab_size=st.sampled_from((280, 330, 400)),
)
def test_one_long_piece(text: str, vocab_size: int) -> None:
    """Runs, ties and chunk borders, as dense as they can be, between words that are tokens."""
    parts = [([text, text[3:] + "a"], 1.0)]
    trainer = SuperwordTrainer(
        vocab_size=vocab_size,
        transition=0.925,
        pre_tokenizer=NAMED["o200k"],
        stage2_pre_tokenizer=(),
    )
    training = trainer.run(corpus_of(parts))
    assert reference_merges(parts, trainer) == list(training.tokenizer.model.merges)


@pytest.mark.parametrize("max_token_bytes", [4, 5, 6])
def test_a_bound_that_was_too_high_is_lowered(max_token_bytes: int) -> None:
    """The frequent borders are refused: what may merge is rarer than any guess."""
    rng = random.Random(1)
    long, short = ([letter * n for letter in "abcdefghijklmno"] for n in (3, 1))
    texts = [" ".join(rng.choices(long, k=60)) for _ in range(200)]
    texts += [" ".join(rng.choices(short, k=12)) for _ in range(60)]
    trainer = SuperwordTrainer(
        vocab_size=330,
        transition=318 / 330,
        pre_tokenizer=NAMED["o200k"],
        stage2_pre_tokenizer=(),
        max_token_bytes=max_token_bytes,
    )
    parts = [(texts, 1.0)]
    training = trainer.run(corpus_of(parts))
    assert training.report.stage2_merges > 0
    assert reference_merges(parts, trainer) == list(training.tokenizer.model.merges)
