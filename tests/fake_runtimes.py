"""Runtimes that do what real ones do to a tokenizer folder: one for each verdict.

They are opened in processes of their own, which find this file on `sys.path`.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from pathlib import Path

import tokenizers

from vocabshift.checks.runtimes import DoesNotApplyError, Encode, Open, Runtime

TRIGGER = "\t"
"""A text that the process encodes and some of these stumble over."""


def fake(open_folder: Open, **options: object) -> Runtime:
    """The runtime that opens folders so; the module that it needs is always there."""
    return Runtime(open_folder.__name__, open_folder, ("tokenizers",), **options)  # type: ignore[arg-type]


def faithful(folder: Path) -> Encode:
    backend = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: backend.encode(text, add_special_tokens=False).ids


def character_by_character(folder: Path) -> Encode:
    """The whole text, in other tokens."""
    encode = faithful(folder)
    return lambda text: [token_id for character in text for token_id in encode(character)]


def without_spaces(folder: Path) -> Encode:
    """What an engine does that keeps matches of a pattern and drops the gaps."""
    encode = faithful(folder)
    return lambda text: encode(text.replace(" ", ""))


def with_ids_of_nothing(folder: Path) -> Encode:
    encode = faithful(folder)
    return lambda text: [1 << 40, -7] if text == TRIGGER else encode(text)


def refusing(folder: Path) -> Encode:
    raise ValueError(f"no such\npattern in {folder / 'tokenizer.json'} \x1b[31m" + 1000 * "x")


def panicking(_folder: Path) -> Encode:
    class PanicException(BaseException):
        """As PyO3 has it."""

    raise PanicException("index out of bounds")


def refusing_one_text(folder: Path) -> Encode:
    encode = faithful(folder)

    def encode_or_raise(text: str) -> list[int]:
        if text == TRIGGER:
            raise IndexError("out of range")
        return list(encode(text))

    return encode_or_raise


def not_for_this_kind(_folder: Path) -> Encode:
    raise DoesNotApplyError("the folder has no tokenizer.model")


def aborting(_folder: Path) -> Encode:
    os.kill(os.getpid(), signal.SIGABRT)
    raise AssertionError


def leaving_early(folder: Path) -> Encode:
    encode = faithful(folder)

    def encode_or_leave(text: str) -> list[int]:
        if text == TRIGGER:
            os._exit(0)
        return list(encode(text))

    return encode_or_leave


def crashing_at_the_end(folder: Path) -> Encode:
    """After its last answer, when its objects are cleared away."""
    atexit.register(lambda: os.kill(os.getpid(), signal.SIGABRT))
    return faithful(folder)


def hanging(_folder: Path) -> Encode:
    time.sleep(3600)
    raise AssertionError


def chatting(folder: Path) -> Encode:
    """Prints, as ExecuTorch's does, and reads its standard input."""
    for stream in (1, 2):
        os.write(stream, b'["ids", []]\n')
    assert not sys.stdin.read()
    return faithful(folder)


def of_strings(_folder: Path) -> Encode:
    return lambda text: text.split()  # type: ignore[return-value]
