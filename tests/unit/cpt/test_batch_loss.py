"""The loss of a batch of packed rows, against logits and plain sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.cpt.batch_loss import batch_loss
from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.objectives import Masking, masked

torch = pytest.importorskip("torch")

MASKED = LoopConfig(objective="masked")
MASKING = Masking(mask_id=4, special_ids=(0, 1, 2, 3, 4), n_ids=257, share=0.3)
ROWS = torch.randint(5, 257, (3, 17), generator=torch.Generator().manual_seed(1))
SEEDS = torch.tensor([5, 6, 7])


@pytest.fixture(scope="module")
def roberta() -> Any:
    """A masked language model of two layers."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    config = RobertaConfig(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=66,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return RobertaForMaskedLM(config).eval()


def sum_of_nats(logits: Any, targets: Any) -> float:
    """Minus the logarithms of what the targets were given."""
    chosen = targets != -100
    return float(
        -torch.log_softmax(logits.detach().double(), dim=-1)[chosen, targets[chosen]].sum()
    )


def test_causal(make_model: Callable[..., Any]) -> None:
    """The sum over all next tokens, padding aside, and how many they are."""
    model = make_model().eval()
    rows = ROWS.clone()
    rows[2, 4:] = -1
    nats, n_targets = batch_loss(model, rows, LoopConfig())
    expected = sum(
        sum_of_nats(model(input_ids=row[None, :-1]).logits[0], row[1:])
        for row in (rows[0], rows[1], rows[2, :4])
    )
    assert float(nats.detach()) == pytest.approx(expected, rel=1e-5)
    assert int(n_targets) == 16 + 16 + 3


def test_masked(roberta: Any) -> None:
    """The sum over the masked tokens, from whole logits of the masked inputs."""
    nats, n_targets = batch_loss(roberta, ROWS, MASKED, row_seeds=SEEDS, masking=MASKING)
    inputs, targets = masked(ROWS, SEEDS, MASKING)
    expected = sum_of_nats(roberta(input_ids=inputs).logits.flatten(0, 1), targets.flatten())
    assert float(nats.detach()) == pytest.approx(expected, rel=1e-5)
    assert int(n_targets) == int((targets != -100).sum()) > 0


def test_padding_is_not_seen_by_a_model_that_looks_both_ways(roberta: Any) -> None:
    """A row costs the same with padding behind it."""
    padded = torch.cat([ROWS[:1], torch.full((1, 9), -1)], dim=1)
    padded[0, 16] = -1  # the last token of a row belongs to the next
    nats, n = batch_loss(roberta, padded, MASKED, row_seeds=SEEDS[:1], masking=MASKING)
    expected, n_expected = batch_loss(
        roberta, ROWS[:1], MASKED, row_seeds=SEEDS[:1], masking=MASKING
    )
    assert float(nats.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert int(n) == int(n_expected)


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_padding_alone_costs_nothing(
    roberta: Any, make_model: Callable[..., Any], objective: str
) -> None:
    """Loss, number and all gradients are 0, none is missing where another process has some."""
    model = roberta if objective == "masked" else make_model()
    model.zero_grad(set_to_none=True)
    config = MASKED if objective == "masked" else LoopConfig()
    rows = torch.full((2, 9), -1)
    nats, n_targets = batch_loss(model, rows, config, row_seeds=SEEDS[:2], masking=MASKING)
    nats.backward()
    assert (float(nats.detach()), int(n_targets)) == (0.0, 0)
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


def test_masked_needs_to_know_the_mask(roberta: Any) -> None:
    """Without masking or seeds the error names them."""
    with pytest.raises(ValueError, match="needs masking and row_seeds"):
        batch_loss(roberta, ROWS, MASKED, row_seeds=SEEDS)
