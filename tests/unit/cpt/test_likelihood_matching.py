"""Likelihood matching: divergences, the loss of a batch and its gradients, and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reference.likelihood_matching import loss as slow_loss
from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.likelihood_matching import boundary_mask, divergence, log1mexp, matching_loss
from vocabshift.cpt.objectives import SpecialIds, boundary_ids
from vocabshift.cpt.packing import RowChunks
from vocabshift.tokenizer.tokenizer import Tokenizer

torch = pytest.importorskip("torch")

CONFIG = LoopConfig(objective="likelihood-matching", next_token_weight=0.25)
SPECIAL = SpecialIds(separator=(256,), boundary_ids=(9, 10, 13, 32, 256))


def batch() -> tuple[Any, RowChunks]:
    """Three rows of 11 tokens, with 2, 0 and 3 chunks; the second row ends in padding."""
    rows = torch.randint(0, 256, (3, 11), generator=torch.Generator().manual_seed(1))
    rows[1, 4:] = -1
    numbers = np.full((3, 10), -1)
    teacher = np.full((3, 10), np.nan, dtype=np.float32)
    for row, number, first, last, logprob in (
        *((0, 0, 0, 0, -4.0), (0, 1, 3, 7, -19.5)),
        *((2, 0, 1, 2, -9.0), (2, 1, 3, 3, -0.01), (2, 2, 6, 8, -30.0)),
    ):
        numbers[row, first : last + 1] = number
        teacher[row, last] = logprob
    return rows, RowChunks(torch.from_numpy(numbers), torch.from_numpy(teacher))


def twin(model: Any, rows: Any, chunks: RowChunks, config: LoopConfig) -> tuple[Any, Any]:
    """Both parts of the loss, row by row with whole matrices."""
    matching, next_token = torch.zeros(()), torch.zeros(())
    boundary = torch.zeros(257, dtype=torch.bool)
    boundary[list(SPECIAL.boundary_ids or ())] = True
    for row, numbers, teacher in zip(rows, *chunks, strict=True):
        ids = row[row != -1]
        logits = model(input_ids=ids[None, :-1]).logits[0].double()
        next_token = next_token - torch.log_softmax(logits, -1).gather(1, ids[1:, None]).sum()
        n_chunks = int(numbers.max()) + 1
        if not n_chunks:
            continue
        tokens = torch.zeros(len(ids), n_chunks)
        for target, number in enumerate(numbers[: len(ids) - 1].tolist()):
            if number >= 0:
                tokens[target + 1, number] = 1
        ends = torch.tensor([int((numbers == n).nonzero()[-1]) + 1 for n in range(n_chunks)])
        found = slow_loss(
            logits,
            ids,
            tokens,
            teacher[ends - 1].double(),
            *((ends, boundary) if config.debiasing else ()),
            temperature=config.temperature,
        )
        matching = matching + config.temperature * found
    return matching, next_token


@pytest.mark.parametrize("debiasing", [True, False])
@pytest.mark.parametrize("temperature", [100.0, 1.0])
def test_equals_the_slow_twin(
    make_model: Callable[..., Any], debiasing: bool, temperature: float
) -> None:
    """Loss and gradients, from whole matrices of logits and of tokens by chunks."""
    model = make_model().eval().double()
    rows, chunks = batch()
    config = replace(CONFIG, debiasing=debiasing, temperature=temperature)
    boundary = boundary_mask(model, SPECIAL)
    found = matching_loss(model, rows, chunks, config, SPECIAL, boundary=boundary)
    matching, next_token = twin(model, rows, chunks, config)
    assert (int(found.n_targets), int(found.n_chunks)) == (10 + 3 + 10, 5)
    assert float(found.matching) == pytest.approx(float(matching.detach()), rel=1e-6)
    assert float(found.next_token) == pytest.approx(float(next_token.detach()), rel=1e-9)
    parameters = list(model.parameters())
    expected = torch.autograd.grad(matching + 0.25 * next_token, parameters)
    for one, other in zip(torch.autograd.grad(found.loss, parameters), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-8)


def test_the_same_under_document_attention(make_model: Callable[..., Any]) -> None:
    """A row of two documents has the chunks of both, each read by itself."""
    model = make_model().eval()
    rows, chunks = batch()
    rows[0, 2] = 256
    config = replace(CONFIG, document_attention=True)
    boundary = boundary_mask(model, SPECIAL)
    found = matching_loss(model, rows, chunks, config, SPECIAL, boundary=boundary)
    later = torch.cat([rows[0, 2:], torch.full((2,), -1)])[None]
    alone = RowChunks(chunks.numbers[:1].roll(-2, dims=1), chunks.teacher[:1].roll(-2, dims=1))
    alone.teacher[0, 8:] = math.nan
    alone.numbers[0, 8:] = -1
    of_later = matching_loss(model, later, alone, config, SPECIAL, boundary=boundary)
    first = RowChunks(chunks.numbers[:1].clone(), chunks.teacher[:1].clone())
    first.teacher[0, 1:] = math.nan
    of_first = matching_loss(model, rows[:1], first, config, SPECIAL, boundary=boundary)
    rest = RowChunks(*(each[2:] for each in chunks))
    of_rest = matching_loss(model, rows[2:], rest, config, SPECIAL, boundary=boundary)
    parts = (of_first, of_later, of_rest)
    assert sum(float(each.matching) for each in parts) == pytest.approx(
        float(found.matching), rel=1e-5
    )


def test_nothing_to_match(make_model: Callable[..., Any]) -> None:
    """Padding alone and no chunk: the loss is 0, and every gradient is there and 0."""
    model = make_model()
    rows = torch.full((2, 9), -1)
    none = RowChunks(torch.full((2, 8), -1), torch.full((2, 8), math.nan))
    boundary = boundary_mask(model, SPECIAL)
    found = matching_loss(model, rows, none, CONFIG, SPECIAL, boundary=boundary)
    found.loss.backward()
    assert (float(found.loss.detach()), int(found.n_targets), int(found.n_chunks)) == (0.0, 0, 0)
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


def test_divergences_of_coins() -> None:
    """By their definitions, on both sides of the coin; 0 for equal ones and never NaN."""
    teacher = torch.tensor([-1e-7, -0.5, -3.0, -80.0, -3.0], dtype=torch.float64)
    student = torch.tensor([-2.0, -0.5, -0.1, -1.0, 0.0], dtype=torch.float64)
    for temperature in (1.0, 100.0):
        p, q = ((each / temperature - 1e-6).exp() for each in (teacher, student))
        kl = p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
        back = q * (q / p).log() + (1 - q) * ((1 - q) / (1 - p)).log()
        for name, expected in (("kl", kl), ("reverse-kl", back), ("total-variation", abs(p - q))):
            found = divergence(teacher, student, temperature, name)
            torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-12)
            assert float(found[1]) == 0.0
    assert float(divergence(torch.tensor(0.5), torch.tensor(0.0), 1.0)) == 0.0  # rounding above 0


def test_temperature_keeps_the_scale() -> None:
    """Times the temperature, the divergence tends to |s| - |t| + |t| log(|t| / |s|)."""
    teacher, student = torch.tensor([-4.0]).double(), torch.tensor([-7.0]).double()
    limit = 7 - 4 + 4 * math.log(4 / 7)
    assert 1000 * float(divergence(teacher, student, 1000.0)) == pytest.approx(limit, rel=1e-2)


def test_log1mexp_has_all_digits() -> None:
    """Near 0 and far below, in float32."""
    x = torch.tensor([-1e-6, -1e-3, -0.5, -0.7, -20.0], requires_grad=True)
    expected = torch.log1p(-x.detach().double().exp())
    torch.testing.assert_close(log1mexp(x).detach().double(), expected, rtol=1e-6, atol=0)
    (slope,) = torch.autograd.grad(log1mexp(x).sum(), x)
    assert bool(slope.isfinite().all())


def test_boundaries(byte_tokenizer: Tokenizer, make_model: Callable[..., Any]) -> None:
    """White space and special tokens; without any, debiasing is refused."""
    images = ("ĉ", "Ċ", "č", "Ġ")
    expected = {*(byte_tokenizer.model.vocab[image] for image in images), 256}
    assert set(boundary_ids(byte_tokenizer)) == expected
    letters = replace(byte_tokenizer.model, vocab={"a": 0, "b": 1}, merges=())
    with pytest.raises(ValueError, match="begins with white space"):
        boundary_ids(replace(byte_tokenizer, model=letters, added_tokens=()))
    rows, chunks = batch()
    with pytest.raises(ValueError, match="which tokens begin at a boundary"):
        matching_loss(make_model(), rows, chunks, CONFIG, SPECIAL)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0; more than 0"),
        ({"next_token_weight": -1.0}, "next_token_weight is -1.0; 0 or more"),
        ({"boundary_threshold": 2.0}, "boundary_threshold is 2.0; a share of 0 to 1"),
        ({"divergence": "js"}, "divergence is 'js'; known are 'kl'"),
    ],
)
def test_refused_options(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **changes)


def test_options_of_another_objective_are_no_mathematics() -> None:
    """A run of an earlier version resumes; one by likelihood matching depends on all of them."""
    names = {"temperature", "divergence", "debiasing", "boundary_threshold", "next_token_weight"}
    assert not names & LoopConfig().mathematics().keys()
    assert names < CONFIG.mathematics().keys()
