"""Document-aware attention: a packed row costs what its documents cost alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.loss import batch_loss
from vocabshift.cpt.objectives import (
    SpecialIds,
    document_inputs,
    positions,
    require_document_attention,
    within_documents,
)
from vocabshift.cpt.packing import pack_ids

torch = pytest.importorskip("torch")

CONFIG = LoopConfig(document_attention=True)
EOS = SpecialIds(separator=(1,))
DOCUMENTS = [[7, 8, 9, 7], [5], [11, 12, 13, 14, 15, 16, 17], [21, 22]]


def packed(separator: tuple[int, ...], length: int) -> Any:
    """DOCUMENTS in rows."""
    flat = np.concatenate([np.asarray(ids, dtype=np.int32) for ids in DOCUMENTS])
    offsets = np.cumsum([0, *map(len, DOCUMENTS)])
    sizes = [len(ids) for ids in DOCUMENTS]
    rows = pack_ids(flat, offsets, sizes, separator=separator, length=length).rows
    return torch.from_numpy(rows.astype(np.int64))


def alone(model: Any, ids: list[int]) -> float:
    """Nats of a document by itself: of every token after its first."""
    logits = model(input_ids=torch.tensor([ids[:-1]])).logits[0].detach().double()
    nats = -torch.log_softmax(logits, dim=-1)
    return float(sum(nats[at, token] for at, token in enumerate(ids[1:])))


def sharpened(model: Any) -> Any:
    """Weights so large that every token that is seen matters."""
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(8)
    return model.eval()


def test_positions_start_again() -> None:
    """With every first id, two in a row included, and with every row."""
    ids = torch.tensor([[9, 4, 4, 9, 9, 4], [4, 4, 9, 4, 4, 4]])
    assert positions(ids, 9).tolist() == [[0, 1, 2, 0, 0, 1], [0, 1, 0, 1, 2, 3]]


def test_targets_in_the_next_document() -> None:
    """BOS after EOS is no target; EOS that stands alone ends its document."""
    targets = torch.tensor([[5, 1, 2, 6]])
    assert within_documents(targets, (1, 2)).tolist() == [[5, 1, -100, 6]]
    assert within_documents(targets, (1,)).tolist() == [[5, 1, 2, 6]]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("separator", [(1,), (1, 2)])
def test_a_row_costs_what_its_documents_cost(
    make_model: Callable[..., Any], attention: str, separator: tuple[int, ...]
) -> None:
    """One row of all documents, against each through the model by itself."""
    model = sharpened(make_model(attn_implementation=attention))
    special = SpecialIds(separator=separator)
    nats, n_targets = batch_loss(model, packed(separator, 40), CONFIG, special)
    whole = [[separator[-1], *ids, 1] for ids in DOCUMENTS]
    assert int(n_targets) == sum(len(ids) - 1 for ids in whole)
    assert float(nats.detach()) == pytest.approx(sum(alone(model, ids) for ids in whole), rel=1e-5)
    plain, _ = batch_loss(model, packed(separator, 40), LoopConfig(), special)
    assert float(plain.detach()) != pytest.approx(float(nats.detach()), rel=1e-3)


def test_a_document_over_two_rows(make_model: Callable[..., Any]) -> None:
    """What is left of a document begins its row as if it were one."""
    model = sharpened(make_model())
    rows = packed((1,), 10)  # 1 7 8 9 7 1 5 1 11 12 | 13 14 15 16 17 1 21 22 1
    nats, _ = batch_loss(model, rows, CONFIG, EOS)
    parts = [
        [1, 7, 8, 9, 7, 1],
        [1, 5, 1],
        [1, 11, 12, 13],
        [13, 14, 15, 16, 17, 1],
        [1, 21, 22, 1],
    ]
    assert float(nats.detach()) == pytest.approx(sum(alone(model, p) for p in parts), rel=1e-5)


def test_sliding_windows(make_model: Callable[..., Any]) -> None:
    """Layers that look back a few tokens only keep documents apart as well."""
    from transformers import MistralConfig, MistralForCausalLM

    settings = make_model().config.to_dict() | {"sliding_window": 3, "model_type": "mistral"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = sharpened(MistralForCausalLM(MistralConfig(**settings)))
    nats, _ = batch_loss(model, packed((1,), 40), CONFIG, EOS)
    expected = sum(alone(model, [1, *ids, 1]) for ids in DOCUMENTS)
    assert float(nats.detach()) == pytest.approx(expected, rel=1e-5)


def test_flash_attention_gets_one_row(make_model: Callable[..., Any]) -> None:
    """All rows end to end, positions and targets with them: it looks at batches of one alone."""
    model = make_model()
    model.config._attn_implementation_internal = "flash_attention_2"
    inputs = document_inputs(model, torch.tensor([[1, 5, 1], [6, 1, 7]]), 1)
    assert inputs["input_ids"].tolist() == [[1, 5, 1, 6, 1, 7]]
    assert inputs["position_ids"].tolist() == [[0, 1, 0, 0, 0, 1]]


def test_models_that_cannot_are_refused(make_model: Callable[..., Any]) -> None:
    """A Llama can; a Mamba carries its state on; ALiBi has no positions to start again."""
    from transformers import BloomConfig, BloomForCausalLM, MambaConfig, MambaForCausalLM

    require_document_attention(make_model().train())
    with pytest.raises(ValueError, match="BloomForCausalLM takes no position_ids; leave"):
        require_document_attention(
            BloomForCausalLM(BloomConfig(vocab_size=30, hidden_size=16, n_layer=1, n_head=2))
        )
    mamba = MambaConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, state_size=4)
    with pytest.raises(ValueError, match="MambaForCausalLM"):
        require_document_attention(sharpened(MambaForCausalLM(mamba)))


def tiny(kind: str) -> Any:
    """A random model with weights as they are at the start, which tell little of other tokens."""
    import transformers

    sizes: dict[str, Any] = {"vocab_size": 30, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"hidden_size": 32, "bos_token_id": 0, "eos_token_id": 1}
    experts = {"num_key_value_heads": 2, "num_local_experts": 4, "intermediate_size": 64}
    more: dict[str, dict[str, Any]] = {
        "BertLMHeadModel": {"is_decoder": True, "intermediate_size": 64},
        "MixtralForCausalLM": experts,
        "FalconH1ForCausalLM": {**experts, "head_dim": 8},
    }
    model_class = getattr(transformers, kind)
    torch.manual_seed(0)
    return model_class(model_class.config_class(**sizes, **more.get(kind, {})))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("OpenAIGPTLMHeadModel", torch.float32),
        ("OpenAIGPTLMHeadModel", torch.bfloat16),
        ("BertLMHeadModel", torch.float32),
        ("BertLMHeadModel", torch.bfloat16),
        ("FalconH1ForCausalLM", torch.float32),
    ],
)
def test_a_small_leak_is_refused(kind: str, dtype: Any) -> None:
    """Small beside the effect of positions, or (of Mamba) beside that of attention."""
    model = tiny(kind).to(dtype)
    with pytest.raises(ValueError, match=f"{kind} does not keep documents apart"):
        require_document_attention(model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["LlamaForCausalLM", "GPT2LMHeadModel", "MixtralForCausalLM"])
def test_models_that_can_are_accepted(kind: str, dtype: Any) -> None:
    """In half precision too, with weights in it or by autocast."""
    model = tiny(kind)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        require_document_attention(model)
    require_document_attention(model.to(dtype))


def test_masked_models_see_all_documents() -> None:
    """The two wishes together are refused when they are made."""
    with pytest.raises(ValueError, match="for the causal objective"):
        LoopConfig(objective="masked", document_attention=True)


def test_a_model_that_ignores_positions_is_refused(make_model: Callable[..., Any]) -> None:
    """The check runs the model; a signature is no proof."""
    model = sharpened(make_model())
    ordinary = model.forward

    def forward(input_ids: Any, position_ids: Any = None, **options: Any) -> Any:
        return ordinary(input_ids=input_ids, **options)

    model.forward = forward
    with pytest.raises(ValueError, match=r"does not keep documents apart.*attention sdpa"):
        require_document_attention(model)


def test_the_check_restores_modes(make_model: Callable[..., Any]) -> None:
    """Parts that were in evaluation mode stay there, the rest goes on training."""
    model = make_model().train()
    model.model.norm.eval()
    require_document_attention(model)
    assert model.training
    assert not model.model.norm.training
