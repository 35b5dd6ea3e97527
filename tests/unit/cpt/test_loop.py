"""The training loop: it learns, repeats itself exactly, and moves nothing that is frozen."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vocabshift.cpt.loop import (
    LoopConfig,
    Phase,
    Step,
    check_model,
    learning_rate_share,
    pretrain,
)
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.tokenizer import Tokenizer

TEXTS = [
    "a small text that says little",
    "ein kurzer Text, der wenig sagt",
    "यह एक छोटा वाक्य है",
    "இது ஒரு சிறிய வாக்கியம்",
    "def add(a, b): return a + b",
] * 4
CONFIG = LoopConfig(sequence_length=32, batch_size=4)
N_BYTES = sum(len(text.encode()) for text in TEXTS)


def test_it_learns(make_model: Callable[..., Any], byte_tokenizer: Tokenizer) -> None:
    """From about log2(257) bits a byte the loss falls far."""
    phase = Phase(n_bytes=6 * N_BYTES, learning_rate=1e-2)
    steps = pretrain(make_model(), byte_tokenizer, TEXTS, phases=[phase], config=CONFIG)
    assert abs(steps[0].loss - math.log(257)) < 0.2
    assert steps[-1].loss < 0.6 * steps[0].loss


def test_two_runs_are_one(make_model: Callable[..., Any], byte_tokenizer: Tokenizer) -> None:
    """Same seed: the same losses and bit-identical weights."""
    import torch

    runs = []
    for _ in range(2):
        model = make_model(attention_dropout=0.1)
        phases = [Phase(n_bytes=N_BYTES), Phase(trained="embeddings", n_bytes=N_BYTES)]
        runs.append((pretrain(model, byte_tokenizer, TEXTS, phases=phases, config=CONFIG), model))
    assert runs[0][0] == runs[1][0]
    for one, other in zip(runs[0][1].parameters(), runs[1][1].parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("tied", [True, False])
def test_frozen_is_bit_identical(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tied: bool
) -> None:
    """In the phase "embeddings" only embeddings and head change, and they do."""
    import torch

    model = make_model(tie_word_embeddings=tied)
    before = copy.deepcopy(model.state_dict())
    phase = Phase(trained="embeddings", n_bytes=N_BYTES)
    pretrain(model, byte_tokenizer, TEXTS, phases=[phase], config=CONFIG)
    changed = {n for n, tensor in model.state_dict().items() if not torch.equal(tensor, before[n])}
    assert changed == {"model.embed_tokens.weight", "lm_head.weight"}


def test_unseen_input_rows_stay(make_model: Callable[..., Any], byte_tokenizer: Tokenizer) -> None:
    """A row whose token never occurs is not moved by weight decay."""
    import torch

    model = make_model()
    before = model.get_input_embeddings().weight.detach().clone()
    pretrain(model, byte_tokenizer, ["abc"] * 9, phases=[Phase(n_bytes=27)], config=CONFIG)
    moved = (model.get_input_embeddings().weight != before).any(dim=1).nonzero().flatten()
    seen = byte_tokenizer.backend.encode("abc").ids
    assert torch.equal(moved, torch.tensor(sorted([*seen, 256])))


def test_the_budget_is_bytes(make_model: Callable[..., Any], byte_tokenizer: Tokenizer) -> None:
    """Steps count the bytes of text, end at the budget, and are reported as they happen."""
    seen: list[Step] = []
    steps = pretrain(
        make_model(),
        byte_tokenizer,
        TEXTS,
        phases=[Phase(n_bytes=2 * N_BYTES)],
        config=CONFIG,
        on_step=seen.append,
    )
    assert seen == steps
    assert steps[-1].n_bytes == 2 * N_BYTES
    assert steps[-1].n_tokens == 2 * N_BYTES + 2 * len(TEXTS)  # one EOS after each document
    assert [step.step for step in steps] == list(range(1, steps[0].n_steps + 1))
    assert steps[-1].learning_rate == pytest.approx(1e-4)


def test_user_state_is_left_alone(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer
) -> None:
    """Neither the mode of the model nor torch's random state is another afterwards."""
    import torch

    model = make_model().eval()
    state = torch.get_rng_state()
    pretrain(model, byte_tokenizer, TEXTS, phases=[Phase(n_bytes=50)], config=CONFIG)
    assert torch.equal(torch.get_rng_state(), state)
    assert not model.training
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


def test_divergence_stops(make_model: Callable[..., Any], byte_tokenizer: Tokenizer) -> None:
    """A loss that is not a number ends the run and leaves the weights as they were."""
    import torch

    model = make_model()
    with torch.no_grad():
        model.model.norm.weight[0] = math.nan
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=r"diverged in phase 0 \(all\), step 1.*learning rate"):
        pretrain(model, byte_tokenizer, TEXTS, phases=[Phase(n_bytes=50)], config=CONFIG)
    after = model.state_dict()
    assert all(torch.equal(before[n].nan_to_num(), after[n].nan_to_num()) for n in before)


@pytest.mark.parametrize(
    ("changes", "config", "error", "message"),
    [
        ({"vocab_size": 200, "bos_token_id": 1, "eos_token_id": 1}, CONFIG, VocabMismatchError,
         "needs 257 embedding rows and the model has 200"),
        ({"bos_token_id": 400}, CONFIG, VocabMismatchError, "bos_token_id"),
        ({"eos_token_id": None}, CONFIG, ValueError, "no eos_token_id"),
        ({}, LoopConfig(sequence_length=65), ValueError, "65 and the model has 64 positions"),
    ],
)  # fmt: skip
def test_refused(
    make_model: Callable[..., Any],
    byte_tokenizer: Tokenizer,
    changes: dict[str, Any],
    config: LoopConfig,
    error: type[Exception],
    message: str,
) -> None:
    """What does not fit is refused before the first step."""
    with pytest.raises(error, match=message):
        pretrain(
            make_model(**changes), byte_tokenizer, TEXTS, phases=[Phase(n_bytes=9)], config=config
        )


def test_positions_that_are_counted_from_the_pad() -> None:
    """RoBERTa's first one is row `pad_token_id` + 1 of its table, so it has fewer than rows."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM

    sizes = {"vocab_size": 30, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    roles = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config = RobertaConfig(num_attention_heads=2, max_position_embeddings=67, **sizes, **roles)
    model, phases = RobertaForMaskedLM(config), [Phase(n_bytes=9)]
    check_model(model, 30, LoopConfig(sequence_length=64), phases)
    model(torch.full((1, 64), 5))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, 65), 5))
    with pytest.raises(ValueError, match="is 65 and the model has 64 positions"):
        check_model(model, 30, LoopConfig(sequence_length=65), phases)


def test_empty_corpus(make_model: Callable[..., Any], byte_tokenizer: Tokenizer) -> None:
    """No text, no training."""
    with pytest.raises(CorpusError, match="no text"):
        pretrain(make_model(), byte_tokenizer, [""], phases=[Phase(n_bytes=9)], config=CONFIG)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Phase(n_bytes=0), "n_bytes is 0"),
        (lambda: Phase(n_bytes=1, learning_rate=math.inf), "learning_rate"),
        (lambda: Phase(n_bytes=1, trained="rows"), "unknown phase 'rows'"),
        (lambda: LoopConfig(batch_size=0), "batch_size"),
        (lambda: LoopConfig(micro_batch_size=0), "micro_batch_size is 0"),
        (lambda: LoopConfig(sequence_length=1), "at least 2 tokens"),
        (lambda: LoopConfig(step_tokens=255), "less than one sequence of 256"),
        (lambda: LoopConfig(objective="next"), "objective is 'next'; known are 'causal', 'mas"),  # type: ignore[arg-type]
        (lambda: LoopConfig(mixed_precision="fp16"), "mixed_precision is 'fp16'"),
        (lambda: LoopConfig(weight_decay=-1.0), "weight_decay is -1.0; 0 or more"),
        (lambda: LoopConfig(max_gradient_norm=0.0), "max_gradient_norm is 0.0; more than 0"),
        (lambda: LoopConfig(spike_factor=0.5), "spike_factor is 0.5; 0, or more than 1"),
        (lambda: LoopConfig(betas=(0.9, 1.0)), "betas"),
        (lambda: LoopConfig(warmup=1.5), "warmup"),
        (lambda: LoopConfig(seed=-1), "seed is -1"),
    ],
)
def test_bad_values(make: Callable[[], object], message: str) -> None:
    """A bad value is refused where it is written."""
    with pytest.raises(ValueError, match=message):
        make()


def test_learning_rate_share() -> None:
    """Up in a line, down in a cosine, to the final share."""
    shares = [learning_rate_share(p, warmup=0.2, final_rate=0.1) for p in (0, 0.1, 0.2, 0.6, 1)]
    assert shares == pytest.approx([0, 0.5, 1, 0.55, 0.1])
    assert learning_rate_share(0.0, warmup=0.0, final_rate=0.1) == pytest.approx(1)
    assert learning_rate_share(1.0, warmup=1.0, final_rate=0.1) == pytest.approx(1)


def test_packed_ids_give_the_same_training(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """Step for step as from the text, whether documents were packed with an EOS or without."""
    corpus = Corpus.from_texts(TEXTS)
    phases = [Phase(n_bytes=N_BYTES // 2), Phase(n_bytes=2 * N_BYTES)]
    expected = pretrain(make_model(), byte_tokenizer, corpus, phases=phases, config=CONFIG)
    for eos in ("<|end|>", None):
        out = tmp_path / str(eos)
        pack_corpus(byte_tokenizer, corpus, out, PackOptions(eos=eos, shard_tokens=100))
        packed = PackedIds.open(out)
        assert expected == pretrain(
            make_model(), byte_tokenizer, packed, phases=phases, config=CONFIG
        )


def test_packed_ids_of_another_tokenizer_are_refused(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    pack_corpus(byte_tokenizer, Corpus.from_texts(TEXTS), tmp_path / "out")
    other = replace(byte_tokenizer, normalizer={"type": "NFC"})
    packed = PackedIds.open(tmp_path / "out")
    with pytest.raises(VocabMismatchError, match="another tokenizer"):
        pretrain(make_model(), other, packed, phases=[Phase(n_bytes=9)], config=CONFIG)
