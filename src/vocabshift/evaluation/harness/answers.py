"""Log probabilities of answers; a context that several answers share is read once.

The context and its answers are one sequence: an answer sees the context and itself alone, by its
attention mask, and its positions follow those of the context (as candidates of speculative decoding
are verified: SpecInfer, arXiv 2305.09781, section 4.2). Values are those of texts read one by one,
up to rounding.

Some models know no such mask: those with linear biases or states instead of attention, and those
with sliding windows that are shorter than the text. So the context with the longest text (itself
and one answer) is read both ways first. Where the values differ, every answer is read with a
context of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.models.token_loss import token_choices
from vocabshift.models.windows import batch_cost, padded_batches
from vocabshift.progress import PhaseProgress

if TYPE_CHECKING:
    import torch

Part = tuple[tuple[int, ...], tuple[int, ...]]
"""Given ids, at least one, and the scored ids after them, at least one."""

_LONGEST = 4
"""Times the context that a sequence may be long, or else as long as a batch."""

_DIFFERENCE = 1e-3
"""Nats per token by which two ways to read an answer may differ in float32."""


@dataclass
class _Sequence:
    """A context and all that is read after it, as one row of a batch."""

    given: tuple[int, ...]
    starts: dict[tuple[int, ...], int] = field(default_factory=dict)  # of what is read after it
    length: int = 0
    parts: list[int] = field(default_factory=list)  # their numbers

    def add(self, number: int, scored: tuple[int, ...]) -> None:
        """An answer; the last of its ids is not read."""
        self.length = self.length or len(self.given)
        if scored[:-1] not in self.starts:
            self.starts[scored[:-1]] = self.length
            self.length += len(scored) - 1
        self.parts.append(number)

    @property
    def is_shared(self) -> bool:
        """Whether it takes a mask: several answers are read."""
        return sum(map(bool, self.starts)) > 1

    @property
    def longest_text(self) -> int:
        """Tokens of the context and its longest answer: the most that one of them sees."""
        return len(self.given) + max(map(len, self.starts))

    def places(self, scored: tuple[int, ...]) -> list[int]:
        """The positions that predict these ids."""
        start = self.starts[scored[:-1]]
        return [len(self.given) - 1, *range(start, start + len(scored) - 1)]

    def layout(self, width: int) -> tuple[Any, Any, Any]:
        """Ids, positions and the number of the answer (0: context, -1: padding); each (width,)."""
        ids, positions = np.zeros((2, width), dtype=np.int64)
        owners = np.full(width, -1, dtype=np.int64)
        n = len(self.given)
        ids[:n], positions[:n], owners[:n] = self.given, np.arange(n), 0
        for number, (read, start) in enumerate(self.starts.items(), start=1):
            own = slice(start, start + len(read))
            ids[own], positions[own], owners[own] = read, n + np.arange(len(read)), number
        return ids, positions, owners


class Answers:
    """Reads answers under one model, and remembers whether it can share contexts."""

    def __init__(self, model: Any) -> None:
        """`model`: a causal language model of transformers, in evaluation mode."""
        self._model = model
        self._checked = 0  # tokens of the longest text that came out equal
        self._can_share = True

    def log_probabilities(
        self, parts: Sequence[Part], batch_tokens: int, report: PhaseProgress | None = None
    ) -> list[tuple[float, bool]]:
        """(log probability, whether all its ids are the likeliest) of each.

        A part must fit the positions of the model. A batch has at most `batch_tokens` tokens with
        padding, or one sequence. `report` is called with the parts that are done, and all.
        """
        sequences = _sequences(range(len(parts)), parts, batch_tokens if self._can_share else None)
        shared = [each for each in sequences if each.is_shared]
        longest = max(shared, key=lambda each: each.longest_text, default=None)
        if longest is not None and longest.longest_text > self._checked:
            self._can_share = self._check(longest, parts)
            self._checked = longest.longest_text
            if not self._can_share:
                sequences, shared = _sequences(range(len(parts)), parts, None), []
        # Those without a mask of ours keep the model's own, which may be a sliding window.
        alone = [each for each in sequences if not each.is_shared]
        cost = batch_cost(self._model.device.type, batch_tokens)
        batches = (
            [of_kind[place] for place in batch]
            for of_kind in (shared, alone)
            for batch in padded_batches([each.length for each in of_kind], batch_tokens, cost)
        )
        found: list[Any] = [None] * len(parts)
        n_done = 0
        for batch in batches:
            values = self._read(batch, parts)
            for number, value in values.items():
                found[number] = value
            n_done += len(values)
            if report is not None:
                report(n_done, len(parts))
        return found

    def _check(self, sequence: _Sequence, parts: Sequence[Part]) -> bool:
        """Whether its answers have the values that they have alone."""
        import torch

        eps = torch.finfo(self._model.get_input_embeddings().weight.dtype).eps
        most = _DIFFERENCE * max(1.0, eps / torch.finfo(torch.float32).eps) ** 0.5
        try:
            together = self._read([sequence], parts)
        except (TypeError, ValueError, RuntimeError, IndexError):  # a mask that it does not take
            return False
        return all(
            abs(together[number][0] - value) <= most * len(parts[number][1])
            for each in _sequences(sequence.parts, parts, None)
            for number, (value, _) in self._read([each], parts).items()
        )

    def _read(
        self, batch: Sequence[_Sequence], parts: Sequence[Part]
    ) -> dict[int, tuple[float, bool]]:
        """One pass of the model: the values of the parts of these sequences, by number."""
        import torch

        width = max(each.length for each in batch)
        layouts = zip(*(each.layout(width) for each in batch), strict=True)
        ids, positions, owners = (np.stack(each) for each in layouts)
        numbers = [number for each in batch for number in each.parts]
        places = [
            row * width + place
            for row, each in enumerate(batch)
            for number in each.parts
            for place in each.places(parts[number][1])
        ]
        targets = [token for number in numbers for token in parts[number][1]]
        device = self._model.get_input_embeddings().weight.device
        with torch.inference_mode():
            inputs = {}
            if any(each.is_shared for each in batch):
                inputs["position_ids"] = torch.from_numpy(positions).to(device)
                inputs["attention_mask"] = self._mask(torch.from_numpy(owners).to(device))
            elif (owners < 0).any():
                inputs["attention_mask"] = torch.from_numpy(owners >= 0).to(device).long()
            nats, is_likeliest = token_choices(
                self._model,
                torch.from_numpy(ids).to(device),
                torch.tensor(places, device=device),
                torch.tensor(targets, device=device),
                **inputs,
            )
            of_tokens = nats.double().cpu().numpy(), is_likeliest.cpu().numpy()
        ends = np.cumsum([len(parts[number][1]) for number in numbers])[:-1]
        split = (np.split(each, ends) for each in of_tokens)
        return {
            number: (-float(own.sum()), bool(likeliest.all()))
            for number, own, likeliest in zip(numbers, *split, strict=True)
        }

    def _mask(self, owners: torch.Tensor) -> torch.Tensor:
        """What is added to attention, (batch, 1, length, length): 0 for what a token sees."""
        import torch

        width, dtype = owners.shape[1], self._model.get_input_embeddings().weight.dtype
        before = torch.ones((width, width), dtype=torch.bool, device=owners.device).tril()
        sees = (owners[:, None, :] == 0) | (owners[:, None, :] == owners[:, :, None])
        mask = torch.zeros((len(owners), 1, width, width), dtype=dtype, device=owners.device)
        # Padding sees itself: of a token that sees nothing the softmax is no number.
        return mask.masked_fill(~(before & sees)[:, None], torch.finfo(dtype).min)


def _sequences(
    numbers: Iterable[int], parts: Sequence[Part], batch_tokens: int | None
) -> list[_Sequence]:
    """The parts of these numbers, by context; None: only those that read the same are together.

    A sequence may be as long as a batch, or `_LONGEST` times its context. The same parts in another
    order give the same sequences, so the same batches and digits.
    """
    found: list[_Sequence] = []
    order = sorted(
        (parts[number][0], len(parts[number][1]), parts[number][1], number) for number in numbers
    )
    for given, n_scored, scored, number in order:
        own = found[-1] if found and found[-1].given == given else None
        if own is not None and scored[:-1] not in own.starts:
            # Attention to long answers of others costs more than to read the context again.
            most = 0 if batch_tokens is None else max(batch_tokens, _LONGEST * len(given))
            if n_scored > len(given) or own.length + n_scored > most:
                own = None
        if own is None:
            own = _Sequence(given)
            found.append(own)
        own.add(number, scored)
    return found
