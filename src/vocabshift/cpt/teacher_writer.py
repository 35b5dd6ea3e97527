"""The writing of the folder of a teacher: it reads a corpus, and its numbers go to disk.

Owns the order of the reading: documents in groups of a fixed size, so that neither an interruption
nor the speed changes a number, and a part saved every minute.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.chunks import Reading
from vocabshift.cpt.packed_shards import crc32_of, map_npy, write_npy
from vocabshift.cpt.teacher_folder import ARRAYS, FILE, VERSION
from vocabshift.storage.checkpoints import Checkpoints, Saved

if TYPE_CHECKING:
    from vocabshift.cpt.teacher import LiveTeacher
    from vocabshift.text.corpus import Corpus

_GROUP_BYTES = 1 << 18  # of text; its windows are batched by length
_SAVE_SECONDS = 60.0

NOTHING = Reading(*(np.zeros(0, ARRAYS[name]) for name in ("ends", "logprobs", "boundaries")))
"""The reading of a document that was not read."""


class Document(NamedTuple):
    """A document of the corpus, and whether the teacher is to read it."""

    text: str
    is_read: bool


def groups_of(
    corpus: Corpus, known: Sequence[str] = (), n_done: int = 0
) -> Iterator[list[Document]]:
    """Documents in groups that do not depend on where a run begins; without the first `n_done`.

    known: languages of the documents that are read; none: all are.
    """
    group: list[Document] = []
    n_bytes = number = 0
    for language, text in corpus.texts():
        number += 1
        if number <= n_done:
            continue
        group.append(Document(text, not known or language in known))
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

    def add(self, documents: Sequence[Document], teacher: LiveTeacher) -> int:
        """Let the teacher read these documents; returns the tokens of their windows.

        A document that it does not read has no tokens, and so no chunks in training.
        """
        texts = [text for text, is_read in documents if is_read]
        readings = iter(teacher.read_texts(texts))
        for text, is_read in documents:
            reading = next(readings) if is_read else NOTHING
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
        self.n_documents += len(documents)
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

    `about`: the part of `teacher.json` that does not depend on the text; `known` in it are the
    languages of documents that are read, none for all. `progress`: called with the tokens read so
    far, those that windows repeat included.
    """
    figures = _join(list(_parts(teacher, corpus, checkpoints, about, progress)), folder)
    header = {"version": VERSION, **about, **figures, "boundaries": teacher.has_boundaries}
    header["crc32"] = {f"{name}.npy": crc32_of(folder / f"{name}.npy") for name in ARRAYS}
    text = json.dumps(header, ensure_ascii=False, indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    checkpoints.drop()
    return figures


def _parts(
    teacher: LiveTeacher,
    corpus: Corpus,
    checkpoints: Checkpoints,
    about: Mapping[str, Any],
    report: Callable[[int], object],
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
    for documents in groups_of(corpus, about["known"], n_documents):
        n_read = part.add(documents, teacher)
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
    totals, lengths = {}, {}
    for name, kind in ARRAYS.items():
        arrays = [map_npy(part.path / f"{name}.npy", np.dtype(kind)) for part in parts]
        if name.endswith("-offsets"):
            lengths[name] = np.concatenate(arrays)
            ends = np.cumsum(lengths[name])
            totals[name] = int(ends[-1])
            arrays = [np.zeros(1, kind), ends]
        if name == "logprobs":
            nats = -sum(float(np.nansum(array, dtype=np.float64)) for array in arrays)
        write_npy(folder / f"{name}.npy", arrays)
    n_read = int(lengths["byte-offsets"][lengths["token-offsets"] > 0].sum())
    return {
        "n_documents": sum(part.info["n_documents"] for part in parts),
        "n_tokens": totals["token-offsets"],
        "n_bytes": totals["byte-offsets"],
        "bits_per_byte": nats / np.log(2) / max(n_read, 1),
    }
