"""Sums of an engine: packed into large rows, and taken into a folder of counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from vocabshift.engines.sums import BAD_ROWS, FIGURES, PackSums, Sums
from vocabshift.engines.words import CountPieces
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder


def rows(*given: tuple[int, str | None, bytes, int]) -> pa.RecordBatch:
    kinds = (pa.int32(), pa.string(), pa.binary(), pa.int64())
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*given, strict=True), kinds, strict=True)
    ]
    return pa.record_batch(columns, names=["part", "language", "word", "count"])


def sums_of(packed: list[dict[str, Any]], folder: Path, **options: Any) -> Sums:
    reader = CountPieces().reader(Corpus.from_texts(["a"]))
    options = {"weights": [1.0, 2.0], "names": ["first", "second"], **options}
    sums = Sums(reader, folder=folder, **options)
    for row in sorted(packed, key=lambda row: row["kind"] != FIGURES):
        sums.add(row)
    return sums


def packed(*batches: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for batch in PackSums()(batches) for row in batch.to_pylist()]


def test_a_folder_of_packed_sums(tmp_path: Path) -> None:
    """Partial sums of one word are added up; groups come in the order of parts, then languages."""
    found = packed(
        rows((1, "hi", b"b", 2), (0, "te", b"a", 1), (0, None, b"c", 1), (0, "en", b"a", 5)),
        rows((0, "en", b"a", 1), (1, "hi", b"\xfewhy\0row", 3)),
        rows(
            *(
                (part, language, b"\xff" + name, count)
                for part, language in ((1, "hi"), (0, "te"), (0, None), (0, "en"))
                for name, count in (
                    (b"documents", 1),
                    (b"bytes", 9),
                    (b"special", 2),
                    (b"nulls", 1),
                )
            )
        ),
        rows((0, "xx", b"\xffdocuments", 0), (0, None, b"\xffhigh", (1 << 32) + 7)),
        rows((1, None, b"\xfflow", 3 << 32)),
    )
    sums = sums_of(found, tmp_path)
    sums.require(["en", "hi", "te"])
    with pytest.raises(CorpusError, match="no text in 'xx': a tokenizer cannot learn"):
        sums.require(["en", "xx"])
    sums.write()
    folder = CountFolder.open(tmp_path)
    assert [(None, 1.0, 1), ("en", 1.0, 6), ("te", 1.0, 1), ("hi", 2.0, 2)] == [
        (group.language, group.weight, group.occurrences) for group in folder.groups
    ]
    assert {
        "groups": 4,
        "documents": 4,
        "bytes": 36,
        "words": 4,
        "null_rows": 4,
        "bad_rows": 3,
    } == {name: count for name, count in sums.figures.items() if name != "corpus_fingerprint"}
    assert f"{7 + 3:08x}{0:08x}" == folder.fingerprint == sums.figures["corpus_fingerprint"]
    assert 8 == folder.special_tokens_in_text
    lines = (tmp_path / BAD_ROWS).read_text("utf-8").splitlines()
    assert [{"source": "second", "rows": 3, "reason": "why", "row": "row"}] == [
        json.loads(line) for line in lines
    ]


def test_large_sums_come_in_several_rows() -> None:
    """And each word is in one of them."""
    long = [rows((0, None, bytes([97 + number]) * (5 << 20), number)) for number in range(5)]
    found = packed(*long, rows((0, None, b"x", 1)).slice(1))
    assert 3 == len(found)
    assert 25 << 20 == sum(len(row["words"]) for row in found)


def test_a_slice_of_a_batch(tmp_path: Path) -> None:
    batch = rows((0, None, b"no", 9), (0, None, b"yes", 2), (0, None, b"\xffdocuments", 1))
    sums = sums_of(packed(batch.slice(1)), tmp_path)
    sums.write()
    data, ends, counts = next(CountFolder.open(tmp_path).read(0))
    assert (b"yes", [3], [2]) == (data, ends.tolist(), counts.tolist())


def test_large_types() -> None:
    """An engine may pass all strings and binaries with offsets of 64 bits."""
    batch = rows((0, "hi", b"ab", 2), (0, None, b"c", 1), (0, "hi", b"\xffdocuments", 1))
    types = (pa.int32(), pa.large_string(), pa.large_binary(), pa.int64())
    columns = [column.cast(kind) for column, kind in zip(batch.columns, types, strict=True)]
    large = pa.record_batch(columns, names=batch.schema.names)
    assert packed(batch) == packed(large)
    assert packed(batch.slice(1)) == packed(large.slice(1))


def test_text_without_words(tmp_path: Path) -> None:
    """It may be special tokens alone, and is text all the same."""
    found = packed(rows((0, "hi", b"\xffdocuments", 1), (0, "hi", b"\xffbytes", 5)))
    sums = sums_of(found, tmp_path)
    sums.require(["hi"])
    sums.write()
    folder = CountFolder.open(tmp_path)
    assert [("hi", 0)] == [(group.language, group.words) for group in folder.groups]
    assert {"hi": 0} == folder.language_bytes()


def test_no_rows_at_all(tmp_path: Path) -> None:
    """A table without a partition runs no task."""
    with pytest.raises(CorpusError, match="no text in first, second: name files that are not"):
        sums_of([], tmp_path).write()


def test_no_text(tmp_path: Path) -> None:
    found = packed(rows((0, None, b"\xffhigh", 1)))
    with pytest.raises(CorpusError, match="no text in first, second: name files that are not"):
        sums_of(found, tmp_path).write()
