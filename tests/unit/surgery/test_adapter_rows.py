"""Adapters that were trained on the vocabulary before a transfer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from saved_models import load, save_adapter, with_peft
from small_models import ENGLISH, build, new_tokenizer, old_tokenizer, save, train
from vocabshift.tokenizer import id_map
from vocabshift.workflows.adapters import transfer_adapter
from vocabshift.workflows.transfer import TransferOptions, transfer_to_folder

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("default")  # PEFT and transformers warn of each other

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "layers": ("llama", {}),
    "dora-of-layers": ("llama", {"use_dora": True}),
    "rows": ("llama-tied", {"trainable_token_indices": [260, 97, 3, 284]}),
    "rows-of-both": (
        "llama",
        {"trainable_token_indices": {"embed_tokens": [260, 97], "lm_head": [97, 5, 262]}},
    ),
    "rows-tied-said-twice": (
        "llama-tied",
        {"trainable_token_indices": {"embed_tokens": [97, 260], "lm_head": [97, 260]}},
    ),
    "tables-whole": ("llama", {"modules_to_save": ["embed_tokens", "lm_head"]}),
    "head-with-bias": ("gptj", {"modules_to_save": ["lm_head"], "target_modules": ["q_proj"]}),
    "lora-of-tables": ("llama", {"target_modules": ["q_proj", "embed_tokens", "lm_head"]}),
}
Make = Callable[..., tuple[Path, Path]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A model on its new tokenizer, and an adapter of the model before."""

    def make(kind: str, settings: dict[str, Any]) -> tuple[Path, Path]:
        tokenizer = old_tokenizer()
        base = save(build(kind, tokenizer), tokenizer, tmp_path / "base")
        settings = {"r": 4, "target_modules": ["q_proj", "v_proj"], **settings}
        save_adapter(base, tmp_path / "adapter", 0.3, **settings)
        # Words of English, so that some tokens stay and change their ids, and Hindi.
        transfer_to_folder(base, new_tokenizer(), tmp_path / "new", TransferOptions(init="fvt"))
        return tmp_path / "new", tmp_path / "adapter"

    return make


def edit(folder: Path, **keys: Any) -> None:
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))


@pytest.mark.parametrize("case", CASES)
def test_kept_tokens_have_the_same_logits(make: Make, tmp_path: Path, case: str) -> None:
    """Of a text whose tokens all stay; in a tied model and in others, wherever rows are."""
    new, adapter = make(*CASES[case])
    edit(adapter, revision="v1.0")
    result = transfer_adapter(adapter, new, tmp_path / "moved")
    kept = id_map.load(new / "transfer_map.json").old_to_new
    known = (kept != id_map.GONE).nonzero()[0]
    assert 250 < len(known) < 288
    assert (kept[known] != known).any()
    ids = torch.from_numpy(known[::5].copy())[None]
    before = with_peft(tmp_path / "base", adapter)(ids).logits[..., known]
    plain = load(tmp_path / "base")(ids).logits[..., known]
    after = with_peft(new, tmp_path / "moved")(torch.from_numpy(kept)[ids]).logits
    assert not torch.allclose(before, plain, atol=1e-2)  # the adapter does something
    torch.testing.assert_close(before, after[..., kept[known]], rtol=1e-5, atol=1e-5)
    config = json.loads((tmp_path / "moved/adapter_config.json").read_text())
    assert config["revision"] is None  # it was of the base before
    assert str(new) == config["base_model_name_or_path"] == result["base"]
    assert (new / "tokenizer.json").read_bytes() == (tmp_path / "moved/tokenizer.json").read_bytes()


def test_rows_move_or_are_dropped(make: Make, tmp_path: Path) -> None:
    new, adapter = make("llama-tied", {"trainable_token_indices": [260, 97, 3, 284]})
    result = transfer_adapter(adapter, new, tmp_path / "moved")
    kept = id_map.load(new / "transfer_map.json").old_to_new.tolist()
    assert [id_map.GONE] == [kept[i] for i in (260,)]
    moved = sorted((kept[i], place) for place, i in enumerate((260, 97, 3, 284)) if kept[i] >= 0)
    config = json.loads((tmp_path / "moved/adapter_config.json").read_text())
    assert [new_id for new_id, _ in moved] == config["trainable_token_indices"]
    assert (3, 1) == (result["n_rows_moved"], result["n_rows_dropped"])
    name = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    before, after = (
        load_file(tmp_path / x / "adapter_model.safetensors") for x in ("adapter", "moved")
    )
    assert torch.equal(before[name][[place for _, place in moved]], after[name])


def test_new_tokens_have_the_models_rows(make: Make, tmp_path: Path) -> None:
    """Of a whole table, which must have rows for them too; and no change of LoRA's."""
    new, adapter = make(*CASES["tables-whole"])
    result = transfer_adapter(adapter, new, tmp_path / "moved")
    assert ["lm_head", "model.embed_tokens"] == sorted(result["tables"])
    own = load_file(new / "model.safetensors")
    known = id_map.load(new / "transfer_map.json").new_to_old()
    fresh = sorted(set(range(len(own["lm_head.weight"]))) - set(known))
    assert 10 < len(fresh)
    moved = load_file(tmp_path / "moved/adapter_model.safetensors")
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        assert own[name].shape == moved[f"base_model.model.{name}"].shape
        assert torch.equal(own[name][fresh], moved[f"base_model.model.{name}"][fresh])


def test_new_tokens_are_not_changed_by_lora(make: Make, tmp_path: Path) -> None:
    new, adapter = make(*CASES["lora-of-tables"])
    transfer_adapter(adapter, new, tmp_path / "moved")
    known = id_map.load(new / "transfer_map.json").new_to_old()
    moved = load_file(tmp_path / "moved/adapter_model.safetensors")
    a = moved["base_model.model.model.embed_tokens.lora_embedding_A"]
    b = moved["base_model.model.lm_head.lora_B.weight"]
    fresh = sorted(set(range(len(b))) - set(known))
    assert not a[:, fresh].any()
    assert not b[fresh].any()
    assert a[:, list(known)].any(dim=0).all()


def test_when_all_rows_are_gone(make: Make, tmp_path: Path) -> None:
    new, adapter = make("llama-tied", {"trainable_token_indices": [260]})
    result = transfer_adapter(adapter, new, tmp_path / "moved")
    assert (0, 1) == (result["n_rows_moved"], result["n_rows_dropped"])
    config = json.loads((tmp_path / "moved/adapter_config.json").read_text())
    assert config["trainable_token_indices"] is None
    ids = torch.arange(9)[None]
    assert torch.isfinite(with_peft(new, tmp_path / "moved")(ids).logits).all()


def test_refused(make: Make, tmp_path: Path) -> None:
    new, adapter = make("llama", {"target_modules": ["q_proj", "lm_head"], "use_dora": True})

    def refused(message: str, source: Path = adapter, model: Path = new) -> None:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            transfer_adapter(source, model, tmp_path / "moved")
        assert not list(tmp_path.glob("moved*"))

    refused("a DoRA of lm_head, whose magnitudes belong to all tokens")
    refused("holds no transfer_map.json", model=tmp_path / "base")
    refused("is no adapter: it holds no adapter_config.json", source=tmp_path / "base")
    other = train(ENGLISH, 270).save_pretrained(tmp_path / "other")
    shutil.copy(other / "tokenizer.json", adapter)  # it was trained with tokens of its own
    refused("the adapter was trained with another vocabulary")


def test_another_vocabulary_is_seen_without_a_tokenizer(make: Make, tmp_path: Path) -> None:
    new, adapter = make(*CASES["tables-whole"])
    edit(adapter, base_model_name_or_path=None)
    result = transfer_adapter(adapter, new, tmp_path / "moved", dry_run=True)
    assert any("ids were not checked" in note for note in result["notes"])
    assert not (tmp_path / "moved").exists()
    parts = load_file(adapter / "adapter_model.safetensors")
    short = {name: part[:100] if part.shape[0] == 288 else part for name, part in parts.items()}
    save_file({name: part.contiguous() for name, part in short.items()}, adapter / "x.safetensors")
    (adapter / "x.safetensors").replace(adapter / "adapter_model.safetensors")
    with pytest.raises(ValueError, match="has 100 rows, and the model's vocabulary before"):
        transfer_adapter(adapter, new, tmp_path / "moved")
