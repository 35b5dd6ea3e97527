"""Stacked vocabularies: the plain reference merge for merge, budgets, every token in reach."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reference import bpe, stacked
from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples
from strategies import text as any_text
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, Pattern, Split
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.stacked import SHARED_PART, StackedReport, StackedTrainer, divide

WORDS = {**NAMED, "a regex": (Split(r"\s?[a-k]+"),)}
word_patterns = st.sampled_from(("o200k", "o200k", "gpt2", "deepseek", "a regex")).map(WORDS.get)

Parts = list[tuple[list[str], float]]
by_weight = st.lists(
    st.tuples(documents(max_documents=4), st.sampled_from((1.0, 1.0, 0.5, 2.0, 3.25))),
    min_size=1,
    max_size=2,
)


def corpus_of(parts: Parts) -> Corpus:
    return Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(parts)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(parts)},
    )


def script_of(word: str) -> str:
    for character in word:
        if _core.char_class(ord(character)) & 7:
            script = _core.script(ord(character))
            if script not in ("Common", "Inherited", "Unknown"):
                return script
    return SHARED_PART


def train_reference(parts: Parts, trainer: StackedTrainer) -> list[tuple[str, str]]:
    """The merges in the byte-level image, from the plain twins."""
    is_weighted = len({weight for _, weight in parts}) > 1
    unit = 4096 if is_weighted else 1
    cut = pre_tokenizer(trainer.pre_tokenizer)
    words: dict[str, Counter[bytes]] = {}
    for texts, weight in parts:
        for text in texts:
            for word in cut(text):
                count = int(weight * unit) if is_weighted else 1
                words.setdefault(script_of(word), Counter())[word.encode()] += count
    total = trainer.vocab_size - 256
    sizes = {s: sum(len(w) * n for w, n in counts.items()) for s, counts in words.items()}
    exact = {s: Fraction(total * size, sum(sizes.values())) for s, size in sizes.items()}
    budgets = {script: int(amount) for script, amount in exact.items()}
    for script in sorted(exact, key=lambda s: (budgets[s] - exact[s], s))[
        : total - sum(budgets.values())
    ]:
        budgets[script] += 1
    lists = []
    for script in sorted(budgets, key=lambda s: (-budgets[s], s)):
        tokens, _ = bpe.train(
            words[script],
            trainer.vocab_size,
            min_frequency=trainer.min_frequency * unit,
            max_token_bytes=trainer.max_token_bytes,
        )
        lists.append((tokens[256:], budgets[script]))
    merges = stacked.stack(lists, total)
    return [(byte_level.to_image(left), byte_level.to_image(right)) for left, right in merges]


@examples(75)
@given(
    parts=by_weight,
    vocab_size=st.integers(256, 320),
    words=word_patterns,
    max_token_bytes=st.sampled_from((None, None, 4, 9)),
    min_frequency=st.integers(1, 3),
)
def test_merges_equal_the_reference(
    parts: Parts,
    vocab_size: int,
    words: Pattern,
    max_token_bytes: int | None,
    min_frequency: int,
) -> None:
    trainer = StackedTrainer(
        vocab_size=vocab_size,
        pre_tokenizer=words,
        max_token_bytes=max_token_bytes,
        min_frequency=min_frequency,
    )
    training = trainer.run(corpus_of(parts))
    assert train_reference(parts, trainer) == list(training.tokenizer.model.merges)


@examples(50)
@given(parts=by_weight, vocab_size=st.sampled_from((256, 280, 320, 400)), words=word_patterns)
def test_the_exported_tokenizer(parts: Parts, vocab_size: int, words: Pattern) -> None:
    """It gives every text back, rebuilds every token, and the report tells its tokens."""
    training = StackedTrainer(vocab_size=vocab_size, pre_tokenizer=words).run(corpus_of(parts))
    texts = [text for documents, _ in parts for text in documents]
    tokenizer, report = training.tokenizer, training.report
    encodings = tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    ids, _ = Encoder(tokenizer).encode_batch(texts)
    assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    assert len(ids) == report.training_tokens
    assert texts == tokenizer.backend.decode_batch([encoding.ids for encoding in encodings])
    assert () == unreachable_tokens(tokenizer)
    assert isinstance(report, StackedReport)
    assert report.merges == sum(part.tokens for part in report.scripts)
    assert (report.stopped_because == "vocab_size") == (report.vocab_size == vocab_size)


@examples(20)
@given(parts=by_weight)
def test_threads_and_document_order_change_nothing(parts: Parts) -> None:
    trainer = StackedTrainer(vocab_size=330)
    expected = to_json(trainer.train(corpus_of(parts)))
    backwards = [(texts[::-1], weight) for texts, weight in parts[::-1]]
    for threads, order in ((2, parts), (3, parts), (2, backwards)):
        assert expected == to_json(trainer.train(corpus_of(order), threads=threads))


@examples(300)
@given(text=any_text)
def test_words_by_script(text: str) -> None:
    """Every word once, in order, with the script of its first letter."""
    names = _core.script_names()
    data = text.encode()
    cut = _core.PreTokenizer([_core.Pattern.O200K])
    starts, ends, scripts = _core.words_by_script(
        cut, data, np.array([0]), np.array([len(data)]), threads=2
    )
    words = [data[start:end].decode() for start, end in zip(starts, ends, strict=True)]
    assert cut.split(text) == words
    found = [names[number] if number else SHARED_PART for number in scripts]
    assert [script_of(word) for word in words] == found


@examples(200)
@given(
    total=st.integers(0, 10_000),
    sizes=st.dictionaries(st.sampled_from("ABCDEFG"), st.integers(1, 10**12), min_size=1),
    shares=st.lists(st.integers(0, 100), min_size=7, max_size=7),
)
def test_budgets_are_what_is_there(total: int, sizes: dict[str, int], shares: list[int]) -> None:
    """They sum to the total where any script is free; each is within one of its exact share."""
    given_scripts = sorted(sizes)[::2]
    whole = sum(shares) * 2 or 1
    fixed = {s: share / whole for s, share in zip(given_scripts, shares, strict=False)}
    budgets = divide(total, sizes, fixed)
    assert set(budgets) == set(sizes)
    assert list(budgets) == sorted(budgets, key=lambda s: (-budgets[s], s))
    free = {s: size for s, size in sizes.items() if s not in fixed}
    for script, share in fixed.items():
        assert abs(budgets[script] - share * total) <= 1
    rest = total * (1 - sum(fixed.values()))
    for script, size in free.items():
        assert abs(budgets[script] - rest * size / sum(free.values())) <= 1
    if free:
        assert total == sum(budgets.values())
