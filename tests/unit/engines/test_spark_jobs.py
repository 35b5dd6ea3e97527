"""What a job does around its callable; no Spark is needed for it."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from vocabshift.engines.rows import RowOptions
from vocabshift.engines.spark_jobs import Texts, as_batch
from vocabshift.engines.sums import PackSums
from vocabshift.engines.words import CountPieces


class Frame:
    """Stands for a DataFrame of some batches, and runs what it is given."""

    def __init__(self, *texts: Any) -> None:
        self.batches = [pa.record_batch({"text": pa.array(text)}) for text in texts]

    def mapInArrow(self, call: Any, schema: str) -> list[Any]:  # noqa: N802 - Spark's name
        names = [column.split()[0] for column in schema.split(", ")]
        made = list(pickle.loads(pickle.dumps(call))(iter(self.batches)))
        assert all(names == batch.schema.names for batch in made)
        return made


class Cells:
    """A job whose sums have numbers as their keys."""

    def __call__(self, batches: Any) -> Any:
        for batch in batches:
            cells = pa.array([-5, 1 << 40, 7], pa.int64()).slice(1)
            counts = pa.array([len(batch), 2], pa.uint64())
            yield pa.record_batch([cells, counts], names=["cell", "count"])


def rows(made: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in made for row in batch.to_pylist()]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_one_return_at_the_end_of_a_line_is_none_of_it(kind: pa.DataType) -> None:
    lines = pa.array([b"a\r", b"b\r\r", b"\r", b"c", None, b"\xff\r"], pa.binary())
    lines = lines.cast(pa.large_binary()) if kind == pa.large_string() else lines
    texts = Texts(Frame(lines.view(kind)), RowOptions(), is_lines=True)  # type: ignore[arg-type]
    made = rows(texts.call(CountPieces("[^\n]+", bad_rows="keep"), 3))  # type: ignore[arg-type]
    words = {word: count for part, _, word, count in made if part == 3}
    assert {b"a": 1, b"b\r": 1, b"c": 1} == {
        word: count for word, count in words.items() if word[:1] not in (b"\xfe", b"\xff")
    }
    assert 1 == words[b"\xfenot UTF-8 at byte 0\0\xff"]
    assert 1 == words[b"\xffnulls"]


def test_cells_travel_as_words() -> None:
    texts = Texts(Frame(["x", "y"]), RowOptions())  # type: ignore[arg-type]
    made: Any = texts.call(Cells(), 0)
    assert [(0, None, (1 << 40).to_bytes(8, "little"), 2), (0, None, b"\7" + bytes(7), 2)] == rows(
        made
    )
    [packed] = [row for batch in PackSums()(made) for row in batch.to_pylist()]
    assert {"cell": [1 << 40, 7], "count": [2, 2]} == as_batch(packed, "cell").to_pydict()


def test_runs_come_back_as_they_were_given() -> None:
    """Those too that begin with the byte of a statistic."""
    runs = [b"\xff\1", b"\xfe\2", b"abc"]
    batch = pa.record_batch(
        {
            "part": pa.array([0] * 3, pa.int32()),
            "language": pa.array(["hi", "hi", None]),
            "word": pa.array(runs, pa.binary()),
            "count": pa.array([1, 2, 3], pa.int64()),
        }
    )
    packed = [row for made in PackSums()([batch]) for row in made.to_pylist()]
    found = [row for each in packed for row in rows([as_batch(each, "run")])]
    assert [("hi", runs[0], 1), ("hi", runs[1], 2), (None, runs[2], 3)] == sorted(
        found, key=lambda row: row[2]
    )
