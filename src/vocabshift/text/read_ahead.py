"""Reading ahead: the next item of an iterator is made while the one before it is being used.

Checking and cutting a block of text is work for one thread, for which the threads that count words
or encode would wait. Owns the thread that reads; knows nothing of what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TypeVar

Item = TypeVar("Item")

_LAST_WAIT = 1.0  # seconds; a reader that waits for the network is left behind


def read_ahead(items: Iterable[Item], *, threads: int) -> Iterator[Item]:
    """The same items in the same order, at most one of them early; errors come where they arise.

    With one thread nothing is read early, and no thread is started.
    """
    return iter(items) if threads <= 1 else _read_ahead(iter(items))


def _read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    asked = Semaphore(1)
    made: SimpleQueue[Item | _Ended] = SimpleQueue()
    is_closed = False

    def read() -> None:
        while asked.acquire() and not is_closed:
            try:
                made.put(next(items))
            except BaseException as reason:  # raised again where the item is used
                made.put(_Ended(reason))
                return

    # A daemon: where reading hangs, an interrupted program still ends.
    reader = Thread(target=read, name="vocabshift-read-ahead", daemon=True)
    reader.start()
    try:
        while True:
            item = made.get()
            if isinstance(item, _Ended):
                if isinstance(item.reason, StopIteration):
                    return
                raise item.reason
            asked.release()
            yield item
    finally:
        is_closed = True
        asked.release()
        reader.join(_LAST_WAIT)


class _Ended:
    """Why there is no further item."""

    def __init__(self, reason: BaseException) -> None:
        self.reason = reason
