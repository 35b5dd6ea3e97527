"""LoRA in a model that is trained, and the layers at its ends."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from reference.lora import LoraLinear
from small_models import PLAIN, build, old_tokenizer
from vocabshift.cpt import adapters
from vocabshift.cpt.checkpoints import StepCheckpoints
from vocabshift.cpt.loop import LoopConfig, Phase, Step, check_model, pretrain
from vocabshift.cpt.phases import phase_parameters, trained_parameters
from vocabshift.models.adapter import ROWS, Adapter
from vocabshift.models.token_loss import Tail, tail_of
from vocabshift.tokenizer.tokenizer import Tokenizer

pytest.importorskip("peft")

TEXTS = [f"line {number} of a small text; दूसरा वाक्य" for number in range(12)]
N_BYTES = sum(len(text.encode()) for text in TEXTS)
CONFIG = LoopConfig(sequence_length=32, batch_size=4, micro_batch_size=3)
NEW_IDS = (200, 97)
SETTINGS: dict[str, Any] = {"rank": 4, "alpha": 6, "dropout": 0.0, "seed": 3}
LORA = Phase(trained="lora", n_bytes=N_BYTES // 2, learning_rate=1e-2, lora_rank=3)


def train(
    model: Any, tokenizer: Tokenizer, phases: list[Phase], **options: Any
) -> tuple[list[Step], list[Adapter]]:
    found: list[Adapter] = []
    options = {"config": CONFIG, "new_ids": NEW_IDS, "on_adapter": found.append, **options}
    return pretrain(model, tokenizer, TEXTS, phases=phases, **options), found


def test_a_layer_is_the_plain_one(make_model: Callable[..., Any]) -> None:
    """Output, and gradients of A, B and the input: W x + s B A x."""
    model = make_model()
    linear = model.model.layers[0].mlp.down_proj
    with adapters.inserted(model, ["layers.0.mlp.down_proj"], **SETTINGS):
        layer = model.model.layers[0].mlp.down_proj
        torch.manual_seed(1)
        with torch.no_grad():
            layer.lora_B["default"].weight.normal_()
        a, b = (getattr(layer, f"lora_{name}")["default"].weight for name in "AB")
        assert ((4, 64), (32, 4)) == (a.shape, b.shape)
        plain = LoraLinear(linear.weight.detach(), None, a.detach(), b.detach(), 6 / 4)
        inputs = [torch.randn(5, 64, generator=torch.Generator().manual_seed(2)) for _ in "ab"]
        inputs = [inputs[0].clone().requires_grad_() for _ in inputs]
        results = [module(x) for module, x in zip((layer, plain), inputs, strict=True)]
        for result in results:
            result.square().sum().backward()
        pairs = [results, [a.grad, plain.a.grad], [b.grad, plain.b.grad], [x.grad for x in inputs]]
        for ours, theirs in pairs:
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)  # float32


def test_a_fresh_adapter_changes_nothing_and_a_merged_one_is_gone(
    make_model: Callable[..., Any],
) -> None:
    """Names, objects, flags; a merged model computes what the adapters did."""
    model = make_model().eval()
    model.model.norm.weight.requires_grad_(False)
    ids = torch.arange(20)[None]
    before = model(ids).logits
    named = {name: (id(p), p.requires_grad) for name, p in model.named_parameters()}
    kept = copy.deepcopy(model.state_dict())
    with adapters.inserted(model, (), **SETTINGS):
        assert torch.equal(before, model(ids).logits)
        assert tail_of(model) == Tail()  # the head is untouched: logits are never whole
        with torch.no_grad():
            for parameter in adapters.parameters(model):
                parameter.normal_(0, 0.1)
        inside = model(ids).logits
    assert named == {name: (id(p), p.requires_grad) for name, p in model.named_parameters()}
    assert not hasattr(model, "peft_config")
    torch.testing.assert_close(inside, model(ids).logits, rtol=1e-4, atol=1e-4)
    after = model.state_dict()
    assert {name for name in kept if not torch.equal(kept[name], after[name])} == {
        name for name in kept if "proj" in name
    }


def test_adapters_depend_on_the_seed_alone(make_model: Callable[..., Any]) -> None:
    def first(seed: int) -> torch.Tensor:
        model = make_model()
        torch.manual_seed(int(torch.randint(1000, ())))
        adapters.insert(model, (), **{**SETTINGS, "seed": seed})
        return adapters.parameters(model)[0].detach().clone()

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


def test_targets(make_model: Callable[..., Any]) -> None:
    """All linear layers of the body, or those that are named; the head never."""
    model = make_model()
    assert 14 == len(adapters.targets(model))
    assert ["model.layers.1.mlp.up_proj"] == list(adapters.targets(model, ["layers.1.mlp.up_proj"]))
    named = adapters.targets(model, ["v_proj", "q_proj"])
    assert ["q_proj", "v_proj"] * 2 == [name.rpartition(".")[2] for name in named]
    for wrong in ("lm_head", "embed_tokens", "proj"):
        with pytest.raises(ValueError, match=f"called '{wrong}'; there are down_proj, gate_proj"):
            adapters.targets(model, ["q_proj", wrong])
    about = adapters.insert(model, ["layers.0.self_attn.q_proj"], **SETTINGS)
    assert ["model.layers.0.self_attn.q_proj"] == about["target_modules"]  # "q_proj" is more


def test_adapters_stay_out_of_the_eye() -> None:
    """Text does not reach it, so it could not be trained."""
    model = build("llava", old_tokenizer())
    assert all("language_model" in name for name in adapters.targets(model))
    assert all("language_model" in name for name in names(model, "ends") if "layers" in name)


@pytest.mark.parametrize("kind", ["ModernBertForMaskedLM", "ModernBertDecoderForCausalLM"])
def test_a_head_that_is_called_decoder(kind: str) -> None:
    """`get_decoder` returns it, and the layers are elsewhere."""
    settings = {"vocab_size": 30, "hidden_size": 16, "intermediate_size": 24}
    special = dict.fromkeys(("pad_token_id", "bos_token_id", "cls_token_id"), 0)
    special |= dict.fromkeys(("eos_token_id", "sep_token_id"), 1)
    name = kind.replace("ForMaskedLM", "").replace("ForCausalLM", "")
    config = getattr(transformers, f"{name}Config")(
        num_hidden_layers=3, num_attention_heads=2, **settings, **special
    )
    model = getattr(transformers, kind)(config)
    assert model.get_decoder() is model.get_output_embeddings()
    chosen = adapters.targets(model)
    assert {"0", "1", "2"} == {each.split(".")[2] for each in chosen if "layers" in each}
    assert all(each.startswith("model.layers.") for each in chosen)
    ends = {each.split(".")[2] for each in names(model, "ends", end_layers=1) if "layers" in each}
    assert {"0", "2"} == ends


def test_layers_whose_weight_alone_is_read() -> None:
    """PEFT refuses Mamba's `out_proj`: by default it gets no adapter, and it cannot be named."""
    config = transformers.MambaConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, state_size=4
    )
    model = transformers.MambaForCausalLM(config)
    last = {name.rpartition(".")[2] for name in adapters.targets(model)}
    assert {"in_proj", "x_proj", "dt_proj"} == last
    with pytest.raises(ValueError, match="called 'out_proj'; there are dt_proj, in_proj, x_proj"):
        adapters.targets(model, ["out_proj"])
    assert sorted(last) == adapters.insert(model, (), **SETTINGS)["target_modules"]


def falcon() -> Any:
    config = transformers.FalconConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2
    )
    return transformers.FalconForCausalLM(config).eval()


def test_linear_layers_of_a_class_of_their_own() -> None:
    """Falcon's multiply as others do, and adapters are put into them and merged."""
    model, ids = falcon(), torch.arange(9)[None]
    parts = {each.rpartition(".")[2] for each in adapters.targets(model)}
    assert {"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"} == parts
    before = model(ids).logits
    with adapters.inserted(model, (), **SETTINGS):
        torch.testing.assert_close(before, model(ids).logits)
        with torch.no_grad():
            for parameter in adapters.parameters(model):
                parameter.normal_(0, 0.1)
        inside = model(ids).logits
    assert not torch.allclose(before, inside, atol=1e-3)
    torch.testing.assert_close(inside, model(ids).logits, rtol=1e-4, atol=1e-4)


def test_linear_layers_that_do_more_get_no_adapter() -> None:
    """Routers of experts return more than a product, and quantized weights are codes."""

    class Router(torch.nn.Linear):
        pass

    model = falcon()
    model.transformer.h[0].router = Router(16, 4)
    assert all("router" not in each for each in adapters.targets(model))


def names(model: Any, trained: str, **settings: Any) -> set[str]:
    phase = Phase(trained=trained, n_bytes=1, **settings)
    with trained_parameters(model, phase):
        return {name for name, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize("kind", [kind for kind in PLAIN if kind != "gemma3n-per-layer"])
def test_the_ends_of_every_architecture(kind: str) -> None:
    """Embeddings, head, and one layer at either end; not the layer between, nor the last norm."""
    keys = {"gpt2": "n_layer", "openai-gpt": "n_layer", "gptj": "n_layer", "bloom": "n_layer"}
    changes: dict[str, Any] = {keys.get(kind, "num_hidden_layers"): 3}
    if kind == "gemma4-per-layer":
        changes["layer_types"] = ["sliding_attention", "sliding_attention", "full_attention"]
    model = build(kind, old_tokenizer(), **changes)
    layers = adapters.layers(model)
    assert 3 == len(layers)
    known = {id(p): name for name, p in model.named_parameters()}
    tables = {known[id(p)] for p in phase_parameters(model, "embeddings")}
    ends = {known[id(p)] for layer in (layers[0], layers[2]) for p in layer.parameters()}
    assert tables | ends == names(model, "ends", end_layers=1)
    assert not tables & ends


def test_ends_of_a_model_without_layers() -> None:
    model = build("llama", old_tokenizer())
    model.config.num_hidden_layers = 5
    with pytest.raises(ValueError, match="LlamaForCausalLM has no list of 5 layers"):
        names(model, "ends")


@pytest.mark.parametrize("tied", [True, False])
def test_only_adapters_and_new_rows_are_trained(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tied: bool
) -> None:
    """All else is bit-identical; the adapter that is passed on makes the merged model."""
    model = make_model(tie_word_embeddings=tied)
    before = copy.deepcopy(model.state_dict())
    _, [adapter] = train(model, byte_tokenizer, [LORA])
    after = model.state_dict()
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        name for name in before if "proj" in name or "embed" in name or "lm_head" in name
    }
    rows = (before["lm_head.weight"] != after["lm_head.weight"]).any(dim=1)
    assert sorted(NEW_IDS) == rows.nonzero().flatten().tolist()
    tables = {"model.embed_tokens", *([] if tied else ["lm_head"])}
    assert dict.fromkeys(tables, sorted(NEW_IDS)) == adapter.config["trainable_token_indices"]
    for name in tables:
        assert torch.equal(adapter.modules[name][ROWS], after[f"{name}.weight"][sorted(NEW_IDS)])
    layer = adapter.modules["model.layers.1.mlp.up_proj"]
    change = layer["lora_B.weight"] @ layer["lora_A.weight"] * (32 / 3)
    name = "model.layers.1.mlp.up_proj.weight"
    assert torch.equal(before[name] + change, after[name])


def test_without_new_rows_tables_are_still(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer
) -> None:
    model = make_model()
    before = copy.deepcopy(model.state_dict())
    _, [adapter] = train(model, byte_tokenizer, [LORA], new_ids=())
    assert all(
        torch.equal(before[name], value)
        for name, value in model.state_dict().items()
        if "proj" not in name
    )
    assert adapter.config["trainable_token_indices"] is None


class _KilledError(Exception):
    pass


PHASES = [
    Phase(trained="new-rows", n_bytes=N_BYTES // 3, learning_rate=1e-2),
    Phase(trained="lora", n_bytes=N_BYTES // 2, lora_rank=3, lora_dropout=0.2),
    Phase(trained="lora", n_bytes=N_BYTES // 3, lora_rank=2, lora_targets=("o_proj",)),
    Phase(trained="ends", n_bytes=N_BYTES // 3, end_layers=1),
]


def test_resumed_is_uninterrupted(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """In every phase, step for step and weight for weight, after adapters were merged too."""

    def run(folder: Path | None, stop: int | None = None) -> tuple[Any, list[Step]]:
        model, steps = make_model(), []

        def on_step(step: Step) -> None:
            steps.append(step)
            if len(steps) == stop:
                raise _KilledError

        saved = StepCheckpoints(folder, {}, every_steps=1, every_seconds=None) if folder else None
        with contextlib.suppress(_KilledError):
            train(model, byte_tokenizer, PHASES, on_step=on_step, checkpoints=saved)
        return model, steps

    model, expected = run(None)
    first = {step.phase: place for place, step in reversed(list(enumerate(expected)))}
    for phase in range(len(PHASES)):
        stop = first[phase] + 2  # a step of the phase is saved, and one is lost
        _, begun = run(tmp_path / str(phase), stop=stop)
        again, rest = run(tmp_path / str(phase))
        assert begun[:-1] + rest == expected
        assert (rest[0].phase, rest[0].step) == (phase, 2)
        assert all(
            torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True)
        )


def test_a_checkpoint_holds_adapters_and_new_rows_alone(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    saved = StepCheckpoints(tmp_path, {}, every_steps=1, every_seconds=None)
    train(make_model(), byte_tokenizer, [PHASES[0], LORA], checkpoints=saved)
    newest = saved.newest()
    assert newest is not None
    weights, moments = newest.weights, newest.moments
    parts = {name for name in weights if ".lora_" in name}
    tables = {"model.embed_tokens.weight", "lm_head.weight"}
    assert parts | tables | {"new_ids"} == set(weights)
    assert 28 == len(parts)
    assert all(weights[name].shape == (2, 32) for name in tables)
    assert {name.rpartition(":")[0] for name in moments} == parts | tables
    assert all(moments[f"{name}:exp_avg"].shape == (2, 32) for name in tables)
    [file] = {*tmp_path.glob("steps/*/data/moments.safetensors")} - {
        *sorted(tmp_path.glob("steps/*/data/moments.safetensors"))[:-1]
    }
    assert load_file(file).keys() == moments.keys()


def test_checkpointed_activations_change_nothing(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer
) -> None:
    losses = []
    for is_on in (False, True):
        config = LoopConfig(sequence_length=32, batch_size=4, activation_checkpointing=is_on)
        steps, _ = train(make_model(), byte_tokenizer, [LORA], config=config)
        losses.append([step.loss for step in steps])
    assert losses[0] == losses[1]


def test_a_head_with_a_bias_is_refused(make_model: Callable[..., Any]) -> None:
    """PEFT would load the rows of the head without its bias."""
    model = build("gptj", old_tokenizer())
    check_model(model, 200, CONFIG, [LORA])
    with pytest.raises(ValueError, match="has a bias, which PEFT drops"):
        check_model(model, 200, CONFIG, [LORA], NEW_IDS)


@pytest.mark.filterwarnings("default")  # PEFT and transformers warn of each other
def test_what_peft_does_to_a_head_with_a_bias() -> None:
    """Rows that are as they were change all logits: by the bias."""
    import peft

    model = build("gptj", old_tokenizer())
    ids = torch.arange(9)[None]
    before, bias = model(ids).logits, model.lm_head.bias
    config = peft.LoraConfig(target_modules=["q_proj"], trainable_token_indices={"lm_head": [3]})
    after = peft.get_peft_model(model, config).eval()(ids).logits
    torch.testing.assert_close(before - bias, after)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lora_rank": 0}, "lora_rank is 0; at least 1"),
        ({"lora_alpha": 0}, "lora_alpha is 0; at least 1"),
        ({"end_layers": 0}, "end_layers is 0; at least 1"),
        ({"lora_dropout": 1.0}, "lora_dropout is 1.0; 0 to below 1"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Phase(trained="lora", n_bytes=1, **settings)


def test_settings_of_other_phases_are_no_facts_of_a_run() -> None:
    """A run that began before they existed is resumed."""
    assert {"trained", "n_bytes", "learning_rate"} == set(Phase(n_bytes=1).mathematics())
    assert 2 == Phase(n_bytes=1, trained="ends").mathematics()["end_layers"]
    assert [] == LORA.mathematics()["lora_targets"]
