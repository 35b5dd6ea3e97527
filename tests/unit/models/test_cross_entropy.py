"""The chunked cross entropy: the plain one, number for number, without its memory."""

from __future__ import annotations

from typing import Any

import pytest

from vocabshift.models.cross_entropy import linear_cross_entropy

torch = pytest.importorskip("torch")

DIGITS = {torch.float64: 1e-13, torch.float32: 2e-6, torch.bfloat16: 2e-2}


def tensors(dtype: Any, *, n: int = 37, vocab: int = 50) -> tuple[Any, Any, Any, Any]:
    """Hidden states, weight, bias, targets of which every fifth is ignored."""
    generator = torch.Generator().manual_seed(3)
    hidden, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in ((n, 16), (vocab, 16), (vocab,))
    )
    targets = torch.randint(0, vocab, (n,), generator=generator)
    targets[::5] = -100
    return hidden, weight, bias, targets


def by_definition(
    hidden: Any, weight: Any, bias: Any, targets: Any, scale: float, softcap: float | None
) -> Any:
    """Sum over rows of -log softmax, one row after the other."""
    total = torch.zeros((), dtype=torch.float64)
    for row, target in zip(hidden.double(), targets.tolist(), strict=True):
        if target == -100:
            continue
        logits = weight.double() @ row
        if bias is not None:
            logits = logits + bias.double()
        logits = logits * scale
        if softcap is not None:
            logits = softcap * torch.tanh(logits / softcap)
        total = total - torch.log(torch.exp(logits)[target] / torch.exp(logits).sum())
    return total


def gradients(loss: Any, *leaves: Any) -> list[Any]:
    """Of a seventh of the loss, so that what comes in is not 1."""
    return [g.double() for g in torch.autograd.grad(loss / 7, leaves)]


def distance(one: Any, other: Any) -> float:
    """Largest difference, as a share of the largest number."""
    return float((one.double() - other.double()).abs().max() / other.double().abs().max())


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("chunk_rows", [1, 8, 37, 100, None])
@pytest.mark.parametrize(("scale", "softcap"), [(1.0, None), (0.25, None), (1.0, 5.0), (2.0, 3.0)])
def test_equals_the_definition(
    dtype: Any, chunk_rows: int | None, scale: float, softcap: float | None
) -> None:
    """Loss and all three gradients, whatever the chunks, scale and cap."""
    hidden, weight, bias, targets = tensors(dtype)
    loss = linear_cross_entropy(
        hidden,
        weight,
        targets,
        bias=bias,
        scale=scale,
        softcap=softcap,
        loss="chunked",
        chunk_rows=chunk_rows,
    )
    expected = by_definition(hidden, weight, bias, targets, scale, softcap)
    assert distance(loss.detach(), expected.detach()) < DIGITS[dtype]
    pairs = zip(
        gradients(loss, hidden, weight, bias),
        gradients(expected, hidden, weight, bias),
        strict=True,
    )
    assert max(distance(one, other) for one, other in pairs) < DIGITS[dtype]


@pytest.mark.parametrize("frozen", ["hidden", "weight", "both"])
def test_frozen_parts_get_no_gradient(frozen: str) -> None:
    """A frozen head or body costs nothing and changes nothing for the other."""
    hidden, weight, _, targets = tensors(torch.float64)
    expected = torch.autograd.grad(
        linear_cross_entropy(hidden, weight, targets, loss="plain"), (hidden, weight)
    )
    hidden.requires_grad_(frozen == "weight")
    weight.requires_grad_(frozen == "hidden")
    loss = linear_cross_entropy(hidden, weight, targets, loss="chunked", chunk_rows=8)
    assert loss.requires_grad == (frozen != "both")
    if frozen == "hidden":
        torch.testing.assert_close(torch.autograd.grad(loss, weight)[0], expected[1])
    elif frozen == "weight":
        torch.testing.assert_close(torch.autograd.grad(loss, hidden)[0], expected[0])


@pytest.mark.parametrize("softcap", [None, 5.0])
def test_a_few_trained_rows_get_the_gradient_alone(softcap: float | None) -> None:
    """Loss and gradients are those of the whole weight, of which the rows are a part."""
    hidden, weight, bias, targets = tensors(torch.float64)
    whole = linear_cross_entropy(
        hidden, weight, targets, bias=bias, softcap=softcap, scale=2.0, loss="plain"
    )
    expected = torch.autograd.grad(whole, (hidden, weight))
    ids = torch.tensor([3, 0, 17, 49])
    values = weight.detach()[ids].requires_grad_()
    for weight_itself in (weight, weight.detach()):
        loss = linear_cross_entropy(
            hidden,
            weight_itself,
            targets,
            bias=bias,
            softcap=softcap,
            scale=2.0,
            chunk_rows=8,
            rows=(ids, values),
        )
        torch.testing.assert_close(loss, whole)
        loss.backward(inputs=(hidden, values))
        torch.testing.assert_close(hidden.grad, expected[0])
        torch.testing.assert_close(values.grad, expected[1][ids])
        assert weight.grad is None
        hidden.grad = values.grad = None


def test_without_gradients() -> None:
    """Under no_grad the loss is the same and nothing is kept for later."""
    hidden, weight, _, targets = tensors(torch.float64)
    with torch.no_grad():
        loss = linear_cross_entropy(hidden, weight, targets, loss="chunked", chunk_rows=8)
        expected = linear_cross_entropy(hidden, weight, targets, loss="plain")
    assert not loss.requires_grad
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("n", [0, 9])
def test_no_target_at_all(n: int) -> None:
    """Without targets, or without rows, the loss is 0 and so is every gradient."""
    hidden, weight, bias, targets = tensors(torch.float32, n=n)
    loss = linear_cross_entropy(
        hidden, weight, torch.full_like(targets, -100), bias=bias, loss="chunked", chunk_rows=4
    )
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert not any(leaf.grad.any() for leaf in (hidden, weight, bias))


def test_large_logits_do_not_overflow() -> None:
    """Logits of thousands, as in an untrained bfloat16 head, stay finite."""
    hidden, weight, _, targets = tensors(torch.float32)
    loss = linear_cross_entropy(hidden * 1e4, weight, targets, loss="chunked", chunk_rows=8)
    expected = linear_cross_entropy(hidden * 1e4, weight, targets, loss="plain")
    assert torch.isfinite(loss)
    torch.testing.assert_close(loss, expected)


def test_autocast_multiplies_in_bfloat16_and_gives_float32_gradients() -> None:
    """Under autocast the loss is that of the plain path, the gradients the parameters' type."""
    hidden, weight, bias, targets = tensors(torch.float32)
    losses = {}
    for name in ("plain", "chunked"):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = linear_cross_entropy(hidden, weight, targets, bias=bias, loss=name, chunk_rows=8)
        grads = torch.autograd.grad(loss, (hidden, weight, bias))
        assert {g.dtype for g in grads} == {torch.float32}
        losses[name] = (loss.detach(), *grads)
    exact = linear_cross_entropy(hidden, weight, targets, bias=bias, loss="plain").detach()
    assert losses["chunked"][0] == pytest.approx(float(losses["plain"][0]), rel=1e-6)
    assert losses["chunked"][0] != exact  # bfloat16 it was
    assert all(distance(a, b) < 1e-2 for a, b in zip(*losses.values(), strict=True))


def test_a_second_backward_is_refused() -> None:
    """The gradients were handed out and freed; a wrong number would be worse than an error."""
    hidden, weight, _, targets = tensors(torch.float32)
    loss = linear_cross_entropy(hidden, weight, targets, loss="chunked")
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="compute the loss again"):
        loss.backward()


def test_logits_are_never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tensor of the chunked loss has more than chunk_rows rows of logits, to and fro."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            for tensor in torch.utils._pytree.tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    self.size = max(self.size, tensor.numel())
            return result

    sizes = {}
    for name in ("plain", "chunked"):
        hidden, weight, _, targets = tensors(torch.float32, n=64, vocab=1000)
        with Largest() as largest:
            linear_cross_entropy(hidden, weight, targets, loss=name, chunk_rows=8).backward()
        sizes[name] = largest.size
    assert sizes == {"plain": 64 * 1000, "chunked": 1000 * 16}  # the latter is the head itself


def test_bad_arguments() -> None:
    """An unknown loss, liger without a GPU, and targets that are no ids are named."""
    hidden, weight, _, targets = tensors(torch.float32)
    with pytest.raises(ValueError, match="unknown loss 'lean'; there are auto, liger"):
        linear_cross_entropy(hidden, weight, targets, loss="lean")
    with pytest.raises(ValueError, match="on cpu, and it needs a GPU; take auto or chunked"):
        linear_cross_entropy(hidden, weight, targets, loss="liger")
    for wrong in (50, -1, -101):
        with pytest.raises(ValueError, match="the head has 50 rows"):
            linear_cross_entropy(hidden, weight, torch.full_like(targets, wrong))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("loss", ["chunked", "liger"])
@pytest.mark.parametrize("softcap", [None, 5.0])
def test_on_a_gpu(loss: str, softcap: float | None) -> None:
    """The same loss and gradients on a card, by our own function and by Liger Kernel."""
    if loss == "liger":
        pytest.importorskip("liger_kernel")
    leaves = [leaf.detach().cuda().requires_grad_() for leaf in tensors(torch.float32)[:3]]
    targets = tensors(torch.float32)[3].cuda()
    results = []
    for name in ("plain", loss):
        nats = linear_cross_entropy(
            leaves[0], leaves[1], targets, bias=leaves[2], scale=0.5, softcap=softcap, loss=name
        )
        results.append([nats.detach(), *torch.autograd.grad(nats / 7, leaves)])
    assert all(distance(a, b) < 1e-3 for a, b in zip(*results, strict=True))
