"""Freezing: what a phase trains, and what it leaves alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.cpt.config import check_phase
from vocabshift.cpt.loop import LoopConfig, Phase, pretrain
from vocabshift.cpt.phases import (
    NewRows,
    decay_groups,
    phase_parameters,
    trained_parameters,
)
from vocabshift.tokenizer.tokenizer import Tokenizer


@pytest.mark.parametrize("tied", [True, False])
def test_embeddings_phase_trains_rows_alone(make_model: Callable[..., Any], tied: bool) -> None:
    """Input embeddings and head ask for gradients, nothing else does; a tied tensor is one."""
    model = make_model(tie_word_embeddings=tied)
    with trained_parameters(model, "embeddings") as parameters:
        asking = {name for name, p in model.named_parameters() if p.requires_grad}
        assert asking == {"model.embed_tokens.weight", *([] if tied else ["lm_head.weight"])}
        assert len(parameters) == len(asking)


def test_all_phase_trains_everything(make_model: Callable[..., Any]) -> None:
    """The phase "all" leaves no parameter out."""
    model = make_model()
    with trained_parameters(model, "all") as parameters:
        assert len(parameters) == len(list(model.parameters()))


def test_flags_come_back(make_model: Callable[..., Any]) -> None:
    """After the block, also after an error in it, every parameter asks as before."""
    model = make_model()
    model.model.norm.weight.requires_grad_(False)
    before = [p.requires_grad for p in model.parameters()]
    with pytest.raises(RuntimeError), trained_parameters(model, "all"):
        raise RuntimeError
    assert [p.requires_grad for p in model.parameters()] == before


def test_unknown_phase() -> None:
    """The message names the phases there are."""
    with pytest.raises(ValueError, match="embeddings, new-rows, lora, ends, all"):
        check_phase("head")


def test_rows_and_norms_are_not_decayed(make_model: Callable[..., Any]) -> None:
    """Weight decay is for matrices between the layers."""
    model = make_model()
    decayed, kept = decay_groups(model, list(model.parameters()), 0.1)
    names = {id(p): name for name, p in model.named_parameters()}
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)
    assert all("proj" in names[id(p)] for p in decayed["params"])
    assert {names[id(p)].split(".")[-2].removesuffix("norm") for p in kept["params"]} == {
        "embed_tokens",
        "lm_head",
        "",
        "input_layer",
        "post_attention_layer",
    }


def test_position_rows_are_not_decayed() -> None:
    """Those beyond the sequence length have no gradient either."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=4, n_layer=1, n_head=1))
    decayed, _ = decay_groups(model, list(model.parameters()), 0.1)
    assert not any(p is model.transformer.wpe.weight for p in decayed["params"])
    assert any(p is model.transformer.h[0].attn.c_attn.weight for p in decayed["params"])


@pytest.mark.parametrize("tied", [True, False])
def test_new_rows_alone_move(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tied: bool
) -> None:
    """Embeddings and head change in these rows, all else is bit-identical, whatever the text."""
    import torch

    model = make_model(tie_word_embeddings=tied)
    before = copy.deepcopy(model.state_dict())
    new_ids = [byte_tokenizer.backend.encode("a").ids[0], 200, 256]
    pretrain(
        model,
        byte_tokenizer,
        ["a cat sat"] * 9,
        phases=[Phase(trained="new-rows", n_bytes=81, learning_rate=0.1)],
        config=LoopConfig(sequence_length=16, batch_size=2, weight_decay=0.5),
        new_ids=new_ids,
    )
    after = model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"model.embed_tokens.weight", "lm_head.weight"}
    head = (before["lm_head.weight"] != after["lm_head.weight"]).any(dim=1)
    assert head.nonzero().flatten().tolist() == sorted(new_ids)
    if not tied:  # of the input, id 200 does not occur
        name = "model.embed_tokens.weight"
        rows = (before[name] != after[name]).any(dim=1).nonzero().flatten()
        assert rows.tolist() == [new_ids[0], 256]


@pytest.mark.parametrize(
    ("new_ids", "message"),
    [([], "no token is new"), ([3, 257], "reach from 3 to 257, and the model has 257 rows")],
)
def test_new_rows_must_be_there(
    make_model: Callable[..., Any], new_ids: list[int], message: str
) -> None:
    parameters = phase_parameters(make_model(), "new-rows")
    with pytest.raises(ValueError, match=message):
        NewRows(parameters, new_ids)
