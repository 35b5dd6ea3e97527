"""Quantized checkpoints: their tables are moved, all else is copied; quantized tables are refused.

`quantized_models` writes them as the exporters do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import quantized_models  # noqa: E402
import small_models  # noqa: E402
from quantized_models import LAYOUTS, REFUSED  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.models.load import load_causal_model  # noqa: E402
from vocabshift.models.row_blocks import open_tables  # noqa: E402
from vocabshift.surgery.back import transfer_back_folder  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.formats.load import load_tokenizer  # noqa: E402
from vocabshift.tokenizer.id_map import load as load_id_map  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402

TABLES = {"model.embed_tokens.weight", "lm_head.weight"}
ADVICE = r"is quantized.* Take the unquantized checkpoint: transfer that one"


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return small_models.old_tokenizer()


@pytest.fixture(scope="module")
def new() -> Tokenizer:
    return small_models.new_tokenizer()


def _tensors(folder: Path) -> dict[str, Any]:
    return {
        name: tensor
        for file in sorted(folder.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }


def _facts(tensor: Any) -> tuple[Any, tuple[int, ...], bytes]:
    """Dtype, shape and bytes: numbers that are not finite are compared too."""
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return tensor.dtype, tuple(tensor.shape), data


def _config(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "config.json").read_text()))


def _kept(folder: Path) -> list[tuple[int, int]]:
    """(old id, new id) of every token that was kept."""
    kept = load_id_map(folder / "transfer_map.json").new_to_old()
    return sorted((old_id, new_id) for new_id, old_id in kept.items())


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_are_moved_and_the_rest_is_copied(old, new, tmp_path, layout, tied) -> None:
    source = quantized_models.save(layout, old, tmp_path / "model", tied=tied)
    plain = quantized_models.build(layout, old, tied=tied)
    twin = small_models.save(plain, old, tmp_path / "plain")
    report = transfer_folder(source, new, tmp_path / "out")
    transfer_folder(twin, new, tmp_path / "twin")

    before, after = _tensors(source), _tensors(tmp_path / "out")
    tables = TABLES & set(before)
    assert (len(tables), tied) in ((2, False), (1, True))
    assert before.keys() == after.keys()
    for name in before.keys() - tables:
        assert _facts(before[name]) == _facts(after[name]), name
    same = _tensors(tmp_path / "twin")
    assert before.keys() - same.keys(), "the layers are not quantized"
    for name in tables:
        assert _facts(same[name]) == _facts(after[name]), "other rows than those of an unquantized"
        assert len(after[name]) == report.rows == _config(tmp_path / "out")["vocab_size"]
    kept = _kept(tmp_path / "out")
    assert len(kept) == report.n_copied > 256
    for name in tables:
        rows = [before[name][[old_id for old_id, _ in kept]], after[name][[i for _, i in kept]]]
        assert _facts(rows[0]) == _facts(rows[1])

    was, config = _config(source), _config(tmp_path / "out")
    assert was.get("quantization_config") == config.get("quantization_config")
    assert ("quantization_config" in was) == (layout != "modelopt")
    assert config["tie_word_embeddings"] is tied is report.tied
    for file in LAYOUTS[layout][2]:
        assert (source / file).read_bytes() == (tmp_path / "out" / file).read_bytes()
    with (
        safe_open(source / "model.safetensors", "pt") as one,
        safe_open(tmp_path / "out" / "model.safetensors", "pt") as other,
    ):
        assert one.metadata() == other.metadata()


@pytest.mark.parametrize("layout", ["mxfp4", "bitsandbytes-4", "torchao"])
def test_shards(old, new, tmp_path, layout) -> None:
    """The shards without a table are the same files; the index has the new size."""
    source = quantized_models.save(layout, old, tmp_path / "model", n_shards=6)
    whole = quantized_models.save(layout, old, tmp_path / "whole")
    report = transfer_folder(source, new, tmp_path / "out", hard_links=True)
    done = sorted(report.files.values())
    assert {"linked", "rewritten"} <= set(done)
    assert done.count("linked") >= 4
    transfer_folder(whole, new, tmp_path / "single")
    before, after, single = map(_tensors, (source, tmp_path / "out", tmp_path / "single"))
    assert before.keys() == after.keys()
    for name in after:
        wanted = single if name in TABLES else before
        assert _facts(wanted[name]) == _facts(after[name])
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    sizes = (tensor.numel() * tensor.element_size() for tensor in after.values())
    assert index["metadata"]["total_size"] == sum(sizes)
    assert index["weight_map"].keys() == after.keys()


@pytest.mark.parametrize("kind", REFUSED)
def test_quantized_tables_are_refused_by_name(old, new, tmp_path, kind) -> None:
    source = quantized_models.save(kind, old, tmp_path / "model")
    with pytest.raises(ValueError, match=ADVICE) as refused:
        transfer_folder(source, new, tmp_path / "out")
    assert str(refused.value).startswith(REFUSED[kind].error + ":")
    with pytest.raises(ValueError, match=ADVICE):
        open_tables(source, old.row_count)
    assert not list(tmp_path.glob("out*"))


def test_scales_beside_a_table_in_bfloat16(old, new, tmp_path) -> None:
    """Weights that are rounded when the model is loaded ("frozen"), and a head that is not tied."""
    for name, tied in (("lm_head.weight_scale", False), ("lm_head.qweight", True)):
        source = quantized_models.save("compressed-int4", old, tmp_path / name, tied=tied)
        file = source / "model.safetensors"
        save_file({**load_file(file), name: torch.ones(old.row_count, 1)}, file)
        with pytest.raises(ValueError, match=rf"{name} is F32: this table .*{ADVICE}"):
            transfer_folder(source, new, tmp_path / "out")


@pytest.mark.parametrize("layout", ["fp8", "mxfp4"])
def test_logits_of_kept_tokens(old, new, tmp_path, layout) -> None:
    """transformers dequantizes these on the CPU: kept tokens have the same logits in both."""
    source = quantized_models.save(layout, old, tmp_path / "model")
    transfer_folder(source, new, tmp_path / "out")
    before, after = (
        load_causal_model(folder, dtype="float32", device="cpu")
        for folder in (source, tmp_path / "out")
    )
    assert len(after.get_input_embeddings().weight) == _config(tmp_path / "out")["vocab_size"]
    kept = torch.tensor(_kept(tmp_path / "out"))
    text = kept[torch.arange(3, len(kept), 11)]
    with torch.inference_mode():
        one = before(text[None, :, 0]).logits[0][:, kept[:, 0]]
        other = after(text[None, :, 1]).logits[0][:, kept[:, 1]]
    assert float(one.std()) > 1e-3
    assert float((one - other).abs().max()) <= 1e-5 * float(one.abs().max())


def test_copies_of_tables(old, new, tmp_path) -> None:
    """A layer for multi-token prediction stores both tables again; another tensor looks alike."""
    source = quantized_models.save("fp8", old, tmp_path / "model")
    file = source / "model.safetensors"
    tensors = load_file(file)
    copies = {
        "model.layers.2.embed_tokens.weight": "model.embed_tokens.weight",
        "model.layers.2.shared_head.head.weight": "lm_head.weight",
    }
    other = torch.zeros_like(tensors["lm_head.weight"])
    more = {name: tensors[table].clone() for name, table in copies.items()}
    save_file({**tensors, **more, "model.layers.2.other.weight": other}, file)
    transfer_folder(source, new, tmp_path / "out")
    after = _tensors(tmp_path / "out")
    for name, table in copies.items():
        assert _facts(after[name]) == _facts(after[table])
    assert _facts(after["model.layers.2.other.weight"]) == _facts(other)


@pytest.mark.parametrize("layout", ["gptq", "compressed-nvfp4"])
def test_transferred_back(old, new, tmp_path, layout) -> None:
    source = quantized_models.save(layout, old, tmp_path / "model", n_shards=3)
    transfer_folder(source, new, tmp_path / "out")
    transfer_back_folder(tmp_path / "out", source, tmp_path / "back")
    before, after = _tensors(source), _tensors(tmp_path / "back")
    assert {name: _facts(before[name]) for name in before} == {
        name: _facts(after[name]) for name in after
    }
    was, config = _config(source), _config(tmp_path / "back")
    assert was["quantization_config"] == config["quantization_config"]


def test_models_that_would_be_loaded_whole(old, new, tmp_path) -> None:
    """Another dtype, another format, and "auto", which runs the model."""
    source = quantized_models.save("gptq", old, tmp_path / "model")
    with pytest.raises(ValueError, match=r"\(gptq\), and cannot be converted to torch.float32"):
        transfer_folder(source, new, tmp_path / "out", dtype=torch.float32)
    options = TransferOptions(init="auto", score=lambda *_: 1.0)
    with pytest.raises(ValueError, match=r"'auto' runs the model.*It is quantized \(gptq\)"):
        transfer_folder(source, new, tmp_path / "out", options)
    torch.save(_tensors(source), source / "pytorch_model.bin")
    (source / "model.safetensors").unlink()
    lacking = (
        r"is quantized \(gptq\) and has no model\.safetensors or model\.safetensors\.index\.json"
    )
    with pytest.raises(ValueError, match=lacking):
        transfer_folder(source, new, tmp_path / "out")
    with pytest.raises(ValueError, match=lacking):
        transfer_back_folder(
            source, quantized_models.save("gptq", old, tmp_path / "a"), tmp_path / "out"
        )
    other = small_models.save(small_models.build("llama", old), old, tmp_path / "gguf")
    (other / "model.safetensors").rename(other / "model-Q4_K_M.gguf")
    with pytest.raises(ValueError, match=r"holds model-Q4_K_M\.gguf and has no model\.safetensors"):
        transfer_folder(other, new, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("layout", ["fp8", "mxfp4"])
def test_auto_tries_initializers_on_a_dequantized_model(old, new, tmp_path, layout) -> None:
    """The rows come from the checkpoint itself: they are those of the initializer that it keeps."""
    source = quantized_models.save(layout, old, tmp_path / "model")
    tried: list[Any] = []

    def score(model: Any, tokenizer: Any) -> float:
        assert len(model.get_input_embeddings().weight) >= tokenizer.row_count
        tried.append(model.get_input_embeddings().weight.dtype)
        return -len(tried)  # the last one is the best

    options = TransferOptions(init="auto", score=score)
    report = transfer_folder(source, new, tmp_path / "auto", options)
    assert len(tried) == len(report.tried) > 2
    assert report.init == next(iter(report.tried)) != "fvt"
    transfer_folder(source, new, tmp_path / "named", TransferOptions(init=report.init))
    auto, named = _tensors(tmp_path / "auto"), _tensors(tmp_path / "named")
    assert {name: _facts(auto[name]) for name in auto} == {
        name: _facts(named[name]) for name in named
    }


def _run(capsys: Any, *words: Any) -> tuple[int, str]:
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_verbs_that_run_or_train_a_model(old, tmp_path, capsys) -> None:
    """One line with the method and what to do, if transformers cannot load it or it is to learn."""
    source = quantized_models.save("gptq", old, tmp_path / "gptq")
    text = tmp_path / "en.txt"
    text.write_text("the other cat sat by the heater\n" * 99)
    for words in (
        ["score", source, "--text", f"en={text}"],
        ["glitch", source, "--verify", 2],
        ["latency", source, "--text", f"en={text}", "--n-prompts", 1, "--prompt-bytes", 8],
    ):
        code, said = _run(capsys, *words)
        assert 2 == code
        assert "It is quantized (gptq), and transformers loads such a model only with" in said
        assert "Traceback" not in said
    recipe = tmp_path / "cpt.toml"
    run = {"model": source, "data": f"en={text}", "out": tmp_path / "out"}
    lines = [f"{key} = {json.dumps(str(value))}" for key, value in run.items()]
    recipe.write_text("\n".join([*lines, "n_bytes = 1000"]))
    code, said = _run(capsys, "cpt", recipe)
    assert 2 == code
    assert "is quantized (gptq), and quantized weights cannot be trained" in said
    # These need the tables alone, or can be dequantized.
    assert 0 == _run(capsys, "glitch", source)[0]
    fp8 = quantized_models.save("fp8", old, tmp_path / "fp8")
    assert 0 == _run(capsys, "score", fp8, "--text", f"en={text}")[0]


@pytest.mark.parametrize(("layout", "is_scored"), [("awq", False), ("mxfp4", True)])
def test_adapt(old, tmp_path, capsys, layout, is_scored) -> None:
    """Those that do not run here have no bits per byte."""
    source = quantized_models.save(layout, old, tmp_path / "model")
    for language, lines in (("en", small_models.ENGLISH), ("hi", small_models.HINDI)):
        (tmp_path / f"{language}.txt").write_text("\n".join(lines * 5), encoding="utf-8")
    corpus = [f"{language}={tmp_path}/{language}.txt" for language in ("en", "hi")]
    words = ["adapt", source, "--corpus", *corpus, "--n-tokens", 9, "-o", tmp_path / "out"]
    code, said = _run(capsys, *words)
    assert 0 == code, said
    before, after = _tensors(source), _tensors(tmp_path / "out")
    for name in before.keys() - TABLES:
        assert _facts(before[name]) == _facts(after[name])
    assert before["lm_head.weight"].shape == after["lm_head.weight"].shape
    assert load_tokenizer(tmp_path / "out").row_count == old.row_count
    card = (tmp_path / "out" / "adapt.md").read_text()
    assert is_scored == ("Bits per byte: the first" in card)
    assert is_scored != ("Bits per byte: none: " in card and "(awq)" in card)
