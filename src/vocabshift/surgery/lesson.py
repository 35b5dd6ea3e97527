"""One course of token distillation: the loss, the order of the snippets, steps and checkpoints.

`snippets` finds the text, `student` holds the model and the optimizer, `distill` joins them to a
transfer. See docs/algorithms/token-distillation.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.models.tables import Matrices, input_embeddings, output_embeddings
from vocabshift.models.windows import batch_cost, padded_batches
from vocabshift.progress import Progress, in_phase
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.surgery.options import DistillOptions
from vocabshift.surgery.row_sources import Ids
from vocabshift.surgery.rows import InitContext
from vocabshift.surgery.snippets import Around, Snippet, digest_of
from vocabshift.surgery.student import (
    Head,
    TrainedRows,
    by_token,
    head_tail,
    hidden_states,
    looked_up,
    usual_size,
)

if TYPE_CHECKING:
    import torch

_WARM_UP = 0.1  # share of the steps in which the rate rises; then it falls to 0 like a cosine
_SAVE_SECONDS = 60.0  # between two checkpoints, at least
_SAVING = 0.05  # share of the time that writing them may take: large ones are written less often
_PHASES = ("rows a", "rows b")  # one is whole while the other is written


class Lesson:
    """One course of learning: the rows, their optimizer, and the steps."""

    def __init__(
        self,
        teacher: Any,
        student: Any,
        snippets: Sequence[Snippet],
        around: tuple[Around, Around],
        *,
        matrices: Matrices,
        sources: InitContext,
        ids: Ids,
        options: DistillOptions,
        seed: int,
        has_next: bool,
    ) -> None:
        """`ids`: of the rows to learn; `around`: of old and new readings.

        `matrices`: the teacher's tables; `sources`: which of their rows old tokens have;
        `has_next`: the model predicts next tokens. ValueError if nothing can be learned from.
        """
        import torch

        self._teacher, self._student, self._options, self._seed = teacher, student, options, seed
        self._snippets, self._around = snippets, around
        self._digest = digest_of(ids, snippets)
        embeddings, head = input_embeddings(student), output_embeddings(student)
        self.device = embeddings.weight.device
        places = torch.from_numpy(ids).to(self.device)
        self._slots = torch.full((len(embeddings.weight),), -1, device=self.device)
        self._slots[places] = torch.arange(len(ids), device=self.device)
        sizes = {
            table.role: usual_size(table.weight, sources.of_table(table).old_ids)
            for table in matrices.tables
            if table.role in ("input", "head")
        }
        self.rows = {"input": TrainedRows(embeddings.weight, places, sizes["input"])}
        self._head: Head | None = None
        if options.next_token_weight and has_next and head is not None:
            if not matrices.tied:
                self.rows["head"] = TrainedRows(head.weight, places, sizes["head"])
            values = self.rows["input" if matrices.tied else "head"].values
            self._head = Head(head, head_tail(student), places, values, matrices.tied)
        elif not options.hidden_weight:
            raise ValueError(
                f"{type(teacher).__name__} predicts no next token, and the weight of hidden "
                "states is 0: nothing is left to learn from"
            )
        # The softmax of a head moves every row; only inputs are moved by their own snippets alone.
        self._everywhere = {"head", "input"} if self._head and matrices.tied else {"head"}
        self.n_tokens = sum(len(each.new) for each in snippets) * options.epochs
        self.n_steps = sum(1 for _ in self.batches())
        self._done, self._phase = 0, ""
        self._history = np.full((self.n_steps, 2), np.nan)  # distance, nats per token

    def run(self, checkpoints: Checkpoints | None, progress: Progress | None) -> None:
        """All steps, after those of a killed run."""
        if checkpoints is not None:
            self._restore(checkpoints)
        report = in_phase(progress, "distill")
        n_tokens, saved_at, pause = 0, time.monotonic(), _SAVE_SECONDS
        for number, batch in enumerate(self.batches()):
            n_tokens += sum(len(each.new) for each in batch)
            if number < self._done:
                continue
            self.step(batch)
            if report is not None:
                report(n_tokens, self.n_tokens)
            is_last = self._done == self.n_steps
            if checkpoints is not None and (is_last or time.monotonic() - saved_at > pause):
                began = time.monotonic()
                self._save(checkpoints)
                saved_at = time.monotonic()
                pause = max(_SAVE_SECONDS, (saved_at - began) * (1 / _SAVING - 1))

    def batches(self) -> Iterator[list[Snippet]]:
        """The snippets of each step, in another order in each epoch."""
        for epoch in range(self._options.epochs):
            order = np.random.default_rng([self._seed, epoch]).permutation(len(self._snippets))
            batch: list[Snippet] = []
            n_tokens = 0
            for snippet in (self._snippets[i] for i in order.tolist()):
                batch.append(snippet)
                n_tokens += len(snippet.new)
                if n_tokens >= self._options.step_tokens:
                    yield batch
                    batch, n_tokens = [], 0
            if batch:
                yield batch

    def step(self, snippets: Sequence[Snippet]) -> None:
        """Read the snippets in batches, add their gradients up, and change the rows once."""
        import torch

        n_common = sum(len(each.at_new) for each in snippets)
        beyond = self._around[1].n_tokens - 1  # without a BOS the first token is not predicted
        n_targets = sum(len(each.new) + beyond for each in snippets)
        distance = nats = 0.0
        wanted = self._wanted(snippets)
        for places in self._fitting([each.new for each in snippets]):
            of_teacher = [wanted[i] for i in places if wanted]
            apart, cost = self._losses([snippets[i] for i in places], of_teacher)
            loss = apart * (self._options.hidden_weight / max(n_common, 1))
            loss = loss + cost * (self._options.next_token_weight / max(n_targets, 1))
            if not bool(loss.isfinite()):
                raise ValueError(
                    f"the loss of 'distill' is not finite at step {self._done + 1}: the model's "
                    "own is not, or the learning rate is too high (--distill-learning-rate)"
                )
            if loss.requires_grad:
                torch.autograd.backward(loss)
            distance, nats = distance + float(apart.detach()), nats + float(cost.detach())
        rate = self._options.learning_rate * self._rate()
        used = np.unique(np.concatenate([each.new for each in snippets]))
        slots = self._slots[_tensor(used, self.device)]
        for role, rows in self.rows.items():
            if rows.values.grad is not None:
                rows.step(rate, None if role in self._everywhere else slots[slots >= 0])
        self._history[self._done] = distance / max(n_common, 1), nats / max(n_targets, 1)
        self._done += 1

    def _rate(self) -> float:
        warm = math.ceil(_WARM_UP * self.n_steps)
        if self._done < warm:
            return (self._done + 1) / warm
        passed = (self._done - warm) / max(1, self.n_steps - warm)
        return (1 + math.cos(math.pi * passed)) / 2

    def _fitting(self, ids: Sequence[Any]) -> list[list[int]]:
        """Places of readings that the model takes together."""
        n_tokens = self._options.batch_tokens
        cost = batch_cost(self.device.type, n_tokens)
        return padded_batches([len(each) for each in ids], n_tokens, cost)

    def _wanted(self, snippets: Sequence[Snippet]) -> dict[int, torch.Tensor]:
        """The teacher's states (n_common, width) by place; none where they do not count."""
        import torch

        found: dict[int, torch.Tensor] = {}
        asked = snippets if self._options.hidden_weight else ()
        for places in self._fitting([each.old for each in asked]):
            at = [snippets[i].at_old for i in places]
            old, _ = self._inputs([snippets[i].old for i in places], self._around[0])
            with torch.no_grad():
                states = hidden_states(self._teacher, old, self._options.layer)
            own = torch.split(states[self._places(at, 0)], [len(each) for each in at])
            found |= zip(places, own, strict=True)
        return found

    def _losses(
        self, snippets: Sequence[Snippet], wanted: list[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums over a batch: squared distances relative to the teacher's length, and nats.

        `wanted`: the teacher's states of each snippet.
        """
        import torch

        new, lengths = self._inputs([each.new for each in snippets], self._around[1])
        zero = torch.zeros((), device=self.device)
        embeddings = input_embeddings(self._student)
        inputs = self.rows["input"].values
        nats: list[torch.Tensor] = [zero]
        with looked_up(embeddings, inputs, self._slots):
            if self._head is None:
                found = hidden_states(self._student, new, self._options.layer)
            else:
                at, targets = self._targets(new["input_ids"], lengths)
                with self._head.reading(at, targets) as nats:
                    outputs = self._student(**new, output_hidden_states=True, use_cache=False)
                found = by_token(outputs.hidden_states[self._options.layer])
        if not wanted:
            return zero, nats[0]
        told = torch.cat(wanted)
        reached = found[self._places([each.at_new for each in snippets], 1)]
        wide = torch.promote_types(told.dtype, torch.float32)
        told, reached = told.to(wide), reached.to(wide)
        apart = (reached - told).square().sum(1) / told.square().sum(1)
        return apart.sum(), nats[0]

    def _inputs(self, ids: Sequence[Any], around: Around) -> tuple[dict[str, Any], list[int]]:
        """Padded ids and their mask, (n_snippets, longest), on the right; the lengths."""
        rows = [
            np.concatenate([around.before, each, around.after]).astype(np.int64) for each in ids
        ]
        lengths = [len(row) for row in rows]
        padded = np.zeros((len(rows), max(lengths)), dtype=np.int64)
        for place, row in zip(padded, rows, strict=True):
            place[: len(row)] = row
        mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
        inputs = {"input_ids": _tensor(padded, self.device)}
        if min(lengths) < max(lengths):
            inputs["attention_mask"] = _tensor(mask, self.device)
        return inputs, lengths

    def _places(self, at: Sequence[Any], reading: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and columns of positions of a batch."""
        rows = np.repeat(np.arange(len(at)), [len(each) for each in at])
        columns = np.concatenate(at).astype(np.int64) + len(self._around[reading].before)
        return _tensor(rows, self.device), _tensor(columns, self.device)

    def _targets(self, ids: torch.Tensor, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Flattened positions that predict a token, and the tokens; both (n_targets,)."""
        width = ids.shape[1]
        is_next = np.arange(1, width) < np.array(lengths)[:, None]
        rows, columns = np.nonzero(is_next)
        at = _tensor(rows * width + columns, self.device)
        return at, ids.flatten()[at + 1]

    def outcome(self) -> dict[str, Any]:
        """What the last tenth of the steps came to, and what the first did."""
        tenth = max(1, self.n_steps // 10)
        first, last = self._history[:tenth].mean(0), self._history[-tenth:].mean(0)
        return {
            "steps": self.n_steps,
            "distance": [round(float(first[0]), 6), round(float(last[0]), 6)],
            "nats_per_token": [round(float(first[1]), 6), round(float(last[1]), 6)]
            if self._head is not None
            else None,
        }

    def _save(self, checkpoints: Checkpoints) -> None:
        import torch
        from safetensors.torch import save_file

        def write(path: Path) -> None:
            tensors = {
                f"{role}.{name}": tensor.contiguous().cpu()
                for role, rows in self.rows.items()
                for name, tensor in rows.state().items()
            }
            save_file(tensors | {"history": torch.from_numpy(self._history)}, path)

        self._phase = _PHASES[self._phase == _PHASES[0]]
        checkpoints.save(self._phase, write, {"step": self._done, "snippets": self._digest})

    def _restore(self, checkpoints: Checkpoints) -> None:
        from safetensors.torch import load_file

        saved = [each for phase in _PHASES if (each := checkpoints.load(phase)) is not None]
        # The options of a run do not name its text: another corpus gives other snippets.
        found = [each for each in saved if each.info.get("snippets") == self._digest]
        if not found:
            return
        latest = max(found, key=lambda each: int(each.info["step"]))
        self._phase = latest.path.parent.name
        tensors = load_file(latest.path)
        for role, rows in self.rows.items():
            rows.restore({name: tensors[f"{role}.{name}"] for name in rows.state()})
        self._history, self._done = tensors["history"].numpy(), int(latest.info["step"])


def _tensor(array: Any, device: Any) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
