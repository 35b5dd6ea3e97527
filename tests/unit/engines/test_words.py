"""What one task gives for its record batches."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vocabshift import _core
from vocabshift.engines import CountPieces
from vocabshift.engines.words import sorted_blocks
from vocabshift.errors import CorpusError


def count(count: CountPieces, *texts: Any) -> list[tuple[str | None, bytes, int]]:
    batches = [pa.record_batch({"text": pa.array([text])}) for text in texts]
    rows = [row for batch in count(batches) for row in batch.to_pylist()]
    assert all([*row] == ["language", "word", "count"] for row in rows)
    return [tuple(row.values()) for row in rows]


def test_words_and_statistics() -> None:
    """After a trip through pickle, as to an executor."""
    counting: CountPieces = pickle.loads(
        pickle.dumps(CountPieces("o200k", "nfc", ("<|e|>",), label="en"))
    )
    assert [
        ("en", b" more", 1),
        ("en", b" words", 1),
        ("en", b"some", 3),
        ("en", b"\xffdocuments", 2),
        ("en", b"\xffbytes", 10 + 18),
        ("en", b"\xffspecial", 1),
        ("en", b"\xffnulls", 1),
    ] == count(counting, "some words", None, "some more<|e|>some")[:-2]


def test_a_bad_row_is_a_word_that_no_text_holds() -> None:
    found = count(CountPieces(bad_rows="keep"), b"a\xff", b"a\xff", b"b")
    assert (None, b"\xfenot UTF-8 at byte 1\0a\xff", 2) in found
    assert (None, b"b", 1) in found
    with pytest.raises(CorpusError, match="not UTF-8 at byte 1"):
        count(CountPieces(), b"a\xff")


def test_bad_rows_beyond_the_budget(tmp_path: Path) -> None:
    """They go to disk as words do, and come once each."""
    texts = [b"\xff%07d" % (number % 30_000) for number in range(40_000)]
    batches = [pa.record_batch({"text": texts[at : at + 2000]}) for at in range(0, 40_000, 2000)]
    settings = CountPieces(bad_rows="keep", memory_bytes=1, spill_folder=str(tmp_path))
    words = [row for batch in settings(batches) for row in batch.to_pylist()]
    bad = {row["word"]: row["count"] for row in words if row["word"][:1] == b"\xfe"}
    assert 30_000 == len(bad) == sum(row["word"][:1] == b"\xfe" for row in words)
    assert {1: 20_000, 2: 10_000} == Counter(bad.values())


def test_bad_rows_of_two_languages() -> None:
    counting = CountPieces(bad_rows="keep", language="lang")
    columns = {"text": [b"\xff", b"\xfe", b"a\xff"], "lang": ["en", "hi", "en"]}
    rows = [row for batch in counting([pa.record_batch(columns)]) for row in batch.to_pylist()]
    bad = [(row["language"], row["word"][-2:]) for row in rows if row["word"][:1] == b"\xfe"]
    assert [("en", b"\0\xff"), ("en", b"a\xff"), ("hi", b"\0\xfe")] == sorted(bad)


def test_no_batches() -> None:
    words = [row for batch in CountPieces()([]) for row in batch.to_pylist()]
    assert [b"\xffhigh", b"\xfflow"] == [row["word"] for row in words]


def test_a_budget_changes_nothing(tmp_path: Path) -> None:
    texts = [f"word{i % 977} and word{i % 31}" for i in range(3000)]
    rich = count(CountPieces(memory_bytes=0), *texts)
    poor = count(CountPieces(memory_bytes=1, spill_folder=str(tmp_path)), *texts)
    assert Counter(rich) == Counter(poor)


def test_a_reader_that_stops_early_leaves_no_thread() -> None:
    counter = _core.WordCounter(_core.PreTokenizer([]))
    words = [b"%04d" % i + b"x" * (1 << 20) for i in range(40)]
    ends = np.cumsum([len(word) for word in words])
    counter.add_words(b"".join(words), ends, np.ones(len(words), np.uint64))
    before = threading.active_count()
    blocks = sorted_blocks(counter)
    assert 0 == next(blocks)[0]
    blocks.close()
    assert before == threading.active_count()
    assert 40 == sum(len(ends) for _, _, ends, _ in sorted_blocks(counter))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "no-such"}, "no pre-tokenizer is named 'no-such'"),
        ({"normalizer": "nfx"}, "nfx"),
        ({"special_tokens": ("",)}, "a special token is empty"),
    ],
)
def test_bad_settings_are_refused_before_the_job(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CountPieces(**options)
    with pytest.raises(TypeError, match="give a tuple"):
        CountPieces(special_tokens="<|e|>")  # type: ignore[arg-type]
