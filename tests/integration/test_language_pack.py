"""Language packs: pack and base are the model again, bit for bit; all else is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import quantized_models  # noqa: E402
import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from strategies import examples  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.surgery import apply_pack  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return small_models.old_tokenizer()


@pytest.fixture(scope="module")
def extended(old: Tokenizer) -> Tokenizer:
    """The old vocabulary and more: most rows are kept."""
    return small_models.old_tokenizer([*small_models.ENGLISH, *small_models.HINDI], 300)


@pytest.fixture(scope="module")
def base(old, tmp_path_factory) -> Path:
    """A Llama in many shards."""
    model = small_models.build("llama", old, num_hidden_layers=3)
    place = tmp_path_factory.mktemp("base") / "llama"
    return small_models.save(model, old, place, max_shard_size="12KB")


@pytest.fixture(scope="module")
def hindi(base, tmp_path_factory) -> Path:
    """The base with another tokenizer."""
    out = tmp_path_factory.mktemp("hindi") / "llama-hindi"
    transfer_folder(base, small_models.new_tokenizer(), out, TransferOptions())
    return out


@pytest.fixture
def pack(hindi, base, tmp_path) -> Path:
    vs.make_language_pack(hindi, base, tmp_path / "pack")
    return tmp_path / "pack"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def train_tables(folder: Path, rows: slice = slice(None)) -> None:
    """Change these rows of every table of a saved model, in place."""
    saved = transformers.AutoConfig.from_pretrained(folder).vocab_size
    for file in folder.glob("*.safetensors"):
        tensors = load_file(file)
        for tensor in tensors.values():
            if tensor.dim() == 2 and tensor.shape[0] == saved:
                tensor[rows] += 1
        save_file(tensors, file, metadata={"format": "pt"})


@given(
    kind=st.sampled_from(
        [*("llama", "llama-tied", "qwen2-padded", "gptj", "bloom", "mbart", "gemma4-per-layer")]
    ),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    is_extended=st.booleans(),
    shard=st.sampled_from(["12KB", "5GB"]),
    trained=st.sampled_from([slice(0), slice(None), slice(290, None), slice(3, 200, 7)]),
)
@examples(8)
def test_any_model_comes_back(
    old, extended, tmp_path_factory, kind, dtype, is_extended, shard, trained
) -> None:
    """Every byte of every file, whatever ties, biases, per-layer tables, dtypes and shards."""
    place = tmp_path_factory.mktemp("any")
    model = small_models.build(kind, old).to(dtype)
    first = small_models.save(model, old, place / "base", max_shard_size=shard)
    new = extended if is_extended else small_models.new_tokenizer()
    transfer_folder(first, new, place / "model", TransferOptions())
    train_tables(place / "model", trained)
    before = contents(place / "model")
    made = vs.make_language_pack(place / "model", first, place / "pack")
    applied = vs.apply_language_pack(place / "pack", first, place / "again")
    assert before == contents(place / "again")
    assert {} == made["left_out"]
    assert applied["bytes_of_model"] == made["bytes_of_model"] == sum(map(len, before.values()))
    assert before == contents(place / "model")
    shutil.rmtree(place)


def test_rows_of_the_base_are_not_packed(old, extended, base, tmp_path) -> None:
    """An extension keeps old rows: the pack holds the new ones and a map of four bytes a row."""
    transfer_folder(base, extended, tmp_path / "model", TransferOptions())
    made = vs.make_language_pack(tmp_path / "model", base, tmp_path / "pack")
    tensors = load_file(tmp_path / "pack" / "tables" / "model.safetensors")
    [table, head] = made["tables"]
    width = 16 * 4
    lacking = table["rows"] - table["rows_of_base"]
    assert {
        "model.embed_tokens.weight:map",
        "model.embed_tokens.weight:rows",
        "lm_head.weight:map",
        "lm_head.weight:rows",
    } == set(tensors)
    assert 0 < lacking < 40
    assert [lacking * width + 4 * table["rows"]] * 2 == [
        each["bytes_in_pack"] for each in (table, head)
    ]


def test_a_tied_model_of_an_untied_base(old, tmp_path) -> None:
    """The head is stored once where it is the embeddings, and the base's own is not needed."""
    model = small_models.build("llama", old)
    first = small_models.save(model, old, tmp_path / "base")
    model.config.tie_word_embeddings = True
    model.tie_weights()
    model.model.embed_tokens.weight.data.normal_()
    small_models.save(model, old, tmp_path / "tied")
    made = vs.make_language_pack(tmp_path / "tied", first, tmp_path / "pack")
    assert 1 == len(made["tables"])
    vs.apply_language_pack(tmp_path / "pack", first, tmp_path / "again")
    assert contents(tmp_path / "tied") == contents(tmp_path / "again")


@pytest.mark.parametrize(("zero", "is_packed"), [(0.0, True), (-0.0, False)])
def test_a_head_that_is_stored_once_more(old, tmp_path, zero, is_packed) -> None:
    """Two tables with equal numbers are one, but only if their bytes are equal too."""
    first = small_models.save(small_models.build("llama-tied", old), old, tmp_path / "base")
    shutil.copytree(first, tmp_path / "model")
    tensors = load_file(first / "model.safetensors")
    tensors[TABLE][3] = 0.0
    tensors["lm_head.weight"] = tensors[TABLE].clone()
    tensors["lm_head.weight"][3] = zero
    save_file(tensors, tmp_path / "model" / "model.safetensors", metadata={"format": "pt"})
    if not is_packed:
        with pytest.raises(ValueError, match=r"lm_head.weight \(not in the base\)"):
            vs.make_language_pack(tmp_path / "model", first, tmp_path / "pack")
        return
    vs.make_language_pack(tmp_path / "model", first, tmp_path / "pack")
    vs.apply_language_pack(tmp_path / "pack", first, tmp_path / "again")
    assert contents(tmp_path / "model") == contents(tmp_path / "again")


def test_two_packs_of_one_base(base, hindi, pack, extended, tmp_path) -> None:
    """Each makes its own model of the base; one is no base of the other."""
    transfer_folder(base, extended, tmp_path / "extended", TransferOptions())
    vs.make_language_pack(tmp_path / "extended", base, tmp_path / "other-pack")
    before = contents(base)
    for which, model in (("pack", hindi), ("other-pack", tmp_path / "extended")):
        vs.apply_language_pack(tmp_path / which, base, tmp_path / "out", force=True)
        assert contents(model) == contents(tmp_path / "out")
    assert before == contents(base)
    with pytest.raises(ValueError, match="not with another pack applied"):
        vs.apply_language_pack(tmp_path / "other-pack", hindi, tmp_path / "out", force=True)


@pytest.mark.parametrize("layout", ["gptq", "compressed-fp8", "mxfp4"])
def test_quantized_bodies(old, layout, tmp_path) -> None:
    first = quantized_models.save(layout, old, tmp_path / "base", n_shards=2)
    transfer_folder(first, small_models.new_tokenizer(), tmp_path / "model", TransferOptions())
    vs.make_language_pack(tmp_path / "model", first, tmp_path / "pack")
    vs.apply_language_pack(tmp_path / "pack", first, tmp_path / "again")
    assert contents(tmp_path / "model") == contents(tmp_path / "again")


def test_other_names_and_shards_of_the_same_body(old, hindi, base, tmp_path) -> None:
    """A training program may save other shards, and names with or without a prefix."""
    tensors = {
        name.removeprefix("model."): tensor
        for file in sorted(base.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }
    shutil.copytree(base, tmp_path / "plain", ignore=shutil.ignore_patterns("*.safetensors*"))
    save_file(tensors, tmp_path / "plain" / "model.safetensors", metadata={"format": "pt"})
    vs.make_language_pack(hindi, tmp_path / "plain", tmp_path / "pack")
    vs.apply_language_pack(tmp_path / "pack", tmp_path / "plain", tmp_path / "again")
    assert contents(hindi) == contents(tmp_path / "again")


def test_a_trained_body_is_refused(hindi, base, tmp_path) -> None:
    shutil.copytree(hindi, tmp_path / "model")
    name = "model.layers.1.mlp.up_proj.weight"
    for file in (tmp_path / "model").glob("*.safetensors"):
        tensors = load_file(file)
        if name in tensors:
            tensors[name][0, 0] += 1
            save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=rf"^1 tensors .*{name} \(other numbers\).*LoRA adapter"):
        vs.make_language_pack(tmp_path / "model", base, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_another_dtype_is_refused_with_both(hindi, base, old, tmp_path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(hindi, dtype=torch.bfloat16)
    small_models.save(model, old, tmp_path / "model")
    with pytest.raises(ValueError, match=r"BF16 \[16\], in the base F32 .* in the same dtype"):
        vs.make_language_pack(tmp_path / "model", base, tmp_path / "pack")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda t: t["model.norm.weight"].add_(1), r"has other numbers in 1 of \d+ tensors, such"),
        (lambda t: t.pop("model.norm.weight"), r"lacks 1 of its \d+ tensors, such as model.norm"),
        (
            lambda t: t.update({"model.norm.weight": torch.ones(3)}),
            r"has another shape or dtype in 1 of \d+ tensors, such as model.norm.weight",
        ),
    ],
)
def test_another_base_is_refused(old, pack, base, tmp_path, change, error) -> None:
    tensors = {n: t for f in sorted(base.glob("*.safetensors")) for n, t in load_file(f).items()}
    change(tensors)
    (tmp_path / "other").mkdir()
    save_file(tensors, tmp_path / "other" / "model.safetensors")
    shutil.copy(base / "config.json", tmp_path / "other")
    with pytest.raises(ValueError, match=rf"is not the base of this pack, llama: it {error}"):
        vs.apply_language_pack(pack, tmp_path / "other", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_hard_links(pack, base, hindi, tmp_path) -> None:
    """Files of weights without a table are the base's own."""
    vs.apply_language_pack(pack, base, tmp_path / "out", hard_links=True)
    linked = [
        file.name
        for file in (tmp_path / "out").glob("*.safetensors")
        if (base / file.name).exists() and file.samefile(base / file.name)
    ]
    assert contents(hindi) == contents(tmp_path / "out")
    assert len(linked) == len(list(base.glob("*.safetensors"))) - 2


def test_a_killed_run_resumes(pack, base, hindi, tmp_path, monkeypatch) -> None:
    write, calls = apply_pack._write, []

    def killed(plan: Any, target: Path, *, hard_links: bool) -> str:
        calls.append(target)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return write(plan, target, hard_links=hard_links)

    monkeypatch.setattr(apply_pack, "_write", killed)
    with pytest.raises(KeyboardInterrupt):
        vs.apply_language_pack(pack, base, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    applied = vs.apply_language_pack(pack, base, tmp_path / "out")
    assert contents(hindi) == contents(tmp_path / "out")
    assert 2 == [*applied["files"].values()].count("kept from the run before")


def test_a_pack_opens_as_a_tokenizer(pack, hindi) -> None:
    expected = transformers.AutoTokenizer.from_pretrained(hindi)("बिल्ली और the cat")["input_ids"]
    assert (
        expected
        == transformers.AutoTokenizer.from_pretrained(pack)("बिल्ली और the cat")["input_ids"]
    )
    assert vs.load_tokenizer(hindi).vocab == vs.load_tokenizer(pack).vocab


def test_the_command_line(hindi, base, tmp_path, capsys) -> None:
    """Make, look, plan, apply; every summary and every JSON object."""
    pack, out = str(tmp_path / "pack"), str(tmp_path / "out")
    make = ["language-pack", str(hindi), "--base", str(base), "-o", pack]
    use = ["language-pack", "--apply", pack, "--base", str(base), "-o", out]
    assert 0 == main([*make, "--dry-run"])
    said = capsys.readouterr().out
    assert "nothing: a dry run" in said and "next: the same without --dry-run" in said
    assert not Path(pack).exists()
    assert 0 == main([*make, "--json"])
    made = json.loads(capsys.readouterr().out)
    assert ("llama-hindi", "llama") == (made["model"], made["base"])
    assert 0 == main(["language-pack", "--info", pack])
    assert "of the model" not in capsys.readouterr().err
    assert 0 == main([*use, "--dry-run", "--json"])
    assert json.loads(capsys.readouterr().out)["dry_run"]
    assert not Path(out).exists()
    assert 0 == main(use)
    assert "embeddings" not in capsys.readouterr().err
    assert contents(hindi) == contents(Path(out))
    assert 2 == main(use)
    assert "exists already" in capsys.readouterr().err
    for words in (["--base", str(base), "-o", out], [str(hindi), "--apply", pack], [str(hindi)]):
        assert 2 == main(["language-pack", *words])
    assert 2 == main([*make, "--hard-links"])
    assert 2 == main(["language-pack", "--info", str(base)])
    assert "is no language pack" in capsys.readouterr().err


# Packs from anybody.


def _manifest(pack: Path, change: Any) -> None:
    file = pack / "language_pack.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def _rename_file(name: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        document["files"][name] = document["files"].pop("config.json")

    return change


def _tensor(document: dict[str, Any], name: str) -> dict[str, Any]:
    tensors = (tensor for shard in document["shards"] for tensor in shard["tensors"])
    return next(tensor for tensor in tensors if tensor["name"] == name)


TABLE, NORM = "model.embed_tokens.weight", "model.norm.weight"


@pytest.mark.parametrize(
    "change",
    [
        *(
            _rename_file(name)
            for name in (
                *("../config.json", "/etc/config.json", "a/../../b.json", ".hidden.json", "", "."),
                *("tables/x.json", "language_pack.json", "a\\b.json", "a//b.json", "a\n.json"),
                *("run.py", "tokenization_vs.py", "vocab.py", "x.sh", "pytorch_model.bin"),
                *(
                    "model.pt",
                    "model.safetensors",
                    "vocab.pkl",
                    "checkpoints/a.json",
                    "\ud800.json",
                ),
            )
        ),
        lambda d: d.pop("shards"),
        lambda d: d.update(kind="another"),
        lambda d: d.update(format=2),
        lambda d: d.update(shards=3),
        lambda d: d.update(bytes_of_model=-1),
        lambda d: d.update(folders=["../up"]),
        lambda d: d["shards"][0].update(name="../x.safetensors"),
        lambda d: d["shards"][0].update(name="config.json"),
        lambda d: d["shards"][1].update(name=d["shards"][0]["name"]),
        lambda d: d["shards"][1].update(tensors=d["shards"][0]["tensors"]),
        lambda d: d["tables"].update(sha256="0" * 64),
        lambda d: d["tables"].update(sha256="no hash"),
        lambda d: d["files"]["config.json"].update(n_bytes=1),
        lambda d: d["files"]["config.json"].update(n_bytes=True),
        lambda d: d["files"]["config.json"].update(in_base="yes"),
        lambda d: d["files"]["config.json"].update(in_base=True),
        lambda d: _tensor(d, NORM).update(shape=[1 << 40]),
        lambda d: _tensor(d, NORM).update(shape=[-1]),
        lambda d: _tensor(d, NORM).update(shape="16"),
        lambda d: _tensor(d, NORM).update(dtype="I8"),
        lambda d: _tensor(d, NORM).update(source={}),
        lambda d: _tensor(d, NORM).update(source={"file": "/etc/passwd"}),
        lambda d: _tensor(d, NORM).update(source={"base": "nothing"}),
        lambda d: _tensor(d, NORM).update(source={"base": NORM, "own": TABLE}),
        lambda d: _tensor(d, TABLE)["source"].update(base=NORM),
        lambda d: _tensor(d, TABLE)["source"].update(map=None),
        lambda d: _tensor(d, TABLE)["source"].update(map=f"{TABLE}:rows"),
        lambda d: _tensor(d, TABLE)["source"].update(own="lm_head.weight:map"),
        lambda d: _tensor(d, TABLE).update(shape=[1, 16]),
    ],
)
def test_damaged_and_hostile_packs(pack, base, tmp_path, change) -> None:
    """Each is a ValueError, and nothing is written."""
    _manifest(pack, change)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"damaged|is not the file|no file that|cannot be made"):
        vs.apply_language_pack(pack, base, tmp_path / "out")
    assert before == set(tmp_path.rglob("*"))


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"kind": NaN}', "\x00"])
def test_a_manifest_that_is_none(pack, text) -> None:
    (pack / "language_pack.json").write_text(text)
    with pytest.raises(ValueError, match="is damaged, or of another version"):
        vs.read_language_pack(pack)


@pytest.mark.parametrize("row", [10_000, 2**31 - 1])
def test_a_map_to_rows_that_are_not_there(pack, base, tmp_path, row) -> None:
    file = pack / "tables" / "model.safetensors"
    tensors = load_file(file)
    tensors[f"{TABLE}:map"][tensors[f"{TABLE}:map"] >= 0] = row
    save_file(tensors, file)
    data = file.read_bytes()
    said = {"sha256": hashlib.sha256(data).hexdigest(), "n_bytes": len(data)}
    _manifest(pack, lambda document: document["tables"].update(said))
    with pytest.raises(ValueError, match="cannot be made of"):
        vs.apply_language_pack(pack, base, tmp_path / "out")


def test_truncated_tables(pack, base, tmp_path) -> None:
    file = pack / "tables" / "model.safetensors"
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(ValueError, match="the pack was changed"):
        vs.apply_language_pack(pack, base, tmp_path / "out")
