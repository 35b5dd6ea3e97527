"""A GGUF file with fewer tokens, as it is: `transfer_gguf`.

Rows of the tables of tokens are dropped and reordered in their stored type, whose rows are whole
blocks. All other tensors and metadata are copied byte for byte, of any architecture. Owns which
tensors have a row per token, and which keys hold tokens or their ids.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import VocabMismatchError
from vocabshift.models.gguf_tensors import Blocks, write_file
from vocabshift.models.gguf_weights import gguf_package
from vocabshift.progress import Progress, in_phase
from vocabshift.storage.output import atomic_file
from vocabshift.tokenizer.formats.gguf import from_metadata
from vocabshift.tokenizer.formats.gguf_header import (
    Header,
    TensorInfo,
    header_bytes,
    key_bytes,
    read_header,
)
from vocabshift.tokenizer.formats.load import TokenizerLike, open_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer

_TABLES = ("token_embd.weight", "output.weight", "output.bias", "per_layer_token_embd.weight")
_TABLE_ENDS = (".nextn.embed_tokens.weight", ".nextn.shared_head_head.weight")
_BY_TOKEN = ("tokens", "token_type", "scores")
_ID_LISTS = ("tokenizer.ggml.suppress_tokens",)
_WHOLE = "tokenizer.huggingface.json"  # a tokenizer.json, which some programs add
_BLOCK_BYTES = 1 << 24
_ELSE = "write the file as a folder (vocabshift convert), transfer that, and convert it back"


def transfer_gguf(
    source: str | Path,
    tokenizer: TokenizerLike,
    out: str | Path,
    *,
    pattern: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a GGUF file with only the tokens of another tokenizer, in its order.

    source: the file, of any architecture and type. tokenizer: what `prune` made of the file's own:
        it has no other tokens, and cuts text in the same way. out: the file, which appears whole or
        not at all; `force` replaces it. pattern: name or regex of the pre-tokenizer, for a file
        that names one that is not known. progress: called with "weights", and bytes of the file.

    Returns the keys of `vocabshift transfer --json` that make sense here. VocabMismatchError for a
    tokenizer with new tokens, or of which a role of the file is missing; ValueError for a damaged
    file; FileExistsError if `out` exists, without `force`. Needs neither torch nor transformers.
    """
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"{source} is no file; give the path of a GGUF file")
    with atomic_file(out, force=force, inputs=[source]) as target:
        new = open_tokenizer(tokenizer)
        if not isinstance(new, Tokenizer):
            raise VocabMismatchError(f"the tokenizer is {new.kind}, and the file's is BPE; {_ELSE}")
        header = _read(path)
        try:
            own = from_metadata(header.metadata, pattern=pattern, name=path.stem)
            rows = _rows(own, new, header)
            tensors = _tensors(header, path.stat().st_size)
        except ValueError as error:
            raise type(error)(f"{path}: {error}") from None
        n_rows = len(header.metadata["tokenizer.ggml.tokens"])
        tables = _tables(tensors, n_rows)
        sizes = [t.with_rows(len(rows)) if t.info.name in tables else t for t in tensors]
        alignment = header.metadata.get("general.alignment", 32)
        start, starts = header_bytes(
            _keys(path, header, rows, new),
            [(t.info.name, t.info.shape, t.info.type, t.n_bytes) for t in sizes],
            alignment=alignment,
        )
        parts: list[Blocks] = [
            partial(_blocks, path, tensor, rows if tensor.info.name in tables else None)
            for tensor in tensors
        ]
        n_bytes = starts[-1] + math.ceil(sizes[-1].n_bytes / alignment) * alignment
        write_file(
            target,
            start,
            list(zip(starts, parts, strict=True)),
            n_bytes=n_bytes,
            progress=in_phase(progress, "weights"),
        )
    return {
        "out": str(out),
        "n_copied": len(rows),
        "n_initialized": 0,
        "n_removed": own.row_count - len(rows),
        "n_moved": int((rows != np.arange(len(rows))).sum()),
        "tied": "output.weight" not in tables,
        "vocab_size": new.row_count,
        "rows": len(rows),
        "old_rows": n_rows,
        "tables": {t.info.name: t.kind for t in tensors if t.info.name in tables},
        "bytes_before": path.stat().st_size,
        "bytes_after": n_bytes,
    }


class _Tensor(NamedTuple):
    """A tensor of the file; a vector of numbers has a row for each."""

    info: TensorInfo
    kind: str
    n_rows: int
    row_bytes: int

    @property
    def n_bytes(self) -> int:
        """Of its data."""
        return self.n_rows * self.row_bytes

    def with_rows(self, n_rows: int) -> _Tensor:
        """The same with another number of rows."""
        info = self.info._replace(shape=(n_rows, *self.info.shape[1:]))
        return self._replace(info=info, n_rows=n_rows)


def _read(path: Path) -> Header:
    if not path.stat().st_size:
        raise ValueError(f"{path}: the file is empty")
    with path.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    with mapped:
        data: Any = mapped
        try:
            header = read_header(data)
        except ValueError as error:
            raise type(error)(f"{path}: {error}") from None
    parts = header.metadata.get("split.count", 1)
    if parts not in (0, 1):
        raise ValueError(
            f"{path} is one of {parts} parts of a model; join them first, with "
            "llama-gguf-split --merge FIRST OUT"
        )
    return header


def _rows(own: Tokenizer, new: Tokenizer, header: Header) -> NDArray[np.int64]:
    """The row of the file for each id of the new tokenizer.

    VocabMismatchError where it is no part of the file's own.
    """
    old_ids = {**own.vocab, **{token.content: token.id for token in own.added_tokens}}
    new_ids = {**new.vocab, **{token.content: token.id for token in new.added_tokens}}
    added = sorted((i, text) for text, i in new_ids.items() if text not in old_ids)
    if added:
        raise VocabMismatchError(
            f"the tokenizer has {len(added)} tokens that the file has not, such as "
            f"{added[0][1]!r}; only fewer tokens can be written into it as it is: {_ELSE}"
        )
    if len(new_ids) != new.row_count:
        raise VocabMismatchError(
            f"the tokenizer has {len(new_ids)} tokens and ids up to {new.row_count - 1}; prune "
            "without --keep-ids"
        )
    for part in ("normalizer", "pre_tokenizer"):
        if getattr(own, part) != getattr(new, part):
            raise VocabMismatchError(
                f"the tokenizer has another {part} than the file names; {_ELSE}"
            )
    if own.model.ignore_merges != new.model.ignore_merges:
        raise VocabMismatchError(f"the tokenizer skips merges otherwise than the file; {_ELSE}")
    rows = np.full(new.row_count, -1, np.int64)
    for text, token_id in new_ids.items():
        rows[token_id] = old_ids[text]
    kept = set(rows.tolist())
    tokens = header.metadata["tokenizer.ggml.tokens"]
    for key, token_id in _roles(header.metadata):
        if token_id not in kept and 0 <= token_id < own.row_count:
            raise VocabMismatchError(
                f"{key} of the file is {token_id}, {tokens[token_id]!r}, which the tokenizer has "
                "not; keep that token"
            )
    return rows


def _roles(metadata: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for key, value in metadata.items():
        if key.startswith("tokenizer.ggml.") and key.endswith("_token_id") and type(value) is int:
            yield key, value


def _tensors(header: Header, file_size: int) -> list[_Tensor]:
    """All tensors in the order of the file; ValueError where one does not lie within it."""
    gguf = gguf_package()
    tensors = []
    end, before = header.data_start, "the header"
    for info in sorted(header.tensors, key=lambda info: info.start):
        where = f"the tensor {info.name!r}, described at byte {info.described_at},"
        try:
            kind = gguf.GGMLQuantizationType(info.type)
            block, size = gguf.GGML_QUANT_SIZES[kind]
        except (ValueError, KeyError):
            raise ValueError(
                f"{where} is of type {info.type}, which the package gguf does not know"
            ) from None
        if info.shape[-1] % block:
            raise ValueError(
                f"{where} has rows of {info.shape[-1]} values, and {kind.name} stores blocks of "
                f"{block}; the file is damaged"
            )
        n_rows = info.shape[0] if len(info.shape) > 1 or block == 1 else 1
        row_bytes = math.prod(info.shape) // n_rows // block * size
        tensor = _Tensor(info, kind.name, n_rows, row_bytes)
        if info.start < end:
            raise ValueError(f"{where} begins inside {before}; the file is damaged")
        if info.start + tensor.n_bytes > file_size:
            raise ValueError(
                f"{where} is said to take bytes {info.start} to {info.start + tensor.n_bytes}, "
                f"and the file ends at byte {file_size}: it is cut short or damaged"
            )
        end, before = info.start + tensor.n_bytes, repr(info.name)
        tensors.append(tensor)
    return tensors


def _tables(tensors: list[_Tensor], n_rows: int) -> set[str]:
    """The names of those with a row per token; ValueError where another might be one."""
    found = set()
    for tensor in tensors:
        name = tensor.info.name
        if name in _TABLES or name.endswith(_TABLE_ENDS):
            if tensor.info.shape[0] != n_rows:
                raise ValueError(
                    f"{name} has {tensor.info.shape[0]} rows, and the file {n_rows} tokens"
                )
            found.add(name)
        elif n_rows in tensor.info.shape:
            raise ValueError(
                f"{name} has a side of {n_rows}, which is the number of tokens; whether it has a "
                "row per token is not known, so nothing is written"
            )
    if "token_embd.weight" not in found:
        raise ValueError("the GGUF file has no token_embd.weight; it holds no whole model")
    return found


def _keys(path: Path, header: Header, rows: NDArray[np.int64], new: Tokenizer) -> list[bytes]:
    """The metadata, of which only what holds tokens or their ids is another."""
    metadata = header.metadata
    place = {int(old): i for i, old in enumerate(rows)}
    changed: dict[str, Any] = {
        key: place[token_id] for key, token_id in _roles(metadata) if token_id in place
    }
    for name in _BY_TOKEN:
        values = metadata.get(f"tokenizer.ggml.{name}")
        if values:
            changed[f"tokenizer.ggml.{name}"] = [values[row] for row in rows.tolist()]
    if metadata.get("tokenizer.ggml.merges"):
        changed["tokenizer.ggml.merges"] = [" ".join(merge) for merge in new.model.merges]
    for name in _ID_LISTS:
        if metadata.get(name):
            changed[name] = [place[i] for i in metadata[name] if i in place]
    size = f"{metadata.get('general.architecture')}.vocab_size"
    if size in metadata:
        changed[size] = len(rows)
    if _WHOLE in metadata:
        changed[_WHOLE] = new.to_json()
    dropped = {name for name, value in changed.items() if value == []}
    with path.open("rb") as stream:

        def stored(start: int, end: int) -> bytes:
            stream.seek(start)
            return stream.read(end - start)

        return [
            key_bytes(name, changed[name]) if name in changed else stored(start, end)
            for name, (start, end) in header.places.items()
            if name not in dropped
        ]


def _blocks(path: Path, tensor: _Tensor, rows: NDArray[np.int64] | None) -> Iterator[memoryview]:
    """The bytes of a tensor, or of these rows of it, some at a time."""
    shape = (tensor.n_rows, tensor.row_bytes)
    stored = np.memmap(path, np.uint8, "r", tensor.info.start, shape)
    step = max(1, _BLOCK_BYTES // tensor.row_bytes)
    n_rows = tensor.n_rows if rows is None else len(rows)
    for first in range(0, n_rows, step):
        some = slice(first, first + step)
        yield np.ascontiguousarray(stored[some if rows is None else rows[some]]).data.cast("B")
