"""The state of a run as named tensors: trained weights and AdamW's moments.

Tensors sharded over processes (FSDP2) are gathered for saving and sharded again on loading, so a
checkpoint does not depend on the number of processes. All processes must call these functions
together. On one process, and with DDP, every tensor is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]


def whole(value: torch.Tensor) -> torch.Tensor:
    """The whole tensor, on its device; not a copy where it was whole already."""
    divided: Any = value
    full: torch.Tensor = divided.full_tensor() if hasattr(value, "full_tensor") else value
    return full


def part_like(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A tensor on the device of `like`, divided in the same way; its dtype stays."""
    placed = value.to(like.device)
    if not hasattr(like, "device_mesh"):
        return placed
    from torch.distributed.tensor import distribute_tensor

    divided: Any = like
    return distribute_tensor(placed, divided.device_mesh, divided.placements)


NEW_IDS = "new_ids"
"""Beside weights of which only these rows are saved: int64."""


def plain_name(name: str) -> str:
    """The name of a parameter in the model without adapters."""
    return name.replace(".base_layer.", ".")


def names_of(model: Any, parameters: Iterable[torch.nn.Parameter]) -> dict[str, Any]:
    """The parameters by their plain names, in the model's order; a tied one under its first."""
    wanted = {id(parameter) for parameter in parameters}
    named = model.named_parameters()
    return {plain_name(name): value for name, value in named if id(value) in wanted}


def whole_weights(parameters: Mapping[str, torch.nn.Parameter], *, on_main: bool) -> Tensors:
    """Full copies on the CPU; empty where `on_main` is false, since only the main process saves."""
    full = {name: whole(value.detach()) for name, value in parameters.items()}
    return {name: _copy(value) for name, value in full.items()} if on_main else {}


def whole_moments(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, torch.nn.Parameter],
    *,
    on_main: bool,
) -> Tensors:
    """AdamW's state of each parameter, named `parameter:key`."""
    found: Tensors = {}
    for name, parameter in parameters.items():
        for what, value in sorted(optimizer.state.get(parameter, {}).items()):
            full = whole(value)
            if on_main:
                found[f"{name}:{what}"] = _copy(full)
    return found


def keep_rows(saved: Tensors, names: Iterable[str], new_ids: Sequence[int]) -> None:
    """Reduce these weights, or their moments, to the rows of new tokens, the only ones trained."""
    ids = list(new_ids)
    wanted = set(names)
    for name, value in saved.items():
        if name.rsplit(":", 1)[0] in wanted and value.ndim:
            saved[name] = value[ids]


def restore_weights(parameters: Mapping[str, torch.nn.Parameter], saved: Tensors) -> None:
    """Copy saved weights, or rows of them, into the parameters with these names."""
    import torch

    with torch.no_grad():
        for name, parameter in parameters.items():
            value = saved[name]
            if value.shape != parameter.shape:
                value = whole(parameter).cpu().index_copy(0, saved[NEW_IDS], value)
            parameter.copy_(_part(value, parameter))


def restore_moments(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, torch.nn.Parameter],
    saved: Tensors,
    new_ids: torch.Tensor | None,
) -> None:
    """Restore AdamW's state; `new_ids`: where rows were saved. The moments of others are 0."""
    for full_name, found in saved.items():
        name, what = full_name.rsplit(":", 1)
        parameter, value = parameters[name], found
        if new_ids is not None and value.ndim and value.shape != parameter.shape:
            value = value.new_zeros(tuple(parameter.shape)).index_copy(0, new_ids, value)
        # `step` is a scalar; the other tensors are placed like the parameter.
        is_like = value.shape == parameter.shape
        part = _part(value, parameter) if is_like else value.clone()
        if not is_like and optimizer.defaults.get("fused"):
            part = part.to(parameter.device)
        optimizer.state[parameter][what] = part


def _copy(value: torch.Tensor) -> torch.Tensor:
    return value.to("cpu", copy=True).contiguous()


def _part(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A copy as `like` is: its device, its dtype, and its part of a divided tensor."""
    return part_like(value.to(like.device, dtype=like.dtype, copy=True), like)
