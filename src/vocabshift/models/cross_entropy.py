"""Computes the cross entropy of a linear head in chunks, without materialising all logits.

Owns the sum of nats over targets and its gradients with respect to hidden states, weight and bias.
Liger Kernel computes them if a GPU is available and it is installed. `loss` finds out what a model
does between its last hidden state and its logits.

At 8,192 tokens and 200k ids the logits take 6.6 GB in float32, and the plain loss holds three such
tensors. Here each chunk of rows is turned into logits, then into its share of the loss, then, in
the same buffer, into the gradient of the logits. That gradient is added at once to the gradients of
hidden states, weight and bias, and only these are kept for the backward pass. No logit is computed
twice: there are three matrix products, as in the plain loss. (Liger Kernel, arXiv 2410.10989,
section 3.2, uses this order; Cut Cross-Entropy, arXiv 2411.09009, recomputes instead.) The loss is
a scalar, so the backward pass only multiplies by the incoming gradient.
"""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def why_not_liger(hidden: torch.Tensor) -> str | None:
    """The reason why Liger Kernel cannot take these hidden states; None if it can."""
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

    `ignored` targets are skipped. `chunk_bytes` of logits are held at a time. ImportError if the
    installed version is too old.
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
        # By default Liger takes n * width / vocab rows per chunk. At 128k ids these are so few
        # that reading the head takes longer than multiplying by it. In units of n * width logits.
        "chunk_mem_const": max(1, chunk_bytes // (hidden.element_size() * hidden.numel())),
    }
    # An autograd function takes no keywords. The order of its arguments is read from its signature,
    # so that a version with more of them, or without the last, is called correctly.
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


IGNORED = -100
"""Targets of this value are skipped, as in torch's cross_entropy."""

LOSSES = ("auto", "liger", "chunked", "plain")
"""Ways to compute the loss: "auto" is liger on a GPU where installed, and chunked elsewhere."""

_CHUNK_BYTES = {"cuda": 1 << 30, "cpu": 1 << 27}  # of logits at a time; a GPU needs many rows


def linear_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    scale: float = 1.0,
    softcap: float | None = None,
    loss: str = "auto",
    chunk_rows: int | None = None,
    rows: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> torch.Tensor:
    """Sum of nats of `targets` under a head: a scalar, 0 where every target is -100.

    `hidden` (n, width), `weight` (vocab, width), `bias` (vocab,), `targets` (n,) int64. Logits are
    `z = scale * (hidden @ weight.T + bias)`, and `softcap * tanh(z / softcap)` where a cap is
    given (Gemma 2, arXiv 2408.00118, section 2). Products are made in the type of the tensors (of
    autocast where it is on), everything else in float32, or in float64 for float64 inputs. `loss`
    is a name in LOSSES. `chunk_rows` defaults to the rows in 1 GB of logits on a GPU, 128 MB on a
    CPU. Gradients can be taken once.

    `rows`: ids (k,) and values (k, width) of the rows that alone are trained, in chunks. `weight`
    holds these values already; they get the gradient, and none of the whole head is kept.

    Raises ValueError for an unknown `loss` or one that cannot run here, and, on a CPU, for targets
    outside the vocabulary.
    """
    import torch

    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; there are {', '.join(LOSSES)}")
    if hidden.device.type == "cpu" and targets.numel():
        highest = int(targets.max())
        lowest = int(targets.masked_fill(targets == IGNORED, 0).min())
        if highest >= len(weight) or lowest < 0:
            raise ValueError(
                f"targets go from {lowest} to {highest} and the head has {len(weight)} rows; "
                f"only 0 to {len(weight) - 1} and {IGNORED} can stand there"
            )
    kind = hidden.device.type
    hidden, weight, bias = lowered(hidden, weight, bias)
    with torch.autocast(kind, enabled=False):
        if loss == "plain" and rows is None:
            return _plain(hidden, weight, targets, bias=bias, scale=scale, softcap=softcap)
        if rows is None and _takes_liger(loss, hidden):
            return liger_cross_entropy(
                hidden * scale if scale != 1 else hidden,
                weight,
                targets,
                bias=bias * scale if bias is not None and scale != 1 else bias,
                softcap=softcap,
                ignored=IGNORED,
                chunk_bytes=_CHUNK_BYTES["cuda"],
            )
        if chunk_rows is None:
            chunk_rows = rows_of_chunk(hidden, weight)
        function: Any = _chunked_function()
        ids, values = (None, weight) if rows is None else rows
        rule = (scale, softcap, chunk_rows, torch.is_grad_enabled())
        result: torch.Tensor = function.apply(hidden, values, bias, targets, *rule, weight, ids)
        return result


def lowered(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The same in the dtype of autocast, where it is on."""
    import torch

    kind = hidden.device.type
    if not torch.is_autocast_enabled(kind):
        return hidden, weight, bias
    # Cast outside of autograd functions, which then return gradients in the parameters' dtype.
    dtype = torch.get_autocast_dtype(kind)
    return hidden.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)


def rows_of_chunk(hidden: torch.Tensor, weight: torch.Tensor) -> int:
    """Rows whose logits are held at a time, by default."""
    import torch

    wide = torch.promote_types(hidden.dtype, torch.float32).itemsize
    return max(1, _CHUNK_BYTES.get(hidden.device.type, 1 << 28) // (wide * len(weight)))


def _takes_liger(loss: str, hidden: torch.Tensor) -> bool:
    """Whether Liger Kernel computes the loss; ValueError if it was requested and cannot."""
    if loss == "chunked":
        return False

    reason = why_not_liger(hidden)
    if loss == "liger" and reason:
        raise ValueError(f"the liger loss cannot run here: {reason}; take auto or chunked")
    return reason is None


def _plain(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    bias: torch.Tensor | None,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """The reference definition; the other implementations equal it."""
    import torch

    logits = torch.nn.functional.linear(hidden, weight, bias) * scale
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    return torch.nn.functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")


def _chunk(
    logits: torch.Tensor, targets: torch.Tensor, scale: float, softcap: float | None, back: bool
) -> torch.Tensor:
    """Sum of nats of one chunk; with `back`, overwrites `logits` with their gradients."""
    if scale != 1:
        logits.mul_(scale)
    slope = None
    if softcap is not None:
        logits.div_(softcap).tanh_()
        if back:
            slope = logits.square().neg_().add_(1)
        logits.mul_(softcap)
    counted = targets != IGNORED
    index = targets.clamp(min=0)[:, None]
    highest = logits.amax(dim=-1, keepdim=True)
    logits.sub_(highest)
    picked = logits.gather(-1, index)[:, 0]
    total = logits.exp_().sum(dim=-1)
    nats = (total.log() - picked).masked_fill(~counted, 0).sum()
    if back:
        logits.mul_((counted / total)[:, None])
        logits.scatter_add_(-1, index, -counted[:, None].to(logits.dtype))
        if slope is not None:
            logits.mul_(slope)
        if scale != 1:
            logits.mul_(scale)
    return nats


_function: Any = None


def _chunked_function() -> Any:
    """The autograd function, made at the first call, as this module does not import torch."""
    global _function  # noqa: PLW0603
    if _function is not None:
        return _function
    import torch

    class ChunkedCrossEntropy(torch.autograd.Function):
        """(hidden, trained rows of the weight, bias, targets, scale, softcap, chunk_rows,
        with_gradients, weight, ids of the trained rows or None) -> nats."""

        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
            """Sum of nats; saves the gradients of all tensors that require one."""
            hidden, values, bias, targets, scale, softcap, chunk_rows = inputs[:7]
            with_gradients, weight, ids = inputs[7:]
            asked = [with_gradients and needed for needed in ctx.needs_input_grad[:3]]
            wide = torch.promote_types(hidden.dtype, torch.float32)
            to_hidden = torch.empty_like(hidden) if asked[0] else None
            to_weight = torch.zeros_like(values, dtype=wide) if asked[1] else None
            to_bias = torch.zeros_like(bias, dtype=wide) if asked[2] else None
            nats = torch.zeros((), dtype=wide, device=hidden.device)
            for start in range(0, len(hidden), chunk_rows):
                rows = slice(start, start + chunk_rows)
                logits = torch.nn.functional.linear(hidden[rows], weight, bias).to(wide)
                nats += _chunk(logits, targets[rows], scale, softcap, any(asked))
                slopes = logits.to(weight.dtype) if any(asked[:2]) else logits
                if to_hidden is not None:
                    torch.mm(slopes, weight, out=to_hidden[rows])
                own = slopes if ids is None else slopes.index_select(1, ids)
                if to_weight is not None and wide == weight.dtype:
                    to_weight.addmm_(own.T, hidden[rows])
                elif to_weight is not None:
                    to_weight += own.T @ hidden[rows]
                if to_bias is not None:
                    to_bias += logits.sum(dim=0)
                del logits, slopes, own  # before the next chunk allocates as much
            ctx.gradients = (to_hidden, to_weight, to_bias)
            ctx.dtypes = (hidden.dtype, values.dtype, None if bias is None else bias.dtype)
            return nats

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, incoming: torch.Tensor) -> Any:
            """The saved gradients times the incoming one; in place, so only once."""
            if ctx.gradients is None:
                raise RuntimeError(
                    "the gradients of this loss were taken and freed; compute the loss again"
                )
            scaled = [
                None if gradient is None else gradient.mul_(incoming).to(dtype)
                for gradient, dtype in zip(ctx.gradients, ctx.dtypes, strict=True)
            ]
            ctx.gradients = None
            return (*scaled, *[None] * 7)

    _function = ChunkedCrossEntropy
    return _function
