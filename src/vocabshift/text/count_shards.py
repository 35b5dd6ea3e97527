"""A shard of a count folder: one Parquet file of words and how often each occurs.

Columns `word` (binary; `run` in a folder of runs) and `count` (uint64), sorted by the bytes of the
words. Owns the file format and its validation on reading, and how files of other programs are read.
Knows nothing of groups or of how words were cut out of text. pyarrow is imported only when a file
is opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError, printable
from vocabshift.text.parquet import bounded_batches

AGAIN = "count the corpus again"
"""Advice for an incomplete file."""

STATISTIC = b"\xff"
"""First byte of words that are none, as engines pass them on: `documents`, `bytes`, `special` and
`nulls`, whose count is the figure; and `high` and `low`, the halves of the fingerprint, of 32 bits
each. The byte occurs nowhere in UTF-8."""

_FIGURES = {"documents", "bytes", "special", "nulls", "high", "low"}
_NO_DOCUMENTS = (b"nulls", b"high", b"low")  # figures of a label that may have no text

BAD_ROW = b"\xfe"
"""First byte of a row that could not be read: the reason follows, a zero byte, and the row."""

BLOCK_BYTES = 4 << 20
"""Words that a counter passes on at a time."""

_EXPORT = "write the file again"
_BATCH_ROWS = 1 << 16

Block = tuple[bytes, NDArray[np.int64], NDArray[np.uint64]]
"""Concatenated words, their (exclusive) ends, and how often each occurs."""


class ShardWriter:
    """Writes a shard block by block and keeps its totals."""

    def __init__(self, path: Path, *, column: str = "word") -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = pa.schema(
            [pa.field(column, pa.binary(), False), pa.field("count", pa.uint64(), False)]
        )
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        )
        self.words = 0
        self.occurrences = 0

    def write(self, data: bytes, ends: NDArray[np.int64], counts: NDArray[np.uint64]) -> None:
        """Write a block of words; they must be in order across all blocks."""
        import pyarrow as pa

        columns = [word_array(data, ends), pa.array(counts, pa.uint64())]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
        self.words += len(ends)
        self.occurrences += exact_sum(counts)

    def close(self) -> None:
        """Finish the file, which is not valid before."""
        self._writer.close()


def read_shard(
    path: Path, expected: tuple[int, int], *, column: str = "word", is_text: bool = True
) -> Iterator[Block]:
    """The words of a file. Everything is checked: another program may have written it.

    expected: how many words there are, and the sum of their counts. is_text: whether words must be
    UTF-8.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if not path.is_file():
        raise CorpusError(f"{path} is missing; restore it, or {AGAIN}")
    last, n_words, occurrences = None, 0, 0
    with _damage(path, AGAIN), pq.ParquetFile(path, page_checksum_verification=True) as file:
        columns = {field.name: field.type for field in file.schema_arrow}
        if columns != {column: pa.binary(), "count": pa.uint64()}:
            raise CorpusError(
                f"{path} has the columns {columns}; needed are {column} (binary) and count "
                f"(uint64); {AGAIN}"
            )
        for batch in bounded_batches(str(path), str(path), file, list(columns), _BATCH_ROWS):
            words = batch.column(column)
            if words.null_count or batch.column("count").null_count:
                raise CorpusError(f"{path} holds nulls; {AGAIN}")
            joined = words if last is None else pa.concat_arrays([last, words])
            if not pc.all(pc.less(joined[:-1], joined[1:]), min_count=0).as_py():
                raise CorpusError(f"{path} is not sorted; {AGAIN}")
            last = words[-1:]
            block = _block(words, batch.column("count"), path, is_text=is_text)
            n_words += len(words)
            occurrences += exact_sum(block[2])
            yield block
    if (n_words, occurrences) != expected:
        raise CorpusError(
            f"{path} holds {n_words:,} {column}s and {occurrences:,} occurrences; the description "
            f"of its folder says {expected[0]:,} and {expected[1]:,}; {AGAIN}"
        )


class ForeignShard:
    """A Parquet file of another program: `word`, `count` and maybe `language`, rows in any order.

    Words are binary or strings, counts integers of any size, languages strings or null. Words that
    begin with STATISTIC are taken out of the words and added to `figures`.
    """

    def __init__(self, path: Path) -> None:
        """CorpusError for a file without these columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        self.figures: Counter[tuple[str | None, str]] = Counter()  # by language and name
        with _damage(path, _EXPORT), pq.ParquetFile(path) as file:
            kinds = {field.name: field.type for field in file.schema_arrow}
            self.n_rows: int = file.metadata.num_rows
        strings = (pa.string(), pa.large_string(), pa.string_view())
        words = (*strings, pa.binary(), pa.large_binary(), pa.binary_view())
        plain = {
            name: kind.value_type if pa.types.is_dictionary(kind) else kind
            for name, kind in kinds.items()
        }
        self.has_language = "language" in plain
        if (
            plain.get("word") not in words
            or not pa.types.is_integer(plain.get("count", pa.null()))
            or plain.get("language", pa.null()) not in (*strings, pa.null())
        ):
            found = printable(", ".join(f"{n} ({k})" for n, k in kinds.items()))
            raise CorpusError(
                f"{path} has the columns {found}; "
                "needed are word (binary or string), count (integer) and maybe language (string)"
            )

    def languages(self) -> set[str | None]:
        """The labels of all words and documents in the file; without the column, None or none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        # The fingerprint has no label, and nulls are no documents of theirs.
        others = pa.array([STATISTIC + name for name in _NO_DOCUMENTS], pa.large_binary())
        found: set[str | None] = set()
        for words, _, labels in self._columns():
            is_own = pc.invert(pc.is_in(words, others))
            found.update(pc.unique(labels.filter(is_own)).to_pylist())
            if found and not self.has_language:
                break
        return found

    def read(self) -> Iterator[tuple[str | None, Block]]:
        """Blocks of words of one language; CorpusError for nulls, negative counts, bad UTF-8."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self.figures.clear()
        none = pa.scalar(0, pa.uint64())  # a plain 0 is signed, and so would be the counts
        for words, counts, languages in self._columns():
            first = pc.binary_slice(words, 0, 1)
            if pc.any(pc.equal(first, BAD_ROW)).as_py():
                raise CorpusError(
                    f"{self.path} holds rows of text that could not be read, which are no words; "
                    "repair the text and count it again, or leave out words with the byte FE"
                )
            is_figure = pc.equal(first, STATISTIC)
            columns = (
                column.filter(is_figure).to_pylist() for column in (languages, words, counts)
            )
            for label, word, count in zip(*columns, strict=True):
                name = word[len(STATISTIC) :].decode("utf-8", "replace")
                if name not in _FIGURES:
                    raise CorpusError(f"{self.path} holds a word that is not UTF-8; {_EXPORT}")
                self.figures[label, name] += count
            is_counted = pc.and_(pc.greater(counts, none), pc.invert(is_figure))
            for label in pc.unique(languages).to_pylist():
                same = pc.is_null(languages) if label is None else pc.equal(languages, label)
                chosen = pc.and_(is_counted, same)
                block = _block(words.filter(chosen), counts.filter(chosen), self.path, _EXPORT)
                if len(block[1]):
                    yield label, block

    def _columns(self) -> Iterator[tuple[Any, Any, Any]]:
        """Words (large binary), counts (uint64) and languages (string), batch by batch."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = ["word", "count", *(["language"] if self.has_language else [])]
        path = str(self.path)
        with _damage(self.path, _EXPORT), pq.ParquetFile(path) as file:
            for batch in bounded_batches(path, path, file, columns, _BATCH_ROWS):
                words, counts = batch.column("word"), batch.column("count")
                if words.null_count or counts.null_count:
                    raise CorpusError(f"{self.path} holds nulls; {_EXPORT}")
                languages: Any = pa.nulls(len(batch), pa.string())
                if self.has_language:
                    languages = batch.column("language").cast(pa.string())
                yield words.cast(pa.large_binary()), counts.cast(pa.uint64()), languages


@contextmanager
def _damage(path: Path, advice: str) -> Iterator[None]:
    """What pyarrow says of a file as a CorpusError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())
        raise CorpusError(f"{path} is damaged ({why}); {advice}") from error


def _block(
    words: Any, counts: Any, path: Path, advice: str = AGAIN, *, is_text: bool = True
) -> Block:
    """Convert a batch for the core; CorpusError for a word that is empty or, as text, not UTF-8."""
    flat, ends = flat_words(words)
    starts = np.append(0, ends)[:-1]
    if (starts == ends).any():
        raise CorpusError(f"{path} holds an empty word; {advice}")
    continues = (np.frombuffer(flat, dtype=np.uint8)[starts] & 0xC0) == 0x80
    if is_text and (_core.first_invalid_utf8(flat) >= 0 or continues.any()):
        raise CorpusError(f"{path} holds a word that is not UTF-8; {advice}")
    return flat, ends, counts.to_numpy(zero_copy_only=False)


def word_array(data: bytes, ends: NDArray[np.int64]) -> Any:
    """Concatenated words with their ends as an Arrow array; CorpusError for 2 GiB of them."""
    import pyarrow as pa

    if len(data) >= 1 << 31:
        raise CorpusError("a word of 2 GiB or more; cut the text by another pattern")
    offsets = np.zeros(len(ends) + 1, dtype=np.int32)
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers)


def flat_words(words: Any) -> tuple[bytes, NDArray[np.int64]]:
    """The words of an Arrow array, binary or large binary, concatenated, and their ends."""
    _, offsets, data = words.buffers()
    if not len(words):
        return b"", np.zeros(0, np.int64)
    width = np.int64 if str(words.type).startswith("large") else np.int32
    at = np.frombuffer(offsets, dtype=width)[words.offset : words.offset + len(words) + 1]
    flat = b"" if data is None else data[int(at[0]) : int(at[-1])].to_pybytes()
    return flat, (at[1:] - at[0]).astype(np.int64)


def exact_sum(counts: NDArray[np.uint64]) -> int:
    """The sum of fewer than 2^32 counts, which may exceed 64 bits."""
    return weighted_sum(np.ones(len(counts), np.uint64), counts)


def weighted_sum(lengths: NDArray[Any], counts: NDArray[np.uint64]) -> int:
    """Sum of lengths times counts, which may exceed 64 bits; the lengths sum to less than 2^32."""
    weights, low = lengths.astype(np.uint64), np.uint64(0xFFFFFFFF)
    return (int(weights @ (counts >> np.uint64(32))) << 32) + int(weights @ (counts & low))
