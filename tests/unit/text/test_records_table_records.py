"""Parquet and the Hub."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text import records
from vocabshift.text.corpus import Corpus
from vocabshift.text.files import File
from vocabshift.text.records import read_hub, read_parquet
from vocabshift.text.spec import HubDataset

pa = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("datasets")


def parquet(folder: Path, table: dict[str, Any]) -> File:
    import pyarrow.parquet as pq

    path = folder / "a.parquet"
    pq.write_table(pa.table(table), path)
    return File(path, "parquet")


def test_rows_of_one_column(tmp_path: Path) -> None:
    """Over several batches, with nulls as nothing, dictionary-encoded or not."""
    texts = [f"पंक्ति {n}\n" for n in range(3_000)]
    file = parquet(tmp_path, {"text": texts, "other": pa.array(["x", None, "y"] * 1_000)})
    assert texts == [text.decode() for text in read_parquet(file, None)]
    assert [b"x", b"", b"y"] == list(read_parquet(file, "other"))[:3]
    file = parquet(tmp_path, {"text": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert [b"a", b"b", b"a"] == list(read_parquet(file, None))


def test_compressed_parquet(tmp_path: Path) -> None:
    """Unpacked on the way."""
    file = parquet(tmp_path, {"text": ["a"]})
    packed = tmp_path / "a.parquet.gz"
    packed.write_bytes(gzip.compress(file.path.read_bytes()))
    assert [b"a"] == list(read_parquet(File(packed, "parquet", "gz"), None))


def test_packed_parquet_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that stands for a large one ends with an error before the disk is full."""
    monkeypatch.setattr(records, "MOST_PACKED_BYTES", 1_000)
    packed = tmp_path / "a.parquet.gz"
    packed.write_bytes(gzip.compress(bytes(3_000_000)))
    most = 100 * packed.stat().st_size
    with pytest.raises(CorpusError, match=rf"a\.parquet\.gz: a Parquet file of more than {most:,}"):
        list(read_parquet(File(packed, "parquet", "gz"), None))


PEAK = """
import sys
from itertools import islice
from pathlib import Path
import pyarrow
from vocabshift.text.files import File
from vocabshift.text.records import read_parquet
n_bytes = sum(map(len, islice(read_parquet(File(Path(sys.argv[1]), "parquet"), None), 400)))
print(n_bytes >> 20, pyarrow.default_memory_pool().max_memory() >> 20)
"""


@pytest.mark.parametrize(
    ("n_rows", "options"),
    [
        (100_000, {}),  # 100 GB of a dictionary's one entry, in 487 bytes
        (400, {"use_dictionary": False}),
        (400, {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}),
        (400, {"use_dictionary": False, "data_page_version": "2.0"}),
    ],
)
def test_small_files_of_huge_rows(tmp_path: Path, n_rows: int, options: dict[str, Any]) -> None:
    """A value of 1 MB in every row: 64 rows are in memory at once, and some copies of them."""
    import pyarrow.parquet as pq

    same = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), ["a" * (1 << 20)])
    file = File(tmp_path / "bomb.parquet", "parquet")
    texts = same if n_rows > 400 else same.cast("large_string")
    options = {"compression": "zstd", "store_schema": False, "write_batch_size": 16, **options}
    pq.write_table(pa.table({"text": texts}), file.path, **options)
    assert file.path.stat().st_size < 50_000
    run = [sys.executable, "-c", PEAK, str(file.path)]
    found = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    assert 400 == int(found[0])
    assert int(found[1]) < 250


def test_a_page_may_not_unpack_to_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the header of the page; how much the end of the file says of it does not matter."""
    monkeypatch.setattr("vocabshift.text.parquet._MOST_PAGE_BYTES", 50_000)
    with pytest.raises(CorpusError, match=r"a\.parquet.*a page of 100,004 bytes, at most 50,000"):
        list(read_parquet(parquet(tmp_path, {"text": ["a" * 100_000]}), None))


def test_each_byte_of_a_file_damaged(tmp_path: Path) -> None:
    """Numbers in the place of structs, lengths beyond the file, descriptions of columns whose parts
    contradict each other, at which pyarrow has ended the process."""
    file = parquet(tmp_path, {"text": ["one", "two", None]})
    content = file.path.read_bytes()
    for at in range(4, len(content)):
        for value in (0, 9, 21, 28, 44, 128, 255):
            file.path.write_bytes(content[:at] + bytes([value]) + content[at + 1 :])
            with suppress(CorpusError):
                list(read_parquet(file, None))


def test_pages_of_every_writer_are_read(tmp_path: Path) -> None:
    """Layouts 1 and 2, with statistics, several groups and pages, nulls, names with dots."""
    import pyarrow.parquet as pq

    texts = [None if n % 7 == 0 else f"{n} {'x' * (n % 50)}" for n in range(5_000)]
    for version in ("1.0", "2.0"):
        for encoding in ("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", None):
            how: dict[str, Any] = {"use_dictionary": encoding is None, "column_encoding": encoding}
            how |= {"data_page_version": version, "row_group_size": 1_500, "data_page_size": 900}
            pq.write_table(pa.table({"a.b": texts}), tmp_path / "a.parquet", **how)
            found = list(read_parquet(File(tmp_path / "a.parquet", "parquet"), "a.b"))
            assert [(text or "").encode() for text in texts] == found


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": ["x"], "b": ["y"]}, "no column 'text'; present: a, b"),
        ({"\ntext": ["x"]}, r"no column 'text'; present: \\ntext; name"),
        ({"text": [1]}, "row 1, column 'text': int instead of text"),
        ({"text": [b"x"]}, "bytes instead of text"),
        ({"text": [["x"]]}, "column 'text': list<.*> instead of text"),
    ],
)
def test_column_must_hold_text(tmp_path: Path, table: dict[str, Any], message: str) -> None:
    """The columns that there are, or the row, are named."""
    with pytest.raises(CorpusError, match=rf"a\.parquet.*{message}"):
        list(read_parquet(parquet(tmp_path, table), None))


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    """Only the one that is read matters."""
    import pyarrow.parquet as pq

    table = pa.table([["a"], ["b"], ["c"]], names=["text", "text", "other"])
    pq.write_table(table, tmp_path / "a.parquet")
    file = File(tmp_path / "a.parquet", "parquet")
    with pytest.raises(CorpusError, match=r"a\.parquet: two columns 'text'; rename one of them"):
        list(read_parquet(file, None))
    assert [b"c"] == list(read_parquet(file, "other"))


def test_damaged_parquet_names_the_file(tmp_path: Path) -> None:
    """Not Parquet at all, cut short, or with text that is not UTF-8."""
    file = parquet(tmp_path, {"text": ["a" * 100, "b"]})
    whole = file.path.read_bytes()
    for damaged in (b"", b"PAR1 no PAR1", whole[:-20], whole[:40] + whole[60:]):
        file.path.write_bytes(damaged)
        with pytest.raises(CorpusError, match=r"a\.parquet: damaged"):
            list(read_parquet(file, None))
    not_utf8 = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(CorpusError, match=r"a\.parquet: damaged.*utf-8"):
        list(read_parquet(parquet(tmp_path, {"text": not_utf8}), None))


class Rows:
    """A streamed data set, as far as it is used."""

    def __init__(self, rows: dict[str, list[Any]], fails: bool = False) -> None:
        self.rows, self.fails, self.column_names = rows, fails, list(rows)

    def select_columns(self, columns: list[str]) -> Rows:
        return Rows({name: self.rows[name] for name in columns}, self.fails)

    def iter(self, batch_size: int) -> Iterator[dict[str, list[Any]]]:
        yield self.rows
        if self.fails:
            raise ConnectionError("the line\nis dead")


def serve(monkeypatch: pytest.MonkeyPatch, rows: Rows) -> list[Any]:
    asked: list[Any] = []

    def load_dataset(*args: Any, **options: Any) -> Rows:
        asked.append((args, options))
        return rows

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return asked


def test_hub_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With config, split and column, and only when it is read."""
    asked = serve(monkeypatch, Rows({"body": ["a", None, "b\nc"], "id": [1, 2, 3]}))
    corpus = Corpus.from_specs(["hin=hf:org/name:hi:test:body@2"])
    assert [] == asked
    assert [("hin", "a"), ("hin", "b\nc")] == list(corpus.texts())
    assert [(("org/name", "hi"), {"split": "test", "streaming": True})] == asked
    assert 2 == len(list(corpus.texts()))


def test_real_streamed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in above behaves as the library does."""
    rows = datasets.Dataset.from_dict({"text": ["a", "b"], "id": [1, 2]}).to_iterable_dataset()
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **options: rows)
    assert [b"a", b"b"] == list(read_hub(HubDataset("org/name")))
    with pytest.raises(CorpusError, match="no column 'x'; present: text, id"):
        list(read_hub(HubDataset("org/name", column="x")))


def test_hub_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the library raises becomes one line that names the data set."""
    serve(monkeypatch, Rows({"text": ["a"]}, fails=True))
    with pytest.raises(CorpusError, match=r"hf:org/name::train:text: cannot .* \(the line is dead"):
        list(read_hub(HubDataset("org/name")))


@pytest.mark.parametrize(("spec", "package"), [("a.parquet", "pyarrow"), ("hf:a/b", "datasets")])
def test_missing_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, package: str
) -> None:
    """Before any work starts."""
    (tmp_path / "a.parquet").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vocabshift.text.records.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'vocabshift\[data\]'") as caught:
        Corpus.from_specs([spec])
    assert package == caught.value.name
    assert importlib.util.find_spec(package) is not None
