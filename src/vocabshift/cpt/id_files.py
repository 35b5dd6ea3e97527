"""Files of token ids as other programs read them: `datasets`, Megatron, nanotron.

Owns the bytes on disk. Arrow: `NAME.arrow`, an IPC stream of one record batch with the column
`input_ids`, a list of uint16 or uint32, which `datasets.Dataset.from_file` can map. Megatron (and
NeMo): `NAME.bin` holds the ids, uint16 or int32, one document after the other; `NAME.idx` the magic
`MMIDIDX`, a version, a code of the dtype, and for each sequence its length and where it begins
(`IndexedDataset` of megatron-core). nanotron, by way of datatrove: `NAME.ds` holds the ids, uint16
or uint32, `NAME.ds.index` where each document ends, and `NAME.ds.metadata` the tokenizer.
Everything is little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError

COLUMN = "input_ids"

StoredIds = NDArray[Any]
Offsets = NDArray[np.int64]

_MAGIC = b"MMIDIDX\0\0"
_HEADER = struct.Struct("<9sQBQQ")  # magic, version, dtype, sequences, entries of documents
_VERSION = 1
_CODES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}  # floats are no ids
_LONGEST = 2**31 - 1  # tokens of a sequence in Megatron, or of an Arrow list with 32-bit offsets


def write_arrow(path: Path, parts: Sequence[StoredIds], offsets: Offsets) -> None:
    """Documents as a list column; ValueError for more tokens than 32-bit offsets can count."""
    import pyarrow as pa

    if offsets[-1] > _LONGEST:
        raise ValueError(
            f"a shard of {offsets[-1]} tokens is too long for Arrow, which counts to "
            f"{_LONGEST}; choose a smaller --shard-tokens"
        )
    ids = np.concatenate(parts)
    # From buffers: pa.array would import pandas.
    values = pa.Array.from_buffers(
        pa.from_numpy_dtype(ids.dtype), len(ids), [None, pa.py_buffer(ids)]
    )
    bounds = pa.py_buffer(offsets.astype(np.int32))
    lists = pa.Array.from_buffers(
        pa.list_(values.type), len(offsets) - 1, [None, bounds], children=[values]
    )
    batch = pa.record_batch([lists], names=[COLUMN])
    with path.open("wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        stream.write_batch(batch)


def map_arrow(path: Path, dtype: np.dtype[Any], advice: str) -> tuple[StoredIds, Offsets]:
    """Map ids and documents' offsets; CorpusError for another file, or a damaged one."""
    import pyarrow as pa

    try:
        reader = pa.ipc.open_stream(pa.memory_map(str(path)))
        batches = list(reader)
        for batch in batches:
            batch.validate(full=True)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        why = " ".join(str(error).split())
        raise CorpusError(f"{path} cannot be read ({why}); {advice}") from error
    schema = pa.schema([(COLUMN, pa.list_(pa.from_numpy_dtype(dtype)))])
    if len(batches) != 1 or reader.schema != schema or batches[0].column(0).null_count:
        raise CorpusError(f"{path} is no list of {dtype.name} named {COLUMN}; {advice}")
    lists = batches[0].column(0)
    return _of(lists.values, dtype), _of(lists.offsets, np.dtype("<i4")).astype(np.int64)


def _of(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A view of an Arrow array of numbers; to_numpy would import pandas."""
    start = array.offset * dtype.itemsize
    buffer = array.buffers()[1]
    if not len(array):
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=len(array), offset=start)


def write_ids(path: Path, parts: Sequence[StoredIds], dtype: np.dtype[Any]) -> None:
    """The ids of all parts as they are, without a header."""
    with path.open("wb") as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=dtype).data)


def write_idx(path: Path, offsets: Offsets, dtype: np.dtype[Any]) -> None:
    """Megatron's index of documents, one sequence each; `offsets` (n_documents + 1,) in tokens."""
    lengths = np.diff(offsets)
    if lengths.max(initial=0) > _LONGEST:
        raise ValueError(
            f"a document of {lengths.max()} tokens is too long for Megatron, which counts to "
            f"{_LONGEST}; cut it"
        )
    [code] = [code for code, known in _CODES.items() if np.dtype(known) == dtype]
    n_documents = len(lengths)
    with path.open("wb") as file:
        file.write(_HEADER.pack(_MAGIC, _VERSION, code, n_documents, n_documents + 1))
        file.write(lengths.astype("<i4").data)
        file.write((offsets[:-1] * dtype.itemsize).astype("<i8").data)
        file.write(np.arange(n_documents + 1, dtype="<i8").data)


def read_idx(path: Path, advice: str) -> tuple[np.dtype[Any], Offsets]:
    """dtype of the ids and the documents' offsets in tokens, (n_documents + 1,), of an `.idx`.

    A document may have several sequences. CorpusError for a file that is not whole, whose ids are
    no integers, or whose sequences do not follow each other in the `.bin`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror}); {advice}") from error
    damaged = CorpusError(f"{path} is no index of Megatron, or is damaged; {advice}")
    if len(data) < _HEADER.size:
        raise damaged
    magic, version, code, n_sequences, n_entries = _HEADER.unpack_from(data)
    size = _HEADER.size + 12 * n_sequences + 8 * n_entries
    # After these there may be one byte a sequence, its mode, in multimodal data sets.
    if magic != _MAGIC or version != _VERSION or len(data) not in (size, size + n_sequences):
        raise damaged
    if code not in _CODES:
        raise CorpusError(f"{path}: ids of the dtype code {code}, not integers; {advice}")
    dtype = np.dtype(_CODES[code])
    at = _HEADER.size
    lengths = np.frombuffer(data, "<i4", n_sequences, at).astype(np.int64)
    pointers = np.frombuffer(data, "<i8", n_sequences, at + 4 * n_sequences)
    documents = np.frombuffer(data, "<i8", n_entries, at + 12 * n_sequences)
    ends = np.append(0, np.cumsum(lengths))
    if (
        lengths.min(initial=0) < 0
        or not len(documents)
        or documents[0] != 0
        or documents[-1] != n_sequences
        or (documents[1:] < documents[:-1]).any()  # differences may overflow
    ):
        raise damaged
    if (pointers != ends[:-1] * dtype.itemsize).any():
        raise CorpusError(f"{path}: the sequences do not follow each other; {advice}")
    return dtype, ends[documents]


def write_ds_index(path: Path, offsets: Offsets) -> None:
    """datatrove's index: where each document ends, in tokens."""
    path.write_bytes(offsets[1:].astype("<u8").tobytes())


def read_ds_index(path: Path, advice: str) -> Offsets:
    """Documents' offsets in tokens, (n_documents + 1,); CorpusError for a file cut short."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror}); {advice}") from error
    if len(data) % 8:
        raise CorpusError(f"{path} is cut short; {advice}")
    return np.append(0, np.frombuffer(data, "<u8").astype(np.int64))


def write_ds_metadata(path: Path, tokenizer: str, n_tokens: int, dtype: np.dtype[Any]) -> None:
    """datatrove's note of the tokenizer's name, the bytes of an id and the number of tokens."""
    lines = (f"{tokenizer}|{dtype.itemsize}", f"{n_tokens}", f"{n_tokens / 1e9:.3g} GT")
    path.write_text("\n".join(lines), encoding="utf-8")


def map_ids(path: Path, dtype: np.dtype[Any], advice: str) -> StoredIds:
    """Map ids without a header; CorpusError for a file that is missing or cut inside of an id."""
    try:
        n_bytes = path.stat().st_size
        if n_bytes % dtype.itemsize:
            raise CorpusError(f"{path} is cut short: {n_bytes} bytes of {dtype.name}; {advice}")
        if not n_bytes:  # cannot be mapped
            return np.zeros(0, dtype=dtype)
        return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror}); {advice}") from error
