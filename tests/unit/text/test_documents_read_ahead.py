"""Reading ahead: the same items, at most one of them early, errors and all."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from vocabshift.text.documents import read_ahead


def running() -> int:
    return sum(thread.name == "vocabshift-read-ahead" for thread in threading.enumerate())


class Source:
    """Numbers up to `size`; knows how many were taken and on which threads."""

    def __init__(self, size: int, error: BaseException | None = None) -> None:
        self.size, self.error = size, error
        self.taken = 0
        self.threads: set[int] = set()

    def __iter__(self) -> Iterator[int]:
        for number in range(self.size):
            self.taken = number + 1
            self.threads.add(threading.get_ident())
            yield number
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_all_items_come_in_order(threads: int, size: int) -> None:
    source = Source(size)
    assert list(read_ahead(source, threads=threads)) == list(range(size))
    assert running() == 0
    assert (threading.get_ident() in source.threads) == (threads == 1 and size > 0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_an_error_comes_behind_the_items_before_it(threads: int, error: BaseException) -> None:
    seen = []
    with pytest.raises(type(error)) as caught:
        for number in read_ahead(Source(3, error), threads=threads):
            seen.append(number)
    assert caught.value is error
    assert seen == [0, 1, 2]
    assert running() == 0


def test_only_one_item_is_early() -> None:
    source = Source(100)
    items = read_ahead(source, threads=2)
    for number in items:
        assert source.taken <= number + 2
        if number == 5:
            break
    items.close()  # type: ignore[attr-defined]
    assert running() == 0
    assert source.taken <= 7


def test_the_next_item_is_made_while_one_is_in_use() -> None:
    is_made = threading.Event()

    def items() -> Iterator[int]:
        yield 0
        is_made.set()
        yield 1

    for number in read_ahead(items(), threads=2):
        if number == 0:
            assert is_made.wait(10)


def test_one_thread_reads_nothing_early() -> None:
    source = Source(3)
    items = read_ahead(source, threads=1)
    assert next(items) == 0
    assert source.taken == 1
