"""Phases: which parameters of a model are trained, and that nothing else moves.

Owns the names of the phases and the freezing. Knows nothing of data, schedules or steps. The
phase "embeddings" is that of ReTok and of IST section 4.6: after a swap of the tokenizer the rows
are all that is new. "new-rows" trains of these the rows of added tokens alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

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
    NEW_ROWS: _embeddings,  # and of these the rows that `NewRows` leaves a gradient
    "all": _all,
}
"""Name of a phase -> the parameters that it trains."""


def check_phase(name: str) -> None:
    """ValueError where `name` is no phase."""
    if name not in PHASES:
        raise ValueError(f"unknown phase {name!r}; the phases are {', '.join(PHASES)}")


def phase_parameters(model: Any, phase: str) -> list[torch.nn.Parameter]:
    """What a phase trains; a tied head is the input embeddings' own tensor and stands there once.

    ValueError for an unknown phase, and for one that trains nothing of this model.
    """
    check_phase(phase)
    chosen = list({id(parameter): parameter for parameter in PHASES[phase](model)}.values())
    if not chosen:
        raise ValueError(f"the phase {phase!r} trains nothing of {type(model).__name__}")
    return chosen


@contextmanager
def trained_parameters(model: Any, phase: str) -> Iterator[list[torch.nn.Parameter]]:
    """Freeze all but the parameters of `phase` for the length of the block, and yield these.

    Afterwards every parameter asks for gradients as it did before.
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
    """Takes the gradient away from all rows but those of added tokens.

    AdamW without decay leaves a row that never had a gradient as it is, bit for bit.
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
    """The mask on the parameter's device; divided as it is, where it is divided (FSDP2)."""
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

    Embedding rows are not decayed because a row whose token never occurs has no gradient to hold
    against it: it would shrink towards zero for no reason in the data. So would those of positions
    (GPT-2, OPT, BERT) beyond the sequence length.
    """
    import torch

    tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    rows = {id(p) for p in _embeddings(model)} | {id(each.weight) for each in tables}
    decayed = [p for p in parameters if p.ndim >= 2 and id(p) not in rows]
    kept = [p for p in parameters if p.ndim < 2 or id(p) in rows]
    groups = [(decayed, weight_decay), (kept, 0.0)]
    return [{"params": group, "weight_decay": decay} for group, decay in groups if group]
