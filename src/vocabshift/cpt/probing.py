"""Running a model to learn something of it, without leaving a trace.

Owns the state around such a run: no gradient, no dropout, no compilation, the random state and the
modes of all parts as they were. What is learned is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@contextmanager
def probing(model: Any) -> Iterator[None]:
    """Within the block the model may be called on a few tokens."""
    import torch

    device = model.get_input_embeddings().weight.device
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
            torch.compiler.set_stance("force_eager"),  # or layers would be compiled for few tokens
        ):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def logits_of(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Logits of one row of ids, (length, vocab) float32; within `probing`."""
    import torch

    device = model.get_input_embeddings().weight.device
    inputs = torch.tensor([ids], device=device)
    logits: torch.Tensor = model(input_ids=inputs, use_cache=False).logits[0]
    return logits.float()


def looks_ahead(model: Any) -> bool:
    """Whether a token's logits depend on the tokens behind it, as in a masked language model."""
    with probing(model):
        change = (logits_of(model, [1, 2, 3]) - logits_of(model, [1, 2, 4])).abs().amax(dim=-1)
    return bool(change[:2].max() > 1e-4 * change[2])
