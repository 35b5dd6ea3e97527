"""Cross entropy of a linear head by Liger Kernel, where a GPU is at hand and it is installed.

Owns whether it can be used and how it is called. Liger Kernel (arXiv 2410.10989) computes the same
sums as `cross_entropy` with fused Triton kernels.
"""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def why_not_liger(hidden: torch.Tensor) -> str | None:
    """Why Liger Kernel cannot take these hidden states; None where it can."""
    import torch

    if hidden.device.type != "cuda":
        return f"the tensors are on {hidden.device.type}, and it needs a GPU"
    if find_spec("liger_kernel") is None:
        return "it is not installed (pip install liger-kernel)"
    if hidden.dtype == torch.float64:
        return "it has no float64"
    if torch.is_grad_enabled() and not hidden.requires_grad:
        return "the hidden states ask for no gradient, and it then gives none to the head either"
    return None


def liger_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    bias: torch.Tensor | None,
    softcap: float | None,
    ignored: int,
    chunk_bytes: int,
) -> torch.Tensor:
    """Sum of nats; arguments as in `linear_cross_entropy`.

    Targets that are `ignored` are skipped; there are `chunk_bytes` of logits at work. ImportError
    where the installed version is too old.
    """
    import torch
    from liger_kernel.ops import LigerFusedLinearCrossEntropyFunction as Function

    values: dict[str, Any] = {
        "_input": hidden,
        "weight": weight,
        "target": targets,
        "bias": bias,
        "ignore_index": ignored,
        "reduction": "sum",
        "softcap": softcap,
        # Sums over thousands of rows lose digits in bfloat16.
        "accum_dtype": torch.float32,
        # Its own choice is chunks of about n * width / vocab rows, which at 128k ids are so few
        # that reading the head takes longer than multiplying by it. In units of n * width logits.
        "chunk_mem_const": max(1, chunk_bytes // (hidden.element_size() * hidden.numel())),
    }
    # An autograd function takes no keywords; the order of its arguments is read off, so that a
    # version with more of them, or without the last, is called rightly.
    parameters = list(inspect.signature(Function.forward).parameters.values())[1:]
    missing = values.keys() - {parameter.name for parameter in parameters} - {"chunk_mem_const"}
    if missing:
        raise ImportError(
            f"this version of liger-kernel has no {', '.join(sorted(missing))}; "
            "install liger-kernel>=0.6"
        )
    result = Function.apply(*(values.get(p.name, p.default) for p in parameters))
    loss: torch.Tensor = result[0]
    return loss
