"""Folders transferred on the disk: the same as in memory for any model, and what goes wrong."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import small_models  # noqa: E402
from strategies import examples  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.models import shard_writer  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402
from vocabshift.workflows.transfer import transfer  # noqa: E402


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return small_models.old_tokenizer()


@pytest.fixture(scope="module")
def new() -> Tokenizer:
    return small_models.new_tokenizer()


@pytest.fixture
def sharded(old, tmp_path) -> Path:
    """A llama of three layers in many shards; most hold no table."""
    model = small_models.build("llama", old, num_hidden_layers=3)
    folder = small_models.save(model, old, tmp_path / "model", max_shard_size="12KB")
    assert len(list(folder.glob("*.safetensors"))) > 3
    return folder


def _tensors(folder: Path) -> dict[str, Any]:
    return {
        name: tensor
        for file in sorted(folder.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }


def _bytes(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


@given(
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    kind=st.sampled_from(["llama", "llama-tied", "qwen2-padded", "gptj", "bloom", "mbart"]),
    init=st.sampled_from(["fvt", "mean", "random", "zeros"]),
    multiple=st.sampled_from([None, 1, 7, 64]),
    hidden=st.sampled_from([8, 16, 40]),
    size=st.integers(256, 360),
    seed=st.integers(0, 2**20),
)
@examples(12)
def test_any_model_is_the_same_from_memory_and_from_disk(
    old, tmp_path_factory, dtype, kind, init, multiple, hidden, size, seed
) -> None:
    """Every tensor bit for bit, whatever dtype, ties, padding, method and target."""
    place = tmp_path_factory.mktemp("any")
    new = small_models.train(small_models.HINDI, size)
    width = {"n_embd": hidden} if kind == "gptj" else {"d_model": hidden, "hidden_size": hidden}
    if kind == "bloom":
        width = {"hidden_size": hidden}
    model = small_models.build(kind, old, **width).to(dtype)
    source = small_models.save(model, old, place / "model", max_shard_size="20KB")
    options = {"init": init, "seed": seed, "pad_to_multiple_of": multiple}
    transfer_folder(source, new, place / "out", TransferOptions(**options))
    model = type(model).from_pretrained(source)
    transfer(model, old=old, new=new, **options)
    streamed = type(model).from_pretrained(place / "out").state_dict()
    expected = model.state_dict()
    assert expected.keys() == streamed.keys()
    for name, tensor in expected.items():
        assert tensor.dtype == streamed[name].dtype
        assert torch.equal(tensor, streamed[name]), name
    shutil.rmtree(place)


def test_only_tables_are_rewritten(sharded, new, tmp_path) -> None:
    """Shards without a table are the same bytes, the index names everything, the source stays."""
    before = _bytes(sharded)
    report = transfer_folder(sharded, new, tmp_path / "out")
    assert before == _bytes(sharded)
    after = _bytes(tmp_path / "out")
    copied = [name for name, what in report.files.items() if what == "copied"]
    assert len(copied) >= 2
    assert all(before[name] == after[name] for name in copied)
    index = json.loads(after["model.safetensors.index.json"])
    tensors = _tensors(tmp_path / "out")
    assert set(index["weight_map"]) == set(tensors)
    for name, file in index["weight_map"].items():
        with safe_open(tmp_path / "out" / file, "pt") as shard:
            assert name in shard.keys()  # noqa: SIM118 - it is no mapping
    assert (
        sum(t.numel() * t.element_size() for t in tensors.values())
        == (index["metadata"]["total_size"])
    )
    assert report.bytes_after == sum(
        len(data) for name, data in after.items() if name.endswith(".safetensors")
    )


def test_hard_links_where_asked(sharded, new, tmp_path) -> None:
    """Unchanged shards are then the same file; changed ones never."""
    report = transfer_folder(sharded, new, tmp_path / "out", hard_links=True)
    for name, what in report.files.items():
        if name.endswith(".safetensors"):
            same = (sharded / name).samefile(tmp_path / "out" / name)
            assert same == (what == "linked")
    assert "linked" in report.files.values()
    plain = transfer_folder(sharded, new, tmp_path / "plain")
    assert "linked" not in plain.files.values()
    tensors = _tensors(tmp_path / "out")
    assert all(torch.equal(tensors[name], t) for name, t in _tensors(tmp_path / "plain").items())


def test_dry_run_writes_nothing(sharded, new, tmp_path) -> None:
    """It says what a run then does."""
    planned = transfer_folder(sharded, new, tmp_path / "out", dry_run=True)
    assert {"model"} == {entry.name for entry in tmp_path.iterdir()}
    done = transfer_folder(sharded, new, tmp_path / "out")
    for key in ("rows", "n_copied", "n_moved", "bytes_before", "bytes_after", "special_ids"):
        assert getattr(planned, key) == getattr(done, key)
    rewritten = {name for name, what in planned.files.items() if what == "rewrite"}
    assert rewritten == {
        name
        for name, what in done.files.items()
        if what == "rewritten" and name.endswith(".safetensors")
    }


def test_killed_run_is_gone_on_with(sharded, new, tmp_path, monkeypatch) -> None:
    """Finished shards are kept, an unfinished one is not; the result is that of one run."""
    out = tmp_path / "out"
    real, calls = shard_writer.copy_file, []

    def fail(*args: Any, **options: Any) -> str:
        calls.append(args)
        if len(calls) == 2:
            args[1].write_bytes(b"half")
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(shard_writer, "copy_file", fail)
    with pytest.raises(KeyboardInterrupt):
        transfer_folder(sharded, new, out)
    assert not out.exists()
    assert not list((tmp_path / "out.partial" / "checkpoints").glob(".*"))
    report = transfer_folder(sharded, new, out)
    assert "kept from the run before" in report.files.values()
    transfer_folder(sharded, new, tmp_path / "once")
    shards = {name: data for name, data in _bytes(out).items() if name.endswith(".safetensors")}
    once = _bytes(tmp_path / "once")
    assert all(once[name] == data for name, data in shards.items())
    assert not (tmp_path / "out.partial").exists()


def test_without_reads_and_writes_at_a_place(sharded, new, tmp_path, monkeypatch) -> None:
    """The calls of Windows, which seeks first, make the same files."""
    transfer_folder(sharded, new, tmp_path / "once")
    for name in ("pread", "preadv", "pwrite", "copy_file_range", "posix_fallocate"):
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(sys, "platform", "win32")
    transfer_folder(sharded, new, tmp_path / "out")
    assert _bytes(tmp_path / "once") == _bytes(tmp_path / "out")


@pytest.mark.parametrize("change", ["init", "model"])
def test_shards_of_another_transfer_are_not_taken_over(
    sharded, old, new, tmp_path, monkeypatch, change
) -> None:
    """The same names of the same sizes, of another `--init` or model: every byte is made anew."""
    out, options = tmp_path / "out", {"init": "mean"}
    move = Path.rename

    def stop(self: Path, target: Any) -> Path:
        if self.parent.name == "checkpoints" and not self.name.startswith("."):
            raise KeyboardInterrupt  # all shards are finished, none has its name yet
        return move(self, target)

    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises(KeyboardInterrupt):
        transfer_folder(sharded, new, out, TransferOptions(**options))
    monkeypatch.undo()
    assert list((tmp_path / "out.partial" / "checkpoints").glob("*.safetensors"))
    if change == "init":
        options = {"init": "zeros"}
    else:
        for file in sharded.glob("*.safetensors"):
            save_file({name: tensor + 1 for name, tensor in load_file(file).items()}, file)
    transfer_folder(sharded, new, out, TransferOptions(**options))
    transfer_folder(sharded, new, tmp_path / "once", TransferOptions(**options))
    made, once = _tensors(out), _tensors(tmp_path / "once")
    assert made.keys() == once.keys()
    assert all(torch.equal(tensor, once[name]) for name, tensor in made.items())


@pytest.mark.parametrize("by_kernel", [True, False])
@pytest.mark.parametrize(("start", "to", "length"), [(0, 0, 50_000), (17, 4099, 40_961)])
def test_copied_block_by_block(tmp_path, monkeypatch, by_kernel, start, to, length) -> None:
    """Many blocks, from and to any place, with pages given back on the way: the same bytes."""
    monkeypatch.setattr(shard_writer, "_BLOCK", 4096)
    if not by_kernel:

        def refuse(*_: Any) -> int:
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)
    data = random.Random(1).randbytes(50_000)
    (tmp_path / "source").write_bytes(data)
    with (tmp_path / "source").open("rb") as source, (tmp_path / "out").open("w+b") as out:
        shard_writer.copy_bytes(source.fileno(), out.fileno(), start, to, length)
        shard_writer.finish(out.fileno())
    assert (tmp_path / "out").read_bytes() == bytes(to) + data[start : start + length]


def test_no_space_on_the_disk(sharded, new, tmp_path, monkeypatch) -> None:
    """Said before anything is written, with both numbers."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    with pytest.raises(OSError, match=r"needs 0\.03 GB, and .* has 0\.00 GB free") as caught:
        transfer_folder(sharded, new, tmp_path / "out")
    assert errno.ENOSPC == caught.value.errno
    assert {"model"} == {entry.name for entry in tmp_path.iterdir()}


def test_disk_that_fills_up_meanwhile(sharded, new, tmp_path, monkeypatch) -> None:
    """The output does not appear, no half-written shard stays, the source is untouched."""
    before = _bytes(sharded)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shard_writer, "reserve", full)
    with pytest.raises(OSError, match="No space left"):
        transfer_folder(sharded, new, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.rglob("out.partial/**/*.safetensors"))
    assert before == _bytes(sharded)


def test_missing_and_truncated_shards(sharded, new, tmp_path) -> None:
    """Each is named, and nothing is written."""
    shard = sorted(sharded.glob("*.safetensors"))[1]
    data = shard.read_bytes()
    shard.write_bytes(data[:-5])
    with pytest.raises(ValueError, match=f"{shard.name} has .* bytes, and its header speaks of"):
        transfer_folder(sharded, new, tmp_path / "out")
    shard.write_bytes(data[:20])
    with pytest.raises(ValueError, match="no safetensors file, or a truncated one"):
        transfer_folder(sharded, new, tmp_path / "out")
    shard.write_bytes((2).to_bytes(8, "little") + b"[]" + data)
    with pytest.raises(ValueError, match="damaged header"):
        transfer_folder(sharded, new, tmp_path / "out")
    shard.unlink()
    with pytest.raises(ValueError, match=f"the shard {shard.name}, which .* names, is missing"):
        transfer_folder(sharded, new, tmp_path / "out")
    index = sharded / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "../model/config.json"}}')
    with pytest.raises(ValueError, match="is no safetensors file in this"):
        transfer_folder(sharded, new, tmp_path / "out")
    assert {"model"} == {entry.name for entry in tmp_path.iterdir()}


def test_rows_that_do_not_fit(old, new, tmp_path) -> None:
    """Fewer rows than tokens; a config of other rows than the tensor; a stranger's tokenizer."""
    source = small_models.save(small_models.build("llama", old), old, tmp_path / "model")
    wider = small_models.train(small_models.ENGLISH + small_models.HINDI, 330)
    wider.save_pretrained(tmp_path / "wider")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tmp_path / "wider" / name, source / name)
    with pytest.raises(VocabMismatchError, match="288 rows, but its tokenizer needs"):
        transfer_folder(source, new, tmp_path / "out")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"vocab_size": 320}))
    with pytest.raises(VocabMismatchError, match=r"288 rows and config\.json says vocab_size 320"):
        transfer_folder(source, new, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["model.embed_tokens.weight", "lm_head.weight"])
def test_damaged_rows(old, new, tmp_path, bad, name) -> None:
    """The row and the table are named; in padding it is nobody's."""
    source = small_models.save(small_models.build("llama", old), old, tmp_path / "model")
    tensors = load_file(source / "model.safetensors")
    tensors[name][7, 3] = bad
    save_file(tensors, source / "model.safetensors", {"format": "pt"})
    with pytest.raises(VocabMismatchError, match="row 7 of the"):
        transfer_folder(source, new, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pad_that_positions_are_counted_from(old, new, tmp_path) -> None:
    """RoBERTa's first position is the one behind its pad token's id."""
    ids = small_models.special_ids(old)
    sizes = {"pad_token_id": ids["<pad>"], "max_position_embeddings": 400}
    model = small_models.build("xlm-roberta", old, **sizes)
    with pytest.raises(VocabMismatchError, match="counts positions from the id of its pad token"):
        transfer(model, old=old, new=new)


@pytest.mark.parametrize("kind", ["xglm", "m2m_100", "ibert"])
def test_pad_that_the_code_counts_positions_from(old, new, tmp_path, kind) -> None:
    """Their positions are modules of another class, and no weights: only a saved model shows it."""
    size = {"d_model": 16, "hidden_size": 16, "ffn_dim": 16, "intermediate_size": 16}
    layers = {f"{side}num_layers": 1 for side in ("", "encoder_", "decoder_")}
    config = transformers.AutoConfig.for_model(
        kind,
        **size,
        **layers,
        vocab_size=old.row_count,
        pad_token_id=small_models.special_ids(old)["<pad>"],
    )
    config.num_attention_heads = 4
    known = {"xglm": "XGLMForCausalLM", "ibert": "IBertForMaskedLM"}
    model_class = getattr(transformers, known.get(kind, "M2M100ForConditionalGeneration"))
    source = small_models.save(model_class(config), old, tmp_path / "model")
    with pytest.raises(VocabMismatchError, match="counts positions from the id of its pad token"):
        transfer_folder(source, new, tmp_path / "out")


def test_old_checkpoint_names(old, new, tmp_path) -> None:
    """GPT-2's own checkpoint lacks the prefix that its class now has."""
    model = small_models.build("gpt2", old)
    source = small_models.save(model, old, tmp_path / "model")
    tensors = load_file(source / "model.safetensors")
    plain = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    assert "wte.weight" in plain
    save_file(plain, source / "model.safetensors", {"format": "pt"})
    transfer_folder(source, new, tmp_path / "out")
    transfer(model, old=old, new=new)
    loaded = type(model).from_pretrained(tmp_path / "out")
    assert torch.equal(model.transformer.wte.weight, loaded.transformer.wte.weight)


def test_torch_files_are_loaded_whole(old, new, tmp_path) -> None:
    """A checkpoint in another format than safetensors goes the way of the memory."""
    model = small_models.build("llama", old)
    source = small_models.save(model, old, tmp_path / "model")
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    (source / "model.safetensors").unlink()
    transfer_folder(source, new, tmp_path / "out")
    transfer(model, old=old, new=new)
    loaded = type(model).from_pretrained(tmp_path / "out")
    assert torch.equal(model.lm_head.weight, loaded.lm_head.weight)


def test_processor_ids_and_licence_follow(old, new, tmp_path) -> None:
    """A processor's ids move; sizes and texts do not; the licence goes with the weights."""
    source = small_models.save(small_models.build("llava", old), old, tmp_path / "model")
    ids = small_models.special_ids(old)
    processor = {"image_token_id": ids["<image>"], "image_seq_length": 285, "nested": {}}
    processor["nested"] = {"eos_token_ids": [ids["</s>"], 285], "size": [285, 286]}
    (source / "processor_config.json").write_text(json.dumps(processor))
    (source / "LICENSE.txt").write_text("as it is")
    (source / "modeling_own.py").write_text("raise SystemExit")
    transfer_folder(source, new, tmp_path / "out")
    moved = json.loads((tmp_path / "out" / "processor_config.json").read_text())
    from vocabshift.tokenizer.formats.load import load_tokenizer

    now = small_models.special_ids(load_tokenizer(tmp_path / "out"))
    assert now["<image>"] == moved["image_token_id"]
    assert [now["</s>"], now["<pad>"]] == moved["nested"]["eos_token_ids"]
    assert (285, [285, 286]) == (moved["image_seq_length"], moved["nested"]["size"])
    assert (tmp_path / "out" / "LICENSE.txt").read_text() == "as it is"
    assert not list((tmp_path / "out").glob("*.py"))


def test_another_run_does_not_take_over_these_shards(sharded, old, new, tmp_path) -> None:
    """What is kept of a killed run is used only by the same transfer."""
    out = tmp_path / "out"
    transfer_folder(sharded, new, tmp_path / "first")
    (tmp_path / "out.partial" / "checkpoints").mkdir(parents=True)
    (tmp_path / "out.partial" / ".lock").write_text("")
    for file in (tmp_path / "first").glob("*.safetensors"):
        shutil.copy(file, tmp_path / "out.partial" / "checkpoints" / f"0000-{file.name}")
    permuted = replace(new, config={})
    report = transfer_folder(sharded, permuted, out)
    assert "kept from the run before" not in report.files.values()


def test_command_line_says_what_it_would_do(sharded, new, tmp_path, capsys) -> None:
    """--dry-run prints rows, sizes, files and moved ids; then the same with the output there."""
    tokenizer = new.save_pretrained(tmp_path / "new")
    words = ["transfer", str(sharded), str(tokenizer), "-o", str(tmp_path / "out"), "--json"]
    assert 0 == main([*words, "--dry-run", "--pad-to-multiple-of", "64"])
    planned = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "out").exists()
    assert (True, 320, []) == (planned["dry_run"], planned["rows"], planned["notes"])
    assert 0 == main([*words, "--hard-links", "--pad-to-multiple-of", "64"])
    done = json.loads(capsys.readouterr().out)
    for key in ("rows", "n_moved", "bytes_before", "bytes_after", "vocab_size"):
        assert planned[key] == done[key]
    assert "linked" in done["files"].values()
    assert 3 == len(done["notes"])
    assert 0 == main([*words[:-1], "--dry-run", "--force"])
    assert "next: the same without --dry-run" in capsys.readouterr().out
