"""The loss without logits agrees with the loss from `model(...).logits`, architecture for one."""

from __future__ import annotations

from typing import Any

import pytest

from vocabshift.models.token_loss import Tail, tail_of, token_loss

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

COMMON = {
    "vocab_size": 67,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
CAUSAL: dict[str, tuple[dict[str, Any], Tail]] = {
    "llama": ({}, Tail()),
    "gemma2": ({"head_dim": 8}, Tail(softcap=30.0)),
    "gemma3_text": ({"head_dim": 8, "final_logit_softcapping": 20.0}, Tail(softcap=20.0)),
    "granite": ({"logits_scaling": 8.0}, Tail(scale=1 / 8)),
    "cohere": ({"logit_scale": 0.0625}, Tail(scale=0.0625)),
    "gpt2": (GPT2, Tail()),
    "phi": ({"partial_rotary_factor": 0.5}, Tail()),  # a head with a bias
    "opt": ({"ffn_dim": 48, "word_embed_proj_dim": 16}, Tail()),  # a projection before the head
    "mixtral": ({"num_local_experts": 4}, Tail()),
    "mamba": ({}, Tail()),
}
MASKED = {"roberta": ({}, Tail()), "modernbert": ({}, Tail())}  # a transform before the head


def make(kind: str, changes: dict[str, Any], **more: Any) -> Any:
    """A model with weights so large that its logits reach the caps."""
    config = transformers.AutoConfig.for_model(kind, **(COMMON | changes | more))
    family = transformers.AutoModelForMaskedLM if kind in MASKED else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = (family or transformers.AutoModelForCausalLM).from_config(
            config, dtype=torch.float32
        )
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(6)
    return model.eval()


def batch() -> tuple[Any, Any]:
    """Ids and targets, of which some are ignored."""
    generator = torch.Generator().manual_seed(9)
    ids, targets = torch.randint(3, 67, (2, 2, 9), generator=generator)
    targets[0, 3] = targets[1, :2] = -100
    return ids, targets


def check(model: Any, *, digits: float = 2e-6, **inputs: Any) -> None:
    """token_loss equals cross entropy of the logits, and all gradients of the model do."""
    ids, targets = batch()
    logits = model(input_ids=ids, **inputs).logits
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), reduction="sum"
    )
    results = []
    for loss in (expected, token_loss(model, ids, targets, **inputs)):
        model.zero_grad(set_to_none=True)
        loss.backward()
        grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        results.append((float(loss.detach()), grads))
    (one, plain), (other, lean) = results
    assert other == pytest.approx(one, rel=digits)
    assert plain.keys() == lean.keys()
    largest = max(float(grad.abs().max()) for grad in plain.values())
    assert max(float((plain[n] - lean[n]).abs().max()) for n in plain) < digits * 3 * largest


@pytest.mark.parametrize("kind", CAUSAL)
def test_causal_architectures(kind: str) -> None:
    """Scales, caps, biases and what else stands around a head are found out, not assumed."""
    changes, tail = CAUSAL[kind]
    model = make(kind, changes)
    assert tail_of(model) == tail
    check(model)


@pytest.mark.parametrize("kind", MASKED)
def test_masked_architectures(kind: str) -> None:
    """The head of a masked language model is the last linear layer of its own."""
    changes, tail = MASKED[kind]
    model = make(kind, changes)
    assert tail_of(model) == tail
    check(model)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("frozen", ["nothing", "head", "body"])
def test_tied_and_frozen_heads(tied: bool, frozen: str) -> None:
    """A tied matrix gets both gradients; what is frozen gets none."""
    model = make("llama", {}, tie_word_embeddings=tied)
    if frozen == "head":
        model.lm_head.weight.requires_grad_(False)
    if frozen == "body":
        for parameter in model.model.layers.parameters():
            parameter.requires_grad_(False)
    check(model)


def test_kept_positions_alone() -> None:
    """The positions that have a target suffice."""
    model = make("llama", {})
    ids, targets = batch()
    kept = (targets.flatten() != -100).nonzero()[:, 0]
    torch.testing.assert_close(
        token_loss(model, ids, targets, kept=kept), token_loss(model, ids, targets, loss="plain")
    )


def test_the_probe_leaves_no_trace() -> None:
    """The random state, the head and the modes are as before."""
    model = make("llama", {}, attention_dropout=0.5).train()
    before = torch.get_rng_state()
    tail_of(model)
    assert torch.equal(torch.get_rng_state(), before)
    assert "forward" not in vars(model.lm_head)
    assert model.training


def test_the_head_is_back_after_an_error() -> None:
    """A model that fails in its forward keeps its head."""
    model = make("llama", {})
    tail_of(model)
    with pytest.raises(IndexError):
        token_loss(model, torch.tensor([[1000]]), torch.tensor([[1]]))
    assert "forward" not in vars(model.lm_head)


def test_logits_that_are_changed_otherwise_are_made_whole() -> None:
    """A model whose logits are not scaled or capped gets the plain loss, not a wrong one."""
    model = make("llama", {})
    ordinary = model.forward

    def forward(*arguments: Any, **options: Any) -> Any:
        output = ordinary(*arguments, **options)
        output.logits = output.logits + torch.arange(67)
        return output

    model.forward = forward
    assert tail_of(model) is None
    check(model)


def test_a_head_that_is_more_than_linear_is_left_alone() -> None:
    """A subclass of Linear with a forward of its own (adapters, quantization) is not replaced."""

    class Adapted(torch.nn.Linear):
        def forward(self, hidden: Any) -> Any:
            return super().forward(hidden) + hidden.sum(dim=-1, keepdim=True) * self.weight[:, 0]

    model = make("llama", {})
    adapted = Adapted(32, 67, bias=False)
    adapted.weight = model.lm_head.weight
    model.set_output_embeddings(adapted)
    assert tail_of(model) is None
    check(model)


def test_checkpointed_activations_change_nothing() -> None:
    """The loss goes through layers that are computed twice."""
    model = make("llama", {}).train()
    model.activation_checkpointing_enable({"use_reentrant": False})
    check(model)


def test_bfloat16_models_are_probed_rightly() -> None:
    """Three digits are enough to tell caps and scales apart."""
    assert tail_of(make("gemma2", {"head_dim": 8}).bfloat16()) == Tail(softcap=30.0)
    assert tail_of(make("granite", {"logits_scaling": 8.0}).bfloat16()) == Tail(scale=1 / 8)
