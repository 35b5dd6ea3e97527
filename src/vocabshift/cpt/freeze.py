"""Phases: which parameters of a model are trained, and that nothing else moves.

Owns the names of the phases and the freezing. Knows nothing of data, schedules or steps. The
phase "embeddings" is that of ReTok and of IST section 4.6: after a swap of the tokenizer the rows
are all that is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


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
    "all": _all,
}
"""Name of a phase -> the parameters that it trains."""


def check_phase(name: str) -> None:
    """ValueError where `name` is no phase."""
    if name not in PHASES:
        raise ValueError(f"unknown phase {name!r}; the phases are {', '.join(PHASES)}")


@contextmanager
def trained_parameters(model: Any, phase: str) -> Iterator[list[torch.nn.Parameter]]:
    """Freeze all but the parameters of `phase` for the length of the block, and yield these.

    A tied head is the input embeddings' own tensor and is yielded once. Afterwards every
    parameter asks for gradients as it did before.
    """
    check_phase(phase)
    chosen = list({id(parameter): parameter for parameter in PHASES[phase](model)}.values())
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


def decay_groups(
    model: Any, parameters: list[torch.nn.Parameter], weight_decay: float
) -> list[dict[str, Any]]:
    """Optimizer groups: `weight_decay` for matrices, none for embeddings, head, norms and biases.

    Embedding rows are not decayed because a row whose token never occurs has no gradient to hold
    against it: it would shrink towards zero for no reason in the data.
    """
    rows = {id(parameter) for parameter in _embeddings(model)}
    decayed = [p for p in parameters if p.ndim >= 2 and id(p) not in rows]
    kept = [p for p in parameters if p.ndim < 2 or id(p) in rows]
    groups = [(decayed, weight_decay), (kept, 0.0)]
    return [{"params": group, "weight_decay": decay} for group, decay in groups if group]
