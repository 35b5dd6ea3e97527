"""Rows that are text, of which language, and rows that are not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from vocabshift.engines.rows import BatchCorpus, Kept, RowOptions
from vocabshift.errors import CorpusError


class KeepingCorpus(BatchCorpus):
    """Keeps the rows that were set aside."""

    def __init__(self, batches: Iterable[Any], options: RowOptions) -> None:
        self.bad: Kept = Counter()
        super().__init__(batches, options, self.bad.update)


def read(
    columns: dict[str, Any], **options: Any
) -> tuple[list[tuple[str | None, str]], KeepingCorpus]:
    corpus = KeepingCorpus([pa.record_batch(columns)], RowOptions(**options))
    return list(corpus.texts()), corpus


def test_null_and_empty_texts_are_no_documents() -> None:
    texts, corpus = read({"text": ["a b", None, "", "c"]}, label="en", weight=2.0)
    assert [("en", "a b"), ("en", "c")] == texts
    assert {"en": 1} == corpus.nulls
    assert [2.0] == [
        block.weight
        for block in BatchCorpus(
            [pa.record_batch({"text": ["a"]})], RowOptions(weight=2.0)
        ).batches()
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_every_kind_of_text_column(kind: pa.DataType) -> None:
    array = pa.array(["x", "घर", None, "b"]).cast(kind)
    assert [(None, "घर"), (None, "b")] == read({"text": array.slice(1)})[0]


def test_languages_of_a_column() -> None:
    columns = {"body": ["a", "b", "c", None], "lang": ["en", None, "en", "hi"]}
    texts, corpus = read(columns, text="body", language="lang")
    assert [("en", "a"), ("en", "c"), (None, "b")] == texts
    assert {"hi": 1} == corpus.nulls


def test_rows_that_are_not_utf8() -> None:
    """Also where the bytes of two rows together would be UTF-8."""
    rows = pa.array([b"ok", b"a\xc3", b"\xa9b", "é".encode()])
    texts, corpus = read({"text": rows}, bad_rows="keep", label="fr")
    assert [("fr", "ok"), ("fr", "é")] == texts
    assert {
        ("fr", "not UTF-8 at byte 1", b"a\xc3"): 1,
        ("fr", "not UTF-8 at byte 0", b"\xa9b"): 1,
    } == corpus.bad
    with pytest.raises(CorpusError, match=r"not UTF-8 at byte 1: 'a\\ufffd'; repair it, or keep"):
        read({"text": rows})
    texts, _ = read({"text": rows}, errors="replace")
    assert {"ok", "é", "a\ufffd", "\ufffdb"} == {text for _, text in texts}


def test_rows_that_are_utf8_only_with_a_row_of_another_language() -> None:
    columns = {"text": [b"a\xc3", b"\xa9b", b"c", b"d"], "lang": ["en", "hi", "en", "hi"]}
    texts, corpus = read(columns, language="lang", bad_rows="keep")
    assert [("en", "c"), ("hi", "d")] == texts
    assert {"en", "hi"} == {language for language, _, _ in corpus.bad}


@pytest.mark.parametrize("index", [pa.uint8(), pa.uint32(), pa.int8()], ids=str)
def test_languages_of_a_dictionary(index: pa.DataType) -> None:
    """With any type of index: other programs write unsigned ones."""
    codes = pa.array([1, None, 0, 2], index)
    labels = pa.DictionaryArray.from_arrays(codes, pa.array(["hi", "en", None]))
    texts, _ = read({"text": ["a", "b", "c", "d"], "lang": labels}, language="lang")
    assert [("en", "a"), (None, "b"), ("hi", "c"), (None, "d")] == texts


def test_a_language_that_is_not_utf8() -> None:
    labels = pa.array([b"en", b"\xff"], pa.binary()).view(pa.string())
    texts, corpus = read({"text": ["a", "b"], "lang": labels}, language="lang", bad_rows="keep")
    assert [("en", "a")] == texts
    assert {(None, "the language is b'\\xff'", b"b"): 1} == corpus.bad


def test_names_of_fields_that_no_reason_can_hold() -> None:
    lines = ['{"\\ud800": 1}', '{"a\\u0000b": 1}']
    _, corpus = read({"value": lines}, json_lines="value", bad_rows="keep")
    assert {
        (None, f"record: no column 'text'; present: {name}; name one as FILE:COLUMN", row): 1
        for name, row in (("\\ud800", lines[0].encode()), ("a\\x00b", lines[1].encode()))
    } == corpus.bad
    with pytest.raises(CorpusError, match=r"present: \\ud800; name one"):
        read({"value": lines}, json_lines="value")


def test_a_weight_is_a_float() -> None:
    """As in a corpus of files: it is part of the fingerprint."""
    assert "2.0" == repr(RowOptions(weight=2).weight)


def test_languages_that_are_none() -> None:
    columns = {"text": ["a", "b", "c"], "lang": ["", "en", " "]}
    texts, corpus = read(columns, language="lang", bad_rows="keep")
    assert [("en", "b")] == texts
    assert {
        (None, "the language is ''", b"a"): 1,
        (None, "the language is ' '", b"c"): 1,
    } == corpus.bad
    _, corpus = read({"text": ["a"], "lang": [7]}, language="lang", bad_rows="keep")
    assert {(None, "the language is 7", b"a"): 1} == corpus.bad


def test_json_lines() -> None:
    records: list[Any] = [{"text": "a", "lang": "en"}, {"text": None, "lang": "en"}, {"lang": "hi"}]
    records += [{"text": 5, "lang": "en"}, {"text": "b"}, "c", None, {"text": "d", "lang": None}]
    lines = [json.dumps(record) for record in records] + ["", "  ", "{", '{"text": "\\ud800"}']
    texts, corpus = read(
        {"value": lines}, json_lines="value", language="lang", bad_rows="keep", text="text"
    )
    assert [("en", "a"), (None, "c"), (None, "d")] == texts
    assert {"en": 1, None: 1} == corpus.nulls
    reasons = [reason for (_, reason, _) in corpus.bad]
    assert [
        "record: no column 'text'; present: lang; name one as FILE:COLUMN",
        "record, column 'text': int instead of text; name another column",
        "record: no column 'lang'; present: text; name one as FILE:COLUMN",
        "record: not JSON (Expecting property name enclosed in double quotes)",
        "record: no column 'lang'; present: text; name one as FILE:COLUMN",
    ] == reasons
    assert [("ta", "a"), ("ta", "b"), ("ta", "c"), ("ta", "d")] == read(
        {"value": [lines[0], lines[4], lines[5], lines[7]]}, json_lines="value", label="ta"
    )[0]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"body": ["a"]}, {}, "a record batch has no column 'text'; present: body"),
        ({"text": [5]}, {}, "column 'text' is an Arrow int64; name a column of strings"),
        ({"text": ["a"]}, {"language": "lang"}, "has no column 'lang'"),
    ],
)
def test_columns_that_cannot_be_read(
    columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CorpusError, match=message):
        read(columns, bad_rows="keep", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bad_rows": "skip"}, "bad_rows is 'skip'; it must be 'stop' or 'keep'"),
        ({"errors": "ignore"}, "errors is 'ignore'"),
        ({"label": "hi", "language": "lang"}, "give one of them"),
        ({"weight": 0.0}, "is not a finite number above 0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RowOptions(**options)


def test_bad_rows_are_handed_on_before_they_are_many() -> None:
    """A task whose rows are all bad holds a few megabytes of them."""
    sizes: list[int] = []

    def keep(rows: Kept) -> None:
        sizes.append(sum(len(row) for _, _, row in rows))

    batches = (pa.record_batch({"text": [b"\xff%d" % n + b"x" * (1 << 20)]}) for n in range(20))
    assert not list(BatchCorpus(batches, RowOptions(bad_rows="keep"), keep).batches())
    assert 20 << 20 < sum(sizes) < 21 << 20
    assert 5 << 20 > max(sizes)
    small = (pa.record_batch({"text": [b"\xff%d" % n for n in range(1000)]}) for _ in range(50))
    sizes.clear()
    assert not list(BatchCorpus(small, RowOptions(bad_rows="keep"), keep).batches())
    assert len(sizes) > 3
