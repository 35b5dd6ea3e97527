"""Nats of single tokens: their values and gradients against logits in plain PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import small_models
from vocabshift.models.token_loss import token_nats
from vocabshift.models.token_nats import linear_token_nats

torch = pytest.importorskip("torch")

DIGITS = {torch.float64: 1e-12, torch.float32: 5e-6, torch.bfloat16: 3e-2}


def tensors(dtype: Any, *, n: int = 23, vocab: int = 50) -> tuple[Any, ...]:
    """Hidden states, weight, bias, targets of which every fifth is ignored, a subset, weights."""
    generator = torch.Generator().manual_seed(3)
    hidden, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in ((n, 16), (vocab, 16), (vocab,))
    )
    targets = torch.randint(0, vocab, (n,), generator=generator)
    targets[::5] = -100
    subset = torch.rand(vocab, generator=generator) < 0.2
    of_each = torch.randn(2, n, generator=generator, dtype=torch.float64)
    return hidden, weight, bias, targets, subset, of_each


def by_definition(
    hidden: Any, weight: Any, bias: Any, targets: Any, subset: Any, scale: float, cap: float | None
) -> tuple[Any, Any]:
    """-log softmax of each target, and -log of the subset's share, from whole logits."""
    logits = hidden.double() @ weight.double().T
    logits = (logits if bias is None else logits + bias.double()) * scale
    if cap is not None:
        logits = cap * torch.tanh(logits / cap)
    shares = torch.softmax(logits, dim=-1)
    picked = shares.gather(1, targets.clamp(min=0)[:, None])[:, 0]
    return torch.where(targets >= 0, -picked.log(), 0.0), -shares[:, subset].sum(dim=1).log()


def distance(one: Any, other: Any) -> float:
    """Largest difference, as a share of the largest number."""
    one, other = one.detach().double(), other.detach().double()
    return float((one - other).abs().max() / other.abs().max())


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("chunk_rows", [1, 8, None])
@pytest.mark.parametrize(("scale", "cap"), [(1.0, None), (0.25, None), (2.0, 3.0)])
def test_equals_the_definition(
    dtype: Any, chunk_rows: int | None, scale: float, cap: float | None
) -> None:
    """Both kinds of nats, and all gradients where every number has a weight of its own."""
    hidden, weight, bias, targets, subset, of_each = tensors(dtype)
    options = {"scale": scale, "softcap": cap, "chunk_rows": chunk_rows}
    found = linear_token_nats(hidden, weight, targets, subset=subset, bias=bias, **options)
    expected = by_definition(hidden, weight, bias, targets, subset, scale, cap)
    leaves = (hidden, weight, bias)
    totals = [
        sum((each.double() * w).sum() for each, w in zip(pair, of_each, strict=True))
        for pair in (found, expected)
    ]
    for one, other in zip(found, expected, strict=True):
        assert distance(one, other) < DIGITS[dtype]
    pairs = zip(*(torch.autograd.grad(total, leaves) for total in totals), strict=True)
    assert all(distance(one, other) < 2 * DIGITS[dtype] for one, other in pairs)


def test_without_a_subset() -> None:
    """Its nats are 0, and the gradients are those of the targets alone; frozen parts get none."""
    hidden, weight, _, targets, subset, of_each = tensors(torch.float64)
    nats, none = linear_token_nats(hidden, weight.detach(), targets)
    expected, _ = by_definition(hidden, weight, None, targets, subset, 1.0, None)
    assert not none.any()
    (found,) = torch.autograd.grad((nats * of_each[0]).sum() + none.sum(), hidden)
    (wanted,) = torch.autograd.grad((expected * of_each[0]).sum(), hidden)
    assert distance(found, wanted) < 1e-12


def test_a_subset_without_probability() -> None:
    """Its nats are those of the smallest number, and no gradient is NaN."""
    hidden = torch.tensor([[1.0]], requires_grad=True)
    weight = torch.tensor([[400.0], [0.0]], requires_grad=True)
    subset = torch.tensor([False, True])
    nats, of_subset = linear_token_nats(hidden, weight, torch.tensor([0]), subset=subset)
    assert 87 < float(of_subset.detach()) < 88
    gradients = torch.autograd.grad(nats.sum() + of_subset.sum(), (hidden, weight))
    assert all(bool(each.isfinite().all()) for each in gradients)


@pytest.mark.parametrize("is_plain", [True, False])
def test_under_a_model(is_plain: bool) -> None:
    """Equal to the model's logits, taken apart or not."""
    model = small_models.build("llama", small_models.old_tokenizer())
    if not is_plain:
        head = model.lm_head
        forward = type(head).forward
        head.forward = lambda hidden: forward(head, hidden)  # no longer a plain linear layer
    ids = torch.randint(0, 283, (3, 9), generator=torch.Generator().manual_seed(1))
    targets = ids.roll(-1, dims=1)
    targets[1, 4:] = -100
    subset = torch.arange(model.config.vocab_size) % 7 == 0
    found = token_nats(model, ids, targets, subset=subset)
    shares = torch.softmax(model(input_ids=ids).logits.flatten(0, 1).double(), dim=-1)
    wanted = targets.flatten()
    picked = shares.gather(1, wanted.clamp(min=0)[:, None])[:, 0]
    assert distance(found[0], torch.where(wanted >= 0, -picked.log(), 0.0)) < 1e-5
    assert distance(found[1], -shares[:, subset].sum(dim=1).log()) < 1e-5
    kept = torch.tensor([20, 3, 4, 26])
    some = token_nats(model, ids, targets, kept=kept, subset=subset)
    for part, whole in zip(some, found, strict=True):
        assert distance(part, whole[kept]) < 1e-5
