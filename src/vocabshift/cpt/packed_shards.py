"""One shard of packed ids: how it grows in memory, and how its files are written and checked.

Numpy: `ids-00000.npy` (uint16 or uint32) and `offsets-00000.npy` (int64, one more than there are
documents). Arrow, Megatron and nanotron: the files that `id_files` describes. All also have
`bytes-00000.npy`: byte offsets into the text that the documents came from. Everything is
little-endian.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt import id_files
from vocabshift.errors import CorpusError

Format = Literal["numpy", "arrow", "megatron", "nanotron"]
FORMATS: tuple[Format, ...] = get_args(Format)

StoredIds = NDArray[Any]
"""uint16 or uint32; int32 in Megatron's files."""
Offsets = NDArray[np.int64]

_BLOCK = 4 << 20  # tokens or bytes checked at a time
AGAIN = "make the folder again with vocabshift encode"
"""What to do about a damaged file."""


@dataclass(frozen=True, eq=False, slots=True)
class Shard:
    """Consecutive documents; arrays may be mapped from disk."""

    ids: StoredIds  # (n_tokens,)
    offsets: Offsets  # (n_documents + 1,) document i is ids[offsets[i]:offsets[i + 1]]
    byte_offsets: Offsets  # (n_documents + 1,) of the text, in bytes


_FILES: dict[Format, tuple[str, ...]] = {
    "numpy": ("ids-{}.npy", "offsets-{}.npy"),
    "arrow": ("ids-{}.arrow",),
    "megatron": ("ids-{}.bin", "ids-{}.idx"),
    "nanotron": ("ids-{}.ds", "ids-{}.ds.index", "ids-{}.ds.metadata"),
}


def dtype_for(n_ids: int, form: Format = "numpy") -> np.dtype[Any]:
    """The narrower of the two dtypes of a format that holds ids below `n_ids`."""
    wide = "<i4" if form == "megatron" else "<u4"
    return np.dtype("<u2" if n_ids <= 2**16 else wide)


def file_names(number: int, form: Format) -> tuple[str, ...]:
    """The files of a shard, in a fixed order."""
    return tuple(name.format(f"{number:05}") for name in (*_FILES[form], "bytes-{}.npy"))


def write_shard(
    folder: Path,
    number: int,
    form: Format,
    ids: Sequence[StoredIds],
    *,
    offsets: Offsets,
    byte_offsets: Offsets,
    tokenizer: str = "",
) -> None:
    """Write the files of a shard, whose ids may come in several parts of one dtype.

    `tokenizer`: its name, which nanotron's files note.
    """
    paths = [folder / name for name in file_names(number, form)]
    dtype = ids[0].dtype.newbyteorder("<")
    if form == "arrow":
        id_files.write_arrow(paths[0], ids, offsets)
    elif form == "numpy":
        write_npy(paths[0], ids)
        write_npy(paths[1], [offsets])
    else:
        id_files.write_ids(paths[0], ids, dtype)
    if form == "megatron":
        id_files.write_idx(paths[1], offsets, dtype)
    elif form == "nanotron":
        id_files.write_ds_index(paths[1], offsets)
        id_files.write_ds_metadata(paths[2], tokenizer, int(offsets[-1]), dtype)
    write_npy(paths[-1], [byte_offsets])


class GrowingShard:
    """A shard in memory that is still growing."""

    def __init__(self) -> None:
        self.ids: list[StoredIds] = []
        self.lengths: list[Offsets] = []  # tokens of each document
        self.byte_lengths: list[Offsets] = []
        self.languages: dict[str | None, Counter[str]] = {}
        self.n_tokens = 0

    def add(
        self, ids: StoredIds, lengths: Offsets, byte_lengths: Offsets, language: str | None
    ) -> None:
        """Append documents of one language."""
        self.ids.append(ids)
        self.lengths.append(lengths)
        self.byte_lengths.append(byte_lengths)
        self.n_tokens += len(ids)
        self.languages.setdefault(language, Counter()).update(
            n_documents=len(lengths), n_tokens=len(ids), n_bytes=int(byte_lengths.sum())
        )

    def write(self, folder: Path, number: int, form: Format, tokenizer: str) -> None:
        """Write the files of the shard into `folder`, which is made; see `write_shard`."""
        folder.mkdir()
        write_shard(
            folder,
            number,
            form,
            self.ids,
            offsets=_offsets(self.lengths),
            byte_offsets=_offsets(self.byte_lengths),
            tokenizer=tokenizer,
        )

    @property
    def info(self) -> dict[str, Any]:
        """The facts that a checkpoint stores."""
        return {"languages": [[label, dict(counts)] for label, counts in self.languages.items()]}


def open_shard(
    folder: Path,
    number: int,
    form: Format,
    dtype: np.dtype[Any],
    *,
    n_tokens: int,
    n_documents: int,
    n_bytes: int,
) -> Shard:
    """Map a shard; CorpusError where a file is missing, cut short or not of this shape."""
    names = file_names(number, form)
    if form == "arrow":
        ids, offsets = id_files.map_arrow(folder / names[0], dtype, AGAIN)
    elif form == "numpy":
        ids = map_npy(folder / names[0], dtype)
        offsets = map_npy(folder / names[1], np.dtype("<i8"))
    else:
        ids = id_files.map_ids(folder / names[0], dtype, AGAIN)
        if form == "megatron":
            stored, offsets = id_files.read_idx(folder / names[1], AGAIN)
            if stored != dtype:
                raise CorpusError(f"{folder / names[1]}: {stored.name}, not {dtype.name}; {AGAIN}")
        else:
            offsets = id_files.read_ds_index(folder / names[1], AGAIN)
    shard = Shard(ids, offsets, map_npy(folder / names[-1], np.dtype("<i8")))
    if len(ids) != n_tokens:
        raise CorpusError(f"{folder / names[0]}: {len(ids)} tokens, not {n_tokens}; {AGAIN}")
    for values, total, what in (
        (shard.offsets, n_tokens, "tokens"),
        (shard.byte_offsets, n_bytes, "bytes of text"),
    ):
        if (
            len(values) != n_documents + 1
            or values[0] != 0
            or values[-1] != total
            or (values[1:] < values[:-1]).any()  # differences may overflow
        ):
            raise CorpusError(
                f"{folder}, shard {number}: the offsets do not divide {total} {what} into "
                f"{n_documents} documents; {AGAIN}"
            )
    return shard


def read_header(file: Path, what: str, advice: str) -> Any:
    """The JSON that describes a folder; CorpusError where it is missing or no JSON.

    `what`: the folder should hold; `advice`: how to make it.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CorpusError(
            f"{file.parent} holds no {what} ({file.name}: {error.strerror}); {advice}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{file} is damaged: {error}") from error


def check_files(folder: Path, checksums: Mapping[str, int], advice: str = AGAIN) -> None:
    """Read every byte; CorpusError where a file is missing or its CRC-32 differs."""
    for name, expected in checksums.items():
        try:
            checksum = crc32_of(folder / name)
        except OSError as error:
            raise CorpusError(
                f"{folder / name} cannot be read ({error.strerror}); {advice}"
            ) from error
        if checksum != expected:
            raise CorpusError(f"{folder / name} is damaged (its checksum differs); {advice}")


def crc32_of(file: Path) -> int:
    """Checksum of all bytes of a file."""
    checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def check_ids(folder: Path, shard: Shard, n_ids: int) -> None:
    """CorpusError where an id is negative (Megatron's may be) or not below `n_ids`."""
    for start in range(0, len(shard.ids), _BLOCK):
        block = shard.ids[start : start + _BLOCK]
        for token_id in (int(block.min()), int(block.max())):
            if not 0 <= token_id < n_ids:
                raise CorpusError(
                    f"{folder} holds the id {token_id}, not from 0 to {n_ids - 1}; {AGAIN}"
                )


def write_npy(path: Path, parts: Sequence[NDArray[Any]]) -> None:
    """One .npy of the parts, joined; without a copy of the whole."""
    dtype = parts[0].dtype.newbyteorder("<")
    header = {
        "descr": dtype.str,
        "fortran_order": False,
        "shape": (sum(map(len, parts)),),
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=dtype).data)


def map_npy(path: Path, dtype: np.dtype[Any], advice: str = AGAIN) -> NDArray[Any]:
    """Map a one-dimensional .npy; CorpusError for another one, or none."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (
        *(OSError, ValueError, EOFError, TypeError, OverflowError, RecursionError),
        *(SyntaxError, TokenError),  # numpy reads a header as Python
    ) as error:
        why = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise CorpusError(f"{path} cannot be read ({why or error}); {advice}") from error
    if not isinstance(mapped, np.ndarray) or mapped.dtype != dtype or mapped.ndim != 1:
        raise CorpusError(f"{path} is no array of {dtype.name}; {advice}")
    return mapped.view(np.ndarray)


def _offsets(lengths: list[Offsets]) -> Offsets:
    offsets = np.zeros(sum(map(len, lengths)) + 1, dtype=np.int64)
    np.cumsum(np.concatenate(lengths), out=offsets[1:])
    return offsets
