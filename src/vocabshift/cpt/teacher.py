"""Teachers: a model that reads documents with its own tokenizer, or what one has read and stored.

Owns the log-probabilities of the tokens of a document (read in windows, as `score` reads them), the
probability that a boundary follows each, and the folder in which `vocabshift teach` stores them:
`teacher.json` and one file per number, mapped from disk. `chunks` uses both kinds alike.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.chunks import Places, Reading, Stretch, Teacher
from vocabshift.cpt.config import MATCHING, LoopConfig
from vocabshift.cpt.packed_shards import check_files, map_npy
from vocabshift.errors import CorpusError
from vocabshift.models.cross_entropy import IGNORED
from vocabshift.models.load import lack_of_memory
from vocabshift.models.token_loss import token_nats
from vocabshift.models.windows import Window, batches_of, padded, window_sizes, windows_of
from vocabshift.tokenizer.any_tokenizer import Ids, Offsets

Spans = Callable[[Sequence[str]], tuple[Ids, Offsets, Places]]
"""Texts -> flat ids, offsets (n_texts + 1,), and the byte of its text at which each token ends."""


class LiveTeacher:
    """A causal model that reads documents when asked; it is not trained."""

    def __init__(
        self,
        model: Any,
        spans: Spans,
        *,
        special_ids: Sequence[int] = (),
        boundary_ids: Sequence[int] = (),
        context: int | None = None,
        overlap: int | None = None,
        batch_tokens: int = 4096,
    ) -> None:
        """`model`: of transformers, in evaluation mode; `spans`: of its tokenizer.

        Tokens of `special_ids` get no probability; `boundary_ids`: those that begin at a boundary,
        none if that is not known. `context`, `overlap`, `batch_tokens`: tokens, as in `score`.
        ValueError for windows that do not fit the model.
        """
        import torch

        weight = model.get_input_embeddings().weight
        self._bos: int | None = model.config.get_text_config().bos_token_id
        self._model, self._spans = model, spans
        n_prefix = 0 if self._bos is None else 1
        self.context, self.overlap = window_sizes(model, context, overlap, n_prefix=n_prefix)
        self._batch_tokens = batch_tokens
        self._special = np.asarray(special_ids, dtype=np.int64)
        self._boundary: Any = None
        if boundary_ids:
            head = model.get_output_embeddings()
            n_rows = head.weight.shape[0]
            members = torch.zeros(n_rows, dtype=torch.bool)
            members[list(boundary_ids)] = True
            self._boundary = members.to(weight.device)

    @property
    def has_boundaries(self) -> bool:
        """Whether it knows which tokens begin at a boundary."""
        return self._boundary is not None

    def fits(self, document: int, text: bytes) -> bool:  # noqa: ARG002
        """Whether it can read the text, which is what it is given."""
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
        return True

    def read(self, stretches: Sequence[Stretch]) -> list[Reading]:
        """Read what of the documents is needed for these stretches."""
        texts = {each.document: each.text for each in stretches}
        readings = {}
        within: dict[int, tuple[int, int]] = {}
        for each in stretches:
            start, end = within.get(each.document, (each.start, each.end))
            within[each.document] = (min(start, each.start), max(end, each.end))
        found = self.read_texts([text().decode() for text in texts.values()], [*within.values()])
        readings = dict(zip(texts, found, strict=True))
        return [readings[each.document] for each in stretches]

    def windows(self, texts: Sequence[str]) -> tuple[Ids, Offsets, Places, list[Window]]:
        """The tokens of the texts, the bytes at which they end, and the windows of all texts."""
        ids, offsets, ends = self._spans(texts)
        windows = [
            window
            for number, (start, end) in enumerate(pairwise(offsets.tolist()))
            for window in windows_of(number, ids[start:end], self._bos, self.context, self.overlap)
        ]
        return ids, offsets, ends, windows

    def read_texts(
        self, texts: Sequence[str], within: Sequence[tuple[int, int]] | None = None
    ) -> list[Reading]:
        """Read whole documents, or only the windows that touch the bytes [start, end] of each."""
        import torch

        ids, offsets, ends, windows = self.windows(texts)
        if within is not None:
            windows = [
                each
                for each in windows
                if self._touches(each, ends[offsets[each.document] :], within[each.document])
            ]
        logprobs = np.full(len(ids), np.nan, dtype=np.float32)
        boundaries = np.full(len(ids), np.nan, dtype=np.float32)
        advice = "no memory for the teacher: lower the batch tokens or the context of its windows"
        with torch.inference_mode(), lack_of_memory(advice):
            for batch in batches_of(windows, self._batch_tokens):
                nats, of_boundary = self._nats(batch)
                for row, window in enumerate(batch):
                    n_prefix = 0 if self._bos is None else 1
                    begin = int(offsets[window.document]) + window.start - n_prefix
                    first, last = window.n_context, window.ids.size
                    told = max(first, 1)  # nothing tells the first token of a model without BOS
                    logprobs[begin + told : begin + last] = -nats[row, told - 1 : last - 1]
                    if self.has_boundaries:
                        boundaries[begin + first : begin + last] = -of_boundary[row, first:last]
        logprobs[np.isin(ids, self._special)] = np.nan
        return [
            Reading(ends[start:end], logprobs[start:end], boundaries[start:end])
            for start, end in pairwise(offsets.tolist())
        ]

    def _nats(self, batch: Sequence[Window]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Nats of the token after each of a window, and of a boundary there; (n, longest)."""
        input_ids, mask = padded(batch, self._model)
        targets = input_ids.masked_fill(mask == 0, IGNORED).roll(-1, dims=1)
        targets[:, -1] = IGNORED
        nats = token_nats(
            self._model, input_ids, targets, subset=self._boundary, attention_mask=mask
        )
        first, second = (each.reshape(input_ids.shape).float().cpu().numpy() for each in nats)
        return first, second

    def _touches(self, window: Window, ends: Places, within: tuple[int, int]) -> bool:
        """Whether tokens that this window scores end at the first byte, or later in the stretch."""
        n_prefix = 0 if self._bos is None else 1
        first = window.start + window.n_context - n_prefix
        last = window.start + window.ids.size - n_prefix - 1
        begin = ends[first - 1] if first else 0
        return bool(ends[last] >= within[0] and begin <= within[1])


# Log-probabilities on disk.

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
        try:
            header = json.loads((path / FILE).read_text(encoding="utf-8"))
        except OSError as error:
            raise CorpusError(
                f"{path} holds no log-probabilities of a teacher ({FILE}: {error.strerror}); make "
                "some with vocabshift teach"
            ) from error
        except ValueError as error:
            raise CorpusError(f"{path / FILE} is damaged: {error}; {_AGAIN}") from error
        if not isinstance(header, dict) or header.get("version") != VERSION:
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
