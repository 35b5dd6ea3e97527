"""Transfer and undo: bit for bit without training, and what training changed stays changed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file  # noqa: E402

import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.surgery import back  # noqa: E402
from vocabshift.surgery.back import transfer_back_folder  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.components import bos_template  # noqa: E402
from vocabshift.tokenizer.formats.load import load_tokenizer  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402

TEXT = ["the cat and the other cat sat by the heater", "बिल्ली और दूसरी बिल्ली वहाँ बैठी थी"] * 8
SPECIALS = ("<s>", "</s>", "<|turn|>")
SMALL = {"n_embd": 16, "n_layer": 1, "n_head": 2, "rotary_dim": 4, "n_positions": 64}


@pytest.fixture
def old_model(tmp_path: Path) -> Any:
    """GPT-J with a biased head (or tied) and five rows of padding; gives its folder."""

    def make(*, tied: bool = False, name: str = "old") -> Path:
        tokenizer = vs.BpeTrainer(vocab_size=275, special_tokens=SPECIALS).train(
            vs.Corpus.from_texts(TEXT[:1])
        )
        ids = {token.content: token.id for token in tokenizer.added_tokens}
        tokenizer = Tokenizer(
            **{
                **{key: getattr(tokenizer, key) for key in tokenizer.__dataclass_fields__},
                "config": {"bos_token": "<s>", "eos_token": "</s>"},
                "post_processor": bos_template("<s>", ids["<s>"]),
                "chat_template": "<|turn|>{{ messages[0].content }}</s>",
            }
        )
        config = transformers.AutoConfig.for_model(
            "gptj",
            vocab_size=tokenizer.row_count + 5,
            bos_token_id=ids["<s>"],
            eos_token_id=ids["</s>"],
            tie_word_embeddings=tied,
            **SMALL,
        )
        torch.manual_seed(4)
        model = transformers.AutoModelForCausalLM.from_config(config)
        model.generation_config.eos_token_id = [ids["</s>"], ids["<|turn|>"]]
        torch.nn.init.normal_(model.lm_head.bias)
        folder = tokenizer.save_pretrained(tmp_path / name)
        model.save_pretrained(folder)
        return folder

    return make


@pytest.fixture
def new() -> Tokenizer:
    """Other ids, half of the old tokens, and none of the special ones."""
    return vs.BpeTrainer(vocab_size=310).train(vs.Corpus.from_texts(TEXT[1:2]))


def _ids(folder: Path) -> dict[str, Any]:
    found = {}
    for name in ("config.json", "generation_config.json"):
        data = json.loads((folder / name).read_text(encoding="utf-8"))
        found |= {f"{name} {key}": data[key] for key in data if "_token_id" in key}
        found |= {f"{name} {key}": data[key] for key in data if key == "vocab_size"}
    return found


@pytest.mark.parametrize("with_map", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_there_and_back_is_the_original(old_model, new, tmp_path, tied, with_map) -> None:
    """Every tensor bit for bit, padding too; ids, template and tokenizer as they were."""
    folder = old_model(tied=tied)
    there = transfer_folder(folder, new, tmp_path / "new")
    if not with_map:
        (tmp_path / "new" / "transfer_map.json").unlink()
    back = transfer_back_folder(tmp_path / "new", folder, tmp_path / "back")
    before = load_file(folder / "model.safetensors")
    after = load_file(tmp_path / "back" / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert _ids(folder) == _ids(tmp_path / "back")
    assert there.n_removed == back.n_initialized > 5
    assert back.n_copied > 256
    for name in ("tokenizer.json", "chat_template.jinja"):
        texts = [(each / name).read_text(encoding="utf-8") for each in (folder, tmp_path / "back")]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("tied", [True, False])
def test_shard_by_shard_as_in_memory(old_model, new, tmp_path, monkeypatch, tied) -> None:
    """Shards are worked through and never loaded; a model in another format gives the same."""
    folder, there = old_model(tied=tied), tmp_path / "new"
    transfer_folder(folder, new, there)
    model = transformers.AutoModelForCausalLM.from_pretrained(there)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    shutil.copytree(there, tmp_path / "other")
    torch.save(model.state_dict(), tmp_path / "other" / "pytorch_model.bin")
    (tmp_path / "other" / "model.safetensors").unlink()
    in_memory = transfer_back_folder(tmp_path / "other", folder, tmp_path / "from-memory")
    (there / "model.safetensors").unlink()
    (there / "processor_config.json").write_text(json.dumps({"eos_token_id": _eos(there)}))
    model.save_pretrained(there, max_shard_size="12KB")
    monkeypatch.setattr(back, "load_model", lambda *_, **__: pytest.fail("it was loaded"))
    streamed = transfer_back_folder(there, folder, tmp_path / "streamed")
    assert {"rewritten", "copied", "written"} == set(streamed.files.values())
    assert {"pytorch_model.bin", "model.safetensors"} <= in_memory.files.keys()
    assert replace(streamed, files={}, bytes_before=0, bytes_after=0) == replace(
        in_memory, files={}
    )
    loaded = [
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name)
        for name in ("from-memory", "streamed")
    ]
    one, two = (each.state_dict() for each in loaded)
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert _ids(folder) == _ids(tmp_path / "streamed") == _ids(tmp_path / "from-memory")
    moved = json.loads((tmp_path / "streamed" / "processor_config.json").read_text())
    assert {"eos_token_id": _eos(folder)} == moved
    assert not (tmp_path / "streamed" / "transfer_map.json").exists()


def _eos(folder: Path) -> int:
    return {token.content: token.id for token in load_tokenizer(folder).added_tokens}["</s>"]


def test_what_was_learnt_stays(old_model, new, tmp_path) -> None:
    """Kept tokens bring the current rows back, in all tables; the rest is the initial model's."""
    folder = old_model()
    transfer_folder(folder, new, tmp_path / "new")
    file = tmp_path / "new" / "model.safetensors"
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "new")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape))
    model.save_pretrained(tmp_path / "new")
    trained, before = load_file(file), load_file(folder / "model.safetensors")
    transfer_back_folder(tmp_path / "new", folder, tmp_path / "back")
    after = load_file(tmp_path / "back" / "model.safetensors")
    old_ids, new_ids = (
        {**t.model.vocab, **{a.content: a.id for a in t.added_tokens}}
        for t in map(load_tokenizer, (folder, tmp_path / "new"))
    )
    kept = {token_id: new_ids[token] for token, token_id in old_ids.items() if token in new_ids}
    assert {old_ids[token] for token in SPECIALS} <= kept.keys()
    for name, tensor in after.items():
        if tensor.shape == trained[name].shape:
            assert torch.equal(trained[name], tensor)
            continue
        for row in range(len(tensor)):
            source = trained[name][kept[row]] if row in kept else before[name][row]
            assert torch.equal(source, tensor[row]), (name, row)


def test_on_the_command_line(old_model, new, tmp_path, capsys) -> None:
    """The contract's keys; what is missing is said."""
    folder = old_model()
    transfer_folder(folder, new, tmp_path / "new")
    words = ["transfer", str(tmp_path / "new"), "--back"]
    out = ["-o", str(tmp_path / "back"), "--json"]
    assert 2 == main([*words, *out])
    assert "needs --initial" in capsys.readouterr().err
    assert 2 == main(["transfer", str(folder), *out])
    assert "TOKENIZER is required" in capsys.readouterr().err
    for more in (["--init", "fvt"], ["--hard-links"], ["--pattern", "gpt2"]):
        assert 2 == main([*words, "--initial", str(folder), *more, *out])
        assert "--back takes no TOKENIZER, no other option but --force" in capsys.readouterr().err
    assert 0 == main([*words, "--initial", str(folder), *out])
    found = json.loads(capsys.readouterr().out)
    assert {"out", "n_copied", "n_initialized", "n_removed", "tied", "vocab_size", "rows"} <= set(
        found
    )
    assert ("back", 278, 283) == (found["init"], found["vocab_size"], found["rows"])


def test_models_that_do_not_belong_together(old_model, new, tmp_path) -> None:
    """Another tokenizer, or a tie that is not there: refused, nothing written."""
    folder, tied = old_model(), old_model(tied=True, name="tied")
    transfer_folder(folder, new, tmp_path / "new")
    with pytest.raises(VocabMismatchError, match="do not match"):
        transfer_back_folder(tmp_path / "new", tied, tmp_path / "back")
    transfer_folder(folder, new, tmp_path / "other")
    with pytest.raises(VocabMismatchError, match="token map leads from"):
        transfer_back_folder(tmp_path / "other", tmp_path / "new", tmp_path / "back")
    assert not (tmp_path / "back").exists()
