"""Ctrl-C is answered inside the long calls of the core, not behind them.

A timer signals the process; its handler counts. A call that never looks for signals lets the
handler run once, when it is over. How much work it takes until a call has looked three times
depends on the machine: sizes grow until it has, up to eight times what a usual machine needs.

Where a call has several parts, each must look: the longest silence is a part of the whole call.
Both are CPU time of one call, so only their share counts, and the best of three calls: a busy
machine may stretch one, and a deaf part is deaf in all.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from vocabshift import _core
from vocabshift.text.patterns import get_pattern
from vocabshift.text.scanners import compile_pattern
from vocabshift.tokenizer.model import compile_merges

LOOKS = 3
MOST = 1 << 26  # bytes of work in one call; 4 to 8 MB give three looks, a tenth of a second
rng = np.random.default_rng(0)
BYTES = [token.to_bytes(1, "big") for token in range(256)]


@contextmanager
def counted_signals() -> Iterator[list[int]]:
    looks = [0]

    def look(*_: object) -> None:
        looks[0] += 1

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        yield looks
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def counted_silence() -> Iterator[list[float]]:
    """The last look, and the most CPU time between two."""
    silence = [time.process_time(), 0.0]

    def look(*_: object) -> None:
        now = time.process_time()
        silence[:] = [now, max(silence[1], now - silence[0])]

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        yield silence
        look()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def letters(n: int) -> bytes:
    """One word."""
    return bytes(rng.integers(97, 123, n, dtype=np.uint8))


def words(n: int) -> bytes:
    text = bytearray(letters(n))
    text[6::7] = b" " * len(text[6::7])
    return bytes(text)


def encoder() -> _core.Encoder:
    """Merges of every two letters, so that a word of letters has something to merge."""
    pairs = [(left, right) for left in range(97, 123) for right in range(97, 123)]
    merges = [(left, right, 256 + rank) for rank, (left, right) in enumerate(pairs)]
    tokens = [*BYTES, *(bytes(pair) for pair in pairs)]
    return compile_merges(tokens, np.array(merges, dtype=np.uint32))


def ends_of(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    return np.array([0]), np.array([len(data)])


def pre_tokenizer() -> _core.PreTokenizer:
    scanner = compile_pattern(get_pattern("o200k"))
    assert scanner is not None
    return scanner


def encoding(data: bytes, threads: int = 1) -> Callable[[], object]:
    """One document for each thread, so that the calling one also waits for others."""
    run = _core.TextEncoder(encoder(), pre_tokenizer=pre_tokenizer())
    starts = np.linspace(0, len(data), threads + 1).astype(np.int64)
    return lambda: run.encode_documents(data, starts[:-1], starts[1:], threads)


def uneven(data: bytes) -> Callable[[], object]:
    """All the work is another thread's: the calling one only waits."""
    counter = _core.WordCounter(pre_tokenizer(), 2)
    half = b" " * (len(data) + 2)
    starts, ends = np.array([0, len(half)]), np.array([len(half), len(half) + len(data)])
    return lambda: counter.add(half + data, starts, ends)


def counting(data: bytes) -> Callable[[], object]:
    counter = _core.WordCounter(pre_tokenizer())
    return lambda: counter.add(data, *ends_of(data))


def replaying(data: bytes) -> Callable[[], object]:
    counter = _core.WordCounter(_core.PreTokenizer([]))
    counter.add(data, *ends_of(data))
    rows = np.array([(256, 257, 258)], dtype=np.uint32)
    compiled = encoder()
    return lambda: _core.replay_merges(counter, compiled, rows)


def stacking(data: bytes) -> Callable[[], object]:
    stack = _core.MergeStack(500)
    for left in range(97, 110):
        stack.push(bytes([left, left + 1]))
    return lambda: stack.push(data)


WORKS: dict[str, tuple[Callable[[bytes], Callable[[], object]], Callable[[int], bytes]]] = {
    "encoding a word": (encoding, letters),
    "encoding words": (encoding, words),
    "encoding with two threads": (lambda data: encoding(data, 2), words),
    "counting": (counting, words),
    "counting in another thread": (uneven, words),
    "replaying": (replaying, letters),
    "stacking": (stacking, letters),
}


@pytest.mark.parametrize("name", WORKS)
def test_signals_are_looked_for_inside(name: str) -> None:
    prepare, text = WORKS[name]
    size = 1 << 22
    found = []
    while size <= MOST:
        work = prepare(text(size))
        with counted_signals() as looks:
            looks[0] = 0
            work()
            found.append(looks[0])
        if found[-1] >= LOOKS:
            return
        size *= 2
    pytest.fail(f"looks of calls with 4, 8, 16… MB: {found}")


def joining(data: bytes) -> Callable[[], object]:
    """No superword is asked for: the borders of a piece are counted, and its runs."""
    compiled = compile_merges(BYTES, np.zeros((0, 3), dtype=np.uint32))
    stage = _core.SuperwordStage(compiled, BYTES, _core.PreTokenizer([]))
    stage.add(data, *ends_of(data))
    return lambda: stage.train([1], 256)


def placing(data: bytes) -> Callable[[], object]:
    """PickyBPE of no merges: words are laid out, and their pairs counted."""
    counter = _core.WordCounter(_core.PreTokenizer([]))
    counter.add(data, *ends_of(data))
    return lambda: _core.train_picky(counter, [(1, 0)], 256)


def telling_scripts(data: bytes) -> Callable[[], object]:
    scanner = pre_tokenizer()
    return lambda: _core.words_by_script(scanner, data, *ends_of(data))


# And the share of a call of half a second in which five looks are due: arrays that grow are copied.
QUIET: dict[str, tuple[Callable[[bytes], Callable[[], object]], Callable[[int], bytes], float]] = {
    "superwords of a piece": (joining, letters, 0.3),
    "places in a word": (placing, letters, 0.3),
    "scripts of words": (telling_scripts, words, 0.6),
}


@pytest.mark.parametrize("name", QUIET)
def test_no_part_is_deaf(name: str) -> None:
    prepare, text, share = QUIET[name]
    size = 1 << 24
    shares: list[float] = []
    while len(shares) < 3 and min(shares, default=1.0) >= share:
        work = prepare(text(size))
        with counted_silence() as silence:
            begin = time.process_time()
            silence[:] = [begin, 0.0]
            work()
            took = time.process_time() - begin
        if took >= 0.5:
            shares.append(silence[1] / took)
        else:
            size *= 2
    assert min(shares) < share


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_encoder_goes_on_as_if_nothing_was(threads: int) -> None:
    run = _core.TextEncoder(encoder(), pre_tokenizer=pre_tokenizer())
    data, short = words(1 << 22), words(1 << 12)
    starts = np.linspace(0, len(data), threads + 1).astype(np.int64)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    expected = run.encode(short.decode()).tolist()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.15)
            for _ in range(1000):
                run.encode_documents(data, starts[:-1], starts[1:], threads)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert run.encode(short.decode()).tolist() == expected
