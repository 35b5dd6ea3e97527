"""What a teacher has read of a corpus, on disk: the folder that `vocabshift teach` writes.

`teacher.json` and one file per number, mapped from disk when training reads them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.cpt.chunks import Places, Reading, Stretch, Teacher
from vocabshift.cpt.config import MATCHING, LoopConfig
from vocabshift.cpt.packed_shards import check_files, crc32_of, map_npy, read_header
from vocabshift.errors import CorpusError

FILE = "teacher.json"
VERSION = 1
ARRAYS: Mapping[str, str] = {
    "ends": "<u4",  # (n_tokens,) byte of its document at which each token ends
    "logprobs": "<f4",  # (n_tokens,)
    "boundaries": "<f4",  # (n_tokens,)
    "token-offsets": "<i8",  # (n_documents + 1,)
    "byte-offsets": "<i8",  # (n_documents + 1,)
    "text-crc32": "<u4",  # (n_documents,)
}
"""Files `NAME.npy` and their types."""

_AGAIN = "make the folder again with vocabshift teach"


class StoredTeacher:
    """What a teacher has read of a corpus: the folder that `vocabshift teach` writes."""

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        """Map the files of a folder whose `teacher.json` says `header`; see `open`."""
        self.folder, self.header = folder, header
        self.unmatched: set[int] = set()
        self.has_boundaries: bool = header["boundaries"]
        self._arrays = {
            name: map_npy(folder / f"{name}.npy", np.dtype(kind), _AGAIN)
            for name, kind in ARRAYS.items()
        }
        n_tokens, n_documents = header["n_tokens"], header["n_documents"]
        for name, array in self._arrays.items():
            n_offsets = n_documents + (0 if name == "text-crc32" else 1)
            expected = n_tokens if name in ("ends", "logprobs", "boundaries") else n_offsets
            if len(array) != expected:
                raise CorpusError(
                    f"{folder / name}.npy holds {len(array)} numbers, not {expected}; {_AGAIN}"
                )

    @classmethod
    def open(cls, folder: str | Path, *, checksums: bool = True) -> StoredTeacher:
        """Open and check a folder; CorpusError where anything in it is missing or damaged.

        Every byte is read once and compared with the checksums, unless `checksums` is off.
        """
        path = Path(folder)
        header = read_header(
            path / FILE, "log-probabilities of a teacher", "make some with vocabshift teach"
        )
        if not _is_header(header):
            raise CorpusError(
                f"{path / FILE} is damaged, or of another version of vocabshift; {_AGAIN}"
            )
        if checksums:
            check_files(path, header["crc32"], _AGAIN)
        return cls(path, header)

    @property
    def document_bytes(self) -> Places:
        """Bytes of text of each document, (n_documents,)."""
        return np.diff(self._arrays["byte-offsets"])

    @property
    def key(self) -> str:
        """Hex digits that identify the numbers and the text they are of."""
        return f"{zlib.crc32(json.dumps(self.header, sort_keys=True).encode()):08x}"

    def require_documents(self, n_bytes: Places, what: str) -> None:
        """CorpusError unless it has read documents of these lengths, in this order."""
        own = self.document_bytes
        if len(own) != len(n_bytes) or (own != n_bytes).any():
            raise CorpusError(
                f"{self.folder} is of {len(own):,} documents with {int(own.sum()):,} bytes, and "
                f"{what} holds {len(n_bytes):,} with {int(n_bytes.sum()):,}, or others: let the "
                "teacher read the same text, in the same order"
            )

    def fits(self, document: int, text: bytes) -> bool:
        """Whether the teacher has read exactly this text as the document."""
        return bool(zlib.crc32(text) == self._arrays["text-crc32"][document])

    def read(self, stretches: Sequence[Stretch]) -> list[Reading]:
        """The whole documents of these stretches, mapped."""
        offsets = self._arrays["token-offsets"]
        found = []
        for each in stretches:
            tokens = slice(*offsets[each.document : each.document + 2].tolist())
            found.append(
                Reading(
                    *(self._arrays[name][tokens] for name in ("ends", "logprobs", "boundaries"))
                )
            )
        return found

    def __repr__(self) -> str:
        return f"StoredTeacher({str(self.folder)!r}, {self.header['n_documents']} documents)"


def _is_header(header: Any) -> bool:
    """Whether `teacher.json` has what is read of it; its file names are ours alone."""
    return (
        isinstance(header, dict)
        and header.get("version") == VERSION
        and isinstance(header.get("boundaries"), bool)
        and all(isinstance(header.get(name), int) for name in ("n_tokens", "n_documents"))
        and isinstance(header.get("crc32"), dict)
        and header["crc32"].keys() == {f"{name}.npy" for name in ARRAYS}
    )


def check_teacher(config: LoopConfig, teacher: Teacher | None, document_bytes: Places) -> None:
    """ValueError unless there is a teacher where one is needed, of a corpus of these documents."""
    if (config.objective == MATCHING) != (teacher is not None):
        raise ValueError(
            f"the objective is {config.objective!r} and a teacher is "
            f"{'given' if teacher is not None else 'missing'}: a teacher goes with {MATCHING!r}"
        )
    if teacher is not None and config.debiasing and not teacher.has_boundaries:
        raise ValueError(
            "the teacher does not know which of its tokens begin with white space, which debiasing "
            "needs; set debiasing = false"
        )
    if isinstance(teacher, StoredTeacher):
        teacher.require_documents(document_bytes, "the corpus")


def weights_key(folder: Path) -> str:
    """Hex digits of config and weights, wherever the folder lies; reads every byte."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    key = crc32_of(folder / "config.json")
    for file in files:
        key = zlib.crc32(f"{crc32_of(file):08x}".encode(), key)
    return f"{key:08x}"
