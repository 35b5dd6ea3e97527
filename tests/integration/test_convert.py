"""`vocabshift convert`: GGUF files of each layout, compared with the model that was written into
them and with what transformers' own GGUF loader reads.

`gguf_files` writes by the rules of llama.cpp's converter; transformers has its own way back.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("gguf")

import vocabshift as vs  # noqa: E402
from gguf_files import LAYOUTS, SIZE, model_of, tokenizer_of, write_gguf  # noqa: E402
from small_models import ENGLISH, HINDI, special_ids  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.models import gguf  # noqa: E402
from vocabshift.tokenizer.formats.load import load_tokenizer  # noqa: E402

RELOAD = Path(__file__).parents[1] / "reload_models.py"
UNKNOWN_TO_TRANSFORMERS = ("gemma", "mistral3", "llama, biases")
"""Layouts that transformers' own GGUF loader does not read, or not whole."""


def open_model(folder: Path, **options: Any) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **options
    ).eval()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_model_computes_what_was_written(layout: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(layout, tmp_path)
    model = model_of(layout, tokenizer)
    name = {"general__name": "Some Mistral"} if layout == "mistral" else {}
    if layout == "mistral":
        name["llama__attention__sliding_window"] = 8
    file = write_gguf(tmp_path / "model.gguf", model, tokenizer, **name)
    result = vs.convert_gguf(file, tmp_path / "out", dtype="float32")
    assert type(model).__name__ == result["architecture"]
    assert model.num_parameters() == result["n_parameters"]
    converted = open_model(tmp_path / "out")
    assert type(model) is type(converted)
    given, got = model.state_dict(), converted.state_dict()
    assert given.keys() == got.keys()
    for key, values in given.items():
        # Gemma's norms went through 1 + x, in 32 bits.
        torch.testing.assert_close(got[key], values, rtol=0, atol=1e-6, msg=key)
    ids = torch.arange(1, 81).view(1, -1) % tokenizer.row_count
    with torch.no_grad():
        torch.testing.assert_close(converted(ids).logits, model(ids).logits, rtol=0, atol=1e-5)
    for key in ("max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "bos_token_id"):
        assert getattr(model.config, key) == getattr(converted.config, key), key
    assert model.config.eos_token_id == converted.generation_config.eos_token_id


@pytest.mark.parametrize(
    "layout", [name for name in LAYOUTS if name not in UNKNOWN_TO_TRANSFORMERS]
)
def test_weights_equal_those_that_transformers_reads(layout: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(layout, tmp_path)
    file = write_gguf(tmp_path / "model.gguf", model_of(layout, tokenizer), tokenizer, kind="Q8_0")
    vs.convert_gguf(file, tmp_path / "out", dtype="float32")
    theirs = open_model(tmp_path, gguf_file=file.name).state_dict()
    ours = open_model(tmp_path / "out").state_dict()
    assert theirs.keys() == ours.keys()
    for key, values in theirs.items():
        assert torch.equal(values, ours[key]), key


@pytest.mark.parametrize(
    "kind",
    [
        *("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
        *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
    ],
)
def test_types_of_weights(kind: str, tmp_path: Path) -> None:
    """Of rows of 256 values, as K-quants need them; transformers' loader is the judge."""
    tokenizer = tokenizer_of("llama", tmp_path)
    size = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(**SIZE | size, vocab_size=tokenizer.row_count)
    torch.manual_seed(7)
    model = transformers.LlamaForCausalLM(config)
    file = write_gguf(tmp_path / "model.gguf", model, tokenizer, kind=kind)
    result = vs.convert_gguf(file, tmp_path / "out", dtype="float32")
    assert {"F32", kind} == set(result["types"])
    theirs = open_model(tmp_path, gguf_file=file.name).state_dict()
    for key, values in open_model(tmp_path / "out").state_dict().items():
        assert torch.equal(theirs[key], values), key


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_are_rounded_as_torch_rounds(dtype: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of("llama", tmp_path)
    model = model_of("llama", tokenizer)
    file = write_gguf(tmp_path / "model.gguf", model, tokenizer)
    vs.convert_gguf(file, tmp_path / "out", dtype=dtype)  # type: ignore[arg-type]
    from safetensors.torch import load_file

    wanted = getattr(torch, dtype)
    for key, values in load_file(tmp_path / "out" / "model.safetensors").items():
        assert values.dtype == wanted
        assert torch.equal(values, model.state_dict()[key].to(wanted)), key
    assert dtype == json.loads((tmp_path / "out" / "config.json").read_text())["dtype"]


def test_transformers_4_opens_the_folders(tmp_path: Path) -> None:
    """All but Ministral 3, which version 4 does not have; the same logits."""
    python = os.environ.get("VOCABSHIFT_TRANSFORMERS4")
    if not python:
        pytest.skip("needs VOCABSHIFT_TRANSFORMERS4: a python with transformers 4 (CONTRIBUTING)")
    models = {}
    for layout in (name for name in LAYOUTS if name != "mistral3"):
        tokenizer = tokenizer_of(layout, tmp_path)
        models[layout] = model_of(layout, tokenizer)
        window = {"llama__attention__sliding_window": 8} if layout == "mistral" else {}
        file = write_gguf(tmp_path / "model.gguf", models[layout], tokenizer, **window)
        vs.convert_gguf(file, tmp_path / layout, dtype="float32")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run(
        [python, RELOAD, *(str(tmp_path / layout) for layout in models)],
        capture_output=True,
        text=True,
        env=environment | {"HF_HUB_OFFLINE": "1"},
        check=True,
    )
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["version"].startswith("4.")
    for layout, model in models.items():
        facts = found["models"][layout]
        assert "error" not in facts, (layout, facts)
        assert [] == facts["missing"], layout
        with torch.no_grad():
            logits = model(torch.tensor([facts["ids"]])).logits[0, -1].double()
        got = torch.tensor(facts["logits"], dtype=torch.float64)
        torch.testing.assert_close(got, logits, rtol=0, atol=1e-5, msg=layout)


def test_several_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tokenizer_of("llama", tmp_path)
    model = model_of("llama", tokenizer)
    file = write_gguf(tmp_path / "model.gguf", model, tokenizer)
    monkeypatch.setattr(gguf, "_SHARD_BYTES", 40_000)
    result = vs.convert_gguf(file, tmp_path / "out", dtype="float32")
    shards = sorted((tmp_path / "out").glob("*.safetensors"))
    assert len(shards) > 2
    assert result["bytes_after"] == sum(shard.stat().st_size for shard in shards)
    for key, values in open_model(tmp_path / "out").state_dict().items():
        assert torch.equal(model.state_dict()[key], values), key


def test_the_tokenizer_is_the_one_that_was_written(tmp_path: Path) -> None:
    """Its ids, special tokens and template; a SentencePiece-like one too."""
    for layout in ("qwen2", "gemma"):
        tokenizer = tokenizer_of(layout, tmp_path)
        file = write_gguf(
            tmp_path / f"{layout}.gguf",
            model_of(layout, tokenizer),
            tokenizer,
            tokenizer__ggml__add_eos_token=True,
            tokenizer__ggml__eot_token_id=special_ids(tokenizer)["<|turn|>"],
        )
        result = vs.convert_gguf(file, tmp_path / layout)
        assert ("gpt-2" if layout == "qwen2" else None) == result["pre_tokenizer"]
        fast = transformers.AutoTokenizer.from_pretrained(tmp_path / layout)
        ids = special_ids(tokenizer)
        for text in (*ENGLISH, *HINDI, "two  spaces<|turn|>and 12345"):
            expected = [ids["<s>"], *tokenizer.backend.encode(text, add_special_tokens=False).ids]
            assert [*expected, ids["</s>"]] == fast.encode(text), text
        assert ("<s>", "</s>", "<pad>") == (fast.bos_token, fast.eos_token, fast.pad_token)
        shown = fast.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
        assert "Hi" == shown
        generation = json.loads((tmp_path / layout / "generation_config.json").read_text())
        assert [ids["</s>"], ids["<|turn|>"]] == generation["eos_token_id"]


def test_rows_that_a_converter_filled_up_are_no_tokens(tmp_path: Path) -> None:
    """llama.cpp's converter names rows beyond the tokenizer [PADn]."""
    tokenizer = tokenizer_of("llama", tmp_path)
    config = transformers.LlamaConfig(**SIZE, vocab_size=tokenizer.row_count + 8)
    texts = [*tokenizer.vocab, *(token.content for token in tokenizer.added_tokens)]
    fillers = [f"[PAD{len(texts) + n}]" for n in range(8)]
    file = write_gguf(
        tmp_path / "model.gguf",
        transformers.LlamaForCausalLM(config),
        tokenizer,
        tokenizer__ggml__tokens=[*texts, *fillers],
        tokenizer__ggml__token_type=[1] * len(tokenizer.vocab) + [3] * 5 + [5] * 8,
    )
    result = vs.convert_gguf(file, tmp_path / "out")
    assert tokenizer.row_count == result["n_tokens"]
    assert tokenizer.row_count + 8 == result["vocab_size"]
    assert tokenizer.row_count == load_tokenizer(tmp_path / "out").row_count


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = tokenizer_of("llama", tmp_path)
    file = write_gguf(
        tmp_path / "model.gguf", model_of("llama", tokenizer), tokenizer, pre="smollm", kind="Q8_0"
    )
    out = tmp_path / "out"
    arguments = ["convert", str(file), "-o", str(out)]
    assert 0 == main(arguments)
    assert "smollm" in capsys.readouterr().out
    assert 2 == main(arguments)
    assert "exists already" in capsys.readouterr().err
    assert 0 == main([*arguments, "--force", "--dtype", "float16", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert "float16" == result["dtype"]
    assert {"F32": 5, "Q8_0": 16} == result["types"]
    record = json.loads((out / "vocabshift.json").read_text())
    assert {"source": "model.gguf", "dtype": "float16", "pattern": None} == record["config"]
    split = load_tokenizer(out).backend.pre_tokenizer.pre_tokenize_str("in 123")
    assert ["in", "Ġ", "1", "2", "3"] == [text for text, _ in split]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general__architecture": "falcon"}, "'falcon', which cannot be converted; supported are"),
        ({"general__architecture": 7}, "names no general.architecture"),
        ({"llama__expert_count": 8}, "mixture of experts"),
        ({"split__count": 3}, "one of 3 parts"),
        ({"llama__block_count": 1}, "blk.1.attn_k.weight, blk.1.attn_norm.weight"),
        ({"llama__block_count": 3}, "lacks tensors"),
        ({"llama__block_count": 2**31}, "has only 21 tensors"),
        ({"llama__attention__head_count": 0}, "is 0, not a positive whole number"),
        ({"llama__attention__head_count": [4, 4]}, "is a list of 2, not a positive"),
        ({"llama__rope__dimension_count": 7}, "heads of the GGUF file have 7 dimensions, an odd"),
        ({"llama__feed_forward_length": 65}, "has the shape .64, 32., and the metadata say .65"),
        ({"llama__context_length": None}, "lacks the key llama.context_length"),
        ({"llama__attention__layer_norm_rms_epsilon": float("nan")}, "is nan, not a positive"),
        ({"llama__rope__dimension_count": 4}, "has the shape"),
        ({"llama__attention__value_length": 4}, "its heads have 8 dimensions"),
        ({"llama__rope__scaling__type": "longrope"}, "lacks the key llama.rope.scaling.factor"),
        (
            {"llama__rope__scaling__type": "longrope", "llama__rope__scaling__factor": 2.0},
            "'longrope'; none, linear, yarn",
        ),
        ({"tokenizer__ggml__pre": "brand-new"}, "'brand-new', which is not known here"),
        ({"tokenizer__ggml__tokens": None}, "holds no vocabulary"),
    ],
)
def test_models_that_cannot_be_converted(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    tokenizer = tokenizer_of("llama", tmp_path)
    file = write_gguf(tmp_path / "model.gguf", model_of("llama", tokenizer), tokenizer, **changes)
    with pytest.raises(ValueError, match=message) as error:
        vs.convert_gguf(file, tmp_path / "out")
    assert "model.gguf: " in str(error.value)
    assert not list(tmp_path.glob("out*"))


def test_bad_arguments(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()
    (tmp_path / "other.gguf").write_text("no model")
    with pytest.raises(FileNotFoundError, match=r"none.gguf is no file"):
        vs.convert_gguf(tmp_path / "none.gguf", tmp_path / "out")
    with pytest.raises(ValueError, match="is empty"):
        vs.convert_gguf(tmp_path / "empty.gguf", tmp_path / "out")
    with pytest.raises(ValueError, match="no GGUF file"):
        vs.convert_gguf(tmp_path / "other.gguf", tmp_path / "out")
    with pytest.raises(ValueError, match="dtype is 'int8'"):
        vs.convert_gguf(tmp_path / "other.gguf", tmp_path / "out", dtype="int8")  # type: ignore[arg-type]


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    tokenizer = tokenizer_of("llama", tmp_path)
    model = model_of("llama", tokenizer)
    file = write_gguf(tmp_path / "model.gguf", model, tokenizer)
    norm = model.model.norm.weight.detach().numpy().tobytes()
    data = file.read_bytes()
    place = data.index(norm)
    file.write_bytes(data.replace(norm, b"\xff" * len(norm)))
    with pytest.raises(ValueError, match=f"model.gguf: .*'output_norm.weight' .* byte {place} of"):
        vs.convert_gguf(file, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_values_that_the_dtype_cannot_hold(tmp_path: Path) -> None:
    tokenizer = tokenizer_of("llama", tmp_path)
    model = model_of("llama", tokenizer)
    model.model.norm.weight.data[3] = 1e5
    file = write_gguf(tmp_path / "model.gguf", model, tokenizer)
    with pytest.raises(ValueError, match=r"'output_norm.weight' has values that float16 cannot"):
        vs.convert_gguf(file, tmp_path / "out", dtype="float16")
    vs.convert_gguf(file, tmp_path / "out", dtype="bfloat16")
