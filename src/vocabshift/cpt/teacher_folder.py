"""What a teacher has read of a corpus, on disk: the folder that `vocabshift teach` writes.

`teacher.json` and one file per number, mapped from disk when training reads them. Owns the order of
the reading: documents in groups of a fixed size, so that neither an interruption nor the speed
changes a number, and a part saved every minute.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.chunks import Places, Reading, Stretch, Teacher
from vocabshift.cpt.config import MATCHING, LoopConfig
from vocabshift.cpt.packed_shards import check_files, crc32_of, map_npy, read_header, write_npy
from vocabshift.errors import CorpusError
from vocabshift.storage.checkpoints import Checkpoints, Saved

if TYPE_CHECKING:
    from vocabshift.cpt.teacher import LiveTeacher
    from vocabshift.text.corpus import Corpus

_GROUP_BYTES = 1 << 18  # of text; its windows are batched by length
_SAVE_SECONDS = 60.0

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


# Writing the folder.


def groups_of(corpus: Corpus, n_done: int = 0) -> Iterator[list[str]]:
    """Documents in groups that do not depend on where a run begins; without the first `n_done`."""
    group: list[str] = []
    n_bytes = number = 0
    for _, text in corpus.texts():
        number += 1
        if number <= n_done:
            continue
        group.append(text)
        n_bytes += len(text.encode())
        if n_bytes >= _GROUP_BYTES:
            yield group
            group, n_bytes = [], 0
    if group:
        yield group


@dataclass
class _Part:
    """Documents that were read since the last save, as arrays to be written."""

    arrays: dict[str, list[NDArray[Any]]] = field(
        default_factory=lambda: {name: [] for name in ARRAYS}
    )
    n_documents: int = 0
    n_read_tokens: int = 0

    def add(self, texts: Sequence[str], teacher: LiveTeacher) -> int:
        """Let the teacher read these documents; returns the tokens of their windows."""
        for text, reading in zip(texts, teacher.read_texts(texts), strict=True):
            data = text.encode()
            lengths = {"token-offsets": len(reading.ends), "byte-offsets": len(data)}
            values = {
                "ends": reading.ends,
                "logprobs": reading.logprobs,
                "boundaries": reading.boundaries,
                **{name: [length] for name, length in lengths.items()},  # joined at the end
                "text-crc32": [zlib.crc32(data)],
            }
            for name, value in values.items():
                self.arrays[name].append(np.asarray(value, dtype=ARRAYS[name]))
        self.n_documents += len(texts)
        n_read = sum(window.ids.size for window in teacher.windows(texts)[-1])
        self.n_read_tokens += n_read
        return n_read

    def write(self, folder: Path) -> None:
        """One file an array."""
        folder.mkdir()
        for name, arrays in self.arrays.items():
            write_npy(folder / f"{name}.npy", arrays)

    @property
    def info(self) -> dict[str, int]:
        """The facts that a checkpoint stores."""
        return {"n_documents": self.n_documents, "n_read_tokens": self.n_read_tokens}


def write_readings(
    teacher: LiveTeacher,
    corpus: Corpus,
    folder: Path,
    checkpoints: Checkpoints,
    about: Mapping[str, Any],
    *,
    progress: Callable[[int], object],
) -> dict[str, Any]:
    """Let the teacher read the corpus, write the files into `folder`; return totals.

    `about`: the part of `teacher.json` that does not depend on the text. `progress`: called with
    the tokens read so far, those that windows repeat included.
    """
    figures = _join(list(_parts(teacher, corpus, checkpoints, progress)), folder)
    header = {"version": VERSION, **about, **figures, "boundaries": teacher.has_boundaries}
    header["crc32"] = {f"{name}.npy": crc32_of(folder / f"{name}.npy") for name in ARRAYS}
    text = json.dumps(header, ensure_ascii=False, indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    checkpoints.drop()
    return figures


def _parts(
    teacher: LiveTeacher, corpus: Corpus, checkpoints: Checkpoints, report: Callable[[int], object]
) -> Iterator[Saved]:
    """The finished parts: first those found on disk, then the new ones."""
    number = n_documents = done = 0
    while (found := checkpoints.load(f"part-{number:06}")) is not None:
        n_documents += found.info["n_documents"]
        done += found.info["n_read_tokens"]
        yield found
        number += 1
    report(done)
    part, saved = _Part(), time.monotonic()
    for texts in groups_of(corpus, n_documents):
        n_read = part.add(texts, teacher)
        done += n_read
        report(done)
        if time.monotonic() - saved >= _SAVE_SECONDS:
            yield _save(checkpoints, number, part)
            number, part, saved = number + 1, _Part(), time.monotonic()
    if part.n_documents:
        yield _save(checkpoints, number, part)


def _save(checkpoints: Checkpoints, number: int, part: _Part) -> Saved:
    found = checkpoints.save(f"part-{number:06}", part.write, part.info)
    assert found is not None  # there is a folder, and a key
    return found


def _join(parts: Sequence[Saved], folder: Path) -> dict[str, Any]:
    """Write the arrays of all parts as one; return totals."""
    nats = 0.0
    totals = {}
    for name, kind in ARRAYS.items():
        arrays = [map_npy(part.path / f"{name}.npy", np.dtype(kind)) for part in parts]
        if name.endswith("-offsets"):
            ends = np.cumsum(np.concatenate(arrays))
            totals[name] = int(ends[-1])
            arrays = [np.zeros(1, kind), ends]
        if name == "logprobs":
            nats = -sum(float(np.nansum(array, dtype=np.float64)) for array in arrays)
        write_npy(folder / f"{name}.npy", arrays)
    return {
        "n_documents": sum(part.info["n_documents"] for part in parts),
        "n_tokens": totals["token-offsets"],
        "n_bytes": totals["byte-offsets"],
        "bits_per_byte": nats / np.log(2) / totals["byte-offsets"],
    }
