"""Files of token ids, read one number at a time: slow and obvious.

Megatron: `IndexedDataset` of megatron-core 0.16.1. nanotron: `TokenizedFile` of datatrove 0.10.1,
whose folders nanotron reads with `DatatroveFolderDataset`.
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

CODES = {4: ("<i", 4), 8: ("<H", 2)}


def megatron(prefix: Path) -> list[list[int]]:
    """Documents of `PREFIX.bin` and `PREFIX.idx`."""
    index = prefix.with_suffix(".idx").read_bytes()
    ids = prefix.with_suffix(".bin").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    (version,) = struct.unpack("<Q", index[9:17])
    assert version == 1
    letter, size = CODES[index[17]]
    n_sequences, n_entries = struct.unpack("<QQ", index[18:34])
    at = 34

    def take(kind: str, number: int) -> list[int]:
        nonlocal at
        width = struct.calcsize(kind)
        found = [struct.unpack(kind, index[at + i * width :][:width])[0] for i in range(number)]
        at += number * width
        return found

    lengths = take("<i", n_sequences)
    pointers = take("<q", n_sequences)
    borders = take("<q", n_entries)
    assert at == len(index)
    sequences = [
        [struct.unpack(letter, ids[start + i * size :][:size])[0] for i in range(length)]
        for start, length in zip(pointers, lengths, strict=True)
    ]
    return [
        [token_id for sequence in sequences[first:end] for token_id in sequence]
        for first, end in itertools.pairwise(borders)
    ]


def nanotron(file: Path) -> list[list[int]]:
    """Documents of `NAME.ds` with `NAME.ds.index`, its ids as wide as `NAME.ds.metadata` says."""
    _, _, size = file.with_name(file.name + ".metadata").read_text("utf-8").partition("|")
    width = int(size.split("\n")[0])
    data = file.read_bytes()
    index = file.with_name(file.name + ".index").read_bytes()
    ends = [struct.unpack("<Q", index[at : at + 8])[0] for at in range(0, len(index), 8)]
    letter = {2: "<H", 4: "<I"}[width]
    ids = [struct.unpack(letter, data[at : at + width])[0] for at in range(0, len(data), width)]
    return [ids[start:end] for start, end in itertools.pairwise([0, *ends])]
