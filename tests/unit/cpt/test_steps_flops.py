"""FLOPs of a token: by hand for Llama shapes, and as torch counts them on small models."""

from __future__ import annotations

from typing import Any

import pytest

from vocabshift.cpt.steps import device_peak, mfu, model_flops_per_token, peak_flops

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

LENGTH = 32
SMALL = {
    "vocab_size": 307,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def make(kind: str, **changes: Any) -> Any:
    """A model whose products torch sees one by one."""
    config = transformers.AutoConfig.for_model(kind, **(SMALL | changes))
    return transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    )


def counted(model: Any) -> float:
    """FLOPs of a token as torch counts them in a forward and a backward pass.

    Without the angles of rotary positions, which transformers multiplied before 5.18 or later.
    """
    from torch.utils.flop_counter import FlopCounterMode

    ids = torch.randint(3, 300, (2, LENGTH))
    with FlopCounterMode(display=False) as counter:
        logits = model(input_ids=ids, use_cache=False).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
    counts = counter.get_flop_counts()  # by module
    angles = [sum(own.values()) for name, own in counts.items() if name.endswith("rotary_emb")]
    return (counter.get_total_flops() - sum(angles)) / ids.numel()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {}),
        ("llama", {"tie_word_embeddings": True}),
        ("llama", {"num_key_value_heads": 2}),
        ("qwen3", {"head_dim": 24}),  # heads that are wider than their share
        ("gpt2", {"n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 64}),
        (
            "deepseek_v3",  # latent attention, without experts
            {
                "q_lora_rank": 24,
                "kv_lora_rank": 16,
                "qk_nope_head_dim": 12,
                "qk_rope_head_dim": 8,
                "v_head_dim": 16,
                "first_k_dense_replace": 2,
            },
        ),
    ],
)
def test_equals_the_counter_of_torch(kind: str, changes: dict[str, Any]) -> None:
    """To the last product, positional lookups of GPT-2 and tied matrices included."""
    model = make(kind, **changes)
    assert model_flops_per_token(model, LENGTH) == counted(model)


def test_frozen_weights_cost_less() -> None:
    """With the layers frozen torch counts what is counted here."""
    model = make("llama")
    for parameter in model.model.layers.parameters():
        parameter.requires_grad_(False)
    assert model_flops_per_token(model, LENGTH) == counted(model)
    assert model_flops_per_token(model, LENGTH) < model_flops_per_token(make("llama"), LENGTH)


def llama(vocab_size: int, *, tied: bool) -> Any:
    """The shape of Llama 3.2 1B, without weights."""
    config = transformers.LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        tie_word_embeddings=tied,
    )
    with torch.device("meta"):
        return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize("tied", [True, False])
def test_llama_1b_by_hand(tied: bool) -> None:
    """6 N + 12 L H Q T of PaLM, appendix B; the lookup is free, so tying changes nothing."""
    layer = 2048 * 2048 + 2 * 2048 * 512 + 2048 * 2048 + 3 * 2048 * 8192
    weights = 16 * layer + 128_256 * 2048
    assert weights == 1_235_746_816
    expected = 6 * weights + 12 * 16 * 32 * 64 * 4096
    assert model_flops_per_token(llama(128_256, tied=tied), 4096) == expected == 9_025_093_632


def test_experts_count_as_often_as_they_are_visited() -> None:
    """Two of eight experts, and the router for every token."""
    model = make("mixtral", num_local_experts=8, num_experts_per_tok=2)
    layer = 4 * 64 * 64 + 8 * 64 + 2 * 3 * 64 * 96
    weights = 2 * layer + 307 * 64
    assert model_flops_per_token(model, LENGTH) == 6 * weights + 12 * 2 * 64 * LENGTH


def test_windows_bound_the_attention() -> None:
    """Layers with a window of 8 look at 8 tokens, the others at all."""
    model = make("gemma2", head_dim=16, sliding_window=8)
    assert model.config.layer_types == ["sliding_attention", "full_attention"]
    whole = make("gemma2", head_dim=16, sliding_window=4096)
    saved = model_flops_per_token(whole, LENGTH) - model_flops_per_token(model, LENGTH)
    assert saved == 12 * 64 * (LENGTH - 8)


def test_models_without_attention() -> None:
    """The length of the sequence costs a Mamba nothing."""
    model = make("mamba")
    assert model_flops_per_token(model, 8) == model_flops_per_token(model, 8000) > 0


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989),
        ("NVIDIA GH200 480GB", 989),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA L4", 121),
        ("NVIDIA L40S", 362),
        ("NVIDIA B200", 2250),
        ("NVIDIA GeForce RTX 4090", 165.2),
    ],
)
def test_peaks(name: str, teraflops: float) -> None:
    """Names as the driver gives them."""
    assert peak_flops(name) == pytest.approx(teraflops * 1e12)


@pytest.mark.parametrize(
    "name", ["NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA L40", "Tesla T4", "cpu", ""]
)
def test_unknown_peaks(name: str) -> None:
    """No number is better than a wrong one."""
    assert peak_flops(name) is None


def test_utilization() -> None:
    """Tokens a second by FLOPs a token, over the peak of all devices."""
    assert mfu(55_000, 9e9, 989e12) == pytest.approx(0.5005, abs=1e-4)
    assert mfu(440_000, 9e9, 989e12, n_devices=8) == mfu(55_000, 9e9, 989e12)
    assert mfu(55_000, 9e9, None) is None
    assert device_peak("cpu") is None
    with pytest.raises(ValueError, match="both must be above 0"):
        mfu(1, 1, 0.0)
    with pytest.raises(ValueError, match="at least 1 token"):
        model_flops_per_token(None, 0)
