"""Memory budgets: what fits is the same to the last merge; what does not is said, and no worse."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import documents, examples
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.languages import MATRA_SCRIPTS
from vocabshift.text.patterns import NAMED
from vocabshift.text.scanners import compile_pattern
from vocabshift.tokenizer.model import compile_merges
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.trainers.stages import byte_tokens
from vocabshift.trainers.superword import SuperwordTrainer

SCANNER = compile_pattern(NAMED["ist-stage2"])
assert SCANNER is not None
SENTENCES = _core.SentenceWeights(
    scripts=list(MATRA_SCRIPTS.values()), terminals=".।\n", unit=4096, target=5461
)
LESS_TERMINALS = _core.MergeRule(terminals=".।\n", whole_characters=True)
BUDGETS = (1, 31, 32, 5_000, 100_000, 400_000, 700_000, 1_500_000, 1 << 23)


def packed(texts: list[str]) -> tuple[bytes, np.ndarray, np.ndarray]:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return b"".join(encoded), np.concatenate([[0], ends[:-1]]).astype(np.int64), ends


def trained_words(texts: list[str], vocab_size: int) -> _core.Trained:
    reader = CorpusReader(Corpus.from_texts(texts), (*NAMED["ist-stage2"], *NAMED["o200k"]))
    return _core.train_bpe(reader.count_words(), _core.WordWeights([1]), vocab_size)


def make_stage(
    words: _core.Trained, by_group: list[list[str]], threads: int = 1, **options: Any
) -> _core.SuperwordStage:
    encoder = compile_merges(words.tokens, words.merges)
    stage = _core.SuperwordStage(encoder, words.tokens, SCANNER, threads, **options)
    if not options.get("resume"):
        for group, texts in enumerate(by_group):
            for text in texts:
                stage.add(*packed([text]), group)
        stage.finish()
    return stage


def result(trained: _core.Trained) -> tuple[object, ...]:
    return (
        trained.merges.tolist(),
        trained.counts.tolist(),
        trained.tokens,
        trained.stopped,
        trained.training_tokens,
    )


def tokens_of(words: _core.Trained, more: _core.Trained, texts: list[str]) -> int:
    """Of texts, encoded with the merges of both stages by rank."""
    merges = np.concatenate([words.merges, more.merges])
    return _core.count_tokens(compile_merges(more.tokens, merges), SCANNER, *packed(texts))


def assert_is_prefix(
    limited: _core.Trained, full: _core.Trained, words: _core.Trained, texts: list[str]
) -> None:
    """Exact as far as it goes, and as far as it says."""
    n = len(limited.merges)
    assert limited.merges.tolist() == full.merges.tolist()[:n]
    assert limited.counts.tolist() == full.counts.tolist()[:n]
    assert limited.training_tokens == tokens_of(words, limited, texts)
    if limited.stopped == _core.Stopped.MEMORY:
        assert all(limited.counts >= limited.bound)
        assert n == len(full.merges) or full.counts[n] < limited.bound
    else:
        assert result(limited) == result(full)


by_groups = st.lists(documents(max_documents=4), min_size=1, max_size=3)


@examples(40)
@given(
    by_group=by_groups,
    seed=st.integers(0, 100),
    is_weighted=st.booleans(),
    memory_bytes=st.sampled_from(BUDGETS),
    threads=st.integers(1, 3),
)
def test_superwords_of_small_text(
    by_group: list[list[str]], seed: int, is_weighted: bool, memory_bytes: int, threads: int
) -> None:
    texts = [text for group in by_group for text in group]
    words = trained_words(texts, 290)
    source = random.Random(seed)
    weights = [source.choice((1, 7, 4096, 2**33)) for _ in by_group]
    options = {"sentences": SENTENCES} if is_weighted else {}
    rule = LESS_TERMINALS if is_weighted else _core.MergeRule()
    full = make_stage(words, by_group, **options).train(weights, 340, 1, rule)
    stage = make_stage(words, by_group, threads, **options)
    for budget in (0, memory_bytes):
        limited = stage.train(weights, 340, 1, rule, budget)
        assert_is_prefix(limited, full, words, texts)
    assert result(full) == result(stage.train(weights, 340, 1, rule))  # again and again


@pytest.fixture(scope="module")
def long_text() -> list[list[str]]:
    """Two groups of text whose runs are tens of thousands."""
    source = random.Random(3)
    syllables = [a + b for a in "kgcjtdnpbmyrlvsh" for b in ("a", "i", "u", "e", "o", "am", "at")]
    words = ["".join(source.choices(syllables, k=source.choice((1, 2, 2, 3)))) for _ in range(3000)]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    hindi = ["घर", "राम", "में", "है", "का", "की", "वह", "यह", "नाम"]

    def sentence() -> str:
        chosen = source.choices(words, weights, k=source.randrange(3, 20))
        if source.random() < 0.3:
            chosen += source.choices(hindi, k=5)
        return " ".join(chosen) + source.choice((". ", "। ", "\n"))

    return [["".join(sentence() for _ in range(40)) for _ in range(n)] for n in (90, 40)]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("vocab_size", [2100, 9000])
def test_superwords_of_long_text(
    long_text: list[list[str]], is_weighted: bool, vocab_size: int
) -> None:
    """Budgets from none at all to more than enough: all outcomes occur."""
    texts = [text for group in long_text for text in group]
    words = trained_words(texts, 2000)
    weights = [4096, 3 * 4096]
    options = {"sentences": SENTENCES} if is_weighted else {}
    rule = LESS_TERMINALS if is_weighted else _core.MergeRule()
    unit = 4096 * (4096 if is_weighted else 1)
    full = make_stage(words, long_text, **options).train(weights, vocab_size, 2 * unit, rule)
    assert len(full.merges) >= 100
    lengths = set()
    for threads in (1, 3):
        stage = make_stage(words, long_text, threads, **options)
        for budget in (*BUDGETS, 3_000_000, 1 << 30):
            limited = stage.train(weights, vocab_size, 2 * unit, rule, budget)
            assert_is_prefix(limited, full, words, texts)
            lengths.add(len(limited.merges))
            assert limited.stopped == _core.Stopped.MEMORY or budget > 100_000
    assert len(full.merges) in lengths
    assert 0 in lengths
    assert len(lengths) > 2 or vocab_size < 9000


def test_many_groups_and_threads_fit_into_a_small_budget(long_text: list[list[str]]) -> None:
    """Each group and thread has tables of its own, which are large even where they are empty."""
    texts = [text for group in long_text for text in group]
    words = trained_words(texts, 600)
    by_group = [texts[i::30] for i in range(30)]
    weights = [1] * 30
    options = {"sentences": SENTENCES}
    full = make_stage(words, by_group, **options).train(weights, 700, 4096, LESS_TERMINALS)
    stage = make_stage(words, by_group, 16, **options)
    limited = stage.train(weights, 700, 4096, LESS_TERMINALS, 32 << 20)
    assert result(full) == result(limited)


@examples(30)
@given(
    by_group=by_groups,
    vocab_size=st.sampled_from((256, 300, 1000)),
    memory_bytes=st.sampled_from((1, 200, 600, 2_000, 6_000, 20_000, 1 << 20)),
    weight=st.sampled_from((1, 3, 4096)),
    budget_of_counting=st.sampled_from((0, 1, 1 << 20)),
)
def test_words_that_do_not_fit_are_the_rarest(
    tmp_path_factory: pytest.TempPathFactory,
    by_group: list[list[str]],
    vocab_size: int,
    memory_bytes: int,
    weight: int,
    budget_of_counting: int,
) -> None:
    """Trained on the others alone the merges are the same, and every token is counted."""
    scanner = compile_pattern(NAMED["o200k"])
    assert scanner is not None
    weights = [weight, 1, 5][: len(by_group)]
    folder = str(tmp_path_factory.mktemp("spill"))
    counter = _core.WordCounter(scanner, 2, budget_of_counting, folder)
    counts: Counter[str] = Counter()
    weighted: Counter[str] = Counter()
    for group, texts in enumerate(by_group):
        counter.add(*packed(texts), group)
        for text in texts:
            for word in scanner.split(text):
                counts[word] += 1
                weighted[word] += weights[group]
    trained = _core.train_bpe(
        counter, _core.WordWeights(weights), vocab_size, memory_bytes=memory_bytes
    )
    rarest = sorted(weighted, key=lambda word: weighted[word])
    dropped, kept = rarest[: trained.dropped_words], rarest[trained.dropped_words :]
    assert not dropped or not kept or weighted[dropped[-1]] < weighted[kept[0]]
    assert trained.dropped_occurrences == sum(counts[word] for word in dropped)
    assert not dropped or memory_bytes < 1 << 20

    others = _core.WordCounter(_core.PreTokenizer([]))
    ends = np.cumsum([len(word.encode()) for word in kept], dtype=np.int64)
    others.add_words(
        "".join(kept).encode(), ends, np.array([weighted[word] for word in kept], np.uint64)
    )
    alone = _core.train_bpe(others, _core.WordWeights([1]), vocab_size)
    assert alone.merges.tolist() == trained.merges.tolist()
    assert alone.counts.tolist() == trained.counts.tolist()
    assert alone.stopped == trained.stopped
    encoder = compile_merges(trained.tokens, trained.merges)
    texts = [text for group in by_group for text in group]
    assert trained.training_tokens == _core.count_tokens(encoder, scanner, *packed(texts))


@pytest.mark.parametrize(
    "trainer",
    [
        BpeTrainer(vocab_size=320),
        BpeTrainer(vocab_size=320, grapheme_safe=True),
        SuperwordTrainer(vocab_size=320),
        SuperwordTrainer(vocab_size=320, grapheme_safe=True),
        MatraTrainer(vocab_size=320),
        MatraTrainer(vocab_size=320, word_weight="smoothed"),
    ],
    ids=lambda trainer: f"{trainer.recipe}{'-safe' * trainer.grapheme_safe}",
)
@examples(10)
@given(
    by_group=by_groups,
    memory_bytes=st.sampled_from((1, 3_000, 12_000, 100_000, 2_000_000)),
    threads=st.integers(1, 3),
)
def test_trainers_say_what_a_budget_cost(
    tmp_path_factory: pytest.TempPathFactory,
    trainer: BpeTrainer,
    by_group: list[list[str]],
    memory_bytes: int,
    threads: int,
) -> None:
    corpus = Corpus.from_texts({f"l{i}": texts for i, texts in enumerate(by_group)})
    folder = tmp_path_factory.mktemp("work")
    work = RunContext(threads=threads, folder=folder)
    work.memory_bytes = memory_bytes  # past the check: less than anyone may give
    training = trainer.run(corpus, work)
    report = training.report
    texts = [text for group in by_group for text in group]
    encodings = training.tokenizer.backend.encode_batch(texts)
    assert sum(len(encoding.ids) for encoding in encodings) == report.training_tokens
    if report.dropped_words == 0 and report.stopped_because != "memory":
        assert to_json(trainer.train(corpus)) == to_json(training.tokenizer)
    assert (report.dropped_words > 0) == (report.dropped_occurrences > 0)
    assert [] == list(folder.iterdir())


def saved_stage(path: Path, sentences: _core.SentenceWeights | None = None) -> _core.Trained:
    texts = ["one two one two. one", "two one two. three", "घर में राम। घर में"]
    words = trained_words(texts, 300)
    make_stage(words, [texts, texts[:2]], file=str(path), sentences=sentences)
    return words


@pytest.mark.parametrize("sentences", [None, SENTENCES], ids=["plain", "sentences"])
def test_a_truncated_file_is_a_value_error(
    tmp_path: Path, sentences: _core.SentenceWeights | None
) -> None:
    path = tmp_path / "encoded"
    words = saved_stage(path, sentences)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="encoded"):
            make_stage(words, [], file=str(path), sentences=sentences, resume=True)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="encoded"):
        make_stage(words, [], file=str(path), sentences=sentences, resume=True)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        make_stage(words, [], file=str(path), resume=True)


@pytest.mark.parametrize("sentences", [None, SENTENCES], ids=["plain", "sentences"])
def test_every_changed_byte_is_a_value_error(
    tmp_path: Path, sentences: _core.SentenceWeights | None
) -> None:
    path = tmp_path / "encoded"
    words = saved_stage(path, sentences)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            with pytest.raises(ValueError, match="encoded"):
                make_stage(words, [], file=str(path), sentences=sentences, resume=True).train(
                    [1, 1], 310, 1, LESS_TERMINALS
                )


@examples(60)
@given(data=st.binary(max_size=200), has_magic=st.booleans())
def test_random_bytes_are_a_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, has_magic: bool
) -> None:
    path = tmp_path_factory.mktemp("random") / "encoded"
    words = trained_words(["a a"], 257)
    path.write_bytes(b"vocabshift ids 2" * has_magic + data)
    with pytest.raises(ValueError, match="encoded"):
        make_stage(words, [], file=str(path), resume=True)


@examples(40)
@given(
    by_group=by_groups,
    is_weighted=st.booleans(),
    memory_bytes=st.sampled_from((0, 300_000)),
    threads=st.integers(1, 3),
)
def test_a_file_and_its_second_reader_give_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    by_group: list[list[str]],
    is_weighted: bool,
    memory_bytes: int,
    threads: int,
) -> None:
    words = trained_words([text for group in by_group for text in group], 290)
    weights = [4096, 9000, 5][: len(by_group)]
    options: dict[str, Any] = {"sentences": SENTENCES} if is_weighted else {}
    rule = LESS_TERMINALS if is_weighted else _core.MergeRule()
    in_memory = make_stage(words, by_group, threads, **options)
    options["file"] = str(tmp_path_factory.mktemp("file") / "encoded")
    in_file = make_stage(words, by_group, threads, **options)
    again = make_stage(words, by_group, 2, **options, resume=True)
    expected = result(in_memory.train(weights, 340, 1, rule, memory_bytes))
    assert expected == result(in_file.train(weights, 340, 1, rule, memory_bytes))
    assert expected == result(again.train(weights, 340, 1, rule, memory_bytes))
    assert in_memory.tokens == in_file.tokens == again.tokens


def test_ids_of_another_vocabulary_are_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "encoded"
    saved_stage(path)
    encoder = compile_merges(byte_tokens(), np.zeros((0, 3), np.uint32))
    stage = _core.SuperwordStage(encoder, byte_tokens(), SCANNER, file=str(path), resume=True)
    with pytest.raises(ValueError, match="damaged"):
        stage.train([1, 1], 300)
