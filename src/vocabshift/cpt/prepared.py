"""The model of a run, prepared for each of its phases, and its state in a checkpoint.

Owns which parameters ask for gradients, adapters coming and going, the wrapping by accelerate, and
what a checkpoint holds: what was trained so far. Of tables of which only new rows were trained it
holds these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vocabshift.cpt import adapters
from vocabshift.cpt.config import LORA, NEW_ROWS, Phase
from vocabshift.cpt.phases import NewRows, new_row_tables, phase_parameters, trained_parameters
from vocabshift.cpt.state import (
    NEW_IDS,
    Tensors,
    keep_rows,
    names_of,
    restore_moments,
    restore_weights,
    whole_moments,
    whole_weights,
)

if TYPE_CHECKING:
    from accelerate import Accelerator

    from vocabshift.cpt.checkpoints import SavedStep
    from vocabshift.models.adapter import Adapter


class PreparedModel:
    """A model through the phases of one run."""

    def __init__(
        self,
        model: Any,
        accelerator: Accelerator,
        phases: Sequence[Phase],
        *,
        seed: int,
        new_ids: Sequence[int],
        wrap: Callable[[], Any],
        forget: Callable[[], None],
    ) -> None:
        """`seed`: of fresh adapters; `wrap` and `forget`: of `training_module`, for this model.

        ValueError for two phases "lora" with FSDP2, which shards adapters once for all phases.
        """
        if accelerator.is_fsdp2 and sum(phase.trained == LORA for phase in phases) > 1:
            raise ValueError(
                "with FSDP2 a run can have one phase 'lora'; train the second one in a run of its "
                "own, on the output of the first"
            )
        self._model, self._accelerator, self._phases = model, accelerator, phases
        self._seed, self._wrap, self._forget = seed, wrap, forget
        self._new_ids = sorted(set(new_ids))
        self._divided: Any = None  # the module sharded by FSDP2, once for all phases
        self._about: dict[str, Any] = {}  # PEFT's config of the adapters in the model

    def new_rows(self, phase: Phase) -> NewRows | None:
        """What keeps the other rows still, in a phase that trains those of new tokens."""
        if phase.trained == NEW_ROWS:
            return NewRows(self._parameters(phase), self._new_ids)
        is_mixed = phase.trained == LORA and self._new_ids
        return NewRows(new_row_tables(self._model), self._new_ids) if is_mixed else None

    @contextmanager
    def ready(self, index: int) -> Iterator[tuple[Any, list[torch.nn.Parameter]]]:
        """The wrapped module and the parameters that the phase trains."""
        model, phase = self._model, self._phases[index]
        if not self._accelerator.is_fsdp2:
            with self._adapters(index), trained_parameters(model, phase, self._new_ids) as trained:
                yield self._wrap(), trained
                self._forget()
            return
        if self._divided is None:
            # Subtle: adapters and `requires_grad` are fixed when FSDP2 shards the model. A phase
            # that trains less than another leaves the other gradients unused, and outside their
            # phase adapters add 0.
            for number in [i for i, each in enumerate(self._phases) if each.trained == LORA]:
                self._about = adapters.insert(model, **self._lora(number))
            asked = {id(p) for each in self._phases for p in self._parameters(each)}
            for parameter in model.parameters():
                parameter.requires_grad_(id(parameter) in asked)
            self._divided = self._wrap()
        yield self._divided, self._parameters(phase)
        if phase.trained == LORA:
            adapters.merge(model)

    @contextmanager
    def _adapters(self, index: int) -> Iterator[None]:
        """Adapters in the model, in a phase that trains them; afterwards they are merged."""
        if self._phases[index].trained != LORA:
            yield
            return
        with adapters.inserted(self._model, **self._lora(index)) as self._about:
            yield

    def _lora(self, index: int) -> dict[str, Any]:
        """The arguments of `adapters.insert` for a phase."""
        phase = self._phases[index]
        return {
            "names": phase.lora_targets,
            "rank": phase.lora_rank,
            "alpha": phase.lora_alpha,
            "dropout": phase.lora_dropout,
            "seed": int(np.random.SeedSequence((self._seed, index)).generate_state(1)[0]),
        }

    def adapter(self) -> Adapter | None:
        """The trained adapters, before they are merged; None where this is not the first process.

        All processes call this together.
        """
        model, on_main = self._model, self._accelerator.is_main_process
        parts = whole_weights(names_of(model, adapters.parameters(model)), on_main=on_main)
        tables = new_row_tables(model) if self._new_ids else []
        named = whole_weights(names_of(model, tables), on_main=on_main)
        if not on_main:
            return None
        rows = {name.removesuffix(".weight"): table for name, table in named.items()}
        return adapters.capture(self._about, parts, rows, self._new_ids)

    def saved(self, index: int, optimizer: torch.optim.Optimizer) -> tuple[Tensors, Tensors]:
        """Weights and moments for a checkpoint; empty where this is not the first process.

        `index`: of the phase in training. All processes call this together.
        """
        on_main = self._accelerator.is_main_process
        weights = whole_weights(self._trained_so_far(index), on_main=on_main)
        named = names_of(self._model, self._parameters(self._phases[index]))
        moments = whole_moments(optimizer, named, on_main=on_main)
        if on_main and self._new_ids:
            for tensors in (weights, moments):
                keep_rows(tensors, self._by_rows(index), self._new_ids)
            weights[NEW_IDS] = torch.tensor(self._new_ids)
        return weights, moments

    def restore(self, index: int, optimizer: torch.optim.Optimizer, step: SavedStep) -> None:
        """Restore weights and moments from a checkpoint in the phase `index`."""
        restore_weights(self._trained_so_far(index), step.weights)
        named = names_of(self._model, self._parameters(self._phases[index]))
        restore_moments(optimizer, named, step.moments, step.weights.get(NEW_IDS))

    def _parameters(self, phase: Phase, *, is_over: bool = False) -> list[torch.nn.Parameter]:
        return phase_parameters(self._model, phase, self._new_ids, is_over=is_over)

    def _trained_so_far(self, index: int) -> dict[str, Any]:
        before = self._phases[:index]
        changed = [p for each in before for p in self._parameters(each, is_over=True)]
        return names_of(self._model, changed + self._parameters(self._phases[index]))

    def _by_rows(self, index: int) -> list[str]:
        """Names of what the phases so far have trained in the rows of new tokens alone."""
        so_far = self._phases[: index + 1]
        tables = phase_parameters(self._model, NEW_ROWS)
        wholly = [each for each in so_far if each.trained not in (NEW_ROWS, LORA)]
        others = {id(p) for each in wholly for p in self._parameters(each)}
        return list(names_of(self._model, [p for p in tables if id(p) not in others]))
