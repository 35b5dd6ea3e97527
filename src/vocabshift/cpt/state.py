"""The state of a run as named tensors: weights that were trained, and AdamW's moments.

Owns the names, and how tensors that are divided over processes (FSDP2) become whole ones and
parts again. So a checkpoint does not depend on the number of processes. All processes must call
these functions together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]


def names_of(model: Any, parameters: Iterable[torch.nn.Parameter]) -> dict[str, Any]:
    """The parameters by their names in `model`, in its order; a tied one under its first name."""
    wanted = {id(parameter) for parameter in parameters}
    return {name: value for name, value in model.named_parameters() if id(value) in wanted}


def weights(parameters: Mapping[str, torch.nn.Parameter], *, on_main: bool) -> Tensors:
    """Whole copies on the CPU; empty where `on_main` is off, for this is not who keeps them."""
    whole = {name: _whole(value.detach(), on_main) for name, value in parameters.items()}
    return {name: value for name, value in whole.items() if value is not None}


def moments(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, torch.nn.Parameter],
    *,
    on_main: bool,
) -> Tensors:
    """What AdamW remembers of each parameter, named `parameter:what`."""
    found: Tensors = {}
    for name, parameter in parameters.items():
        for what, value in sorted(optimizer.state.get(parameter, {}).items()):
            whole = _whole(value, on_main)
            if whole is not None:
                found[f"{name}:{what}"] = whole
    return found


def restore_weights(parameters: Mapping[str, torch.nn.Parameter], saved: Tensors) -> None:
    """Write saved weights into the parameters of these names."""
    import torch

    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(_part(saved[name], parameter))


def restore_moments(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, torch.nn.Parameter],
    saved: Tensors,
) -> None:
    """Give AdamW back what it remembered."""
    for full_name, value in saved.items():
        name, what = full_name.rsplit(":", 1)
        parameter = parameters[name]
        # `step` is a number of its own; the others lie as the parameter does.
        is_like = value.shape == parameter.shape
        part = _part(value, parameter) if is_like else value.clone()
        if not is_like and optimizer.defaults.get("fused"):
            part = part.to(parameter.device)
        optimizer.state[parameter][what] = part


def _whole(value: torch.Tensor, on_main: bool) -> torch.Tensor | None:
    whole = value.full_tensor() if hasattr(value, "full_tensor") else value
    return whole.to("cpu", copy=True).contiguous() if on_main else None


def _part(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A copy on the device of `like`, divided as it is."""
    placed = value.to(like.device, dtype=like.dtype, copy=True)
    if not hasattr(like, "device_mesh"):
        return placed
    from torch.distributed.tensor import distribute_tensor

    divided: Any = like
    return distribute_tensor(placed, divided.device_mesh, divided.placements)
