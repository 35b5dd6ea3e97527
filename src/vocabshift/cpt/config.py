"""Configuration of a training run: its phases and shared settings.

Owns the values, their defaults and their checks; `phases` says which parameters a phase trains.
`mathematics` lists the values that the weights depend on; a resumed run must have the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

NEW_ROWS = "new-rows"
LORA = "lora"
TRAINED = ("embeddings", NEW_ROWS, LORA, "ends", "all")
"""What a phase may train."""


def check_phase(name: str) -> None:
    """Raise ValueError if `name` is not a phase."""
    if name not in TRAINED:
        raise ValueError(f"unknown phase {name!r}; the phases are {', '.join(TRAINED)}")


Objective = Literal["causal", "masked", "likelihood-matching"]
OBJECTIVES: tuple[Objective, ...] = ("causal", "masked", "likelihood-matching")
MATCHING: Objective = "likelihood-matching"

Divergence = Literal["kl", "reverse-kl", "total-variation"]
DIVERGENCES: tuple[Divergence, ...] = ("kl", "reverse-kl", "total-variation")

_OF_MATCHING = (
    *("temperature", "divergence", "debiasing", "boundary_threshold"),
    "next_token_weight",
)

Schedule = Literal["cosine", "wsd", "polynomial"]
SCHEDULES: tuple[Schedule, ...] = ("cosine", "wsd", "polynomial")

_LATER = ("max_masks", "duplication", "power")
"""Settings that runs of earlier versions do not name; at their defaults these change nothing."""

PRECISIONS = ("no", "bf16")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of training: the trained parameters, the amount of text, the learning rate."""

    trained: str = "all"  # a name of TRAINED
    n_bytes: int  # budget in bytes of raw text; more than the corpus means several epochs
    learning_rate: float = 1e-3  # peak, after the warm-up
    end_layers: int = 2  # of "ends": layers trained at either end
    lora_rank: int = 16  # of "lora": rank of the adapters
    lora_alpha: int = 32  # of "lora": their output is scaled by lora_alpha / lora_rank
    lora_dropout: float = 0.0  # of "lora": share of what adapters read that is set to 0
    lora_targets: tuple[str, ...] = ()  # of "lora": names of layers; none: all linear ones

    def __post_init__(self) -> None:
        check_phase(self.trained)
        for name in ("end_layers", "lora_rank", "lora_alpha"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if not 0 <= self.lora_dropout < 1:
            raise ValueError(f"lora_dropout is {self.lora_dropout}; 0 to below 1 is needed")
        if self.n_bytes < 1:
            raise ValueError(f"n_bytes is {self.n_bytes}; at least 1 byte of text is needed")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be above 0")

    def mathematics(self) -> dict[str, Any]:
        """The values that the weights depend on, as JSON: without those of other phases."""
        owners = {"end_": "ends", "lora_": LORA}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if all(not name.startswith(key) or self.trained == own for key, own in owners.items())
        }


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Settings shared by all phases."""

    sequence_length: int = 256  # tokens
    batch_size: int = 16  # sequences per step, over all processes
    step_tokens: int | None = None  # tokens per step, rounded down; replaces batch_size
    micro_batch_size: int | None = None  # sequences per forward pass of a process; None: its share
    objective: Objective = "causal"  # or "masked", or "likelihood-matching"
    mask_share: float = 0.15  # of the tokens, where the objective is "masked"
    max_masks: int | None = None  # "masked": most tokens chosen in a sequence; BERT: 20
    duplication: int = 1  # "masked": copies of each sequence, each with masks of its own
    temperature: float = 100.0  # these five: see likelihood_matching
    divergence: Divergence = "kl"  # or "reverse-kl", "total-variation"
    debiasing: bool = True  # compare chunks by what may follow them, too
    boundary_threshold: float = 0.1  # with debiasing: the least probability of a chunk's end
    next_token_weight: float = 1.0  # of the next-token loss beside the matching; 0: without it
    document_attention: bool = False  # whether a token attends only to its own document
    schedule: Schedule = "cosine"  # of the learning rate, after the warm-up; one of SCHEDULES
    warmup: float = 0.05  # share of a phase's bytes over which the rate climbs from 0
    decay: float = 0.1  # "wsd": share of a phase's bytes over which the rate falls, at the end
    power: float = 1.0  # "polynomial": of what is left of the phase; 1: a straight line
    final_rate: float = 0.1  # share of the learning rate at which every schedule ends
    weight_decay: float = 0.1  # on matrices only, see decay_groups
    betas: tuple[float, float] = (0.9, 0.95)  # of AdamW
    max_gradient_norm: float = 1.0  # a longer gradient is scaled down to it
    spike_factor: float = 2.0  # see optimize.SpikeWatch; 0: only non-finite values stop a run
    mixed_precision: str | None = None  # "no" or "bf16"; None: as accelerate was launched
    compile: bool = False  # torch.compile of the decoder's layers
    activation_checkpointing: bool = False  # less memory, a third more work
    seed: int = 0  # of the order of documents, and of masks and dropout

    def __post_init__(self) -> None:
        for name in ("batch_size", "step_tokens", "micro_batch_size", "max_masks", "duplication"):
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
        for name in ("max_masks", "duplication"):
            if self.objective != "masked" and getattr(self, name) not in (None, 1):
                raise ValueError(f"{name} is for the masked objective; leave it out")
        _one_of("divergence", self.divergence, DIVERGENCES)
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("mixed_precision", self.mixed_precision, (None, *PRECISIONS))
        self._check_numbers()

    def _check_numbers(self) -> None:
        is_right: dict[str, Callable[[float], bool]] = {
            "weight_decay": lambda value: value >= 0,
            "next_token_weight": lambda value: value >= 0,
            "max_gradient_norm": lambda value: value > 0,
            "power": lambda value: value > 0,
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
        default = {each.name: each.default for each in fields(self) if each.name in _LATER}
        free |= {name for name, value in default.items() if values[name] == value}
        values = {name: value for name, value in values.items() if name not in free}
        return values | {"betas": list(self.betas), "step_sequences": self.step_sequences}


def _one_of(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; known are {', '.join(map(repr, known))}")
