"""Sources: files, standard input, texts."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.files import find
from vocabshift.text.readers import FileSource, Source, StandardInputSource, TextsSource

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
TEXTS = ["पहला", "இரண்டு x", "three"]
CONTENT = {
    "txt": "\r\n".join(TEXTS),
    "jsonl": "".join(json.dumps({"text": text}) + "\n" for text in TEXTS),
    "json": json.dumps({"data": [{"text": text} for text in TEXTS]}),
}


def texts(source: Source) -> list[str]:
    return [text for documents in source.read() for text in documents.texts()]


@pytest.mark.parametrize("kind", CONTENT)
@pytest.mark.parametrize("compression", COMPRESS)
def test_every_kind_gives_the_same(tmp_path: Path, kind: str, compression: str) -> None:
    """Whatever the format and the compression, and as often as asked."""
    path = tmp_path / f"a.{kind}{compression}"
    path.write_bytes(COMPRESS[compression](CONTENT[kind].encode()))
    source = FileSource("a", find(path))
    assert TEXTS == texts(source)
    assert TEXTS == texts(source)
    assert {str(path)} == {documents.source for documents in source.read()}


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("kind", CONTENT)
def test_a_byte_order_mark_is_no_text(tmp_path: Path, kind: str, compression: str) -> None:
    """Of each file, by lines and as a whole; another one in the text stays."""
    content = b"\xef\xbb\xbf" + CONTENT[kind].replace("three", "three\ufeff").encode()
    for name in "ab":
        path = tmp_path / f"{name}.{kind}{compression}"
        path.write_bytes(COMPRESS[compression](content))
    found = [*TEXTS[:2], "three\ufeff"] * 2
    assert found == texts(FileSource("here", find(tmp_path)))
    whole = ["\r\n".join(found[:3])] * 2 if kind == "txt" else found
    assert whole == texts(FileSource("here", find(tmp_path), "file"))


def test_a_byte_order_mark_counts_in_the_place_of_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa\n\xff")
    with pytest.raises(CorpusError, match="byte offset 5, line 2"):
        texts(FileSource("a", find(tmp_path)))


def test_whole_files_keep_their_line_ends(tmp_path: Path) -> None:
    """With "file" a text file is one document; records stay records, and order is kept."""
    for name, content in {
        "a.txt": "x\r\n\ny\n",
        "b.jsonl": '"p"\n"q"\n',
        "c.txt": "",
        "d.txt": "z",
    }.items():
        (tmp_path / name).write_bytes(content.encode())
    source = FileSource("here", find(tmp_path), "file")
    assert ["x\r\n\ny\n", "p", "q", "z"] == texts(source)
    assert ["x", "y", "p", "q", "z"] == texts(FileSource("here", find(tmp_path)))


def test_size_is_known_for_plain_text_only(tmp_path: Path) -> None:
    """Compressed files and records say nothing of the text in them."""
    (tmp_path / "a.txt").write_bytes(b"ab\n")
    assert 3 == FileSource("a", find(tmp_path)).n_bytes_hint
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"ab\n"))
    assert FileSource("a", find(tmp_path)).n_bytes_hint is None


def test_text_has_no_columns(tmp_path: Path) -> None:
    """A column is for records."""
    (tmp_path / "a.txt").touch()
    with pytest.raises(CorpusError, match=r"a\.txt: text has no column 'body'"):
        FileSource("a", find(tmp_path), column="body")


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))


def test_standard_input_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept from the first pass on, and not touched before."""
    pipe(monkeypatch, b"too early")
    source = StandardInputSource()
    pipe(monkeypatch, b"a\n\nb\r\n")
    assert ["a", "b"] == texts(source)
    assert ["a", "b"] == texts(source)


def test_standard_input_as_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its line ends."""
    pipe(monkeypatch, b"a\n\nb\n")
    source = StandardInputSource("file")
    assert ["a\n\nb\n"] == texts(source) == texts(source)


@pytest.mark.parametrize("unit", ["line", "file"])
def test_standard_input_has_no_byte_order_mark(monkeypatch: pytest.MonkeyPatch, unit: Any) -> None:
    pipe(monkeypatch, "\ufeffab".encode())
    assert ["ab"] == texts(StandardInputSource(unit))


@pytest.mark.parametrize("unit", ["line", "file"])
def test_standard_input_must_be_utf8(monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    """The message names it."""
    pipe(monkeypatch, b"ab\n\xff")
    with pytest.raises(CorpusError, match="standard input: not UTF-8 at byte offset 3"):
        texts(StandardInputSource(unit))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unit", "found"), [("line", ["ab", "c\ufffd", "\ufffd"]), ("file", ["ab\nc\ufffd\n\ufffd"])]
)
def test_standard_input_with_replacements(
    monkeypatch: pytest.MonkeyPatch, unit: Any, found: list[str]
) -> None:
    pipe(monkeypatch, b"ab\nc\xff\n\xe0\xa4")
    source = StandardInputSource(unit, "replace")
    assert found == texts(source) == texts(source)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.txt", b"a\xff\n\xe0\xa4", ["a\ufffd", "\ufffd"]),
        ("a.jsonl", b'{"text": "a\xff"}\n{"text": "b\xe0\xa4"}\n', ["a\ufffd", "b\ufffd"]),
        ("a.json", b'[{"text": "a\xff"}, "b\xe0\xa4"]', ["a\ufffd", "b\ufffd"]),
    ],
)
def test_every_format_of_text_takes_replacements(
    name: str, content: bytes, found: list[str], tmp_path: Path
) -> None:
    """Compressed too; without them the file is refused."""
    (tmp_path / name).write_bytes(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        files = {"hi": path}
        corpus = Corpus.from_files(files, errors="replace")
        assert found == [text for _, text in corpus.texts()]
        assert found == [
            text for _, text in Corpus.from_specs([str(path)], errors="replace").texts()
        ]
        with pytest.raises(CorpusError, match=rf"{name}.*: not UTF-8 at byte offset .*, line 1"):
            list(Corpus.from_files(files).texts())


def test_replacements_are_asked_for_by_name() -> None:
    for make in (
        lambda: Corpus.from_files({"hi": "a.txt"}, errors="ignore"),  # type: ignore[arg-type]
        lambda: Corpus.from_specs(["a.txt"], errors="ignore"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="errors is 'ignore'; it must be 'strict'"):
            make()


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to read from."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CorpusError, match="standard input is closed"):
        texts(StandardInputSource())


def test_texts_in_memory() -> None:
    """Line ends within a text are part of it."""
    assert ["a\nb", " "] == texts(TextsSource("x", ["a\nb", "", " "]))
    with pytest.raises(TypeError, match="x: item 1 is int"):
        texts(TextsSource("x", ["a", 1]))  # type: ignore[list-item]
    with pytest.raises(CorpusError, match="x, item 0: a lone surrogate"):
        texts(TextsSource("x", ["\ud800"]))
