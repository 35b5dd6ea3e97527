"""Rows of new tokens are trained, and nothing else changes by a bit, with any optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.cpt.held_rows import hold_old_rows

torch = pytest.importorskip("torch")

NEW = (200, 201, 256)
IDS = torch.randint(0, 257, (4, 12), generator=torch.Generator().manual_seed(1))
IDS[:, ::3] = 200


def weights(model: Any) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def changed_rows(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[int]]:
    """Of each weight that is not the same bit for bit, the rows that differ."""
    bits = {
        name: (value.view(torch.int32), after[name].view(torch.int32))
        for name, value in before.items()
    }
    return {
        name: sorted({row[0] for row in (old != new).nonzero().tolist()})
        for name, (old, new) in bits.items()
        if not torch.equal(old, new)
    }


def train(model: Any, optimizer: Any, held: Any, *, steps: int = 4, micro_batches: int = 2) -> None:
    """Accumulated gradients, clipped."""
    for _ in range(steps):
        for part in IDS.chunk(micro_batches):
            (model(input_ids=part, labels=part).loss / micro_batches).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        if held is not None:
            held.restore()
        optimizer.zero_grad()


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.5),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1, weight_decay=0.5),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, weight_decay=0.5, momentum=0.9),
}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_all_else_stays(make_model: Callable[..., Any], name: str, tied: bool) -> None:
    """With weight decay, momentum, clipping and accumulated gradients, over all parameters."""
    model = make_model(tie_word_embeddings=tied)
    before = weights(model)
    held = hold_old_rows(model, NEW)
    train(model, OPTIMIZERS[name](model.parameters()), held)
    tables = ("model.embed_tokens.weight", "lm_head.weight")
    assert {table: [*NEW] for table in tables} == changed_rows(before, weights(model))


def test_gradients_alone_would_not_do(make_model: Callable[..., Any]) -> None:
    """Without putting rows back, decay moves all of them: this is what `restore` is for."""
    model = make_model()
    before = weights(model)
    held = hold_old_rows(model, NEW)
    train(model, OPTIMIZERS["AdamW"](model.parameters()), None)
    assert len(changed_rows(before, weights(model))["lm_head.weight"]) > 200
    held.restore()
    assert [*NEW] == changed_rows(before, weights(model))["lm_head.weight"]


def test_momentum_from_before(make_model: Callable[..., Any]) -> None:
    """An optimizer that has trained everything moves rows without a gradient."""
    model = make_model()
    optimizer = OPTIMIZERS["AdamW"](model.parameters())
    train(model, optimizer, None)
    before = weights(model)
    train(model, optimizer, hold_old_rows(model, NEW))
    assert {"model.embed_tokens.weight", "lm_head.weight"} == set(
        changed := changed_rows(before, weights(model))
    )
    assert all(rows == [*NEW] for rows in changed.values())


def test_clipping_sees_the_new_rows_alone(make_model: Callable[..., Any]) -> None:
    model = make_model(tie_word_embeddings=True)
    held = hold_old_rows(model, NEW)
    model(input_ids=IDS, labels=IDS).loss.backward()
    gradient = model.lm_head.weight.grad
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    assert [*NEW] == gradient.abs().sum(dim=1).nonzero()[:, 0].tolist()
    assert float(gradient[[*NEW]].norm()) == pytest.approx(float(norm))
    held.release()


def test_an_overflow_in_an_old_row_is_no_part_of_the_gradient(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    hold_old_rows(model, NEW)
    loss = model(input_ids=IDS, labels=IDS).loss
    (loss + model.lm_head.weight[3].sum() * float("inf")).backward()
    assert model.lm_head.weight.grad.isfinite().all()


def test_the_new_rows_learn_as_without_the_others(make_model: Callable[..., Any]) -> None:
    """Slow and obvious: autograd of everything, then AdamW over the new rows alone."""
    model, slow = make_model(), make_model()
    held = hold_old_rows(model, NEW)
    train(model, torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5), held, steps=3)
    tables = [slow.model.embed_tokens.weight, slow.lm_head.weight]
    rows = [table.detach()[[*NEW]].clone().requires_grad_() for table in tables]
    optimizer = torch.optim.AdamW(rows, lr=0.1, weight_decay=0.5)
    for _ in range(3):
        slow.zero_grad()
        for part in IDS.chunk(2):
            (slow(input_ids=part, labels=part).loss / 2).backward()
        for table, own in zip(tables, rows, strict=True):
            own.grad = table.grad[[*NEW]].clone()
        torch.nn.utils.clip_grad_norm_(rows, 0.1)
        optimizer.step()
        for table, own in zip(tables, rows, strict=True):
            table.data[[*NEW]] = own.detach()
    torch.testing.assert_close(model.lm_head.weight, slow.lm_head.weight)
    torch.testing.assert_close(model.model.embed_tokens.weight, slow.model.embed_tokens.weight)


def test_it_ends(make_model: Callable[..., Any]) -> None:
    """After the block everything may be trained again, and no hook is left."""
    model = make_model()
    model.model.norm.weight.requires_grad_(False)
    with hold_old_rows(model, NEW):
        assert not model.model.layers[0].mlp.up_proj.weight.requires_grad
    model(input_ids=IDS, labels=IDS).loss.backward()
    assert model.model.layers[0].mlp.up_proj.weight.grad is not None
    assert model.model.norm.weight.grad is None
    assert model.lm_head.weight.grad.abs().sum(dim=1).count_nonzero() > 200


@pytest.mark.parametrize(
    ("ids", "message"), [((), "no token is new"), ((-1, 5), "-1 to 5"), ((257,), "257 rows")]
)
def test_refused(make_model: Callable[..., Any], ids: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hold_old_rows(make_model(), ids)


def test_tables_that_are_replaced_later(make_model: Callable[..., Any]) -> None:
    """As FSDP2 does when a Trainer prepares the model: not held without a word."""
    model = make_model()
    held = hold_old_rows(model, NEW)
    held.restore()
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    with pytest.raises(ValueError, match="were replaced since hold_old_rows"):
        held.restore()
