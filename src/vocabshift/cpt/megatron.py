"""Megatron's indexed data sets as packed ids, whoever wrote them: `data = "corpus.idx"` of `cpt`.

They say neither which tokenizer made them nor how much text they hold. The tokenizer is that of the
model; the bytes of a document are those of its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.cpt.id_files import map_ids, read_idx
from vocabshift.cpt.packed_ids import FILE, VERSION, PackedIds
from vocabshift.cpt.packed_shards import Offsets, Shard, StoredIds, crc32_of
from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint

_BLOCK = 1 << 20  # tokens whose bytes are added up at a time
_ADVICE = "restore it, or tokenize the text again"


def megatron_files(data: Sequence[str]) -> list[Path]:
    """The `.idx` files that `data` names, or those in the one folder that it names; maybe none.

    A folder of packed ids has a description of its own, and is not read as one of Megatron's.
    """
    paths = [Path(name) for name in data]
    if len(paths) == 1 and paths[0].is_dir() and not (paths[0] / FILE).exists():
        return sorted(paths[0].glob("*.idx"))
    return paths if all(path.suffix == ".idx" for path in paths) else []


def open_megatron(files: Sequence[Path], tokenizer: Tokenizer) -> PackedIds:
    """The documents of `.idx` files, each with its `.bin` beside it, in this order.

    Every file is read in full, for its checksum and the bytes of its tokens. The tokenizer's EOS
    is taken for the end of documents if all end with it. CorpusError for files that are missing or
    damaged, or of several dtypes; VocabMismatchError for ids that the tokenizer does not have.
    """
    engine = Engine(tokenizer)
    shards: list[dict[str, Any]] = []
    opened: list[Shard] = []
    for file in files:
        dtype, offsets = read_idx(file, _ADVICE)
        ids = map_ids(file.with_suffix(".bin"), dtype, _ADVICE)
        if len(ids) != offsets[-1]:
            raise CorpusError(
                f"{file.with_suffix('.bin')} holds {len(ids)} tokens, and {file} says "
                f"{offsets[-1]}; {_ADVICE}"
            )
        if opened and opened[0].ids.dtype != dtype:
            raise CorpusError(
                f"{file} holds {dtype.name} and {files[0]} {opened[0].ids.dtype.name}: they were "
                "made by different tokenizers; give one of them"
            )
        shard = Shard(ids, offsets, _byte_offsets(file, ids, offsets, engine))
        opened.append(shard)
        checksums = {f.name: crc32_of(f) for f in (file, file.with_suffix(".bin"))}
        shards.append(_counts(shard) | {"crc32": checksums})
    eos_id = _eos_id(tokenizer, opened)
    if eos_id is not None:  # as in our own folders, the EOS is no text
        n_bytes = int(engine.byte_counts[eos_id])
        for number, shard in enumerate(opened):
            less = n_bytes * np.arange(len(shard.offsets), dtype=np.int64)
            opened[number] = Shard(shard.ids, shard.offsets, shard.byte_offsets - less)
            shards[number] |= _counts(opened[number])
    header: dict[str, Any] = {
        "version": VERSION,
        "format": "megatron",
        "dtype": opened[0].ids.dtype.name,
        "tokenizer": {
            "name": tokenizer.name,
            "fingerprint": fingerprint(tokenizer),
            "n_ids": tokenizer.row_count,
        },
        "eos": None if eos_id is None else {"token": tokenizer.eos_token, "id": eos_id},
        "shards": shards,
    }
    for name in _counts(opened[0]):
        header[name] = sum(shard[name] for shard in shards)
    return PackedIds(files[0].parent, header, opened)


def _counts(shard: Shard) -> dict[str, Any]:
    return {
        "n_documents": len(shard.offsets) - 1,
        "n_tokens": len(shard.ids),
        "n_bytes": int(shard.byte_offsets[-1]),
    }


def _byte_offsets(file: Path, ids: StoredIds, offsets: Offsets, engine: Engine) -> Offsets:
    """Where documents begin in the text of their tokens, in bytes, (n_documents + 1,)."""
    found = np.zeros(len(offsets), dtype=np.int64)
    done = 0
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        for token_id in (int(block.min()), int(block.max())):
            if not 0 <= token_id < engine.row_count:
                raise VocabMismatchError(
                    f"{file} holds the id {token_id}, and the tokenizer of the model "
                    f"({engine.name}) has ids below {engine.row_count}: another one made the "
                    "file; tokenize the text with this one"
                )
        ends = done + np.cumsum(engine.byte_counts[block])
        first, stop = np.searchsorted(offsets, [start, start + len(block)], side="right")
        found[first:stop] = ends[offsets[first:stop] - start - 1]
        done = int(ends[-1])
    return found


def _eos_id(tokenizer: Tokenizer, shards: Sequence[Shard]) -> int | None:
    """The id of the tokenizer's EOS, if every document ends with it."""
    eos = tokenizer.eos_token
    if eos is None:
        return None
    eos_id = tokenizer.token_id(eos)
    for shard in shards:
        if (np.diff(shard.offsets) == 0).any():
            return None
        if (shard.ids[shard.offsets[1:] - 1] != eos_id).any():
            return None
    return eos_id
