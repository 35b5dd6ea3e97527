"""`vocabshift convert DIR -o FILE.gguf`: files compared with what llama.cpp's rules give, and back.

`gguf_files` writes by the rules of llama.cpp's converter; the package gguf reads both.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

from safetensors.torch import load_file, save_file  # noqa: E402
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: E402

import vocabshift as vs  # noqa: E402
from gguf_files import LAYOUTS, SIZE, model_of, tokenizer_of, write_gguf  # noqa: E402
from small_models import save, special_ids  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.models.gguf_config import Metadata, build_config  # noqa: E402
from vocabshift.models.gguf_keys import to_hyperparameters  # noqa: E402
from vocabshift.tokenizer import components  # noqa: E402
from vocabshift.tokenizer.formats.gguf_header import Header, TensorInfo  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402


def own_tokenizer(layout: str, place: Path) -> Tokenizer:
    """That of `tokenizer_of`, keeping runs of spaces, as llama.cpp does."""
    tokenizer = tokenizer_of(layout, place)
    if layout.startswith("gemma"):
        normalizer = components.space_to_metaspace(add_prefix=True)
        tokenizer = replace(tokenizer, normalizer=normalizer)
    return tokenizer


def folder_of(layout: str, place: Path, *, dtype: Any = None) -> tuple[Path, Any, Tokenizer]:
    tokenizer = own_tokenizer(layout, place)
    model = model_of(layout, tokenizer)
    if dtype is not None:
        model = model.to(dtype)
    return save(model, tokenizer, place / "model"), model, tokenizer


def contents(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys and tensors, as the package gguf reads them."""
    reader = gguf.GGUFReader(file)
    keys = {name: field.contents() for name, field in reader.fields.items()}
    return keys, {tensor.name: tensor for tensor in reader.tensors}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensors_and_keys_are_those_of_llama_cpps_converter(layout: str, tmp_path: Path) -> None:
    folder, model, tokenizer = folder_of(layout, tmp_path)
    result = vs.convert_to_gguf(folder, tmp_path / "ours.gguf")
    theirs = write_gguf(tmp_path / "theirs.gguf", model, tokenizer)
    keys, tensors = contents(tmp_path / "ours.gguf")
    expected_keys, expected = contents(theirs)
    assert expected.keys() == tensors.keys()
    for name, tensor in expected.items():
        assert tensor.shape.tolist() == tensors[name].shape.tolist(), name
        np.testing.assert_allclose(tensors[name].data, tensor.data, rtol=1e-6, err_msg=name)
    for name, value in expected_keys.items():
        if name == "tokenizer.ggml.scores":  # of tokens that no merge makes they do not matter
            continue
        if not name.startswith("GGUF.") and name != "tokenizer.ggml.remove_extra_whitespaces":
            assert value == keys[name], name
    assert result["bytes_after"] == (tmp_path / "ours.gguf").stat().st_size
    assert ("default" if layout.startswith("gemma") else "gpt-2") == result["pre_tokenizer"]
    assert result["n_texts_compared"] > 300


@pytest.mark.parametrize("layout", ["llama, biases", "qwen2, yarn", "qwen3", "gemma", "gemma3"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_there_and_back(layout: str, dtype: Any, tmp_path: Path) -> None:
    folder, model, tokenizer = folder_of(layout, tmp_path, dtype=getattr(torch, dtype))
    result = vs.convert_to_gguf(folder, tmp_path / "model.gguf")
    stored = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}[dtype]
    assert stored == result["dtype"]
    assert {"F32", stored} == set(result["types"])
    back = vs.convert_gguf(tmp_path / "model.gguf", tmp_path / "back", dtype=dtype)
    assert model.num_parameters() == result["n_parameters"] == back["n_parameters"]
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back", dtype=dtype)
    assert type(model) is type(again)
    for name, values in model.state_dict().items():
        got = again.state_dict()[name]
        if layout.startswith("gemma") and name.endswith("norm.weight"):  # 1 + x, in 32 bits
            torch.testing.assert_close(got, values, rtol=1e-5, atol=1e-6, msg=name)
        else:
            assert torch.equal(values, got), name
    for key in ("max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "eos_token_id"):
        assert getattr(model.config, key) == getattr(again.config, key), key
    tokens = vs.load_tokenizer(tmp_path / "back")
    for text in ("the cat sat", "In 2024,  12\n\nदिन", "ß"):
        assert tokenizer.backend.encode(text).ids == tokens.backend.encode(text).ids, text
    assert tokenizer.chat_template == tokens.chat_template


def test_the_widest_type_of_the_folder_is_that_of_the_file(tmp_path: Path) -> None:
    """A head in 32 bits would lose some of them in bfloat16."""
    folder, model, _ = folder_of("llama", tmp_path, dtype=torch.bfloat16)
    model.lm_head.float()
    model.save_pretrained(folder)
    assert "F32" == vs.convert_to_gguf(folder, tmp_path / "model.gguf")["dtype"]


def test_a_head_that_a_tied_folder_stores_as_well_is_left_out(tmp_path: Path) -> None:
    """Some programs write it; what is run is the embedding."""
    folder, _, _ = folder_of("llama, tied", tmp_path)
    [file] = folder.glob("*.safetensors")
    tensors = load_file(file)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, file, metadata={"format": "pt"})
    vs.convert_to_gguf(folder, tmp_path / "model.gguf")
    assert "output.weight" not in contents(tmp_path / "model.gguf")[1]


def test_q8_0_is_what_the_package_gguf_makes(tmp_path: Path) -> None:
    """Rows that are no whole blocks (of 32 values) have 16 bits."""
    tokenizer = own_tokenizer("llama", tmp_path)
    config = model_of("llama", tokenizer).config
    config.intermediate_size = 40
    model = transformers.LlamaForCausalLM(config)
    folder = save(model, tokenizer, tmp_path / "model")
    result = vs.convert_to_gguf(folder, tmp_path / "model.gguf", dtype="Q8_0")
    assert {"F16": 2, "F32": 5, "Q8_0": 14} == result["types"]
    keys, tensors = contents(tmp_path / "model.gguf")
    assert (7, 2) == (keys["general.file_type"], keys["general.quantization_version"])
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, own in (
        ("token_embd.weight", model.model.embed_tokens),
        ("output.weight", model.lm_head),
    ):
        values = own.weight.detach().numpy()
        assert np.array_equal(gguf.quants.quantize(values, kind), tensors[name].data)
        error = np.abs(gguf.dequantize(tensors[name].data, kind) - values)
        assert error.max() <= np.abs(values).max() / 127 * 0.51
    back = vs.convert_gguf(tmp_path / "model.gguf", tmp_path / "back", dtype="float32")
    assert result["n_parameters"] == back["n_parameters"]


def test_rows_beyond_the_tokenizer_are_named(tmp_path: Path) -> None:
    """Ids of several tokens that end a text or a turn are kept, one chat template too."""
    tokenizer = own_tokenizer("llama", tmp_path)
    ids = special_ids(tokenizer)
    config = model_of("llama", tokenizer).config
    config.vocab_size = tokenizer.row_count + 5
    model = transformers.LlamaForCausalLM(config)
    model.generation_config.eos_token_id = [ids["</s>"], ids["<|turn|>"]]
    folder = save(model, tokenizer, tmp_path / "model")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tools.jinja").write_text("{{ messages }}")
    result = vs.convert_to_gguf(folder, tmp_path / "model.gguf")
    assert "only the default chat template is written" in " ".join(result["warnings"])
    keys, _ = contents(tmp_path / "model.gguf")
    n = tokenizer.row_count
    assert (n, n + 5) == (result["n_tokens"], result["vocab_size"])
    assert [f"[PAD{i}]" for i in range(n, n + 5)] == keys["tokenizer.ggml.tokens"][n:]
    assert [5] * 5 == keys["tokenizer.ggml.token_type"][n:]
    assert ids["</s>"] == keys["tokenizer.ggml.eos_token_id"]
    assert ids["<|turn|>"] == keys["tokenizer.ggml.eot_token_id"]
    assert n == vs.load_tokenizer(tmp_path / "model.gguf").row_count


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _, _ = folder_of("qwen3", tmp_path)
    out = tmp_path / "out.gguf"
    arguments = ["convert", str(folder), "-o", str(out)]
    assert 0 == main([*arguments, "--dtype", "BF16"])
    assert "gpt-2" in capsys.readouterr().out
    assert 2 == main(arguments)
    assert "exists already" in capsys.readouterr().err
    more = tmp_path / "more.txt"
    more.write_text("one more text\n")
    assert 0 == main([*arguments, "--force", "--text", str(more), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert ("F32", 64) == (result["dtype"], len(result["chkhsh"]))
    for wrong, message in (
        (["convert", str(folder), "-o", str(tmp_path / "folder")], "name a file to write"),
        ([*arguments, "--dtype", "float32"], "must be one of F32, F16, BF16, Q8_0"),
        ([*arguments, "--pattern", "gpt2"], "--pattern is of no use"),
        (["convert", str(out), "-o", str(tmp_path / "d"), "--dtype", "F16"], "bfloat16, float16"),
        (["convert", str(out), "-o", str(tmp_path / "d"), "--pre", "gpt-2"], "--pre is of no use"),
    ):
        assert 2 == main(wrong)
        assert message in capsys.readouterr().err


def test_a_pattern_that_llama_cpp_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written, and the lines to paste are printed; a name that is given is believed."""
    folder, _, tokenizer = folder_of("llama", tmp_path)
    lines = replace(
        tokenizer,
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": r"(?<=e) |t"},
                    "behavior": "MergedWithPrevious",
                    "invert": False,
                },
                components.BYTE_LEVEL_DECODER | {"use_regex": False, "add_prefix_space": False},
            ],
        },
    )
    lines.save_pretrained(tmp_path / "tokenizer")
    (folder / "tokenizer.json").write_bytes((tmp_path / "tokenizer/tokenizer.json").read_bytes())
    arguments = ["convert", str(folder), "-o", str(tmp_path / "out.gguf")]
    assert 2 == main(arguments)
    error = capsys.readouterr().err
    assert 'if chkhsh == "' in error
    assert r'"(?<=e) |t",' in error
    assert "lookbehind; behavior MergedWithPrevious" in error
    assert "no pre-tokenizer of llama.cpp gives this tokenizer's ids: the nearest" in error
    assert not list(tmp_path.glob("out*"))
    assert 0 == main([*arguments, "--pre", "mine"])
    keys, _ = contents(tmp_path / "out.gguf")
    assert "mine" == keys["tokenizer.ggml.pre"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "phi3"}, "'phi3' cannot be written as GGUF; supported are llama"),
        ({"hidden_act": "gelu"}, "hidden_act of config.json is 'gelu', and llama.cpp's llama"),
        ({"quantization_config": {"quant_method": "gptq"}}, "is quantized"),
        ({"num_hidden_layers": 3}, "lacks tensors .*: model.layers.2"),
        ({"num_hidden_layers": 1}, "has tensors that llama.cpp has no place for: model.layers.1"),
        ({"intermediate_size": 65}, r"has the shape \[64, 32\], and config.json says \[65, 32\]"),
        ({"vocab_size": 100}, "the tokenizer has 288 ids and the model only 100 rows"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
            "'dynamic'; default, linear, yarn and llama3",
        ),
        (
            {
                "rope_parameters": {
                    "rope_type": "yarn",
                    "rope_theta": 1e4,
                    "factor": 8.0,
                    "original_max_position_embeddings": 32,
                    "truncate": False,
                }
            },
            "truncate of config.json is false; llama.cpp rounds",
        ),
        (
            {
                "rope_parameters": {
                    "rope_type": "llama3",
                    "rope_theta": 1e4,
                    "factor": 8.0,
                    "low_freq_factor": 4.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 32,
                }
            },
            "low_freq_factor of config.json is 4.0 and high_freq_factor 4.0",
        ),
    ],
)
def test_models_that_cannot_be_written(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder, _, _ = folder_of("llama", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(ValueError, match=message):
        vs.convert_to_gguf(folder, tmp_path / "out.gguf")
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("model_type", ["llama", "ministral3"])
@pytest.mark.parametrize(
    "scaling",
    [
        {},
        {"attention_factor": 1.3},
        {"mscale": 0.707, "mscale_all_dim": 0.707},
        {"mscale": 1.0, "mscale_all_dim": 1.0},
        {"mscale": 0.7, "mscale_all_dim": 1.0},
        {"mscale": 0.5},
        {"mscale_all_dim": 0.5, "beta_fast": 16.0, "beta_slow": 2.0},
    ],
    ids=str,
)
def test_the_scale_of_yarn(model_type: str, scaling: dict[str, float]) -> None:
    """As llama.cpp computes it (llama_context::llama_context, read_hparams), and back."""
    if model_type not in transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES:
        pytest.skip(f"this version of transformers has no {model_type}")
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32}
    rope = {**yarn, "rope_theta": 1e4, **scaling}
    config = transformers.AutoConfig.for_model(model_type, **SIZE, head_dim=8, rope_parameters=rope)
    _, wanted = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    found = to_hyperparameters(config.to_dict())
    keys = {name.removeprefix(f"{found.architecture}."): own for name, own in found.keys.items()}

    def scale_of(mscale: float) -> float:
        return float(0.1 * mscale * np.log(keys["rope.scaling.factor"]) + 1.0)

    theirs = scale_of(1.0)
    if found.architecture == "mistral3" and "rope.scaling.yarn_log_multiplier" in keys:
        theirs /= scale_of(keys["rope.scaling.yarn_log_multiplier"])
    theirs *= keys.get("rope.scaling.attn_factor", 1.0)
    assert theirs == pytest.approx(wanted, rel=1e-6)

    values = {
        name: np.float32(v).item() if type(v) is float else v for name, v in found.keys.items()
    }
    names = ("token_embd.weight", "output_norm.weight")
    header = Header(values, tuple(TensorInfo(name, (288, 32), 0, 0, 0) for name in names), 0, {})
    back = build_config(Metadata(values, found.architecture), header, b"")
    config.rope_parameters = back["rope_parameters"]
    assert ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")[1] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("model_type", ["mistral", "ministral3"])
def test_a_window_that_llama_cpp_does_not_have(model_type: str) -> None:
    """It shows in long texts alone, so it is a warning; the key is for the way back."""
    if model_type not in transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES:
        pytest.skip(f"this version of transformers has no {model_type}")
    for window, expected in ((8, 8), (None, None), (1 << 20, None)):
        config = transformers.AutoConfig.for_model(
            model_type, **SIZE, head_dim=8, sliding_window=window
        )
        found = to_hyperparameters(config.to_dict())
        assert expected == found.keys.get(f"{found.architecture}.attention.sliding_window")
        assert (expected is not None) == ("looks back 8 tokens" in " ".join(found.warnings))


def test_weights_that_are_no_numbers_or_do_not_fit(tmp_path: Path) -> None:
    tokenizer = own_tokenizer("llama", tmp_path)
    model = model_of("llama", tokenizer)
    model.model.embed_tokens.weight.data[7, 3] = 1e5
    folder = save(model, tokenizer, tmp_path / "large")
    with pytest.raises(ValueError, match=r"model.embed_tokens.weight' has values that float16"):
        vs.convert_to_gguf(folder, tmp_path / "out.gguf", dtype="F16")
    model.model.embed_tokens.weight.data[7, 3] = 1e8
    folder = save(model, tokenizer, tmp_path / "larger")
    with pytest.raises(ValueError, match=r"model.embed_tokens.weight' has values that Q8_0"):
        vs.convert_to_gguf(folder, tmp_path / "out.gguf", dtype="Q8_0")
    model.model.embed_tokens.weight.data[7, 3] = float("nan")
    folder = save(model, tokenizer, tmp_path / "none")
    with pytest.raises(ValueError, match=r"model.embed_tokens.weight' holds values that are no"):
        vs.convert_to_gguf(folder, tmp_path / "out.gguf")
    assert not list(tmp_path.glob("out*"))


def test_bad_arguments(tmp_path: Path) -> None:
    folder, _, _ = folder_of("llama", tmp_path)
    with pytest.raises(ValueError, match="dtype is 'int8'; it must be one of auto, F32"):
        vs.convert_to_gguf(folder, tmp_path / "out.gguf", dtype="int8")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        vs.convert_to_gguf(tmp_path / "none", tmp_path / "out.gguf")
    with pytest.raises(FileNotFoundError, match=r"the folder of .* does not exist"):
        vs.convert_to_gguf(folder, tmp_path / "none" / "out.gguf")
    shard = folder / "model.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(ValueError, match="truncated"):
        vs.convert_to_gguf(folder, tmp_path / "out.gguf")
    shard.unlink()
    with pytest.raises(FileNotFoundError, match="no weights in safetensors"):
        vs.convert_to_gguf(folder, tmp_path / "out.gguf")
    assert not list(tmp_path.glob("out*"))
