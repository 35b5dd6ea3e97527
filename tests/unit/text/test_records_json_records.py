"""JSON lines and JSON files."""

from __future__ import annotations

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.records import read_json, read_json_lines


def lines(content: str, column: str | None = None) -> list[str]:
    blocks = [(0, content.encode())]
    return [text.decode() for text in read_json_lines(blocks, "a.jsonl", column)]


def whole(content: str, column: str | None = None) -> list[str]:
    return [text.decode() for text in read_json(content.encode(), "a.json", column)]


def test_one_object_a_line() -> None:
    """Blank lines are passed over, and text keeps its own line ends."""
    assert ["एक\nदो", "b"] == lines('{"text": "एक\\nदो", "id": 1}\n \r\n{"text": "b"}')


def test_column_strings_and_null() -> None:
    """A column may be named; a string is its own text; null is no text."""
    assert ["x", "y", ""] == lines('{"a": "x", "text": "z"}\n"y"\n{"a": null}', "a")


def test_byte_order_mark_is_not_json() -> None:
    """At the start of the file only."""
    assert ["a"] == lines('\ufeff"a"')
    assert ["a"] == whole('\ufeff["a"]')
    with pytest.raises(CorpusError, match="line 2: not JSON"):
        lines('"a"\n\ufeff"b"')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[" * 200_000, "not JSON"),
        ("9" * 5_000, "not JSON"),
        ('{"text": 1}', "column 'text': int instead of text"),
        ("[]", "list instead of text"),
        ('{"body": "", "id": 2}', "no column 'text'; present: body, id"),
        ("{}", "present: none"),
        ('{"text": "a\\ud800"}', "lone surrogate at character 1"),
    ],
)
def test_fault_is_located(line: str, message: str) -> None:
    """File, line and what is wrong."""
    with pytest.raises(CorpusError, match=rf"a\.jsonl, line 3.*{message}"):
        lines(f'"a"\n\n{line}\n"b"')


@pytest.mark.parametrize(
    "content",
    [
        '["a", "b"]',
        '[{"text": "a"}, "b"]',
        '{"version": 2, "rows": [{"text": "a"}, {"text": "b"}]}',
        '{"text": ["a", "b"], "ids": [1, 2]}',
        '{"text": "a"}\n{"text": "b"}\n',
    ],
)
def test_shapes_of_a_json_file(content: str) -> None:
    """A list, an object that holds one, columns, and JSON lines by another name."""
    assert ["a", "b"] == whole(content)


def test_object_with_one_text() -> None:
    """A file that is a single record."""
    assert ["a"] == whole('{"text": "a", "list": ["b"]}')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: not JSON"),
        ('[\n"a"', "line 2: not JSON"),
        ('"a"', "str where a list"),
        ("1\n2", "line 1: int instead of text"),
        ('{"a": ["x"], "b": ["y"]}', "no column 'text'; present: a, b"),
        ('["a", {"b": "c"}]', "record 2: no column 'text'"),
        ('["\\udfff"]', "record 1: a lone surrogate"),
        ("[" * 200_000, "not JSON"),
    ],
)
def test_other_json_is_an_error(content: str, message: str) -> None:
    """With the file and, where there is one, the record."""
    with pytest.raises(CorpusError, match=rf"a\.json.*{message}"):
        whole(content)
