"""BoundlessBPE: the plain reference merge for merge, and the export measured against it."""

from __future__ import annotations

import random

from hypothesis import example, given
from hypothesis import strategies as st

from reference import boundless, stacked
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples
from vocabshift import _core
from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, Pattern, Split, sentence_split
from vocabshift.text.writing import SentencePolicy
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.boundless import BoundlessMerges, BoundlessTrainer

# Known to the core, run by `tokenizers`, and one whose words can be cut in two ways.
WORDS = {**NAMED, "a regex": (Split(r"\s?[a-k]+"),), "two ways": (Split(r"^..|\w"),)}
PIECES = {
    "ist-stage2": NAMED["ist-stage2"],
    "superbpe-stage2": NAMED["superbpe-stage2"],
    "terminals": sentence_split(SentencePolicy()),
    "a regex": (Split(r"[.।]+", "MergedWithPrevious"),),
    "no cut": (),
}
word_patterns = st.sampled_from(
    ("o200k", "o200k", "gpt2", "cl100k", "deepseek", "a regex", "two ways")
).map(WORDS.get)
piece_patterns = st.sampled_from(("ist-stage2", "ist-stage2", *PIECES)).map(PIECES.get)

Parts = list[tuple[list[str], float]]
phrases = st.lists(
    st.sampled_from((" a", " the", " of", " to", " ab", " घर", " में", "x", " a a", ". ", " 12")),
    min_size=1,
    max_size=25,
).map("".join)
texts = st.one_of(documents(max_documents=4), st.lists(phrases, min_size=1, max_size=4))
by_weight = st.lists(
    st.tuples(texts, st.sampled_from((1.0, 1.0, 0.5, 2.0, 3.25))), min_size=1, max_size=2
)


def corpus_of(parts: Parts) -> Corpus:
    return Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(parts)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(parts)},
    )


def has_letter_or_mark(word: bytes) -> bool:
    return any(_core.char_class(ord(character)) & 15 for character in word.decode())


def in_pieces(text: str, trainer: BoundlessTrainer) -> list[list[bytes]]:
    cut_pieces = pre_tokenizer(trainer.stage2_pre_tokenizer)
    cut_words = pre_tokenizer(trainer.pre_tokenizer)
    return [[word.encode() for word in cut_words(piece)] for piece in cut_pieces(text)]


def train_reference(
    parts: Parts, trainer: BoundlessTrainer
) -> tuple[list[bytes], list[boundless.Merge], list[list[bytes]]]:
    """Tokens, merges and the tokens of every document at the end."""
    is_weighted = len({weight for _, weight in parts}) > 1
    unit = 4096 if is_weighted else 1
    pieces, document_of = [], []
    for texts, weight in parts:
        for text in texts:
            cut = in_pieces(text, trainer)
            pieces += [(piece, int(weight * unit) if is_weighted else 1) for piece in cut]
            document_of += [len(set(document_of))] * len(cut)
    tokens, merges, segmented = boundless.train(
        pieces,
        trainer.vocab_size,
        has_letter_or_mark,
        min_frequency=trainer.min_frequency * unit,
        max_words=trainer.max_words,
        max_token_bytes=trainer.max_token_bytes,
    )
    by_document: dict[int, list[bytes]] = {}
    for document, piece in zip(document_of, segmented, strict=True):
        by_document.setdefault(document, []).extend(piece)
    return tokens, merges, list(by_document.values())


def learned_merges(learned: BoundlessMerges) -> list[boundless.Merge]:
    joined = learned.joined
    counts, kinds = joined.counts.tolist(), joined.is_supermerge.tolist()
    return [
        (*merge, count, kind)
        for merge, count, kind in zip(joined.merges.tolist(), counts, kinds, strict=True)
    ]


@example(  # "'rE" is made inside a word, and beside a number, more often, of two words
    parts=[(["I'rE A'rE B'rE C'rE" + " 1'rE" * 6], 1.0)],
    vocab_size=290,
    words=WORDS["o200k"],
    pieces=(),
    max_words=None,
    max_token_bytes=None,
    min_frequency=1,
)
@example(  # the one supermerge counts as much as the last word merge, and comes first
    parts=[(["abé"], 1.0)],
    vocab_size=257,
    words=(Split(r"\w"),),
    pieces=(),
    max_words=None,
    max_token_bytes=None,
    min_frequency=1,
)
@example(  # runs of one word, overlapping
    parts=[([" a" * 9, " a" * 4 + " b" + " a" * 5], 1.0)],
    vocab_size=280,
    words=WORDS["o200k"],
    pieces=PIECES["ist-stage2"],
    max_words=None,
    max_token_bytes=None,
    min_frequency=1,
)
@examples(75)
@given(
    parts=by_weight,
    vocab_size=st.integers(256, 340),
    words=word_patterns,
    pieces=piece_patterns,
    max_words=st.sampled_from((None, None, 1, 2, 4)),
    max_token_bytes=st.sampled_from((None, None, 4, 9)),
    min_frequency=st.integers(1, 3),
)
def test_merges_equal_the_reference(
    parts: Parts,
    vocab_size: int,
    words: Pattern,
    pieces: Pattern,
    max_words: int | None,
    max_token_bytes: int | None,
    min_frequency: int,
) -> None:
    trainer = BoundlessTrainer(
        vocab_size=vocab_size,
        pre_tokenizer=words,
        stage2_pre_tokenizer=pieces,
        max_words=max_words,
        max_token_bytes=max_token_bytes,
        min_frequency=min_frequency,
    )
    learned = trainer.learn(corpus_of(parts), RunContext())
    tokens, merges, segmented = train_reference(parts, trainer)
    assert merges == learned_merges(learned)
    assert tokens == learned.joined.tokens
    training = trainer.run(corpus_of(parts))
    report, backend = training.report, training.tokenizer.backend
    supers = [tokens[product] for _, _, product, _, is_super in merges if is_super]
    in_words = [tokens[product] for _, _, product, _, is_super in merges if not is_super]
    kept: list[stacked.Merge] = []
    left_out = sum(stacked.push(kept, token) > 2 for token in (*in_words, *supers))
    images = [(byte_level.to_image(left), byte_level.to_image(right)) for left, right in kept]
    assert images == list(training.tokenizer.model.merges)
    assert left_out == report.left_out
    assert (len(in_words), len(supers) - left_out) == (report.stage1_merges, report.stage2_merges)
    assert sum(map(len, segmented)) == report.boundless_tokens
    texts = [text for texts, _ in parts for text in texts]
    exported = [
        list(map(byte_level.to_bytes, encoding.tokens)) for encoding in backend.encode_batch(texts)
    ]
    assert sum(map(len, exported)) == report.training_tokens
    differing = [a != b for a, b in zip(segmented, exported, strict=True)]
    assert sum(differing) / len(differing) == report.documents_differing


@examples(75)
@given(parts=by_weight, vocab_size=st.sampled_from((270, 300, 400, 1000)), words=word_patterns)
def test_the_exported_tokenizer(parts: Parts, vocab_size: int, words: Pattern) -> None:
    """It gives every text back, rebuilds every token, and our encoder reads it alike."""
    training = BoundlessTrainer(vocab_size=vocab_size, pre_tokenizer=words).run(corpus_of(parts))
    texts = [text for documents, _ in parts for text in documents]
    tokenizer = training.tokenizer
    encodings = tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    ids, _ = Encoder(tokenizer).encode_batch(texts)
    assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    assert len(ids) == training.report.training_tokens
    assert texts == tokenizer.backend.decode_batch([encoding.ids for encoding in encodings])
    assert () == unreachable_tokens(tokenizer)


@examples(50)
@given(texts=documents(), vocab_size=st.sampled_from((270, 300, 400)))
def test_every_token_passes_the_pipeline_with_the_named_patterns(
    texts: list[str], vocab_size: int
) -> None:
    training = BoundlessTrainer(vocab_size=vocab_size).run(Corpus.from_texts(texts))
    assert () == unreachable_by_pipeline(training.tokenizer)


@examples(30)
@given(parts=by_weight, words=word_patterns, seed=st.integers(0, 1000))
def test_threads_and_document_order_change_nothing(parts: Parts, words: Pattern, seed: int) -> None:
    trainer = BoundlessTrainer(vocab_size=330, pre_tokenizer=words)
    expected = trainer.run(corpus_of(parts))
    rng = random.Random(seed)
    shuffled = [(rng.sample(texts, len(texts)), weight) for texts, weight in parts[::-1]]
    for threads, order in ((2, parts), (3, parts), (1, shuffled), (2, shuffled)):
        training = trainer.run(corpus_of(order), RunContext(threads=threads))
        assert to_json(expected.tokenizer) == to_json(training.tokenizer)
        assert expected.report.boundless_tokens == training.report.boundless_tokens
        assert expected.report.documents_differing == training.report.documents_differing


@examples(60)
@given(
    words=st.lists(st.sampled_from((" a", " b", " ab", "!")), min_size=1, max_size=400),
    vocab_size=st.sampled_from((260, 275, 300)),
)
def test_long_runs(words: list[str], vocab_size: int) -> None:
    """Overlaps and ties, as dense as they can be, in one piece."""
    trainer = BoundlessTrainer(
        vocab_size=vocab_size, pre_tokenizer=NAMED["o200k"], stage2_pre_tokenizer=()
    )
    parts: Parts = [(["".join(words), "".join(words[3:]) + " a"], 1.0)]
    _, merges, _ = train_reference(parts, trainer)
    assert merges == learned_merges(trainer.learn(corpus_of(parts), RunContext()))


@examples(60)
@given(parts=by_weight, vocab_size=st.integers(256, 340))
def test_a_run_that_is_told_its_cuts(parts: Parts, vocab_size: int) -> None:
    """The same words, cut by the core and by `tokenizers`, give the same merges."""
    named = BoundlessTrainer(vocab_size=vocab_size, pre_tokenizer="o200k")
    (o200k,) = NAMED["o200k"]
    by_regex = BoundlessTrainer(vocab_size=vocab_size, pre_tokenizer=(Split(f"(?:{o200k.regex})"),))
    corpus = corpus_of(parts)
    one, other = named.run(corpus), by_regex.run(corpus)
    assert one.tokenizer.model.merges == other.tokenizer.model.merges
    assert one.report.boundless_tokens == other.report.boundless_tokens
    assert one.report.documents_differing == other.report.documents_differing


def test_the_tie_between_both_kinds_goes_to_the_smaller_pair() -> None:
    """A word merge and a supermerge of one count: ids of both kinds decide together."""
    texts = [" a b"] * 3 + ["cd"] * 3
    trainer = BoundlessTrainer(vocab_size=260)
    merges = learned_merges(trainer.learn(Corpus.from_texts(texts), RunContext()))
    tokens = trainer.learn(Corpus.from_texts(texts), RunContext()).joined.tokens
    assert [b"cd", b" a", b" b", b" a b"] == [tokens[product] for _, _, product, _, _ in merges]
    assert [False, False, False, True] == [is_super for *_, is_super in merges]
