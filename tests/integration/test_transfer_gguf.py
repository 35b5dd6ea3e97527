"""`vocabshift transfer FILE.gguf TOKENIZER -o OUT.gguf`: rows moved as stored, all else copied."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

import vocabshift as vs  # noqa: E402
from gguf_files import model_of, tokenizer_of, write_gguf  # noqa: E402
from small_models import ENGLISH, special_ids  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.tokenizer.formats.gguf_header import read_header  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402


def file_of(layout: str, place: Path, **options: Any) -> Path:
    """A file as llama.cpp's converter writes it, and a few keys with ids."""
    tokenizer = tokenizer_of(layout, place)
    ids = special_ids(tokenizer)
    keys = {"tokenizer__ggml__eot_token_id": ids["<|turn|>"], **options}
    model = model_of(layout, tokenizer)
    return write_gguf(place / "model.gguf", model, tokenizer, **keys)


def trimmed(file: Path) -> tuple[Tokenizer, Tokenizer]:
    """The file's own tokenizer; and without every other token that is no byte and not special, in
    the opposite order."""
    own = vs.load_tokenizer(file)
    protected = {i for text, i in own.vocab.items() if len(text) == 1 or text.startswith("<")}
    protected |= {token.id for token in own.added_tokens}
    kept = [i for i in range(own.row_count) if i % 2 or i in protected]
    return own, own.renumbered({old: new for new, old in enumerate(reversed(kept))})


def raw_keys(file: Path) -> dict[str, bytes]:
    """Each key as it is stored, with its name and type."""
    data = file.read_bytes()
    places = read_header(data).places
    return {name: data[start:end] for name, (start, end) in places.items()}


@pytest.mark.parametrize(
    ("layout", "kind"), [("llama", "Q8_0"), ("qwen2", "Q4_1"), ("qwen3", "F32"), ("gemma3", "BF16")]
)
def test_rows_are_moved_and_all_else_is_copied(layout: str, kind: str, tmp_path: Path) -> None:
    file = file_of(layout, tmp_path, kind=kind)
    own, new = trimmed(file)
    assert new.row_count < own.row_count - 10
    result = vs.transfer_gguf(file, new, tmp_path / "out.gguf")
    before, after = (gguf.GGUFReader(path) for path in (file, tmp_path / "out.gguf"))
    texts = {**new.vocab, **{token.content: token.id for token in new.added_tokens}}
    old_ids = {**own.vocab, **{token.content: token.id for token in own.added_tokens}}
    rows = [old_ids[text] for text in sorted(texts, key=texts.__getitem__)]
    tables = {"token_embd.weight", "output.weight"}
    for old, tensor in zip(before.tensors, after.tensors, strict=True):
        assert (old.name, old.tensor_type) == (tensor.name, tensor.tensor_type)
        expected = old.data[rows] if old.name in tables else old.data
        assert np.array_equal(expected, tensor.data), old.name
    old_keys, keys = raw_keys(file), raw_keys(tmp_path / "out.gguf")
    changed = {name for name, value in old_keys.items() if value != keys[name]}
    vocabulary = {name for name in old_keys if name.startswith("tokenizer.ggml.")}
    assert list(old_keys) == list(keys)
    assert changed <= vocabulary | {
        f"{before.fields['general.architecture'].contents()}.vocab_size"
    }
    assert "tokenizer.ggml.eot_token_id" in changed
    assert after.fields["tokenizer.ggml.eot_token_id"].contents() == texts["<|turn|>"]
    assert (len(rows), own.row_count - len(rows)) == (result["rows"], result["n_removed"])
    assert result["bytes_after"] == (tmp_path / "out.gguf").stat().st_size
    again = vs.load_tokenizer(tmp_path / "out.gguf")
    for text in (*ENGLISH[:2], "In 2024,  12\n\nदिन", "ß<|turn|>"):
        assert new.backend.encode(text).ids == again.backend.encode(text).ids, text
    vs.convert_gguf(tmp_path / "out.gguf", tmp_path / "folder")  # a sound file


def test_what_prune_wrote_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way on the command line; padding rows of the file are dropped."""
    tokenizer = tokenizer_of("llama", tmp_path)
    texts = [*tokenizer.vocab, *(token.content for token in tokenizer.added_tokens)]
    file = file_of("llama", tmp_path, general__alignment=64)
    (tmp_path / "english.txt").write_text("\n".join(ENGLISH))
    folder, pruned, out = (str(tmp_path / name) for name in ("folder", "pruned", "out.gguf"))
    corpus = ["--corpus", f"en={tmp_path / 'english.txt'}"]
    assert 0 == main(["convert", str(file), "-o", folder])
    assert 0 == main(["prune", folder, *corpus, "--n-tokens", "9", "-o", pruned])
    capsys.readouterr()
    assert 0 == main(["transfer", str(file), pruned, "-o", out])
    assert "as in the file" in capsys.readouterr().out
    assert 2 == main(["transfer", str(file), pruned, "-o", out])
    assert "exists already" in capsys.readouterr().err
    assert 0 == main(["transfer", str(file), pruned, "-o", out, "--force", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (len(texts) - 9, 9, 0) == (result["rows"], result["n_removed"], result["n_initialized"])
    assert {"token_embd.weight": "F32", "output.weight": "F32"} == result["tables"]
    for wrong in (["--details"], ["--init", "mean"]):
        assert 2 == main(["transfer", str(file), pruned, "-o", out, "--force", *wrong])
        assert f"{wrong[0]} is of no use for a GGUF file" in capsys.readouterr().err


def test_tokenizers_that_are_no_part_of_the_files(tmp_path: Path) -> None:
    file = file_of("llama", tmp_path)
    own, new = trimmed(file)
    ids = special_ids(own)
    longer = replace(
        own, added_tokens=(*own.added_tokens, replace(own.added_tokens[0], content="<new>", id=288))
    )
    other = replace(own, pre_tokenizer=None)
    *others, last = (token for token in own.added_tokens if token.content != "</s>")
    without_eos = (*others, replace(last, id=ids["</s>"]))
    for tokenizer, message in (
        (longer, r"has 1 tokens that the file has not, such as '<new>'.*vocabshift convert"),
        (other, "another pre_tokenizer than the file names"),
        (replace(own, normalizer={"type": "NFC"}), "another normalizer than the file names"),
        (
            replace(own, model=replace(own.model, ignore_merges=not own.model.ignore_merges)),
            "skips merges otherwise than the file",
        ),
        (
            replace(own, added_tokens=without_eos, post_processor=None),
            "eos_token_id of the file is .* keep that token",
        ),
        (own.without([300 - 40], keep_ids=True), "prune without --keep-ids"),
    ):
        with pytest.raises(ValueError, match=message):
            vs.transfer_gguf(file, tokenizer, tmp_path / "out.gguf")
    with pytest.raises(FileNotFoundError, match=r"none.gguf is no file"):
        vs.transfer_gguf(tmp_path / "none.gguf", new, tmp_path / "out.gguf")
    with pytest.raises(ValueError, match="also an input"):
        vs.transfer_gguf(file, new, file, force=True)
    assert not list(tmp_path.glob("out*"))


def test_a_key_with_a_whole_tokenizer_follows(tmp_path: Path) -> None:
    file = file_of("llama", tmp_path, tokenizer__huggingface__json="{}")
    _, new = trimmed(file)
    vs.transfer_gguf(file, new, tmp_path / "out.gguf")
    fields = gguf.GGUFReader(tmp_path / "out.gguf").fields
    assert new.to_json() == fields["tokenizer.huggingface.json"].contents()


def test_tokens_that_are_never_written_are_those_that_they_were(tmp_path: Path) -> None:
    """By their new ids; one that is gone needs no mention."""
    kept, gone = "<|turn|>", "the"
    ids = vs.load_tokenizer(file_of("llama", tmp_path)).vocab
    file = file_of("llama", tmp_path, tokenizer__ggml__suppress_tokens=[ids[gone], ids[kept]])
    new = vs.load_tokenizer(file).without([ids[gone]])
    vs.transfer_gguf(file, new, tmp_path / "out.gguf")
    fields = gguf.GGUFReader(tmp_path / "out.gguf").fields
    assert [new.vocab[kept]] == fields["tokenizer.ggml.suppress_tokens"].contents()


def test_damaged_files(tmp_path: Path) -> None:
    file = file_of("llama", tmp_path, kind="Q8_0")
    _, new = trimmed(file)
    data = file.read_bytes()
    name = b"blk.0.ffn_down.weight"
    place = data.index(name) + len(name)  # then dimensions, lengths, type, offset
    damaged = {
        b"": "is empty",
        b"no model": "no GGUF file",
        data[: len(data) // 8]: "byte ",
        data[:-64]: "cut short or damaged",
        data[: place + 20] + b"\xff\0\0\0" + data[place + 24 :]: "is of type 255",
        data[: place + 24] + bytes(8) + data[place + 32 :]: "begins inside",
        data[: place + 4] + b"\x21" + data[place + 5 :]: "rows of 33 values.* blocks of 32",
    }
    for content, message in damaged.items():
        (tmp_path / "damaged.gguf").write_bytes(content)
        with pytest.raises(ValueError, match=f"damaged.gguf: .*{message}"):
            vs.transfer_gguf(tmp_path / "damaged.gguf", new, tmp_path / "out.gguf")
        assert not list(tmp_path.glob("out*"))


def test_files_of_other_kinds(tmp_path: Path) -> None:
    """Any architecture is trimmed; but not a part of a model, or with tables that are not known."""
    file = file_of("llama", tmp_path, general__architecture="brand-new")
    _, new = trimmed(file)
    assert new.row_count == vs.transfer_gguf(file, new, tmp_path / "out.gguf")["rows"]
    part = file_of("llama", tmp_path, split__count=2)
    with pytest.raises(ValueError, match="one of 2 parts"):
        vs.transfer_gguf(part, new, tmp_path / "part.gguf")
    writer = gguf.GGUFWriter(tmp_path / "more.gguf", "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "ab"])
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "gpt-2")
    writer.add_array("tokenizer.ggml.merges", ["a b"])
    writer.add_tensor("token_embd.weight", np.zeros((3, 4), np.float32))
    writer.add_tensor("other.weight", np.zeros((2, 3), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    small = vs.load_tokenizer(tmp_path / "more.gguf")
    with pytest.raises(ValueError, match=r"other.weight has a side of 3"):
        vs.transfer_gguf(tmp_path / "more.gguf", small, tmp_path / "none.gguf")
