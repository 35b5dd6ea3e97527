"""Complaints about models whose vocabulary was changed, one named test each: numbers that go wrong
in use (loss, generation, heads that are made again, wrappers) and in training (adapters, shards).

As `test_transfer_complaints.py`; each test names the issue thread that it answers.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.surgery.back import transfer_back_folder  # noqa: E402
from vocabshift.surgery.matching import match  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402
from vocabshift.workflows.transfer import transfer  # noqa: E402

TEXT = "the cat and the other cat sat by the heater"


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return small_models.old_tokenizer()


@pytest.fixture(scope="module")
def longer(old) -> Tokenizer:
    """The old tokenizer and 30 tokens of Hindi behind it: old ids and old text stay."""
    return vs.extend(old, vs.Corpus.from_texts(small_models.HINDI), n_tokens=30)


def ids_of(tokenizer: Tokenizer, text: str = TEXT) -> Any:
    return torch.tensor([vs.Encoder(tokenizer).encode(text).tolist()])


def test_transformers_29219_loss_after_new_tokens(old, longer) -> None:
    """Gemma's loss rose from 1 to 17: here by no more than new tokens take of the old ones.

    A new logit is the mean of its pieces' logits, so that exp(new) is at most their mean exp.
    """
    model = small_models.build("gemma3", old, final_logit_softcapping=None)
    ids = ids_of(old)
    assert torch.equal(ids, ids_of(longer))
    with torch.no_grad():
        before = model(input_ids=ids, labels=ids)
        transfer(model, old=old, new=longer)
        after = model(input_ids=ids, labels=ids)
    shares = before.logits.double().softmax(-1)
    mapping = match(old, longer, {token.id: token.id for token in old.added_tokens})
    assert mapping.made.tolist() == list(range(old.row_count, longer.row_count))
    pieces = torch.from_numpy(mapping.pieces).tensor_split(mapping.offsets[1:-1].tolist())
    taken = sum(shares[0, :, each].mean(-1) for each in pieces)
    bound = torch.log1p(taken).max().item()
    assert 0 < bound < 0.5
    assert 0 < (after.loss - before.loss).item() <= bound + 1e-4


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gptj"])
def test_transformers_24372_generation_does_not_change(old, longer, kind) -> None:
    """Random new rows took over greedy generation; a mean is never above its best piece."""
    model = small_models.build(kind, old)
    options = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}
    before = model.generate(input_ids=ids_of(old), **options)
    transfer(model, old=old, new=longer)
    assert torch.equal(before, model.generate(input_ids=ids_of(longer), **options))


@pytest.mark.parametrize("kind", ["llama", "gptj", "llama-tied"])
def test_transformers_45079_36221_44711_head_is_not_made_again(old, longer, kind, tmp_path) -> None:
    """A resized head was re-initialised at load, or by `post_init`: here it is what was written."""
    model = small_models.build(kind, old)
    transfer(model, old=old, new=longer)
    head = {name: t.clone() for name, t in model.get_output_embeddings().named_parameters()}
    model.save_pretrained(tmp_path)
    loaded, info = type(model).from_pretrained(tmp_path, output_loading_info=True)
    for each in (loaded, model):
        each.post_init()
        each.tie_weights()
        found = dict(each.get_output_embeddings().named_parameters())
        assert all(torch.equal(tensor, found[name]) for name, tensor in head.items())
    assert not [key for key in ("missing_keys", "mismatched_keys") if info[key]]


def test_automodel_2511_saved_shards_hold_the_tied_head(old, longer, tmp_path) -> None:
    """A tied head was dropped on save and came back random: one tensor, tied by the config."""
    source = small_models.save(small_models.build("llama-tied", old), old, tmp_path / "model")
    transfer_folder(source, longer, tmp_path / "out")
    loaded, info = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert set() == set(info["missing_keys"])
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight
    again = tmp_path / "again"
    loaded.save_pretrained(again)
    other = transformers.AutoModelForCausalLM.from_pretrained(again)
    assert torch.equal(loaded.lm_head.weight, other.lm_head.weight)


@pytest.mark.parametrize("kind", ["mllama", *small_models.WRAPPERS])
def test_transformers_36590_36591_loss_of_a_wrapper(old, longer, kind) -> None:
    """The new size did not reach the language model: the loss could not be computed."""
    model = _mllama(old) if kind == "mllama" else small_models.build(kind, old)
    transfer(model, old=old, new=longer)
    ids = ids_of(longer)
    loss = model(input_ids=ids, labels=ids).loss
    assert math.isfinite(loss.item())
    loss.backward()
    text = model.config.get_text_config()
    assert text.vocab_size == model.get_output_embeddings().weight.shape[0]


def _mllama(old: Tokenizer) -> Any:
    settings = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    settings |= {"num_attention_heads": 2, "num_key_value_heads": 1, "cross_attention_layers": []}
    settings |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}
    config = transformers.models.mllama.MllamaTextConfig(vocab_size=old.row_count, **settings)
    return transformers.MllamaForCausalLM(config)


def test_vllm_9030_what_a_server_reads_fits_the_tensors(old, longer, tmp_path) -> None:
    """Servers allot the rows that the text config of a wrapper names: all tables have these."""
    for kind in small_models.WRAPPERS:
        source = small_models.save(small_models.build(kind, old), old, tmp_path / kind)
        transfer_folder(source, longer, tmp_path / f"{kind}-out")
        config = json.loads((tmp_path / f"{kind}-out" / "config.json").read_text())
        named = {config["text_config"]["vocab_size"]}
        named |= {config["vocab_size"]} if "vocab_size" in config else set()
        tensors = _tensors(tmp_path / f"{kind}-out")
        tables = {len(t) for n, t in tensors.items() if "embed_tokens" in n or "lm_head" in n}
        assert named == tables == {longer.row_count}


def test_open_r1_663_generation_ends(old, tmp_path) -> None:
    """Generations were unbounded: the id of eos in generation_config.json is the new one."""
    model = small_models.build("gptj", old)
    eos = small_models.special_ids(old)["</s>"]
    model.lm_head.bias.data[eos] = 1e4  # it says nothing else
    model.generation_config.eos_token_id = eos
    source = small_models.save(model, old, tmp_path / "model")
    transfer_folder(source, small_models.new_tokenizer(), tmp_path / "out")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = auto("the day", return_tensors="pt", add_special_tokens=False)["input_ids"]
    made = loaded.generate(input_ids=ids, max_new_tokens=9)[0, ids.shape[1] :].tolist()
    assert [auto.eos_token_id] == made
    assert auto.eos_token_id != eos


def test_distributed_llama_282_rows_can_be_the_tokens(old, longer, tmp_path) -> None:
    """For programs that want as many tokens as rows: pad_to_multiple_of=1 leaves no padding."""
    source = small_models.save(small_models.build("qwen2-padded", old), old, tmp_path / "model")
    report = transfer_folder(
        source, longer, tmp_path / "out", TransferOptions(pad_to_multiple_of=1)
    )
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "out")
    assert report.rows == config.vocab_size == len(auto)


def test_axolotl_577_no_padding_unasked(old, longer) -> None:
    """A model without padding gets none: nobody else's multiple of 32."""
    model = small_models.build("llama", old)
    transfer(model, old=old, new=longer)
    assert longer.row_count % 32
    assert longer.row_count == len(model.lm_head.weight) == model.config.vocab_size


def test_peft_2898_unsloth_237_llamafactory_3125_adapters_fit(old, longer, tmp_path) -> None:
    """Adapters held whole embeddings and did not load: here every other tensor is as it was.

    So an adapter of the old model's layers fits the new one, nothing has to be resized before it
    is loaded, and one that was trained after the transfer goes back with the old tokenizer.
    """
    source = small_models.save(small_models.build("llama", old), old, tmp_path / "model")
    transfer_folder(source, longer, tmp_path / "out")
    before, after = _tensors(source), _tensors(tmp_path / "out")
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name].shape != after[name].shape}
    assert {"model.embed_tokens.weight", "lm_head.weight"} == changed
    assert all(torch.equal(before[name], after[name]) for name in before.keys() - changed)

    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert len(transformers.AutoTokenizer.from_pretrained(tmp_path / "out")) == len(
        loaded.get_input_embeddings().weight
    )
    query = "model.layers.0.self_attn.q_proj.weight"
    low_rank = torch.randn(16, 2) @ torch.randn(2, 16)
    loaded.get_parameter(query).data += low_rank
    loaded.save_pretrained(tmp_path / "trained")
    for name in ("transfer_map.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "trained" / name).write_bytes((tmp_path / "out" / name).read_bytes())
    transfer_back_folder(tmp_path / "trained", source, tmp_path / "back")
    back = _tensors(tmp_path / "back")
    assert torch.equal(before[query] + low_rank, back.pop(query))
    assert all(torch.equal(before[name], tensor) for name, tensor in back.items())


def test_llamafactory_7997_modules_to_save_are_spoken_of(old, longer, tmp_path, capsys) -> None:
    """vLLM refuses adapters that hold whole embeddings: the output says so, and what to do."""
    source = small_models.save(small_models.build("llama", old), old, tmp_path / "model")
    longer.save_pretrained(tmp_path / "new")
    argv = ["transfer", source, tmp_path / "new", "-o", tmp_path / "out", "--json"]
    assert 0 == main([str(word) for word in argv])
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("modules_to_save" in note and "merge" in note for note in notes)


@pytest.mark.parametrize("state", ["deepspeed", "meta"])
def test_transformers_40382_32196_26398_25394_partitioned_models_are_refused(
    old, longer, state
) -> None:
    """Under FSDP and ZeRO-3 a rank holds no rows (or none that are real): said, nothing changed."""
    model = small_models.build("llama", old)
    if state == "deepspeed":  # ZeRO-3 leaves an empty tensor in the module
        for module in (model.model.embed_tokens, model.lm_head):
            module.weight = torch.nn.Parameter(torch.zeros(0))
    else:
        model = model.to("meta")
    config = model.config.to_dict()
    with pytest.raises(ValueError, match=r"0 rows, but its|on meta; load the model whole"):
        transfer(model, old=old, new=longer)
    assert config == model.config.to_dict()


def _tensors(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return {
        name: tensor
        for file in sorted(folder.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }
