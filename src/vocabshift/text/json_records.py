"""Documents out of JSON: JSON lines (`.jsonl`) and whole files (`.json`).

A record is an object, whose column holds the text, or a string, which is the text itself. A null
carries no text and is passed over; any other value is an error, as is a missing column.

A `.jsonl` is streamed; its blank lines are passed over. A `.json` is held in memory, and is one of
- a list of records;
- an object with the column: one text, or a list of texts;
- an object with exactly one list among its values, whatever its key: that list of records;
- JSON lines after all, as many a data set has it.
A byte order mark before the JSON is not part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from vocabshift.errors import CorpusError
from vocabshift.text.lines import Block, split_lines

_DEFAULT_COLUMN = "text"
_BYTE_ORDER_MARK = "\ufeff"


def read_json_lines(blocks: Iterable[Block], source: str, column: str | None) -> Iterator[bytes]:
    """Texts of JSON lines; CorpusError with the number of the line (from 1) that is at fault."""
    for number, line in enumerate(split_lines(blocks, source), start=1):
        text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if not text or text.isspace():
            continue
        where = f"{source}, line {number}"
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _not_json(where, error) from error
        yield _text_of(record, column, where)


def read_json(data: bytes, source: str, column: str | None) -> Iterator[bytes]:
    """Texts of one `.json`, whose content `data` is valid UTF-8."""
    try:
        value = json.loads(data.decode().removeprefix(_BYTE_ORDER_MARK))
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise _not_json(f"{source}, line {error.lineno}", error) from error
        yield from read_json_lines([(0, data)], source, column)
        return
    except (ValueError, RecursionError) as error:
        raise _not_json(source, error) from error
    for number, record in enumerate(_records(value, source, column), start=1):
        yield _text_of(record, column, f"{source}, record {number}")


def encode_text(value: Any, where: str) -> bytes:
    """A value of a text column as UTF-8 (empty for null), or CorpusError."""
    if value is None:
        return b""
    if not isinstance(value, str):
        raise CorpusError(f"{where}: {type(value).__name__} instead of text; name another column")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{where}: a lone surrogate at character {error.start}, which no UTF-8 can hold; "
            "repair the text or leave it out"
        ) from error


def missing_column(column: str, present: Iterable[str], where: str) -> CorpusError:
    """The error for a column that is not there."""
    return CorpusError(
        f"{where}: no column {column!r}; present: {', '.join(present) or 'none'}; "
        "name one as FILE:COLUMN"
    )


def _records(value: Any, source: str, column: str | None) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        name = column or _DEFAULT_COLUMN
        if name in value:
            return value[name] if isinstance(value[name], list) else [value]
        lists = [of_key for of_key in value.values() if isinstance(of_key, list)]
        if len(lists) == 1:
            return lists[0]
        raise missing_column(name, value, source)
    raise CorpusError(
        f"{source}: {type(value).__name__} where a list of records or an object is needed"
    )


def _text_of(record: Any, column: str | None, where: str) -> bytes:
    if not isinstance(record, dict):
        return encode_text(record, where)
    name = column or _DEFAULT_COLUMN
    if name not in record:
        raise missing_column(name, record, where)
    return encode_text(record[name], f"{where}, column {name!r}")


def _not_json(where: str, error: Exception) -> CorpusError:
    what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return CorpusError(f"{where}: not JSON ({what})")
