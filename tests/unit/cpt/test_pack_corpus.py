"""Packing a corpus into a folder, and reading it back."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.cpt.packed_shards import FORMATS
from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.storage import checkpoints
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer

END = 256
LINES = ["one", "deux mots", "तीन", "четыре слова здесь", "<|end|>x", "vi"]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Two files, one of them without a label."""
    (tmp_path / "a.txt").write_text("\n\n".join(LINES[:4]) + "\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("\n".join(LINES[4:]), encoding="utf-8")
    return Corpus.from_specs([f"mul={tmp_path / 'a.txt'}", str(tmp_path / "b.txt")])


def ids_of(text: str) -> list[int]:
    """One id a byte, in the order of the byte-level alphabet."""
    return [byte_level.ALPHABET.index(image) for image in byte_level.to_image(text.encode())]


def expected(*, eos: bool = True, parse_special: bool = True) -> list[list[int]]:
    """By line; "<|end|>" in the text is the token 256."""
    rows = []
    for line in LINES:
        ids = ids_of(line)
        if parse_special and line.startswith("<|end|>"):
            ids = [END, *ids_of(line.removeprefix("<|end|>"))]
        rows.append(ids + [END] * eos)
    return rows


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shard_tokens", [1, 7, 20, 1000])
@pytest.mark.parametrize("more", [{"eos": "<|end|>"}, {}, {"parse_special": False}])
def test_what_is_packed_is_read(
    byte_tokenizer: Tokenizer,
    corpus: Corpus,
    tmp_path: Path,
    form: str,
    shard_tokens: int,
    more: dict[str, Any],
) -> None:
    options = PackOptions(format=form, shard_tokens=shard_tokens, **more)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    packed = PackedIds.open(tmp_path / "out")
    rows = expected(eos="eos" in more, parse_special=more.get("parse_special", True))
    flat = [token_id for row in rows for token_id in row]
    assert rows == [packed.document(i).tolist() for i in range(len(packed))]
    assert len(flat) == packed.n_tokens
    for start in range(len(flat) + 1):
        for stop in range(start, len(flat) + 1, 5):
            assert flat[start:stop] == packed.tokens(start, stop).tolist()
    assert [len(line.encode()) for line in LINES] == packed.document_bytes.tolist()
    assert sum(len(line.encode()) for line in LINES) == packed.n_bytes
    assert np.uint16 == packed.dtype == packed.document(0).dtype == packed.tokens(0, 0).dtype
    assert (END if "eos" in more else None) == packed.eos_id


def test_totals_by_language(byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path) -> None:
    header = pack_corpus(byte_tokenizer, corpus, tmp_path / "out", PackOptions(shard_tokens=20))
    assert header == json.loads((tmp_path / "out" / "packed.json").read_text(encoding="utf-8"))
    n_bytes = [sum(len(line.encode()) for line in part) for part in (LINES[:4], LINES[4:])]
    assert [
        {"language": "mul", "n_documents": 4, "n_tokens": n_bytes[0], "n_bytes": n_bytes[0]},
        {"language": None, "n_documents": 2, "n_tokens": n_bytes[1] - 6, "n_bytes": n_bytes[1]},
    ] == header["languages"]
    assert (6, sum(n_bytes) - 6) == (header["n_documents"], header["n_tokens"])
    assert header["n_tokens"] == sum(shard["n_tokens"] for shard in header["shards"])
    # Whole documents, each shard as long as asked for, but the last.
    assert [3 + 9 + 9, 34, 1 + 1 + 2] == [shard["n_tokens"] for shard in header["shards"]]


@pytest.mark.parametrize("form", FORMATS)
def test_documents_and_slices_are_views(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, form: str
) -> None:
    """Of the mapped file, which cannot be written to."""
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", PackOptions(format=form))
    packed = PackedIds.open(tmp_path / "out")
    whole = packed.tokens(0, packed.n_tokens)
    for part in (packed.document(2), packed.tokens(3, 9)):
        assert np.shares_memory(whole, part)
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1


@pytest.mark.parametrize("length", [1, 2, 5, 64])
def test_blocks_cover_the_stream(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, length: int
) -> None:
    """Each token but the first is a target once."""
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", PackOptions(shard_tokens=9))
    packed = PackedIds.open(tmp_path / "out")
    blocks = list(packed.blocks(length))
    stream = packed.tokens(0, packed.n_tokens).tolist()
    assert stream[1:] == [token_id for block in blocks for token_id in block[1:].tolist()]
    assert stream[:-1] == [token_id for block in blocks for token_id in block[:-1].tolist()]
    assert {length + 1} >= {len(block) for block in blocks[:-1]}


def test_out_of_range_is_an_index_error(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path
) -> None:
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out")
    packed = PackedIds.open(tmp_path / "out")
    for wrong in (
        lambda: packed.document(-1),
        lambda: packed.document(6),
        lambda: packed.tokens(-1, 2),
        lambda: packed.tokens(2, 1),
        lambda: packed.tokens(0, packed.n_tokens + 1),
    ):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(ValueError, match="a block of 0"):
        next(packed.blocks(0))


def test_documents_without_tokens(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Text that a normalizer deletes; such documents stay, so that documents keep their numbers."""
    deletes = {"type": "Replace", "pattern": {"String": "x"}, "content": ""}
    tokenizer = replace(byte_tokenizer, normalizer=deletes)
    for name, eos in (("with", "<|end|>"), ("without", None)):
        for form in FORMATS:
            out = tmp_path / name / form
            texts = Corpus.from_texts(["x", "xx", "a", "x"])
            pack_corpus(tokenizer, texts, out, PackOptions(eos=eos, format=form))
            packed = PackedIds.open(out)
            end = [] if eos is None else [END]
            assert [end, end, [*ids_of("a"), *end], end] == [
                packed.document(i).tolist() for i in range(4)
            ]
    out = tmp_path / "nothing"
    pack_corpus(tokenizer, Corpus.from_texts(["x"]), out)
    assert (1, 0, []) == (
        len(PackedIds.open(out)),
        PackedIds.open(out).n_tokens,
        list(PackedIds.open(out).blocks(4)),
    )


def test_a_large_vocabulary_takes_four_bytes(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """65,536 ids fit into 16 bits, one more does not."""
    for highest, dtype in ((65_535, "uint16"), (65_536, "uint32")):
        vocab = {**byte_tokenizer.model.vocab, "far": highest}
        tokenizer = replace(byte_tokenizer, model=replace(byte_tokenizer.model, vocab=vocab))
        tokenizer = replace(tokenizer, added_tokens=(AddedToken("far", highest),))
        out = tmp_path / dtype
        pack_corpus(tokenizer, Corpus.from_texts(["a", "far"]), out, PackOptions(eos="far"))
        packed = PackedIds.open(out)
        assert dtype == packed.dtype.name
        assert [*ids_of("a"), highest, highest, highest] == packed.tokens(0, 4).tolist()


def test_threads_change_nothing(byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path) -> None:
    options = PackOptions(eos="<|end|>", shard_tokens=9)
    for threads in (1, 2, 7):
        pack_corpus(byte_tokenizer, corpus, tmp_path / str(threads), options, threads=threads)
    assert files(tmp_path / "1") == files(tmp_path / "2") == files(tmp_path / "7")


def test_the_eos_of_a_tokenizer(byte_tokenizer: Tokenizer) -> None:
    for eos, found in (
        ("<|end|>", "<|end|>"),
        ({"content": "<|end|>"}, "<|end|>"),
        ("a", "a"),
        ("no token", None),
        (None, None),
        (7, None),
    ):
        assert found == replace(byte_tokenizer, config={"eos_token": eos}).eos_token
    assert byte_tokenizer.eos_token is None


def test_bad_arguments(byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'<eos>' is no token of tokenizer; name one with --eos"):
        pack_corpus(byte_tokenizer, corpus, tmp_path / "out", PackOptions(eos="<eos>"))
    weighted = Corpus.from_texts({"en": ["a"]}, weights={"en": 2.0})
    with pytest.raises(ValueError, match="packed once"):
        pack_corpus(byte_tokenizer, weighted, tmp_path / "out")
    with pytest.raises(ValueError, match="shard_tokens is 0"):
        PackOptions(shard_tokens=0)
    with pytest.raises(ValueError, match="format is 'csv'"):
        PackOptions(format="csv")
    with pytest.raises(ValueError, match="would replace the input"):
        pack_corpus(byte_tokenizer, corpus, tmp_path, force=True)
    with pytest.raises(CorpusError, match="no text"):
        pack_corpus(byte_tokenizer, Corpus.from_texts([""]), tmp_path / "out")
    assert ["a.txt", "b.txt"] == sorted(path.name for path in tmp_path.iterdir())


class StoppedError(Exception):
    """Stands for whatever ends a run."""


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_run_goes_on_where_it_stopped(
    byte_tokenizer: Tokenizer,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    after: int,
) -> None:
    """The same bytes, and what was finished is not encoded again."""
    options = PackOptions(eos="<|end|>", shard_tokens=9, format=form)
    header = pack_corpus(byte_tokenizer, corpus, tmp_path / "whole", options)
    assert 4 <= len(header["shards"])
    commit = checkpoints.Checkpoints.commit
    saved: list[str] = []

    def counted(self: Any, phase: str, info: Any = None) -> Any:
        if len(saved) == after:
            raise StoppedError
        saved.append(phase)
        return commit(self, phase, info)

    monkeypatch.setattr(checkpoints.Checkpoints, "commit", counted)
    with pytest.raises(StoppedError) as caught:
        pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    assert "same command again" in caught.value.__notes__[0]
    assert after == len(list((tmp_path / "out.partial" / "checkpoints").iterdir()))
    monkeypatch.undo()
    encoded: list[int] = []
    from vocabshift.cpt.pack_corpus import Packer

    add = Packer.add

    def noted(self: Any, documents: Any) -> Any:
        encoded.append(len(documents))
        return add(self, documents)

    monkeypatch.setattr(Packer, "add", noted)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    assert files(tmp_path / "whole") == files(tmp_path / "out")
    finished = sum(shard["n_documents"] for shard in header["shards"][:after])
    assert len(LINES) - finished == sum(encoded)
    assert not (tmp_path / "out.partial").exists()


def interrupted(
    tokenizer: Tokenizer, corpus: Corpus, out: Path, options: PackOptions, **more: bool
) -> None:
    """A run that ends after its first shard."""
    commit = checkpoints.Checkpoints.commit

    def once(self: Any, phase: str, info: Any = None) -> Any:
        commit(self, phase, info)
        raise StoppedError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(checkpoints.Checkpoints, "commit", once)
        pack_corpus(tokenizer, corpus, out, options, **more)


@pytest.mark.parametrize("form", FORMATS)
def test_a_killed_run_resumes(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, form: Any
) -> None:
    """To the byte, in every format."""
    options = PackOptions(shard_tokens=9, format=form)
    interrupted(byte_tokenizer, corpus, tmp_path / "out", options)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "whole", options)
    assert files(tmp_path / "whole") == files(tmp_path / "out")


@pytest.mark.parametrize(
    "change",
    [
        {"eos": "a"},
        {"eos": None},
        {"format": "arrow"},
        {"shard_tokens": 10},
        {"parse_special": False},
    ],
)
def test_a_shard_of_other_options_is_never_used(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, change: dict[str, Any]
) -> None:
    options = PackOptions(eos="<|end|>", shard_tokens=9)
    other = replace(options, **change)
    interrupted(byte_tokenizer, corpus, tmp_path / "out", options)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", other)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "whole", other)
    assert files(tmp_path / "whole") == files(tmp_path / "out")


def test_a_shard_of_other_text_or_another_tokenizer_is_never_used(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path
) -> None:
    options = PackOptions(shard_tokens=9)
    interrupted(byte_tokenizer, corpus, tmp_path / "out", options)
    path = tmp_path / "a.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("one", "eno"), encoding="utf-8")
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))  # clocks may be coarse
    interrupted(byte_tokenizer, corpus, tmp_path / "out", options)
    vocab = dict(byte_tokenizer.model.vocab)
    vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
    swapped = replace(byte_tokenizer, model=replace(byte_tokenizer.model, vocab=vocab))
    pack_corpus(swapped, corpus, tmp_path / "out", options)
    pack_corpus(swapped, corpus, tmp_path / "whole", options)
    assert files(tmp_path / "whole") == files(tmp_path / "out")
    assert ids_of("eno") == PackedIds.open(tmp_path / "out").document(0).tolist()


def test_no_resume_starts_afresh(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = PackOptions(shard_tokens=9)
    interrupted(byte_tokenizer, corpus, tmp_path / "out", options)
    found = []
    load = checkpoints.Checkpoints.load
    monkeypatch.setattr(
        checkpoints.Checkpoints, "load", lambda *args: found.append(load(*args)) or found[-1]
    )
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options, resume=False)
    assert [None] == found


def test_text_in_memory_leaves_nothing_when_it_fails(
    byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """The next process could not know it again."""
    texts = Corpus.from_texts(LINES)
    interrupted(byte_tokenizer, texts, tmp_path / "out", PackOptions(shard_tokens=1))
    assert [] == list(tmp_path.iterdir())


def test_a_full_disk_keeps_the_finished_shards(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vocabshift.cpt import packed_shards

    write = packed_shards.write_shard

    def full(folder: Path, number: int, *args: Any, **more: Any) -> None:
        write(folder, number, *args, **more)
        if number == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(packed_shards, "write_shard", full)
    options = PackOptions(shard_tokens=9)
    with pytest.raises(OSError, match=r"disk is full.*'shard-00001'") as caught:
        pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    assert "same command again" in caught.value.__notes__[0]
    monkeypatch.undo()
    kept = tmp_path / "out.partial" / "checkpoints"
    assert ["shard-00000"] == [path.name for path in kept.iterdir()]
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    assert expected(eos=False)[1] == PackedIds.open(tmp_path / "out").document(1).tolist()


def change_json(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    header = json.loads((folder / "packed.json").read_text(encoding="utf-8"))
    change(header)
    (folder / "packed.json").write_text(json.dumps(header), encoding="utf-8")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


JSON_DAMAGE: list[Callable[[dict[str, Any]], object]] = [
    lambda header: header.update(version=2),
    lambda header: header.update(format="csv"),
    lambda header: header.update(dtype="float64"),
    lambda header: header.update(n_tokens=-1),
    lambda header: header.update(n_tokens=header["n_tokens"] + 1),
    lambda header: header.update(n_documents="6"),
    lambda header: header.update(shards=[]),
    lambda header: header.update(shards=[7]),
    lambda header: header.update(shards=header["shards"][:-1]),
    lambda header: header.update(tokenizer=None),
    lambda header: header.update(eos={"token": "x"}),
    lambda header: header["tokenizer"].update(n_ids=200),
    lambda header: header["tokenizer"].update(fingerprint=5),
    lambda header: header["shards"][0].update(crc32={"../../secret": 5}),
    lambda header: header["shards"][0].update(n_tokens=header["shards"][0]["n_tokens"] + 1),
    lambda header: header.pop("eos"),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("change", JSON_DAMAGE)
def test_a_damaged_header_is_a_corpus_error(
    byte_tokenizer: Tokenizer,
    corpus: Corpus,
    tmp_path: Path,
    form: str,
    change: Callable[[dict[str, Any]], object],
) -> None:
    options = PackOptions(shard_tokens=20, format=form)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    change_json(tmp_path / "out", change)
    with pytest.raises(CorpusError, match=re.escape(str(tmp_path / "out"))):
        PackedIds.open(tmp_path / "out")


def test_a_header_nested_too_deeply_is_a_corpus_error(tmp_path: Path) -> None:
    (tmp_path / "packed.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"packed\.json is damaged"):
        PackedIds.open(tmp_path)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("checksums", [True, False])
def test_a_missing_or_truncated_file_is_a_corpus_error(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, form: str, checksums: bool
) -> None:
    options = PackOptions(shard_tokens=20, format=form)
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", options)
    whole = files(tmp_path / "out")
    for name, data in whole.items():
        path = tmp_path / "out" / name
        for size in {0, 5, len(data) // 2, len(data) - 1}:
            path.write_bytes(data[:size])
            if name == "packed.json" and size == len(data) - 1:
                continue  # the last newline says nothing
            if name.endswith(".metadata") and not checksums:
                continue  # for other programs
            with pytest.raises(CorpusError, match=re.escape(str(tmp_path / "out"))):
                PackedIds.open(tmp_path / "out", checksums=checksums)
        path.unlink()
        if checksums or not name.endswith(".metadata"):
            with pytest.raises(CorpusError, match=re.escape(str(tmp_path / "out"))):
                PackedIds.open(tmp_path / "out", checksums=checksums)
        path.write_bytes(data)
    PackedIds.open(tmp_path / "out", checksums=checksums)


@pytest.mark.parametrize("form", FORMATS)
def test_no_changed_byte_goes_unseen(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path, form: str
) -> None:
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out", PackOptions(format=form))
    for name, data in files(tmp_path / "out").items():
        if name == "packed.json":
            continue
        for at in range(0, len(data), 7):
            flip(tmp_path / "out" / name, at)
            with pytest.raises(CorpusError, match=name):
                PackedIds.open(tmp_path / "out")
            (tmp_path / "out" / name).write_bytes(data)


def test_offsets_that_lie_are_found_without_checksums(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path
) -> None:
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out")
    for name in ("offsets-00000.npy", "bytes-00000.npy"):
        path = tmp_path / "out" / name
        data = path.read_bytes()
        offsets = np.load(path)
        for at, value in ((0, 1), (2, 10**12), (3, -5), (-1, 0)):
            wrong = offsets.copy()
            wrong[at] = value
            np.save(path, wrong)
            with pytest.raises(CorpusError, match="offsets do not divide"):
                PackedIds.open(tmp_path / "out", checksums=False)
        np.save(path, offsets.astype(np.float64))
        with pytest.raises(CorpusError, match="no array of int64"):
            PackedIds.open(tmp_path / "out", checksums=False)
        path.write_bytes(data)


def test_another_tokenizer_is_refused(
    byte_tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path
) -> None:
    """What counts is what decides ids: roles and templates may differ."""
    pack_corpus(byte_tokenizer, corpus, tmp_path / "out")
    packed = PackedIds.open(tmp_path / "out")
    packed.require(replace(byte_tokenizer, config={"eos_token": "a"}, name="renamed"))
    with pytest.raises(VocabMismatchError, match="another tokenizer"):
        packed.require(replace(byte_tokenizer, normalizer={"type": "NFC"}))


def test_a_folder_without_packed_ids(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no packed ids.*vocabshift encode"):
        PackedIds.open(tmp_path)
