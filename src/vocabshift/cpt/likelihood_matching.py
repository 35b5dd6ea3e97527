"""Likelihood matching: the loss between what a teacher and the model give for chunks of text.

Approximate Likelihood Matching (Minixhofer, Vulić, Ponti, arXiv 2503.20083) distils from a teacher
with another tokenizer. Both texts are cut into chunks of bytes at which tokens of both end, and the
probabilities of a chunk are compared as those of a coin: it comes, or it does not. Owns the
divergences and the loss of a batch of rows with their chunks; `chunks` finds them.
`docs/algorithms/likelihood-matching.md` has the formulas and where we differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from vocabshift.cpt.objectives import causal_inputs
from vocabshift.models.cross_entropy import IGNORED
from vocabshift.models.token_loss import token_nats

if TYPE_CHECKING:
    from typing import Any

    import torch

    from vocabshift.cpt.config import LoopConfig
    from vocabshift.cpt.objectives import SpecialIds
    from vocabshift.cpt.packing import RowChunks

_EPSILON = 1e-6  # subtracted from log p / temperature, so that no complement is 0; as published


class MatchingLoss(NamedTuple):
    """Sums over a batch, scalar tensors."""

    loss: torch.Tensor
    """What is trained: `matching` + next_token_weight * `next_token`; alone with a gradient."""
    n_targets: torch.Tensor
    """Tokens that are predicted."""
    matching: torch.Tensor
    """Divergences of all chunks, times the temperature."""
    next_token: torch.Tensor
    """Nats of all targets."""
    n_chunks: torch.Tensor


def matching_loss(
    model: Any,
    rows: torch.Tensor,
    chunks: RowChunks,
    config: LoopConfig,
    special: SpecialIds,
    *,
    boundary: torch.Tensor | None = None,
) -> MatchingLoss:
    """The loss of packed rows against a teacher's likelihoods of their chunks.

    `rows`: (n, length + 1) int64 on the model's device, as for `batch_loss`, and `chunks` of them.
    Of `config` it takes `temperature`, `divergence`, `debiasing`, `next_token_weight` and
    `document_attention`. `boundary`: (vocab,) bool, the tokens that begin at a boundary, as
    `boundary_mask` makes it; needed where `config.debiasing` is on, else ValueError. `model` as for
    `token_nats`: its logits are never whole.
    """
    if config.debiasing and boundary is None:
        raise ValueError("debiasing needs to know which tokens begin at a boundary")
    targets, inputs = causal_inputs(model, rows, config, special)
    subset = boundary if config.debiasing else None
    nats, of_boundary = token_nats(model, targets=targets, subset=subset, **inputs)
    matching, n_chunks = _matching(nats, None if subset is None else of_boundary, chunks, config)
    next_token = nats.sum()
    return MatchingLoss(
        matching + config.next_token_weight * next_token,
        (targets != IGNORED).sum(),
        matching.detach(),
        next_token.detach(),
        n_chunks,
    )


def boundary_mask(model: Any, special: SpecialIds) -> torch.Tensor | None:
    """`special.boundary_ids` as a mask of the head's rows, (vocab,) bool on the model's device."""
    import torch

    if special.boundary_ids is None:
        return None
    weight = model.get_output_embeddings().weight
    members = torch.zeros(weight.shape[0], dtype=torch.bool)
    members[list(special.boundary_ids)] = True
    return members.to(weight.device)


def _matching(
    nats: torch.Tensor,
    of_boundary: torch.Tensor | None,
    chunks: RowChunks,
    config: LoopConfig,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of the divergences of all chunks, times the temperature, and their number.

    `nats`, `of_boundary`: (n * length,), of each target and of a boundary in its place.
    """
    import torch

    n_rows, length = chunks.numbers.shape
    cells = n_rows * length
    first = torch.arange(n_rows, device=nats.device)[:, None] * length
    # Targets outside of chunks are summed in a cell of their own, which nothing reads.
    places = torch.where(chunks.numbers < 0, cells, chunks.numbers + first).flatten()
    sums = nats.new_zeros(cells + 1).index_add(0, places, nats)
    student = -sums[places]
    if of_boundary is not None:
        # After target i the model has read token i + 1 of the row, its input i + 1.
        student = student - of_boundary.roll(-1)
    teacher = chunks.teacher.flatten().to(nats.dtype)
    is_last = ~teacher.isnan()
    # Before the divergence: where() alone would let the NaN of what it leaves out into gradients.
    student, teacher = (torch.where(is_last, each, -1.0) for each in (student, teacher))
    each = divergence(teacher, student, config.temperature, config.divergence)
    total = config.temperature * torch.where(is_last, each, 0.0).sum()
    return total, is_last.sum()


# Divergences of two coins.


def log1mexp(x: torch.Tensor) -> torch.Tensor:
    """log(1 - exp(x)) for x < 0, with all digits (Mächler 2012): one form near 0, one far below."""
    import torch

    is_near = x > -math.log(2)
    near, far = torch.where(is_near, x, -1.0), torch.where(is_near, -1.0, x)
    return torch.where(is_near, (-torch.expm1(near)).log(), torch.log1p(-far.exp()))


def _kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Σ p log(p / q) over both sides of the coins; `p` and `q` are logarithms."""
    other_p, other_q = log1mexp(p), log1mexp(q)
    return p.exp() * (p - q) - p.expm1() * (other_p - other_q)


_DIVERGENCES: Mapping[str, Callable[[Any, Any], Any]] = {
    "kl": _kl,
    "reverse-kl": lambda p, q: _kl(q, p),
    "total-variation": lambda p, q: (p.exp() - q.exp()).abs(),
}


def divergence(
    teacher: torch.Tensor, student: torch.Tensor, temperature: float, name: str = "kl"
) -> torch.Tensor:
    """f(p_T^(1/τ), p_S^(1/τ)) + f(1 - p_T^(1/τ), 1 - p_S^(1/τ)) of log-probabilities, by element.

    Logarithms above 0, which are rounding, count as 0.
    """
    p, q = (each.clamp(max=0) / temperature - _EPSILON for each in (teacher, student))
    result: torch.Tensor = _DIVERGENCES[name](p, q)
    return result
