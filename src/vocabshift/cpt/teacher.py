"""A teacher: a model that reads documents with its own tokenizer, in windows as `score` does.

Owns the log-probabilities of a document's tokens and the probability that a boundary follows each.
`teacher_folder` stores them; `chunks` uses a model that runs along and stored numbers alike.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.chunks import Floats, Places, Reading, Stretch
from vocabshift.models.cross_entropy import IGNORED
from vocabshift.models.load import lack_of_memory
from vocabshift.models.token_loss import token_nats
from vocabshift.models.windows import (
    Window,
    batches_of,
    padded,
    window_sizes,
    window_starts,
    windows_of,
)
from vocabshift.tokenizer.any_tokenizer import Ids, Offsets

Spans = Callable[[Sequence[str]], tuple[Ids, Offsets, Places]]
"""Texts -> flat ids, offsets (n_texts + 1,), and the byte of its text at which each token ends."""

_KEPT_TOKENS = 1 << 24
"""Tokens of long documents that are kept, 12 bytes each: if books have no more than these together,
each is encoded once, and not again for every row of it."""


class _Document(NamedTuple):
    """A document as the teacher reads it; both (n_tokens,)."""

    ids: Ids
    ends: Places


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

        self.unmatched: set[int] = set()
        weight = model.get_input_embeddings().weight
        self._bos: int | None = model.config.get_text_config().bos_token_id
        self._model, self._spans = model, spans
        self._n_prefix = 0 if self._bos is None else 1
        self.context, self.overlap = window_sizes(model, context, overlap, n_prefix=self._n_prefix)
        self._kept: OrderedDict[tuple[object, int], _Document] = OrderedDict()
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
        """Read the windows that are needed for these stretches, each once."""
        documents = self._documents(stretches)
        numbers = {key: number for number, key in enumerate(documents)}
        wanted = []
        for each in stretches:
            key = each.corpus, each.document
            wanted.append((numbers[key], self._touching(documents[key].ends, each.start, each.end)))
        return self._readings([*documents.values()], wanted)

    def read_texts(self, texts: Sequence[str]) -> list[Reading]:
        """Read whole documents."""
        ids, offsets, ends = self._spans(texts)
        documents = [_Document(ids[start:end], ends[start:end]) for start, end in pairwise(offsets)]
        wanted = [(number, self._starts(len(each.ids))) for number, each in enumerate(documents)]
        return self._readings(documents, wanted)

    def windows(self, texts: Sequence[str]) -> tuple[Ids, Offsets, Places, list[Window]]:
        """The tokens of the texts, the bytes at which they end, and the windows of all texts."""
        ids, offsets, ends = self._spans(texts)
        windows = [
            window
            for number, (start, end) in enumerate(pairwise(offsets.tolist()))
            for window in self._windows_of(number, ids[start:end], self._starts(end - start))
        ]
        return ids, offsets, ends, windows

    def _documents(self, stretches: Sequence[Stretch]) -> dict[tuple[object, int], _Document]:
        """The documents of these stretches; long ones are kept for the next time."""
        found: dict[tuple[object, int], _Document] = {}
        texts: dict[tuple[object, int], str] = {}
        for each in stretches:
            key = each.corpus, each.document
            if key in self._kept:
                self._kept.move_to_end(key)
                found[key] = self._kept[key]
            elif key not in texts:
                texts[key] = each.text().decode()
        if texts:
            ids, offsets, ends = self._spans([*texts.values()])
            for key, (start, end) in zip(texts, pairwise(offsets), strict=True):
                found[key] = _Document(ids[start:end].copy(), ends[start:end].copy())
                if end - start > self.context:  # others are no more than two windows
                    self._kept[key] = found[key]
        n_kept = sum(len(each.ids) for each in self._kept.values())
        while n_kept > _KEPT_TOKENS:
            n_kept -= len(self._kept.popitem(last=False)[1].ids)
        return found

    def _starts(self, n_tokens: int) -> range:
        return window_starts(n_tokens, self.context, self.overlap, n_prefix=self._n_prefix)

    def _windows_of(self, number: int, ids: Ids, starts: Iterable[int]) -> Iterator[Window]:
        return windows_of(number, ids, self._bos, self.context, self.overlap, starts=starts)

    def _scored(self, start: int, n_tokens: int) -> slice:
        """The tokens that the window which begins with token `start` scores."""
        room = self.context - self._n_prefix
        return slice(start + self.overlap if start else 0, min(start + room, n_tokens))

    def _touching(self, ends: Places, begin: int, end: int) -> range:
        """The starts of windows that score tokens which end in the bytes [begin, end]; never none.

        Each window scores the tokens after those of the one before.
        """

        def last_end(start: int) -> int:
            return int(ends[self._scored(start, len(ends)).stop - 1])

        def before(start: int) -> int:
            first = self._scored(start, len(ends)).start
            return int(ends[first - 1]) if first else 0

        starts = self._starts(len(ends))
        if len(starts) == 1:
            return starts
        low = min(bisect_left(starts, begin, key=last_end), len(starts) - 1)
        return starts[low : max(bisect_right(starts, end, key=before), low + 1)]

    def _readings(
        self, documents: Sequence[_Document], wanted: Sequence[tuple[int, range]]
    ) -> list[Reading]:
        """For each document by its number, with the starts of some windows, what these score."""
        import torch

        chosen: dict[int, set[int]] = {}
        for number, starts in wanted:
            chosen.setdefault(number, set()).update(starts)
        windows = [
            window
            for number, some in chosen.items()
            for window in self._windows_of(number, documents[number].ids, sorted(some))
        ]
        found: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        advice = "no memory for the teacher: lower the batch tokens or the context of its windows"
        with torch.inference_mode(), lack_of_memory(advice):
            for batch in batches_of(windows, self._batch_tokens, self._model.device.type):
                nats, of_boundary = self._nats(batch)
                for row, window in enumerate(batch):
                    first, last = window.n_context, window.ids.size
                    told = max(first, 1)  # nothing tells the first token of a model without BOS
                    logprobs, boundaries = np.full((2, last - first), np.nan, dtype=np.float32)
                    logprobs[told - first :] = -nats[row, told - 1 : last - 1]
                    logprobs[np.isin(window.ids[first:], self._special)] = np.nan
                    if self.has_boundaries:
                        boundaries[:] = -of_boundary[row, first:last]
                    found[window.document, window.start] = logprobs, boundaries
        readings = []
        for number, starts in wanted:
            ends = documents[number].ends
            # A lone token without BOS has no window.
            nothing = np.full(min(len(ends), 1), np.nan, dtype=np.float32)
            parts = [found.get((number, start), (nothing, nothing)) for start in starts]
            begin, end = (self._scored(start, len(ends)) for start in (starts[0], starts[-1]))
            logprobs, boundaries = (np.concatenate(each) for each in zip(*parts, strict=True))
            readings.append(Reading(ends[begin.start : end.stop], logprobs, boundaries))
        return readings

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
