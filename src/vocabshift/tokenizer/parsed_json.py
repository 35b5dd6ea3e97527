"""JSON text of a tokenizer as an object; its long values the core reads, where they are plain."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import model as model_strings
from vocabshift.tokenizer.model import MAX_ID, Strings

DAMAGED = "the file is damaged, or not a tokenizer.json"


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Without the garbage collector, which would walk all tokens and merges many times."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Parsed(dict[str, Any]):
    """An object of a JSON file; `strings`: of the BPE model in it, where the core has read one."""

    strings: Strings | None = None


def parse(source: str | bytes) -> Parsed:
    """A JSON object from text or UTF-8 bytes, or InvalidTokenizerError."""
    try:
        data = source.encode() if isinstance(source, str) else source
        with no_collection():
            parsed = _parse_model_apart(data) or _parse(data)
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidTokenizerError(f"this is not JSON in UTF-8: {one_line(error)}") from None
    if not isinstance(parsed, dict):
        raise InvalidTokenizerError(f"the JSON holds no object; {DAMAGED}")
    return parsed if isinstance(parsed, Parsed) else Parsed(parsed)


def _parse_model_apart(data: bytes) -> Parsed | None:
    """With the model read by the core; None where that, or the rest, is out of order."""
    read = model_strings.read_json(data, MAX_ID)
    if read is None:
        return None
    try:
        parsed = Parsed(_parse(read[3]))
    except ValueError:  # to be told of the whole
        return None
    parsed["model"]["vocab"], parsed["model"]["merges"], parsed.strings, _ = read
    return parsed


def _parse(data: bytes) -> Any:
    text = data.decode("utf-8-sig")
    parsed = json.loads(text)
    if "\\ud" in text or "\\uD" in text:
        json.dumps(parsed, ensure_ascii=False).encode()  # half a surrogate pair is no text
    return parsed


def one_line(error: BaseException) -> str:
    """What a library says, short enough for a message."""
    return " ".join(str(error).split())[:200]
