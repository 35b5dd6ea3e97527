"""Counted words are the same by any threads and groups, joined, saved and loaded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples
from vocabshift import _core
from vocabshift.text.patterns import NAMED, compile_pattern

PATTERN = NAMED["o200k"]
SCANNER = compile_pattern(PATTERN)
split = pre_tokenizer(PATTERN)

groups = st.lists(documents(max_documents=3), min_size=1, max_size=4)
threads = st.integers(1, 3)


def packed(texts: list[bytes]) -> tuple[bytes, np.ndarray]:
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return b"".join(texts), np.cumsum(lengths)


def add(counter: _core.WordCounter, texts: list[str], group: int) -> None:
    data, ends = packed([text.encode() for text in texts])
    counter.add(data, np.append(0, ends)[:-1], ends, group)


def counted(by_group: list[list[str]], n_threads: int) -> _core.WordCounter:
    counter = _core.WordCounter(SCANNER, n_threads)
    for group, texts in enumerate(by_group):
        for text in texts:  # one by one, so that every thread's table has something
            add(counter, [text], group)
        add(counter, texts, group)
    return counter


def expected(texts: list[str]) -> Counter[bytes]:
    return Counter(word.encode() for text in texts for word in split(text) for _ in range(2))


def words_of(counter: _core.WordCounter, group: int) -> dict[bytes, int]:
    words = counter.words(group)
    assert len(words) == len(dict(words)) == counter.size(group)
    return dict(words)


def joined_of(counter: _core.WordCounter, weights: list[int]) -> dict[bytes, tuple[int, int]]:
    words = counter.joined_words(weights)
    by_word = {word: (weighted, count) for word, weighted, count in words}
    assert len(words) == len(by_word)
    return by_word


def expected_join(by_group: list[Counter[bytes]], weights: list[int]) -> dict:
    joined: dict[bytes, tuple[int, int]] = {}
    for words, weight in zip(by_group, weights, strict=True):
        for word, count in words.items():
            weighted, plain = joined.get(word, (0, 0))
            joined[word] = (weighted + count * weight, plain + count)
    return joined


@examples(100)
@given(by_group=groups, n_threads=threads, weights=st.lists(st.integers(0, 9), min_size=4))
def test_words_and_their_join(
    by_group: list[list[str]], n_threads: int, weights: list[int]
) -> None:
    counter = counted(by_group, n_threads)
    assert counter.group_count == len(by_group)
    words = [expected(texts) for texts in by_group]
    for group, of_group in enumerate(words):
        assert of_group == words_of(counter, group)
    weights = weights[: len(by_group)]
    assert expected_join(words, weights) == joined_of(counter, weights)


@examples(60)
@given(
    by_group=groups,
    n_threads=threads,
    counts=st.lists(st.integers(0, 1 << 60), min_size=12, max_size=12),
)
def test_documents_and_words_with_counts(
    by_group: list[list[str]], n_threads: int, counts: list[int]
) -> None:
    pieces = _core.WordCounter(SCANNER, n_threads)
    words = _core.WordCounter(SCANNER, n_threads)
    for group, texts in enumerate(by_group):
        times = np.array(counts[: len(texts)], dtype=np.uint64)
        pieces.add_counted(*packed([text.encode() for text in texts]), times, group)
        of_group: Counter[bytes] = Counter()
        for text, count in zip(texts, times.tolist(), strict=True):
            cut = [word.encode() for word in split(text)]
            words.add_words(*packed(cut), np.full(len(cut), count, dtype=np.uint64), group)
            for word in cut:
                of_group[word] += count
        # Equal even where a count is 0: the word is there, as in the text.
        assert dict(of_group) == words_of(pieces, group) == words_of(words, group)


@pytest.mark.parametrize("n_groups", [1, 2, 5])
def test_many_words_of_all_lengths(n_groups: int) -> None:
    """Enough for tables to grow and for words to be joined in many parts."""
    rng = np.random.default_rng(n_groups)
    counter = _core.WordCounter(SCANNER, 2)
    by_group: list[Counter[bytes]] = []
    for group in range(n_groups):
        numbers = rng.integers(0, 60_000, 100_000).tolist()
        words = [b"%d" % n + b"-" * (n % 40) for n in numbers]
        counts = rng.integers(1, 1000, len(words)).astype(np.uint64)
        counter.add_words(*packed(words), counts, group)
        by_group.append(Counter())
        for word, count in zip(words, counts.tolist(), strict=True):
            by_group[-1][word] += count
        assert by_group[-1] == words_of(counter, group)
    weights = list(range(1, n_groups + 1))
    assert expected_join(by_group, weights) == joined_of(counter, weights)


@examples(40)
@given(by_group=groups, n_threads=threads)
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, by_group: list[list[str]], n_threads: int
) -> None:
    path = str(tmp_path_factory.mktemp("saved") / "words")
    counter = counted(by_group, n_threads)
    counter.save(path)
    loaded = _core.WordCounter.load(path)
    assert loaded.group_count == counter.group_count
    for group in range(len(by_group)):
        assert words_of(counter, group) == words_of(loaded, group)


def test_every_damage_of_a_saved_file_is_a_value_error(tmp_path: Path) -> None:
    counter = counted([["one two three", "a word of more than sixteen bytes"], [], ["two"]], 2)
    path = tmp_path / "words"
    counter.save(str(path))
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="no whole file of counted words"):
            _core.WordCounter.load(str(path))
    for at in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            with pytest.raises(ValueError, match="no whole file of counted words"):
                _core.WordCounter.load(str(path))
    path.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="its size is not what it was"):
        _core.WordCounter.load(str(path))


def test_a_file_that_cannot_be_opened_is_an_os_error(tmp_path: Path) -> None:
    counter = counted([["some text"]], 1)
    with pytest.raises(FileNotFoundError, match=r"cannot open .*words"):
        counter.save(str(tmp_path / "none" / "words"))
    with pytest.raises(FileNotFoundError, match=r"cannot open .*none"):
        _core.WordCounter.load(str(tmp_path / "none"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_an_os_error() -> None:
    with pytest.raises(OSError, match="cannot write /dev/full: No space left on device"):
        counted([["some text"]], 1).save("/dev/full")


def test_counts_that_do_not_fit_are_refused() -> None:
    most = np.array([(1 << 64) - 1], dtype=np.uint64)
    data, ends = packed([b"word"])
    counter = _core.WordCounter(SCANNER, 1)
    counter.add_words(data, ends, most, 0)
    with pytest.raises(ValueError, match=r"more than 2\^64 times"):
        counter.add_words(data, ends, most, 0)
    with pytest.raises(ValueError, match="weights"):
        counter.joined_words([2])
    counter.add_words(data, ends, most, 1)
    with pytest.raises(ValueError, match="weights"):
        counter.joined_words([1, 1])


def test_bad_words_are_refused() -> None:
    counter = _core.WordCounter(SCANNER, 1)
    one = np.array([1], dtype=np.uint64)
    with pytest.raises(ValueError, match="outside the data"):
        counter.add_words(b"ab", np.array([3]), one)
    with pytest.raises(ValueError, match="same length"):
        counter.add_words(b"ab", np.array([1, 2]), one)
    with pytest.raises(ValueError, match="without bytes"):
        counter.add_words(b"ab", np.array([0]), one)
    with pytest.raises(ValueError, match="outside the data"):
        counter.add_counted(b"ab", np.array([2, 1]), np.array([1, 1], dtype=np.uint64))
