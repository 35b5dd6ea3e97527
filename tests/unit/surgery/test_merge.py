"""A merged adapter: what PEFT's own merge makes of it, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from reference.lora import merged
from saved_models import load, save_adapter, with_peft
from small_models import HINDI, build, old_tokenizer, save
from vocabshift.errors import VocabMismatchError
from vocabshift.models.adapter import change
from vocabshift.workflows.adapters import merge_adapter

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("default")  # PEFT and transformers warn of each other

ALL = ["q_proj", "v_proj", "o_proj", "gate_proj", "down_proj"]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("llama", {"target_modules": ALL}),
    "orthogonal": ("llama", {"target_modules": ALL, "init_lora_weights": "orthogonal"}),
    "rank-stabilised": ("llama", {"target_modules": ALL, "use_rslora": True, "r": 3}),
    "patterns": (
        "llama",
        {
            "target_modules": ALL,
            "rank_pattern": {"v_proj": 2, "^model.layers.0.mlp.*": 3},
            "alpha_pattern": {"layers.0.self_attn.q_proj": 5, "down_proj": 7},
        },
    ),
    "rank-stabilised-patterns": (
        "llama",
        {"target_modules": ALL, "use_rslora": True, "rank_pattern": {"v_proj": 2}},
    ),
    "conv1d": ("gpt2", {"target_modules": ["c_attn", "c_proj", "c_fc"], "fan_in_fan_out": True}),
    "conv1d-unsaid": ("gpt2", {"target_modules": ["c_proj"]}),  # square; PEFT corrects the config
    "all-biases": ("opt", {"target_modules": ["q_proj", "fc1"], "bias": "all"}),
    "own-biases": ("opt", {"target_modules": ["q_proj", "fc1"], "bias": "lora_only"}),
    "bias-of-b": ("opt", {"target_modules": ["q_proj", "fc1"], "lora_bias": True}),
    "head-whole": ("llama", {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}),
    "tables-whole": (
        "llama",
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head", "embed_tokens"]},
    ),
    "norms-whole": ("llama", {"target_modules": ["q_proj"], "modules_to_save": ["norm"]}),
    "table-lora": ("llama", {"target_modules": ["embed_tokens", "lm_head", "q_proj"]}),
    "rows": ("llama", {"target_modules": ["q_proj"], "trainable_token_indices": [7, 2, 280]}),
    "rows-of-both": (
        "llama",
        {
            "target_modules": ["q_proj"],
            "trainable_token_indices": {"embed_tokens": [7, 2], "lm_head": [1]},
        },
    ),
    "rows-of-a-renamed-head": (  # GPT-NeoX's is stored as embed_out
        "gpt_neox",
        {
            "target_modules": ["dense"],
            "trainable_token_indices": {"embed_in": [7, 2], "lm_head": [1]},
        },
    ),
    "rows-tied": ("llama-tied", {"target_modules": ALL, "trainable_token_indices": [7, 2, 280]}),
    "rows-tied-said-twice": (
        "llama-tied",
        {
            "target_modules": ALL,
            "trainable_token_indices": {"embed_tokens": [7, 2], "lm_head": [7, 2]},
        },
    ),
}

Make = Callable[..., tuple[Path, Path]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A base model of a kind and an adapter of it, random as after training."""

    def make(kind: str, settings: dict[str, Any], dtype: Any = torch.float32) -> tuple[Path, Path]:
        tokenizer = old_tokenizer()
        layers = {} if kind == "gpt2" else {"num_hidden_layers": 2}
        base = save(build(kind, tokenizer, **layers).to(dtype), tokenizer, tmp_path / "base")
        settings = {"r": 4, "lora_alpha": 6, "task_type": "CAUSAL_LM", **settings}
        save_adapter(base, tmp_path / "adapter", 0.1, **settings)
        return base, tmp_path / "adapter"

    return make


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_peft_makes_of_it(make: Make, tmp_path: Path, case: str) -> None:
    """Bit for bit in float32; and the merged folder computes what base and adapter compute."""
    base, adapter = make(*CASES[case])
    result = merge_adapter(adapter, tmp_path / "merged")
    ours = load(tmp_path / "merged")
    model = with_peft(base, adapter)
    ids = torch.arange(0, 280, 7)[None]
    torch.testing.assert_close(model(ids).logits, ours(ids).logits, rtol=1e-4, atol=1e-5)
    theirs = model.merge_and_unload().state_dict()
    for name, value in ours.state_dict().items():
        assert torch.equal(value, theirs[name]), name
    stored, before = (load_file(x / "model.safetensors") for x in (tmp_path / "merged", base))
    assert result["n_changed"] == sum(not torch.equal(stored[n], before[n]) for n in before)
    assert (tmp_path / "merged/tokenizer.json").read_bytes() == (
        base / "tokenizer.json"
    ).read_bytes()
    assert (tmp_path / "merged/config.json").read_bytes() == (base / "config.json").read_bytes()


def test_the_change_is_the_plain_one() -> None:
    """W + s B A, number by number; of a transposed weight too."""
    torch.manual_seed(3)
    weight, a, b = torch.randn(5, 7), torch.randn(3, 7), torch.randn(5, 3)
    expected = merged(weight, a, b, 0.75).float()
    torch.testing.assert_close(expected, weight + change(a, b, 0.75, is_transposed=False))
    torch.testing.assert_close(expected.T, weight.T + change(a, b, 0.75, is_transposed=True))
    half = change(a.bfloat16(), b.bfloat16(), 0.75, is_transposed=False)
    assert torch.float32 == half.dtype


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(make: Make, tmp_path: Path, dtype: Any) -> None:
    """The sum is made in float32."""
    base, adapter = make("llama", {"target_modules": ALL}, dtype)
    merge_adapter(adapter, tmp_path / "merged")
    stored, before = (load_file(x / "model.safetensors") for x in (tmp_path / "merged", base))
    parts = load_file(adapter / "adapter_model.safetensors")
    name = "model.layers.1.mlp.down_proj"
    a, b = (parts[f"base_model.model.{name}.lora_{x}.weight"].float() for x in "AB")
    expected = (before[f"{name}.weight"].float() + b @ a * 1.5).to(dtype)
    assert torch.equal(expected, stored[f"{name}.weight"])


def test_blocks_change_nothing(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards, and weights that are larger than a block."""
    base, adapter = make(*CASES["rows-of-both"])
    merge_adapter(adapter, tmp_path / "one")
    load(base).save_pretrained(base, max_shard_size="4KB")
    (base / "model.safetensors").unlink()
    monkeypatch.setattr("vocabshift.surgery.merge._BLOCK_BYTES", 500)
    result = merge_adapter(adapter, tmp_path / "two", hard_links=True)
    one, two = load(tmp_path / "one").state_dict(), load(tmp_path / "two").state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert {"rewritten", "linked"} <= set(result["files"].values())


def test_a_killed_merge_resumes(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, adapter = make(*CASES["plain"])
    load(base).save_pretrained(base, max_shard_size="4KB")
    (base / "model.safetensors").unlink()
    from vocabshift.models import shard_writer

    calls, write = [], shard_writer.write_shard

    def dying(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        write(*args)

    with monkeypatch.context() as patch:
        patch.setattr(shard_writer, "write_shard", dying)
        with pytest.raises(KeyboardInterrupt):
            merge_adapter(adapter, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    shutil.copytree(tmp_path / "merged.partial", tmp_path / "other.partial")
    result = merge_adapter(adapter, tmp_path / "merged")
    assert "kept from the run before" in result["files"].values()
    afresh = merge_adapter(adapter, tmp_path / "afresh")
    assert "kept from the run before" not in afresh["files"].values()
    weights = adapter / "adapter_model.safetensors"
    save_file({name: part * 2 for name, part in load_file(weights).items()}, weights)
    other = merge_adapter(adapter, tmp_path / "other")  # another one, as long and as old
    assert "kept from the run before" not in other["files"].values()
    for file in (tmp_path / "afresh").glob("*.safetensors"):
        assert file.read_bytes() == (tmp_path / "merged" / file.name).read_bytes()


def test_files_beside_the_weights(make: Make, tmp_path: Path) -> None:
    """All chat templates come along; what does not is listed, before and after."""
    base, adapter = make(*CASES["plain"])
    (base / "additional_chat_templates").mkdir()
    (base / "additional_chat_templates" / "tools.jinja").write_text("{{ messages }}")
    (base / "optimizer.pt").write_bytes(b"")
    told = merge_adapter(adapter, tmp_path / "merged", dry_run=True)["left_out"]
    assert ["optimizer.pt"] == [*told]
    assert told == merge_adapter(adapter, tmp_path / "merged")["left_out"]
    copied = tmp_path / "merged" / "additional_chat_templates" / "tools.jinja"
    assert "{{ messages }}" == copied.read_text()


def test_a_dry_run_writes_nothing(make: Make, tmp_path: Path) -> None:
    _, adapter = make(*CASES["rows"])
    result = merge_adapter(adapter, tmp_path / "merged", dry_run=True)
    assert (2, 3, True) == (result["n_lora"], result["n_rows"], result["dry_run"])
    assert not list(tmp_path.glob("merged*"))


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "dora": ("llama", {"target_modules": ALL, "use_dora": True}, "use_dora: DoRA also rescales"),
    "pissa": ("llama", {"target_modules": ALL, "init_lora_weights": "pissa"}, "is 'pissa'"),
    "tied-table": (
        "llama-tied",
        {"target_modules": ALL, "modules_to_save": ["embed_tokens"]},
        "lm_head.weight and model.embed_tokens.weight are one tensor",
    ),
    "tied-lora": (
        "llama-tied",
        {"target_modules": [*ALL, "embed_tokens"]},
        "lm_head.weight and model.embed_tokens.weight are one tensor",
    ),
    "tied-rows-of-the-head": (
        "llama-tied",
        {"target_modules": ALL, "trainable_token_indices": {"lm_head": [7, 2]}},
        "has rows of lm_head for other tokens",
    ),
    "tied-rows-of-different-tokens": (
        "llama-tied",
        {
            "target_modules": ALL,
            "trainable_token_indices": {"embed_tokens": [7, 2], "lm_head": [1]},
        },
        "has rows of lm_head for other tokens",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(make: Make, tmp_path: Path, case: str) -> None:
    kind, settings, message = REFUSED[case]
    _, adapter = make(kind, settings)
    with pytest.raises(ValueError, match=message):
        merge_adapter(adapter, tmp_path / "merged")
    assert not list(tmp_path.glob("merged*"))


@pytest.mark.parametrize("case", ["rows", "tables-whole", "table-lora", "plain"])
def test_rows_of_another_vocabulary(make: Make, tmp_path: Path, case: str) -> None:
    """They would be those of other tokens; LoRA of layers belongs to no token."""
    _, adapter = make(*CASES[case])
    tokenizer = old_tokenizer(HINDI)  # as many tokens
    other = save(build("llama", tokenizer, num_hidden_layers=2), tokenizer, tmp_path / "other")
    if case == "plain":
        assert 10 == merge_adapter(adapter, tmp_path / "merged", base=other)["n_lora"]
        return
    with pytest.raises(VocabMismatchError, match="trained with another vocabulary; see"):
        merge_adapter(adapter, tmp_path / "merged", base=other)
    assert not list(tmp_path.glob("merged*"))


def test_a_token_that_was_added_in_training(make: Make, tmp_path: Path) -> None:
    """In a row that the base has to spare: its tokenizer does not know the token."""
    base, adapter = make(*CASES["rows"])
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(adapter)
    plain = json.loads((base / "tokenizer.json").read_text())
    text = max(plain["model"]["vocab"], key=plain["model"]["vocab"].get)
    plain["model"]["vocab"].pop(text)
    plain["model"]["merges"] = [m for m in plain["model"]["merges"] if "".join(m) != text]
    (base / "tokenizer.json").write_text(json.dumps(plain))
    assert 3 == merge_adapter(adapter, tmp_path / "merged")["n_rows"]


def test_a_tied_head_that_is_stored_once_more(make: Make, tmp_path: Path) -> None:
    """Rows go into both: with two tensors that differ, transformers unties the model."""
    base, adapter = make(*CASES["rows-tied"])
    tensors = load_file(base / "model.safetensors")
    copy = tensors["model.embed_tokens.weight"].clone()
    save_file({**tensors, "lm_head.weight": copy}, base / "model.safetensors", {"format": "pt"})
    assert 3 == merge_adapter(adapter, tmp_path / "merged")["n_rows"]
    ids = torch.arange(0, 280, 7)[None]
    expected = with_peft(base, adapter)(ids).logits
    found = load(tmp_path / "merged")(ids).logits
    torch.testing.assert_close(expected, found, rtol=1e-4, atol=1e-5)


def test_what_peft_does_to_a_tied_table(make: Make, tmp_path: Path) -> None:
    """Why such an adapter is refused: PEFT's merge also changes the head."""
    base, adapter = make(*REFUSED["tied-lora"][:2])
    model = with_peft(base, adapter)
    ids = torch.arange(0, 280, 7)[None]
    before = model(ids).logits
    assert not torch.allclose(before, model.merge_and_unload()(ids).logits, atol=1e-2)


WRONG: list[tuple[str, Any]] = [
    ("trainable_token_indices", "abc"),
    ("trainable_token_indices", {"embed_tokens": 5}),
    ("trainable_token_indices", {"embed_tokens": [7, 2, 1.5]}),
    ("rank_pattern", ["q_proj"]),
    ("rank_pattern", {"(": 2}),
    ("rank_pattern", {"q_proj": 0}),
    ("alpha_pattern", {"q_proj": "x"}),
]


def edit(folder: Path, **keys: Any) -> None:
    file = folder / "adapter_config.json"
    config = json.loads(file.read_text()) | keys
    file.write_text(json.dumps(config))


def test_bad_adapters(make: Make, tmp_path: Path) -> None:
    base, adapter = make(*CASES["rows"])

    def refused(message: str, source: Path = adapter, **options: Any) -> None:
        error = (ValueError, FileNotFoundError, FileExistsError)
        with pytest.raises(error, match=message):
            merge_adapter(source, tmp_path / "merged", **options)
        assert not list(tmp_path.glob("merged*"))

    refused("holds no adapter_config.json", base)
    refused("no such file", tmp_path / "nothing", base=base)
    refused("is no model folder", base=adapter)
    edit(adapter, base_model_name_or_path=str(tmp_path / "gone"))
    refused("the adapter's base: .*gone.*; name it with --base")
    edit(adapter, base_model_name_or_path="someone/name", revision="v1.0")
    refused("is of revision v1.0 of someone/name; download that one, and name it with --base")
    edit(adapter, base_model_name_or_path=None)
    refused("does not name its base model; name it with --base")
    edit(adapter, base_model_name_or_path=str(base), trainable_token_indices=[7, 2])
    refused("has 3 rows for model.embed_tokens and its config names 2")
    for key, wrong in WRONG:
        edit(adapter, **{"trainable_token_indices": [7, 2, 280], key: wrong})
        refused("adapter_config.json is damaged: ")
        edit(adapter, **{key: None})
    edit(adapter, trainable_token_indices=[7, 2, 5000])
    refused("a row for token 5000 and model.embed_tokens of the base has 288")
    edit(adapter, trainable_token_indices=[7, 2, 280], peft_type="IA3")
    refused("its peft_type is 'IA3', and LORA is needed")
    edit(adapter, peft_type="LORA", r=0)
    refused("adapter_config.json is damaged: r is 0|damaged")
    edit(adapter, r=4)
    weights = adapter / "adapter_model.safetensors"
    parts = load_file(weights)
    weights.write_bytes(weights.read_bytes()[:100])
    refused("adapter_model.safetensors is damaged")
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    save_file({key: part for key, part in parts.items() if key != name}, weights)
    refused("q_proj has only one of A and B")
    save_file({**parts, name: parts[name][:, :8].contiguous()}, weights)
    refused(r"q_proj.weight is \[16, 8\] and the base's \[16, 16\]")
    moved = {key.replace("layers.1", "layers.9"): part for key, part in parts.items()}
    save_file(moved, weights)
    refused("changes model.layers.9.self_attn.q_proj, which LlamaForCausalLM does not have")
    as_table = {
        re.sub(r"(q_proj.lora)_(.).*", r"\1_embedding_\2", key): parts[key] for key in parts
    }
    save_file(as_table, weights)
    refused("q_proj, a Linear, as Embedding: only linear layers and embeddings are merged")
    for x in "AB":
        name_of = name.replace("lora_A", f"lora_{x}")
        save_file({**parts, name_of: parts[name_of][..., None]}, weights)
        refused("it was trained on another base")
    rows = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    save_file({**parts, rows: parts[rows][..., None]}, weights)
    refused("it was trained on another base")
    save_file({**parts, "base_model.model.model.norm.weight": torch.ones(())}, weights)
    refused("model.norm.weight is float32 of shape")
    save_file({**parts, name: parts[name] / 0}, weights)
    with pytest.raises(ValueError, match=r"q_proj\.weight would hold numbers that are not finite"):
        merge_adapter(adapter, tmp_path / "broken")
    assert not (tmp_path / "broken").exists()
    weights.unlink()
    (adapter / "adapter_model.bin").write_bytes(b"")
    refused("is a pickle, which is not read")
    shutil.copytree(base, tmp_path / "empty")
    (tmp_path / "empty/model.safetensors").unlink()
    save_file(parts, weights)
    refused("holds no safetensors weights", base=tmp_path / "empty")


@pytest.mark.parametrize("kind", ["llava", "gemma3-wrapper"])
def test_layers_of_text_and_images_end_alike(tmp_path: Path, kind: str) -> None:
    """An adapter of the text's layers: those of the images stay."""
    tokenizer = old_tokenizer()
    base = save(build(kind, tokenizer), tokenizer, tmp_path / "base")
    of_text = r".*language_model.*\.(q_proj|v_proj)"
    auto = transformers.AutoModelForImageTextToText
    settings = peft.LoraConfig(r=4, target_modules=of_text, init_lora_weights="gaussian")
    model = peft.get_peft_model(auto.from_pretrained(base), settings)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    model.save_pretrained(tmp_path / "adapter")
    merge_adapter(tmp_path / "adapter", tmp_path / "out")
    expected = model.merge_and_unload().state_dict()
    found = auto.from_pretrained(tmp_path / "out").state_dict()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    before = load_file(base / "model.safetensors")
    after = load_file(tmp_path / "out" / "model.safetensors")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all("language_model" in name and "vision" not in name for name in changed)


def test_other_names_in_the_checkpoint(make: Make, tmp_path: Path) -> None:
    """As GPT-2's on the Hub, which lack the prefix of the model's class."""
    base, adapter = make(*CASES["conv1d"])
    merge_adapter(adapter, tmp_path / "one")
    file = base / "model.safetensors"
    tensors = {name.removeprefix("transformer."): part for name, part in load_file(file).items()}
    save_file(tensors, file, metadata={"format": "pt"})
    merge_adapter(adapter, tmp_path / "two")
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert all(
        torch.equal(part, two[name.removeprefix("transformer.")]) for name, part in one.items()
    )
