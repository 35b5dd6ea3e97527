"""A teacher: a model that reads documents with its own tokenizer, in windows as `score` does.

Owns the log-probabilities of a document's tokens and the probability that a boundary follows each.
`teacher_folder` stores them; `chunks` uses a model that runs along and stored numbers alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.chunks import Places, Reading, Stretch
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

        self.unmatched: set[int] = set()
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
