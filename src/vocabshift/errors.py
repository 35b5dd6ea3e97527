"""Errors that callers may want to catch, each a ValueError that says what to do, and warnings.

How messages spell text out of files is here too, and how a name or a keyword is deprecated, which
docs/stability.md promises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

_Called = TypeVar("_Called", bound=Callable[..., Any])


class CorpusError(ValueError):
    """A corpus cannot be read, is empty, or is not UTF-8 (file and byte offset are named)."""


class BoundTooHighError(CorpusError):
    """Counted runs do not hold all that training needs.

    `lower`: the bound to count runs with next.
    """

    def __init__(self, message: str, lower: int) -> None:
        super().__init__(message)
        self.lower = lower


class InvalidTokenizerError(ValueError):
    """A tokenizer file is damaged, of an unknown kind, or contradicts itself."""


class UnreachableTokenError(ValueError):
    """A vocabulary holds tokens that its own merges cannot produce."""


class VocabMismatchError(ValueError):
    """A model, a tokenizer or a token map do not belong together."""


class NoPreTokenizerError(InvalidTokenizerError):
    """llama.cpp has no pre-tokenizer that gives a tokenizer's ids.

    `patch`: the lines that would teach it one, ready to be pasted; empty where it has no regexes.
    """

    def __init__(self, message: str, patch: str) -> None:
        super().__init__(message)
        self.patch = patch


class VocabshiftWarning(UserWarning):
    """What a user should know, and what is no error; the command line prints it as a line."""


def printable(text: str) -> str:
    """`text` on one line, with control and direction characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


@contextmanager
def regex_bound() -> Iterator[None]:
    """Around a call into `tokenizers`, which may run regexes: ValueError where one takes too long.

    Oniguruma gives up after ten million steps of backtracking at one place, about a second. Rust
    panics then, and its exception is none that `except Exception` catches.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise InvalidTokenizerError(
            f"`tokenizers` gave up on a text: {error}. If a regex of the tokenizer backtracks "
            "without end, as (a+)+ does, it needs another one"
        ) from None


def deprecation(old: str, new: str, gone: str) -> str:
    """What every use of an old spelling says; `gone`: the version without it."""
    return f"{old} is deprecated and goes with version {gone}; write {new}"


def renamed_keyword(old: str, new: str, gone: str) -> Callable[[_Called], _Called]:
    """Decorate a function or a dataclass that still takes `old`, with a warning, for `new`.

    Signatures show `new` alone.
    """

    def decorate(called: Any) -> Any:
        is_class = isinstance(called, type)
        function = called.__init__ if is_class else called

        @wraps(function)
        def takes_both(*args: Any, **options: Any) -> Any:
            if old in options:
                if new in options:
                    raise TypeError(f"{called.__name__}: {old} is {new}; give one of them")
                message = deprecation(f"{old}=", f"{new}=", gone)
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                options[new] = options.pop(old)
            return function(*args, **options)

        if not is_class:
            return takes_both
        called.__init__ = takes_both
        return called

    return decorate
