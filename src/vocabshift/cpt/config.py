"""Configuration of a training run: its phases, what each of them trains, and shared settings.

Owns the values, their defaults and their checks. `LoopConfig.mathematics` lists the values that the
weights depend on; a resumed run must have the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch


# Phases: which parameters of a model are trained; all others are frozen.
#
# The phase "embeddings" follows ReTok and IST section 4.6: after a tokenizer swap only the rows are
# new. "new-rows" trains only the rows of added tokens.

NEW_ROWS = "new-rows"


def _embeddings(model: Any) -> list[torch.nn.Parameter]:
    """Input embeddings and, with its bias if it has one, the head."""
    modules = [model.get_input_embeddings(), model.get_output_embeddings()]
    if modules[1] is None:
        raise ValueError(
            f"{type(model).__name__} has no output head; load it with AutoModelForCausalLM"
        )
    return [parameter for module in modules for parameter in module.parameters()]


def _all(model: Any) -> list[torch.nn.Parameter]:
    return list(model.parameters())


PHASES: Mapping[str, Callable[[Any], list[torch.nn.Parameter]]] = {
    "embeddings": _embeddings,
    NEW_ROWS: _embeddings,  # `NewRows` then masks the gradient of the old rows
    "all": _all,
}
"""Name of a phase -> the parameters that it trains."""


def check_phase(name: str) -> None:
    """Raise ValueError if `name` is not a phase."""
    if name not in PHASES:
        raise ValueError(f"unknown phase {name!r}; the phases are {', '.join(PHASES)}")


def phase_parameters(model: Any, phase: str) -> list[torch.nn.Parameter]:
    """The parameters that a phase trains; a head tied to the input embeddings appears once.

    ValueError for an unknown phase, and for one that trains nothing in this model.
    """
    check_phase(phase)
    chosen = list({id(parameter): parameter for parameter in PHASES[phase](model)}.values())
    if not chosen:
        raise ValueError(f"the phase {phase!r} trains nothing of {type(model).__name__}")
    return chosen


@contextmanager
def trained_parameters(model: Any, phase: str) -> Iterator[list[torch.nn.Parameter]]:
    """Freeze all but the parameters of `phase` within the block, and yield these.

    Afterwards `requires_grad` of every parameter is as before.
    """
    chosen = phase_parameters(model, phase)
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        for parameter, _ in before:
            parameter.requires_grad_(False)
        for parameter in chosen:
            parameter.requires_grad_(True)
        yield chosen
    finally:
        for parameter, required in before:
            parameter.requires_grad_(required)
            parameter.grad = None


class NewRows:
    """Zeroes the gradient of all rows except those of added tokens.

    AdamW without decay does not change a row that never had a gradient, bit for bit.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], new_ids: Sequence[int]) -> None:
        """`new_ids`: at least one, each a row of every parameter; else ValueError."""
        import torch

        if not new_ids:
            raise ValueError(
                f"the phase {NEW_ROWS!r} would train nothing: no token is new; name the ids with "
                "new_ids, or keep the token map of `extend` or `transfer` beside the model"
            )
        self._parameters = list(parameters)
        self._masks: dict[tuple[int, int], torch.Tensor] = {}
        for parameter in self._parameters:
            n_rows = parameter.shape[0]
            if not 0 <= min(new_ids) <= max(new_ids) < n_rows:
                raise ValueError(
                    f"new_ids reach from {min(new_ids)} to {max(new_ids)}, and the model has "
                    f"{n_rows} rows"
                )
            key = (n_rows, parameter.ndim)
            if key not in self._masks:
                mask = torch.zeros(n_rows, *[1] * (parameter.ndim - 1), dtype=torch.bool)
                mask[list(new_ids)] = True
                self._masks[key] = _like(mask, parameter)

    def keep_only(self) -> None:
        """Set the gradient of every other row to 0."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                mask = self._masks[parameter.shape[0], parameter.ndim]
                parameter.grad.mul_(mask)


def _like(mask: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """The mask on the parameter's device, sharded like the parameter (FSDP2)."""
    if not hasattr(parameter, "device_mesh"):
        return mask.to(parameter.device)
    from torch.distributed.tensor import distribute_tensor

    divided: Any = parameter
    on_device = mask.to(parameter.device)
    return distribute_tensor(on_device, divided.device_mesh, divided.placements)


def decay_groups(
    model: Any, parameters: list[torch.nn.Parameter], weight_decay: float
) -> list[dict[str, Any]]:
    """Optimizer groups: `weight_decay` for matrices, none for embeddings, head, norms and biases.

    Embedding rows are not decayed: a row whose token never occurs has no gradient to counter the
    decay, so it would shrink towards zero without any cause in the data. The same holds for
    position embeddings (GPT-2, OPT, BERT) beyond the sequence length.
    """
    import torch

    tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    rows = {id(p) for p in _embeddings(model)} | {id(each.weight) for each in tables}
    decayed = [p for p in parameters if p.ndim >= 2 and id(p) not in rows]
    kept = [p for p in parameters if p.ndim < 2 or id(p) in rows]
    groups = [(decayed, weight_decay), (kept, 0.0)]
    return [{"params": group, "weight_decay": decay} for group, decay in groups if group]


# The configuration.

Objective = Literal["causal", "masked", "likelihood-matching"]
OBJECTIVES: tuple[Objective, ...] = ("causal", "masked", "likelihood-matching")
MATCHING: Objective = "likelihood-matching"

Divergence = Literal["kl", "reverse-kl", "total-variation"]
DIVERGENCES: tuple[Divergence, ...] = ("kl", "reverse-kl", "total-variation")

_OF_MATCHING = (
    *("temperature", "divergence", "debiasing", "boundary_threshold"),
    "next_token_weight",
)

Schedule = Literal["cosine", "wsd"]
SCHEDULES: tuple[Schedule, ...] = ("cosine", "wsd")

PRECISIONS = ("no", "bf16")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of training: the trained parameters, the amount of text, the learning rate."""

    trained: str = "all"  # a name of PHASES
    n_bytes: int  # budget in bytes of raw text; more than the corpus means several epochs
    learning_rate: float = 1e-3  # peak, after the warm-up

    def __post_init__(self) -> None:
        check_phase(self.trained)
        if self.n_bytes < 1:
            raise ValueError(f"n_bytes is {self.n_bytes}; at least 1 byte of text is needed")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be above 0")


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Settings shared by all phases."""

    sequence_length: int = 256  # tokens
    batch_size: int = 16  # sequences per step, over all processes
    step_tokens: int | None = None  # tokens per step, rounded down; replaces batch_size
    micro_batch_size: int | None = None  # sequences per forward pass of a process; None: its share
    objective: Objective = "causal"  # or "masked", or "likelihood-matching"
    mask_share: float = 0.15  # of the tokens, where the objective is "masked"
    temperature: float = 100.0  # these five: see likelihood_matching
    divergence: Divergence = "kl"  # or "reverse-kl", "total-variation"
    debiasing: bool = True  # compare chunks by what may follow them, too
    boundary_threshold: float = 0.1  # with debiasing: the least probability of a chunk's end
    next_token_weight: float = 1.0  # of the next-token loss beside the matching; 0: without it
    document_attention: bool = False  # whether a token attends only to its own document
    schedule: Schedule = "cosine"  # of the learning rate, after the warm-up; or "wsd"
    warmup: float = 0.05  # share of a phase's bytes over which the rate climbs from 0
    decay: float = 0.1  # "wsd": share of a phase's bytes over which the rate falls, at the end
    final_rate: float = 0.1  # share of the learning rate at which either schedule ends
    weight_decay: float = 0.1  # on matrices only, see decay_groups
    betas: tuple[float, float] = (0.9, 0.95)  # of AdamW
    max_gradient_norm: float = 1.0  # a longer gradient is scaled down to it
    spike_factor: float = 2.0  # see optimize.SpikeWatch; 0: only non-finite values stop a run
    mixed_precision: str | None = None  # "no" or "bf16"; None: as accelerate was launched
    compile: bool = False  # torch.compile of the decoder's layers
    activation_checkpointing: bool = False  # less memory, a third more work
    seed: int = 0  # of the order of documents, and of masks and dropout

    def __post_init__(self) -> None:
        for name in ("batch_size", "step_tokens", "micro_batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; at least 1 is needed")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; 0 or more is needed")
        if self.sequence_length < 2:
            raise ValueError(
                f"sequence_length is {self.sequence_length}; at least 2 tokens are needed"
            )
        if self.step_tokens is not None and self.step_tokens < self.sequence_length:
            raise ValueError(
                f"step_tokens is {self.step_tokens}, less than one sequence of "
                f"{self.sequence_length} tokens (sequence_length)"
            )
        for name in ("warmup", "decay", "final_rate", "mask_share", "boundary_threshold"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; a share of 0 to 1 is needed")
        if self.schedule == "wsd" and self.warmup + self.decay > 1:
            raise ValueError(
                f"warmup {self.warmup} and decay {self.decay} are more than the whole phase"
            )
        _one_of("objective", self.objective, OBJECTIVES)
        if self.document_attention and self.objective == "masked":
            raise ValueError("document_attention is for the causal objective; leave it off")
        _one_of("divergence", self.divergence, DIVERGENCES)
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("mixed_precision", self.mixed_precision, (None, *PRECISIONS))
        self._check_numbers()

    def _check_numbers(self) -> None:
        is_right: dict[str, Callable[[float], bool]] = {
            "weight_decay": lambda value: value >= 0,
            "next_token_weight": lambda value: value >= 0,
            "max_gradient_norm": lambda value: value > 0,
            "temperature": lambda value: value > 0,
            "spike_factor": lambda value: value == 0 or value > 1,
        }
        for name, test in is_right.items():
            value = getattr(self, name)
            if not (math.isfinite(value) and test(value)):
                is_share = name in ("weight_decay", "next_token_weight")
                is_factor = name == "spike_factor"
                needed = "0, or more than 1" if is_factor else "more than 0"
                raise ValueError(
                    f"{name} is {value}; {'0 or more' if is_share else needed} is needed"
                )
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {self.betas}; two numbers of 0 to below 1 are needed")

    @property
    def step_sequences(self) -> int:
        """Sequences per step, over all processes."""
        if self.step_tokens is None:
            return self.batch_size
        return self.step_tokens // self.sequence_length

    def mathematics(self) -> dict[str, Any]:
        """The values that the weights depend on, as JSON; the rest may change between runs."""
        free = {
            *("micro_batch_size", "compile", "activation_checkpointing", "spike_factor"),
            *("batch_size", "step_tokens"),
            *(() if self.objective == MATCHING else _OF_MATCHING),
        }
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values = {name: value for name, value in values.items() if name not in free}
        return values | {"betas": list(self.betas), "step_sequences": self.step_sequences}


def _one_of(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; known are {', '.join(map(repr, known))}")
