"""Answers that share a context, held against each text read by itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import small_models
from vocabshift.evaluation.harness import answers
from vocabshift.evaluation.harness.answers import Answers, Part
from vocabshift.models.token_loss import token_choices

TOKENIZER = small_models.old_tokenizer()


def make_parts(n_contexts: int = 4) -> list[Part]:
    """Contexts of several lengths, with answers of one token, of several, and long ones."""
    generator = torch.Generator().manual_seed(2)

    def ids(n: int) -> tuple[int, ...]:
        return tuple(torch.randint(0, 280, (n,), generator=generator).tolist())

    parts = []
    for n in range(n_contexts):
        context, beginning = ids(8 + 3 * n), ids(2)
        scored = [ids(1), ids(1), (*beginning, *ids(1)), (*beginning, *ids(1)), ids(5), ids(14)]
        parts += [(context, own) for own in scored]
    return parts


def make_model(kind: str, **changes: Any) -> Any:
    return small_models.build(kind, TOKENIZER, initializer_range=0.5, **changes)


def one_by_one(model: Any, part: Part) -> tuple[float, bool]:
    """By transformers alone."""
    given, scored = part
    with torch.no_grad():
        logits = model(torch.tensor([[*given, *scored]])).logits[0, len(given) - 1 : -1].double()
    wanted = torch.tensor(scored)
    picked = logits.log_softmax(-1).gather(-1, wanted[:, None])
    return float(picked.sum()), bool((logits.argmax(-1) == wanted).all())


def shapes_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Where the shapes of all passes will be."""
    shapes: list[tuple[int, ...]] = []

    def choices(model: Any, ids: Any, *args: Any, **inputs: Any) -> Any:
        shapes.append(tuple(ids.shape))
        return token_choices(model, ids, *args, **inputs)

    monkeypatch.setattr(answers, "token_choices", choices)
    return shapes


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2", "qwen3-tied", "bloom", "opt"])
@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
def test_equals_each_text_by_itself(kind: str, batch_tokens: int) -> None:
    """With masks, or (bloom has no positions) with a context for each answer."""
    model, parts = make_model(kind), make_parts()
    likeliest = one_by_one(model, parts[0])
    with torch.no_grad():
        token = int(model(torch.tensor([parts[0][0]])).logits[0, -1].argmax())
    parts.append((parts[0][0], (token,)))
    found = Answers(model).log_probabilities(parts, batch_tokens)
    assert likeliest == pytest.approx(found[0], abs=1e-4)
    for part, (value, is_greedy) in zip(parts, found, strict=True):
        expected, is_likeliest = one_by_one(model, part)
        assert value == pytest.approx(expected, abs=1e-4)
        assert is_greedy == is_likeliest
    assert found[-1][1]


def test_a_context_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token: nothing beyond the context. The same first tokens: once. A longer one: alone."""
    model, shapes = make_model("llama"), shapes_of(monkeypatch)
    parts = make_parts(1)
    reader = Answers(model)
    reader.log_probabilities(parts, 1)
    shapes.clear()
    reader.log_probabilities(parts, 1)
    context = len(parts[0][0])
    assert {(1, context + 2 + 4), (1, context + 13)} == {*shapes}
    assert 2 == len(shapes)


def test_a_model_that_knows_no_mask_reads_every_answer_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sliding window of 6 tokens is no window of what a mask lets a token see."""
    model = make_model("mistral", sliding_window=6)
    shapes, parts = shapes_of(monkeypatch), make_parts(1)
    found = Answers(model).log_probabilities(parts, 1)
    expected = [one_by_one(model, part)[0] for part in parts]
    assert [value for value, _ in found] == pytest.approx(expected, abs=1e-4)
    context = len(parts[0][0])
    assert {(1, context + n) for n in (0, 2, 4, 13)} == {*shapes[-4:]}


@pytest.mark.parametrize("kind", ["mistral", "gemma2"])
@pytest.mark.parametrize("n_calls", [1, 2])
def test_a_window_that_only_some_texts_exceed(kind: str, n_calls: int) -> None:
    """A short context with many answers is the longest row, and proves nothing of a longer text.

    One-token answers need no mask; in a batch with others they keep the window all the same.
    """
    model = make_model(kind, sliding_window=16)
    ids = torch.randint(0, 280, (160,), generator=torch.Generator().manual_seed(3)).tolist()
    short, long, longer = tuple(ids[:5]), tuple(ids[5:33]), tuple(ids[33:63])
    first = [(short, tuple(ids[n : n + 4])) for n in range(63, 103, 4)]
    second: list[Part] = [(long, tuple(ids[n : n + 2])) for n in range(103, 111, 2)]
    third: list[Part] = [(longer, (token,)) for token in ids[111:115]]
    for parts in (first + second, first + third):
        reader = Answers(model)
        calls = [parts] if n_calls == 1 else [parts[: len(first)], parts[len(first) :]]
        found = [value for own in calls for value, _ in reader.log_probabilities(own, 4096)]
        expected = [one_by_one(model, part)[0] for part in parts]
        assert found == pytest.approx(expected, abs=1e-4)


def test_order_changes_no_bit() -> None:
    model, parts = make_model("llama"), make_parts()
    found = Answers(model).log_probabilities(parts, 64)
    assert found == Answers(model).log_probabilities(parts[::-1], 64)[::-1]


def test_progress_reaches_all() -> None:
    """Parts done and all parts, never fewer."""
    seen: list[tuple[int, int | None]] = []
    parts = make_parts()
    Answers(make_model("llama")).log_probabilities(parts, 64, lambda *each: seen.append(each))
    assert (len(parts), len(parts)) == seen[-1]
    assert sorted(seen) == seen
    assert [] == Answers(make_model("llama")).log_probabilities([], 64)
