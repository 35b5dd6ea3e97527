"""Nats of single tokens under a linear head, in chunks, without materialising all logits.

Unlike the sum in `cross_entropy`, the nats of each token are returned, and each takes a gradient of
its own: for losses that are no sum over tokens. That gradient is not known before the loss is, so
the backward pass computes the logits of a chunk again (as Cut Cross-Entropy does, arXiv
2411.09009): four matrix products instead of three, and no memory for logits beyond a chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vocabshift.models.cross_entropy import IGNORED, lowered, rows_of_chunk

if TYPE_CHECKING:
    import torch


def linear_token_nats(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    subset: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    scale: float = 1.0,
    softcap: float | None = None,
    chunk_rows: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Nats of each target, and of "some token of `subset`" in its place; both (n,).

    `subset` (vocab,) of bool: which tokens; without it the second tensor is 0. A target of -100
    has 0 nats. A subset whose probability is 0 in the dtype has the nats of its smallest number and
    no gradient. The other arguments, dtypes and gradients are those of `linear_cross_entropy`.
    """
    import torch

    kind = hidden.device.type
    hidden, weight, bias = lowered(hidden, weight, bias)
    if chunk_rows is None:
        chunk_rows = rows_of_chunk(hidden, weight)
    with torch.autocast(kind, enabled=False):
        function: Any = _token_nats_function()
        inputs = (hidden, weight, bias, targets, subset, scale, softcap, chunk_rows)
        result: tuple[torch.Tensor, torch.Tensor] = function.apply(*inputs)
        return result


def nats_of_logits(
    logits: torch.Tensor, targets: torch.Tensor, subset: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same from logits (n, vocab) that are there already."""
    import torch

    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    nats = torch.nn.functional.cross_entropy(wide, targets, ignore_index=IGNORED, reduction="none")
    if subset is None:
        return nats, torch.zeros_like(nats)
    share = torch.softmax(wide, dim=-1) @ subset.to(wide.dtype)
    return nats, -share.clamp(torch.finfo(wide.dtype).tiny, 1.0).log()


def linear_choices(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    scale: float = 1.0,
    softcap: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Nats of each target, and whether it is the likeliest token; both (n,), without gradients."""
    import torch

    n_rows = rows_of_chunk(hidden, weight)
    parts = []
    for start in range(0, len(hidden), n_rows):
        rows = slice(start, start + n_rows)
        logits = _logits(hidden[rows], weight, bias, scale, softcap)
        parts.append(choices_of_logits(logits, targets[rows]))
    nats, is_likeliest = zip(*parts, strict=True)
    return torch.cat(nats), torch.cat(is_likeliest)


def choices_of_logits(
    logits: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same from logits (n, vocab) that are there already."""
    import torch

    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    picked = wide.gather(-1, targets[:, None])[:, 0]
    return wide.logsumexp(-1) - picked, wide.argmax(-1) == targets


def _logits(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Final logits of a chunk, float32 at least, in a buffer of their own."""
    import torch

    logits = torch.nn.functional.linear(hidden, weight, bias)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if scale != 1:
        logits.mul_(scale)
    if softcap is not None:
        logits.div_(softcap).tanh_().mul_(softcap)
    return logits


_function: Any = None


def _token_nats_function() -> Any:
    """The autograd function, made at the first call, as this module does not import torch."""
    global _function  # noqa: PLW0603
    if _function is not None:
        return _function
    import torch

    class TokenNats(torch.autograd.Function):
        """(hidden, weight, bias, targets, subset, scale, softcap, chunk_rows) -> nats of both."""

        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
            """Nats of targets and subset; keeps one normalizer a row for the backward pass."""
            hidden, weight, bias, targets, subset, scale, softcap, chunk_rows = inputs
            wide = torch.promote_types(hidden.dtype, torch.float32)
            members = None if subset is None else subset.to(wide)
            normalizer = torch.empty(len(hidden), dtype=wide, device=hidden.device)
            nats, share = torch.zeros_like(normalizer), torch.ones_like(normalizer)
            for start in range(0, len(hidden), chunk_rows):
                rows = slice(start, start + chunk_rows)
                logits = _logits(hidden[rows], weight, bias, scale, softcap)
                highest = logits.amax(dim=-1, keepdim=True)
                logits.sub_(highest)
                counted = targets[rows] != IGNORED
                picked = logits.gather(-1, targets[rows].clamp(min=0)[:, None])[:, 0]
                logits.exp_()
                total = logits.sum(dim=-1)
                nats[rows] = (total.log() - picked).masked_fill(~counted, 0)
                normalizer[rows] = highest[:, 0] + total.log()
                if members is not None:
                    share[rows] = logits @ members / total
                del logits  # before the next chunk allocates as much
            share.clamp_(torch.finfo(wide).tiny, 1.0)
            ctx.save_for_backward(hidden, weight, bias, targets, members, normalizer, share)
            ctx.options = (scale, softcap, chunk_rows)
            return nats, -share.log()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, of_nats: torch.Tensor, of_subset: torch.Tensor) -> Any:
            """Gradients of hidden states, weight and bias from those of both kinds of nats."""
            hidden, weight, bias, targets, members, normalizer, share = ctx.saved_tensors
            scale, softcap, chunk_rows = ctx.options
            asked = ctx.needs_input_grad[:3]
            wide = normalizer.dtype
            of_nats = of_nats.masked_fill(targets == IGNORED, 0)
            to_hidden = torch.empty_like(hidden) if asked[0] else None
            to_weight = torch.zeros_like(weight, dtype=wide) if asked[1] else None
            to_bias = torch.zeros_like(bias, dtype=wide) if asked[2] else None
            with torch.autocast(hidden.device.type, enabled=False):
                for start in range(0, len(hidden), chunk_rows):
                    rows = slice(start, start + chunk_rows)
                    logits = _logits(hidden[rows], weight, bias, scale, softcap)
                    slope = None if softcap is None else 1 - (logits / softcap).square()
                    # d nats = p - [target], d subset nats = p - p [member] / share
                    logits.sub_(normalizer[rows, None]).exp_()
                    factor = of_nats[rows, None]
                    if members is not None:
                        of_share = of_subset[rows, None]
                        factor = factor + of_share - of_share / share[rows, None] * members
                    logits.mul_(factor)
                    index = targets[rows].clamp(min=0)[:, None]
                    logits.scatter_add_(-1, index, -of_nats[rows, None])
                    if slope is not None:
                        logits.mul_(slope)
                    if scale != 1:
                        logits.mul_(scale)
                    slopes = logits.to(weight.dtype)
                    if to_hidden is not None:
                        torch.mm(slopes, weight, out=to_hidden[rows])
                    if to_weight is not None:
                        to_weight += slopes.T @ hidden[rows]
                    if to_bias is not None:
                        to_bias += logits.sum(dim=0)
                    del logits, slopes, factor, slope
            return (
                to_hidden,
                None if to_weight is None else to_weight.to(weight.dtype),
                None if to_bias is None else to_bias.to(bias.dtype),
                *(None,) * 5,
            )

    _function = TokenNats
    return _function
