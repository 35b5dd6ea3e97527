"""A run: its phases step by step, its position, and how it resumes from a checkpoint.

Owns AdamW and the work between steps: hooks, evaluation, checkpoints. All randomness in a step
comes from the seed, the phase, the step and the process, so a stopped run resumes as if it had
never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from vocabshift.cpt.config import LORA, MATCHING, LoopConfig, Phase
from vocabshift.cpt.optimize import (
    Gradient,
    PhaseState,
    Position,
    SpikeWatch,
    learning_rate_share,
    utilization_of,
)
from vocabshift.cpt.phases import decay_groups
from vocabshift.cpt.prepared import PreparedModel
from vocabshift.cpt.processes import require_same, sums
from vocabshift.cpt.steps import Evaluation, Hooks, Rows, Step
from vocabshift.cpt.training_module import ModelView, forget, wrap

if TYPE_CHECKING:
    from accelerate import Accelerator

    from vocabshift.cpt.checkpoints import SavedStep, StepCheckpoints
    from vocabshift.cpt.objectives import SpecialIds
    from vocabshift.cpt.processes import StopSignals


class Run:
    """One call of `pretrain`, after its checks."""

    def __init__(
        self,
        model: Any,
        accelerator: Accelerator,
        config: LoopConfig,
        phases: Sequence[Phase],
        *,
        special: SpecialIds,
        new_ids: Sequence[int],
        hooks: Hooks,
        checkpoints: StepCheckpoints | None,
        signals: StopSignals,
    ) -> None:
        self._model, self._accelerator, self._config = model, accelerator, config
        self._phases, self._hooks = phases, hooks
        self._prepared = PreparedModel(
            model,
            accelerator,
            phases,
            seed=config.seed,
            new_ids=new_ids,
            wrap=partial(wrap, accelerator, model, config, special),
            forget=partial(forget, accelerator),
        )
        self._checkpoints, self._signals = checkpoints, signals
        self._saved: SavedStep | None = checkpoints.newest() if checkpoints else None
        self._at = Position(**self._saved.info) if self._saved else Position()
        require_same(accelerator, self._at.run_steps, "the step of the checkpoint they resume from")

    @property
    def first_phase(self) -> int:
        """Index of the phase in which this run begins or resumes."""
        return self._at.phase

    def phase(self, index: int, rows: Rows) -> list[Step]:
        """Train one phase to its end, and return the steps done by this process."""
        phase, config = self._phases[index], self._config
        if index != self._at.phase:
            before = self._at
            self._at = Position(index, run_steps=before.run_steps, run_bytes=before.run_bytes)
        order = np.random.default_rng((config.seed, index)).permutation(len(rows.row_bytes))
        size = config.step_sequences
        batches = [order[at : at + size] for at in range(0, len(order), size)]
        with self._prepared.ready(index) as (wrapped, parameters):
            state = self._phase_state(index, rows, len(batches), wrapped, parameters)
            self._evaluate_if_due(state)
            steps = [self._step(state, batch) for batch in batches[self._at.step :]]
            if phase.trained == LORA and self._hooks.on_adapter is not None:
                adapter = self._prepared.adapter()
                if adapter is not None:
                    self._hooks.on_adapter(adapter)
            return steps

    def _phase_state(
        self,
        index: int,
        rows: Rows,
        n_steps: int,
        wrapped: Any,
        parameters: list[torch.nn.Parameter],
    ) -> PhaseState:
        """The state of a phase, at the position of the checkpoint."""
        phase, config = self._phases[index], self._config
        optimizer = torch.optim.AdamW(
            decay_groups(self._model, parameters, config.weight_decay),
            lr=phase.learning_rate,
            betas=config.betas,
            # One pass over weights and moments: on a CPU, a seventh of the time of the loop.
            fused=parameters[0].device.type in ("cuda", "cpu"),
        )
        if self._saved is not None:
            self._prepared.restore(index, optimizer, self._saved)
            self._saved = None
        return PhaseState(
            index=index,
            phase=phase,
            rows=rows,
            n_steps=n_steps,
            wrapped=wrapped,
            parameters=parameters,
            optimizer=optimizer,
            gradient=Gradient(
                wrapped,
                self._accelerator,
                config,
                phase=index,
                rows=rows,
                parameters=parameters,
                new_rows=self._prepared.new_rows(phase),
            ),
            watch=SpikeWatch(config.spike_factor, self._at.losses),
            utilization=utilization_of(
                self._model, config, parameters[0].device, self._accelerator.num_processes
            ),
        )

    def _step(self, state: PhaseState, batch: NDArray[np.int64]) -> Step:
        began = time.perf_counter()
        config, at = self._config, self._at
        is_due = self._checkpoints is not None and self._checkpoints.is_due(at.run_steps + 1)
        is_main = self._accelerator.is_main_process
        gradient = state.gradient
        nats, targets, parts = gradient.add(batch, at.step)
        total = sums(
            self._accelerator,
            nats.device,
            *(nats, targets, self._signals.asked, is_due and is_main, *parts),
        )
        n_targets = max(total[1], 1)
        loss = total[0] / n_targets
        norm = gradient.finish(len(batch), total[1])
        is_whole = len(batch) == config.step_sequences
        if wrong := state.watch.wrong(loss, norm, is_whole=is_whole):
            self._stop_wrong(state, wrong, loss, norm)
        n_bytes = int(state.rows.row_bytes[batch].sum())
        at.n_bytes += n_bytes
        rate = state.phase.learning_rate * learning_rate_share(
            at.n_bytes / state.rows.n_bytes,
            warmup=config.warmup,
            final_rate=config.final_rate,
            schedule=config.schedule,
            decay=config.decay,
            power=config.power,
        )
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        state.optimizer.step()
        self._forget_gradients()
        at.step += 1
        at.run_steps += 1
        at.n_tokens += int(total[1])
        at.run_bytes += n_bytes
        at.losses = list(state.watch.losses)
        seconds = max(time.perf_counter() - began, 1e-9)
        is_matched = config.objective == MATCHING
        step = Step(
            phase=state.index,
            trained=state.phase.trained,
            step=at.step,
            n_steps=state.n_steps,
            loss=loss,
            bits_per_byte=(total[5] if is_matched else total[0]) / math.log(2) / max(n_bytes, 1),
            learning_rate=rate,
            gradient_norm=norm,
            n_bytes=at.n_bytes,
            n_tokens=at.n_tokens,
            run_bytes=at.run_bytes,
            seconds=seconds,
            tokens_per_second=total[1] / seconds,
            bytes_per_second=n_bytes / seconds,
            mfu=state.utilization(total[1] / seconds),
            matching_loss=total[4] / n_targets if is_matched else None,
            next_token_loss=total[5] / n_targets if is_matched else None,
            chunks=int(total[6]) if is_matched else None,
            matched_share=total[7] / n_targets if is_matched else None,
        )
        self._after(state, step, n_bytes, is_asked=total[2] > 0, is_due=total[3] > 0)
        return step

    def _after(
        self, state: PhaseState, step: Step, n_bytes: int, *, is_asked: bool, is_due: bool
    ) -> None:
        """Hooks, evaluation and checkpoints after a step."""
        at, every = self._at, self._hooks.evaluate_bytes
        is_end = state.index == len(self._phases) - 1 and step.step == state.n_steps
        crossed = every is not None and at.run_bytes // every > (at.run_bytes - n_bytes) // every
        at.is_evaluated = not (is_end or crossed)
        if self._hooks.on_step:
            self._hooks.on_step(step)
        if is_asked and self._checkpoints is not None:
            self._save(state)
            raise KeyboardInterrupt
        self._evaluate_if_due(state)
        if is_due:
            self._save(state)

    def _evaluate_if_due(self, state: PhaseState) -> None:
        at, hooks = self._at, self._hooks
        is_inside = state.index > 0 and at.step == 0  # only the first phase begins with one
        if not (at.is_evaluated or is_inside) and hooks.evaluate is not None:
            values = hooks.evaluate(ModelView(state.wrapped, self._model))
            if hooks.on_evaluation:
                evaluation = Evaluation(state.index, at.step, at.run_bytes, values, at.run_steps)
                hooks.on_evaluation(evaluation)
        at.is_evaluated = True

    def _stop_wrong(self, state: PhaseState, wrong: str, loss: float, norm: float) -> None:
        """Save the state before this step and raise ValueError."""
        self._forget_gradients()
        advice = f"lower the learning rate of {state.phase.learning_rate:g} or lengthen the warm-up"
        if self._checkpoints is not None:
            self._save(state)
            advice += "; the state before this step is saved"
        if wrong != "diverged":
            advice += "; to train through it, set a higher spike_factor (0: no limit)"
        raise ValueError(
            f"training {wrong} in phase {state.index} ({state.phase.trained}), step "
            f"{self._at.step + 1}: loss {loss}, gradient norm {norm}; {advice}"
        )

    def _forget_gradients(self) -> None:
        for parameter in self._model.parameters():
            parameter.grad = None

    def _save(self, state: PhaseState) -> None:
        assert self._checkpoints is not None
        weights, moments = self._prepared.saved(state.index, state.optimizer)
        if self._accelerator.is_main_process:
            info = {**vars(self._at), "losses": list(self._at.losses)}
            self._checkpoints.save(self._at.run_steps, weights, moments, info)
        self._accelerator.wait_for_everyone()
