"""What people complain of in other tools, one named test each (repository and issue in its name).

Each test names the issue thread that it answers; here is what vocabshift does.
Others of them: `test_model_complaints.py`, `test_vocabulary_complaints.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402

import quantized_models  # noqa: E402
import small_models  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.formats.load import load_tokenizer  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402
from vocabshift.workflows.transfer import transfer  # noqa: E402


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return small_models.old_tokenizer()


@pytest.fixture(scope="module")
def new() -> Tokenizer:
    return small_models.new_tokenizer()


@pytest.fixture
def moved(old, new, tmp_path):
    """Save a small model, change its folder if asked, transfer; (model, source, output)."""

    def make(kind: str, edit: Any = None, target: Any = None, **changes: Any) -> Any:
        model = small_models.build(kind, old, **changes)
        source = small_models.save(model, old, tmp_path / "model")
        if edit is not None:
            edit(source)
        transfer_folder(source, target or new, tmp_path / "out")
        return model, source, tmp_path / "out"

    return make


def _load(model: Any, folder: Path) -> Any:
    return type(model).from_pretrained(folder)


def _edit(file: str, **values: Any) -> Any:
    def edit(folder: Path) -> None:
        data = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(data | values))

    return edit


def test_qwen_553_metaseq_469_padded_rows_are_no_mismatch(moved) -> None:
    """QwenLM/Qwen#553, facebookresearch/metaseq#469: more rows than tokens are as it should be."""
    model, _, out = moved("qwen2-padded")
    loaded = _load(model, out)
    assert loaded.config.vocab_size == len(loaded.get_input_embeddings().weight)
    assert 0 == loaded.config.vocab_size % 64
    assert load_tokenizer(out).row_count < loaded.config.vocab_size


def test_llamafactory_10547_new_tokens_inside_the_padding(old, moved) -> None:
    """New ids among the old padding rows get rows of their own, not what a tail slice hits."""
    kept = replace(old, model=replace(old.model, merges=old.model.merges))
    added = small_models.train(small_models.ENGLISH, 283, (*small_models.SPECIALS, "<new>"))
    target = replace(added, config=kept.config, post_processor=kept.post_processor)
    _, source, out = moved("qwen2-padded", target=target)
    ids = small_models.special_ids(load_tokenizer(out))
    before = load_file(source / "model.safetensors")["model.embed_tokens.weight"]
    after = load_file(out / "model.safetensors")["model.embed_tokens.weight"]
    assert old.row_count <= ids["<new>"] < len(before)
    assert not torch.equal(before[ids["<new>"]], after[ids["<new>"]])
    assert torch.equal(before[: old.row_count], after[: old.row_count])


def test_transformers_20043_rows_can_become_fewer(old, moved) -> None:
    """#20043: a smaller vocabulary gives a smaller model."""
    smaller = small_models.train(small_models.ENGLISH, 258)
    model, source, out = moved("llama", target=smaller)
    assert len(_load(model, out).lm_head.weight) < len(model.lm_head.weight)
    assert (out / "model.safetensors").stat().st_size < (
        source / "model.safetensors"
    ).stat().st_size


def test_transformers_25732_padding_and_config_agree(old, new) -> None:
    """#25732: with pad_to_multiple_of, config.vocab_size is the number of rows."""
    model = small_models.build("llama", old)
    transfer(model, old=old, new=new, pad_to_multiple_of=128)
    assert 384 == model.config.vocab_size == len(model.lm_head.weight) == model.lm_head.out_features


def test_trl_5608_padded_rows_never_win(old, new) -> None:
    """trl#5608: a padding row is the mean; random ones take over the output."""
    model = small_models.build("llama", old)
    before = model.lm_head.weight.detach().clone()
    _, tokenizer = transfer(model, old=old, new=new, pad_to_multiple_of=64)
    padding = model.lm_head.weight[tokenizer.row_count :]
    assert len(padding) > 0
    expected = before.double().mean(0).float()
    torch.testing.assert_close(expected.expand_as(padding), padding.detach())


def test_transformers_35244_logits_are_as_wide_as_config_says(old, new) -> None:
    """#35244: code that indexes logits by vocab_size finds them."""
    model = small_models.build("qwen2-padded", old)
    transfer(model, old=old, new=new)
    logits = model(torch.tensor([[1, 2]])).logits
    assert model.config.vocab_size == logits.shape[-1]


@pytest.mark.parametrize("kind", ["llama-tied", "gpt2", "mt5-tied", "bert", "gemma3-wrapper"])
def test_transformers_35141_tied_stays_tied(moved, kind) -> None:
    """#35141: one tensor, and the head is not random."""
    model, _, out = moved(kind)
    loaded = _load(model, out)
    assert loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    assert loaded.config.tie_word_embeddings


def test_transformers_17580_1730_bias_of_the_head_follows(old, moved) -> None:
    """#17580, #1730: old tokens keep their bias, new ones get the mean of their pieces'."""
    model, _, out = moved("gptj")
    loaded, tokenizer = _load(model, out), load_tokenizer(out)
    assert tokenizer.row_count == len(loaded.lm_head.bias)
    ids, old_ids = small_models.special_ids(tokenizer), small_models.special_ids(old)
    for text, old_id in old_ids.items():
        assert model.lm_head.bias[old_id] == loaded.lm_head.bias[ids[text]]


def test_transformers_32948_encoder_decoder_still_speaks(moved) -> None:
    """#32948 (NLLB): shared, encoder's and decoder's tables and the bias all follow."""
    model, _, out = moved("mbart")
    loaded = _load(model, out)
    rows = {
        len(loaded.model.shared.weight),
        len(loaded.model.encoder.embed_tokens.weight),
        len(loaded.model.decoder.embed_tokens.weight),
        len(loaded.lm_head.weight),
        loaded.final_logits_bias.shape[1],
    }
    assert {loaded.config.vocab_size} == rows
    ids = torch.tensor([load_tokenizer(out).backend.encode("the cat").ids])
    assert loaded.generate(input_ids=ids, max_new_tokens=3, min_new_tokens=3).shape[1] > 3


@pytest.mark.parametrize("kind", ["gemma4-per-layer", "gemma3n-per-layer"])
def test_transformers_45276_per_layer_embeddings_follow(moved, kind) -> None:
    """#45276: embed_tokens_per_layer has a row for every token, too."""
    model, _, out = moved(kind)
    loaded = _load(model, out)
    text = loaded.config.get_text_config()
    assert text.vocab_size == text.vocab_size_per_layer_input
    table = loaded.get_submodule("model.embed_tokens_per_layer").weight
    assert text.vocab_size == len(table)


def test_transformers_33819_head_of_other_rows_than_the_embeddings(old, new) -> None:
    """#33819 (Mllama): the embeddings have 8 rows more than the head, before and after."""
    layers = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.models.mllama.MllamaTextConfig(
        **layers,
        **heads,
        vocab_size=old.row_count - 1,  # its image token has a row of its own behind
        cross_attention_layers=[],
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=3,
    )
    model = transformers.MllamaForCausalLM(config)
    image = model.get_input_embeddings().weight[-8].detach().clone()
    _, tokenizer = transfer(model, old=old, new=new)
    embeddings, head = model.get_input_embeddings().weight, model.lm_head.weight
    assert len(embeddings) == len(head) + 8 == model.config.vocab_size + 8
    token_id = small_models.special_ids(tokenizer)["<image>"]
    assert torch.equal(image, embeddings[token_id].detach())


@pytest.mark.parametrize("kind", small_models.WRAPPERS)
def test_llamafactory_8005_vocab_size_of_a_wrapper(moved, kind) -> None:
    """LlamaFactory#8005: the text config says it, not the top."""
    model, _, out = moved(kind)
    config = json.loads((out / "config.json").read_text())
    rows = len(_load(model, out).get_input_embeddings().weight)
    assert rows == config["text_config"]["vocab_size"]


def test_mlx_vlm_2112_rapid_mlx_546_lmdeploy_3148_eos_reaches_the_generation_config(moved) -> None:
    """mlx-vlm#2112, Rapid-MLX#546, lmdeploy#3148: lists of eos, in both files."""
    _, _, out = moved("llama", _edit("config.json", eos_token_id=[284, 286]))
    ids = small_models.special_ids(load_tokenizer(out))
    expected = [ids["</s>"], ids["<|turn|>"]]
    for file in ("config.json", "generation_config.json"):
        assert expected == json.loads((out / file).read_text())["eos_token_id"]


def test_chat_template_texts_are_tokens_of_the_new_tokenizer(old, new, tmp_path) -> None:
    """A template's special texts are single ids after the transfer."""
    template = "{% for m in messages %}<|turn|>{{ m.content }}</s>{% endfor %}"
    source = small_models.save(
        small_models.build("llama", old), replace(old, chat_template=template), tmp_path / "model"
    )
    transfer_folder(source, new, tmp_path / "out")
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    text = auto.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    ids = auto(text, add_special_tokens=False)["input_ids"]
    assert auto.convert_tokens_to_ids("<|turn|>") == ids[0]
    assert auto.convert_tokens_to_ids("</s>") == ids[-1]


@pytest.mark.parametrize("kind", ["gptq-head", "awq-head", "bitsandbytes-4-head", "fp8-head"])
def test_quantized_tables_are_refused_with_advice(old, new, tmp_path, kind) -> None:
    """bitsandbytes and its kin: what to do instead is said."""
    source = quantized_models.save(kind, old, tmp_path / "model")
    with pytest.raises(ValueError, match=r"quantized.*Take the unquantized checkpoint: transfer"):
        transfer_folder(source, new, tmp_path / "out")


def test_llama3_67_133_every_text_decodes_to_itself(moved) -> None:
    """llama3#67, #133: tokens of new words are bytes, so no letter is lost."""
    _, _, out = moved("llama")
    auto = transformers.AutoTokenizer.from_pretrained(out)
    for text in ("õhtu 日本 दिन बिल्ली", "the other day", "naïve café"):
        ids = auto(text, add_special_tokens=False)["input_ids"]
        assert text == auto.decode(ids)


def test_llama_cpp_6920_18399_the_hash_is_spoken_of(moved) -> None:
    """llama.cpp#6920, #18399: the output says what its converter will ask for."""
    _, _, out = moved("llama")
    notes = json.loads((out / "vocabshift.json").read_text())["figures"]["notes"]
    assert any("vocabshift convert FOLDER -o FILE.gguf" in note for note in notes)


def test_llama_cpp_1764_15842_ids_have_no_holes(moved) -> None:
    """llama.cpp#1764, #15842: added tokens follow the vocabulary, one after the other."""
    _, _, out = moved("llama")
    tokenizer = load_tokenizer(out)
    ids = {*tokenizer.model.vocab.values(), *small_models.special_ids(tokenizer).values()}
    assert set(range(tokenizer.row_count)) == ids


def test_a_token_that_the_model_stops_at_may_not_get_lost(old, new) -> None:
    """An eos that is an ordinary token and is gone is an error, not another token."""
    gone = next(token_id for token, token_id in old.model.vocab.items() if token.endswith("ther"))
    model = small_models.build("llama", old)
    model.config.eos_token_id = gone
    with pytest.raises(VocabMismatchError, match="eos_token_id"):
        transfer(model, old=old, new=new)


@pytest.mark.parametrize("kind", ["Unigram", "WordPiece"])
def test_lm_vocab_trimmer_3_hf_trim_6_pruned_models_of_other_kinds(kind, tmp_path) -> None:
    """lm-vocab-trimmer#3, hf-trim#6: kept rows, by the map, without holes."""
    import tokenizers

    words = ["<s>", "<pad>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz", "▁the", "▁cat", "▁dog"]
    if kind == "Unigram":
        pieces = [(word, -float(place)) for place, word in enumerate([*words, "▁"])]
        backend = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=3))
        backend.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
        backend.decoder = tokenizers.decoders.Metaspace()
        model_kind = "xlm-roberta"
    else:
        vocab = {word.replace("▁", ""): place for place, word in enumerate(words)}
        vocab |= {f"##{letter}": len(words) + place for place, letter in enumerate(words[4:30])}
        backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="<unk>"))
        backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        backend.decoder = tokenizers.decoders.WordPiece()
        model_kind = "bert"
    backend.add_special_tokens(words[:4])
    source = tmp_path / "model"
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(source)
    rows = backend.get_vocab_size()
    settings = small_models.OTHERS[model_kind][2] | {"vocab_size": rows, "bos_token_id": 0}
    settings |= {"eos_token_id": 2, "pad_token_id": 1, "max_position_embeddings": 40}
    config = transformers.AutoConfig.for_model(model_kind, **settings)
    model = getattr(transformers, small_models.OTHERS[model_kind][0])(config).eval()
    model.save_pretrained(source)
    (tmp_path / "text.txt").write_text("the cat\n" * 5)
    argv = ["prune", str(source), "--corpus", str(tmp_path / "text.txt"), "--n-tokens", "1"]
    assert 0 == main([*argv, "-o", str(tmp_path / "pruned")])
    words = ["transfer", source, tmp_path / "pruned", "-o", tmp_path / "out"]
    assert 0 == main([str(word) for word in words])
    loaded = type(model).from_pretrained(tmp_path / "out").eval()
    mapped = json.loads((tmp_path / "pruned" / "token_map.json").read_text())["old_to_new"]
    before, after = model.get_input_embeddings().weight, loaded.get_input_embeddings().weight
    assert len(after) == rows - 1 == loaded.config.vocab_size
    for old_id, new_id in enumerate(mapped):
        if new_id is not None:
            assert torch.equal(before[old_id], after[new_id])
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    first = transformers.AutoTokenizer.from_pretrained(source)
    with torch.no_grad():
        kept = [new_id for new_id in mapped if new_id is not None]
        was = [old_id for old_id, new_id in enumerate(mapped) if new_id is not None]
        now = loaded(torch.tensor([auto("the cat")["input_ids"]])).logits[..., kept]
        then = model(torch.tensor([first("the cat")["input_ids"]])).logits[..., was]
    torch.testing.assert_close(then, now)
    (tmp_path / "pruned" / "token_map.json").unlink()
    with pytest.raises(VocabMismatchError, match=r"there is no token_map\.json"):
        transfer_folder(source, tmp_path / "pruned", tmp_path / "other")
