"""The corpus: languages, weights, re-reading."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Some files, in the working folder."""
    contents = {"hin.txt": "क\nख\n", "eng.txt": "a\n", "more/b.txt": "b\n", "void.txt": "\n\r\n"}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_by_language(folder: Path) -> None:
    """One path or several; str or Path; folders and globs; order as given."""
    corpus = Corpus.from_files({"hin": "hin.txt", "eng": [Path("eng.txt"), "more", "e*.txt"]})
    pairs = [("hin", "क"), ("hin", "ख"), ("eng", "a"), ("eng", "b"), ("eng", "a")]
    assert pairs == list(corpus.texts()) == list(corpus.texts())
    assert ["hin", "eng"] == corpus.languages


def test_specs_carry_language_and_weight(folder: Path) -> None:
    """No label, no language, also for the files of a folder."""
    corpus = Corpus.from_specs(["hin=hin.txt@2.5", "more", "any label=eng.txt"])
    found = [(d.language, d.weight, d.source, list(d.texts())) for d in corpus.batches()]
    assert [
        ("hin", 2.5, "hin.txt", ["क", "ख"]),
        (None, 1.0, "more/b.txt", ["b"]),
        ("any label", 1.0, "eng.txt", ["a"]),
    ] == found
    assert ["hin", "any label"] == corpus.languages
    assert "Corpus(hin=hin.txt@2.5, more, any label=eng.txt)" == repr(corpus)


def test_paths_of_from_files_are_literal(folder: Path) -> None:
    """Neither `=`, `@` nor `:` means anything there, and a column is an argument."""
    (folder / "x=y@2:z.jsonl").write_text('{"body": "c"}\n', encoding="utf-8")
    corpus = Corpus.from_files({"eng": "x=y@2:z.jsonl"}, column="body", weights={"eng": 3})
    assert [("eng", 3.0, ["c"])] == [
        (d.language, d.weight, list(d.texts())) for d in corpus.batches()
    ]


def test_texts_with_and_without_labels() -> None:
    """A generator is kept, so that it can be read again."""
    corpus = Corpus.from_texts(text for text in ["a", "", "b\nc"])
    assert [(None, "a"), (None, "b\nc")] == list(corpus.texts()) == list(corpus.texts())
    assert [] == corpus.languages
    corpus = Corpus.from_texts({"hin": ["क"], "eng": iter(["a"])}, weights={"hin": 2.0})
    assert [("hin", 2.0), ("eng", 1.0)] == [(d.language, d.weight) for d in corpus.batches()]


def test_files_as_documents(folder: Path) -> None:
    """`documents="file"` reaches the sources, by either door."""
    assert [("hin", "क\nख\n")] == list(
        Corpus.from_files({"hin": "hin.txt"}, documents="file").texts()
    )
    assert [(None, "क\nख\n")] == list(Corpus.from_specs(["hin.txt"], documents="file").texts())


def test_select(folder: Path) -> None:
    """Parts of some languages, in the order of the corpus."""
    corpus = Corpus.from_specs(["hin=hin.txt", "more", "eng=eng.txt", "hin=more"])
    chosen = corpus.select(["eng", "hin"])
    assert ["hin", "eng"] == chosen.languages
    assert ["क", "ख", "a", "b"] == [text for _, text in chosen.texts()]
    assert ["eng"] == corpus.select("eng").languages
    with pytest.raises(ValueError, match="no 'deu' in the corpus; its languages: hin, eng"):
        corpus.select(["deu", "eng"])
    with pytest.raises(ValueError, match="no language chosen"):
        corpus.select([])


def test_size_hint(folder: Path) -> None:
    """The sum where every part knows, else None."""
    assert 10 == Corpus.from_specs(["hin.txt", "more"]).n_bytes_hint
    assert Corpus.from_texts(["a"]).n_bytes_hint is None


def test_empty_corpus_is_an_error(folder: Path) -> None:
    """At the end of a pass, or before the work when asked; one document is enough."""
    for corpus in (Corpus.from_specs(["void.txt"]), Corpus.from_texts(["", ""])):
        with pytest.raises(CorpusError, match="the corpus holds no text"):
            list(corpus.batches())
        with pytest.raises(CorpusError, match="the corpus holds no text"):
            corpus.require_text()
    Corpus.from_specs(["void.txt", "eng.txt"]).require_text()


def test_standard_input_is_shared_and_single(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selection reads the same input; two names for it are refused."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a\n")))
    corpus = Corpus.from_specs(["hin=-"])
    assert [("hin", "a")] == list(corpus.select(["hin"]).texts()) == list(corpus.texts())
    with pytest.raises(ValueError, match="more than once"):
        Corpus.from_specs(["-", "hin=-"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Corpus.from_specs([]), "a corpus of nothing"),
        (lambda: Corpus.from_files({}), "a corpus of nothing"),
        (lambda: Corpus.from_files({"hin": "none.txt"}), r"none\.txt: no such file"),
        (lambda: Corpus.from_files({" ": "hin.txt"}), "label is blank"),
        (lambda: Corpus.from_files({"caf\udce9": "hin.txt"}), "is not UTF-8"),
        (lambda: Corpus.from_files({"hin": "hin.txt"}, weights={"hin": 0}), "above 0"),
        (lambda: Corpus.from_files({"hin": "hin.txt"}, weights={"eng": 1}), "a weight for 'eng'"),
        (lambda: Corpus.from_texts(["a"], weights={"eng": 1}), "weights need languages"),
        (
            lambda: Corpus.from_specs(["hin.txt"], documents="page"),  # type: ignore[arg-type]
            "'line' or 'file'",
        ),
    ],
)
def test_bad_arguments(folder: Path, make: Callable[[], Corpus], message: str) -> None:
    """Told when the corpus is made."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Corpus.from_specs("hin.txt"),
        lambda: Corpus.from_specs([Path("hin.txt")]),  # type: ignore[list-item]
        lambda: Corpus.from_files("hin.txt"),  # type: ignore[arg-type]
        lambda: Corpus.from_files({1: "hin.txt"}),  # type: ignore[dict-item]
        lambda: Corpus.from_texts("text"),
        lambda: Corpus.from_texts({"hin": "text"}),
        lambda: Corpus.from_texts(5),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_other_types(make: Any) -> None:
    """A str is not a list of str, and so on."""
    with pytest.raises(TypeError):
        make()
