"""Counted words are the same by any threads and groups, joined, saved and loaded."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.pre_tokenize import pre_tokenizer
from strategies import documents, examples
from vocabshift import _core
from vocabshift.text.patterns import NAMED
from vocabshift.text.scanners import compile_pattern

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


def counted(
    by_group: list[list[str]], n_threads: int, memory_bytes: int = 0, folder: str = "."
) -> _core.WordCounter:
    counter = _core.WordCounter(SCANNER, n_threads, memory_bytes, folder)
    for group, texts in enumerate(by_group):
        for text in texts:  # one by one, so that every thread's table has something
            add(counter, [text], group)
        add(counter, texts, group)
    return counter


def spills(count: Callable[[Path], object], folder: Path) -> bool:
    """Whether counting writes words to disk: in a folder that is not there it cannot."""
    try:
        count(folder / "none")
    except OSError:
        return True
    return False


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


@examples(50)
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


budgets = st.sampled_from((1, 1, 200_000, 600_000))
"""In bytes: a run for every 32 words; for every group or two."""


@examples(60)
@given(
    by_group=groups,
    n_threads=threads,
    budget=budgets,
    weights=st.lists(st.integers(0, 9), min_size=4),
)
def test_a_memory_budget_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    by_group: list[list[str]],
    n_threads: int,
    budget: int,
    weights: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    counter = counted(by_group, n_threads, budget, str(folder))
    if budget == 1:
        assert spills(lambda place: counted(by_group, n_threads, budget, str(place)), folder)
    words = [expected(texts) for texts in by_group]
    weights = weights[: len(by_group)]
    path = str(folder / "saved")
    counter.save(path)
    for one in (counter, _core.WordCounter.load(path), _core.WordCounter.load(path, 1, path)):
        assert expected_join(words, weights) == joined_of(one, weights)
        for group, of_group in enumerate(words):
            assert of_group == words_of(one, group)
        assert [sorted(of_group.items()) for of_group in words] == blocks_of(one)
    counter.save(path)
    add(counter, by_group[0], 0)  # counting goes on after it was read
    assert words[0] + Counter(
        word.encode() for text in by_group[0] for word in split(text)
    ) == words_of(counter, 0)
    assert ["saved"] == [file.name for file in folder.iterdir()]


@examples(40)
@given(by_group=groups, n_threads=threads, budget=st.sampled_from((0, 1, 200_000)))
def test_words_are_split_again(
    tmp_path_factory: pytest.TempPathFactory,
    by_group: list[list[str]],
    n_threads: int,
    budget: int,
) -> None:
    """Documents counted as pieces, and these cut into words, give the words of the documents."""
    boundaries = NAMED["ist-stage2"]
    counter = _core.WordCounter(
        compile_pattern(boundaries), n_threads, budget, str(tmp_path_factory.mktemp("runs"))
    )
    for group, texts in enumerate(by_group):
        add(counter, texts, group)
    cut = pre_tokenizer(boundaries)
    words = counter.split_words(SCANNER)
    assert words.group_count == len(by_group)
    for group, texts in enumerate(by_group):
        pieces = (piece for text in texts for piece in cut(text))
        assert Counter(word.encode() for piece in pieces for word in split(piece)) == words_of(
            words, group
        )


def blocks_of(counter: _core.WordCounter, block_bytes: int = 64) -> list[list[tuple[bytes, int]]]:
    found: list[list[tuple[bytes, int]]] = [[] for _ in range(counter.group_count)]

    def visit(group: int, data: bytes, ends: np.ndarray, counts: np.ndarray) -> None:
        starts = np.append(0, ends)[:-1].tolist()
        words = [data[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
        assert b"".join(words) == data
        assert len(data) - len(words[-1]) < block_bytes
        found[group] += zip(words, counts.tolist(), strict=True)

    counter.sorted_blocks(visit, block_bytes)
    return found


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20, 6 << 20])
def test_many_words_in_a_budget(tmp_path: Path, memory_bytes: int) -> None:
    """Tables that grow until they are written out, long words too, and runs enough to be merged
    more than once."""
    rng = np.random.default_rng(0)
    by_group: list[Counter[bytes]] = [Counter(), Counter()]
    rounds = []
    for round_ in range(6):
        numbers = rng.integers(0, 100_000, 30_000).tolist()
        words = [b"%d" % n + b"-" * (n % 50) for n in numbers]
        counts = rng.integers(1, 1000, len(words)).astype(np.uint64)
        rounds.append((*packed(words), counts, round_ % 2))
        for word, count in zip(words, counts.tolist(), strict=True):
            by_group[round_ % 2][word] += count

    def filled(folder: Path) -> _core.WordCounter:
        counter = _core.WordCounter(SCANNER, 2, memory_bytes, str(folder))
        for words in rounds:
            counter.add_words(*words)
        return counter

    counter = filled(tmp_path)
    assert spills(filled, tmp_path) == (memory_bytes > 0)
    assert [sorted(words.items()) for words in by_group] == blocks_of(counter, 1 << 16)
    assert expected_join(by_group, [3, 5]) == joined_of(counter, [3, 5])


def test_what_the_visitor_raises_ends_the_visit() -> None:
    counter = counted([["some text"]], 1)

    def visit(*_: object) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        counter.sorted_blocks(visit)
    assert counter.size(0) == 2


def test_a_folder_that_cannot_take_runs_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot create a file in .*nowhere"):
        counted([["some text"]], 2, 1, str(tmp_path / "nowhere"))


def test_a_full_disk_while_runs_are_written_is_an_os_error(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk; it holds for a process of its own."""
    code = """
import resource, sys
import numpy as np
from vocabshift import _core

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
counter = _core.WordCounter(_core.PreTokenizer([_core.Pattern.O200K]), 2, 1 << 20, sys.argv[1])
letters = bytes.maketrans(b"0123456789", b"abcdefghij")
data = b"".join(b" %d" % i for i in range(100_000)).translate(letters)
try:
    counter.add(data, np.array([0]), np.array([len(data)]))
except OSError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert f"cannot write {tmp_path}" in run.stdout
    assert "File too large" in run.stdout
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("budget", [0, 1])  # not sorted, and sorted
def test_every_damage_of_a_saved_file_is_a_value_error(tmp_path: Path, budget: int) -> None:
    by_group = [["one two three", "a word of more than sixteen bytes"], [], ["two"]]
    counter = counted(by_group, 2, budget, str(tmp_path))
    path = tmp_path / "words"
    counter.save(str(path))
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="no whole file of counted words"):
            _core.WordCounter.load(str(path))
    for at in range(len(whole)):
        for flip in (0x01, 0x80):
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


@pytest.mark.parametrize(
    ("of_group", "target", "smoothing"), [(1 << 40, 1 << 40, 0), (1 << 40, 1, 0.99)]
)
def test_weights_that_do_not_fit_are_refused(of_group: int, target: int, smoothing: float) -> None:
    """The product of a group's and a script's weight, and smoothed counts, are checked too."""
    data, ends = packed(["घर".encode()])
    counter = _core.WordCounter(SCANNER, 1)
    counter.add_words(data, ends, np.array([1 << 20], dtype=np.uint64), 0)
    scripts = [("\u0900", "\u097f")]
    weights = _core.WordWeights(
        [of_group], unit=2, target=target, scripts=scripts, smoothing=smoothing
    )
    with pytest.raises(ValueError, match="make the weights less different"):
        _core.train_bpe(counter, weights, 300)


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
