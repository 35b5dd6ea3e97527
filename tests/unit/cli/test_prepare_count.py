"""`vocabshift count`, from the command line to the folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.patterns import NAMED


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    (tmp_path / "en.txt").write_text("some words\nand some more\n", "utf-8")
    (tmp_path / "hi.txt").write_text("राम का घर\n", "utf-8")
    return [f"en={tmp_path / 'en.txt'}", f"hi={tmp_path / 'hi.txt'}@2"]


def test_a_folder(texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "counts"
    assert 0 == main(["count", *texts, "-o", str(out), "--json", "--normalizer", "nfc"])
    result = json.loads(capsys.readouterr().out)
    folder = CountFolder.open(out)
    folder.require(NAMED["o200k"], "nfc", ())
    assert [(group.language, group.weight) for group in folder.groups] == [("en", 1.0), ("hi", 2.0)]
    assert result == {
        "out": str(out),
        "groups": 2,
        "documents": 3,
        "bytes": sum(group.bytes for group in folder.groups),
        "words": sum(group.words for group in folder.groups),
        "corpus_fingerprint": folder.fingerprint,
    }
    assert 2 == main(["count", *texts, "-o", str(out)])
    assert "exists already" in capsys.readouterr().err
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    options = ["--memory", "1KB", "-j", "3", "--normalizer", "nfc", "--force"]
    assert 0 == main(["count", *texts, "-o", str(out), *options])
    assert "next: vocabshift train" in capsys.readouterr().out
    assert before == {file.name: file.read_bytes() for file in out.iterdir()}


def test_nothing_is_left_where_it_fails(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hi.txt").write_bytes(b"\xff\n")
    assert 2 == main(["count", *texts, "-o", str(tmp_path / "counts")])
    assert "not UTF-8 at byte offset 0" in capsys.readouterr().err
    assert ["en.txt", "hi.txt"] == sorted(path.name for path in tmp_path.iterdir())


def test_text_that_was_cut_is_counted_with_replacements(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same words as of the text repaired by Python, for any number of threads."""
    cut = tmp_path / "cut.txt"
    cut.write_bytes(b"to be \xff\n" + "घर और घर".encode()[:-2])
    repaired = tmp_path / "repaired.txt"
    repaired.write_text(cut.read_bytes().decode("utf-8", "replace"), encoding="utf-8")
    for name, words in (
        ("wanted", [f"hi={repaired}"]),
        ("one", [f"hi={cut}", "--errors", "replace"]),
        ("three", [f"hi={cut}", "--errors", "replace", "-j", "3"]),
    ):
        assert 0 == main(["count", *words, "-o", str(tmp_path / name)])
    capsys.readouterr()
    assert 2 == main(["count", f"hi={cut}", "-o", str(tmp_path / "none")])
    assert "--errors replace" in capsys.readouterr().err
    counts = [
        {
            file.name: file.read_bytes()
            for file in (tmp_path / name).iterdir()
            if file.suffix == ".parquet"
        }
        for name in ("wanted", "one", "three")
    ]
    assert counts[0]
    assert counts[0] == counts[1] == counts[2]


def test_without_pyarrow(
    texts: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vocabshift.text.records.find_spec", lambda _: None)
    assert 2 == main(["count", *texts, "-o", str(tmp_path / "counts")])
    assert "pip install 'vocabshift[data]'" in capsys.readouterr().err


def test_join(texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts that were counted apart equal the whole, to the byte; training reads them."""
    for name, specs in (("whole", texts), ("en", texts[:1]), ("hi", texts[1:])):
        assert 0 == main(["count", *specs, "-o", str(tmp_path / name), "--pattern", "gpt2"])
    capsys.readouterr()
    parts = [str(tmp_path / "en"), str(tmp_path / "hi")]
    assert 0 == main(["count", "--join", *parts, "-o", str(tmp_path / "joined"), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert 0 == main(["count", "--join", str(tmp_path / "whole"), "-o", str(tmp_path / "one")])
    assert "next: vocabshift train" in capsys.readouterr().out
    whole = {file.name: file.read_bytes() for file in (tmp_path / "whole").iterdir()}
    for name in ("joined", "one"):
        assert whole == {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
    assert (3, 2) == (result["documents"], result["groups"])
    assert result["corpus_fingerprint"] == CountFolder.open(tmp_path / "whole").fingerprint
    train = ["train", "--recipe", "bpe", "--pre-tokenizer", "gpt2", "--vocab-size", "270"]
    train += ["--counts", str(tmp_path / "joined"), "-o", str(tmp_path / "tokenizer")]
    assert 0 == main(train)


def test_join_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words that another program counted train the tokenizer that the text would."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "text.txt").write_text("low lower lowest low low\n" * 3, encoding="utf-8")
    rows = {"word": [" low", "low", " lowest", " lower"], "count": [6, 3, 3, 3]}
    parquet.write_table(pa.table(rows), tmp_path / "words.parquet")
    words = ["--join", str(tmp_path / "words.parquet"), "--pattern", "gpt2"]
    assert 0 == main(["count", *words, "-o", str(tmp_path / "counts")])
    train = ["train", "--recipe", "bpe", "--pre-tokenizer", "gpt2", "--vocab-size", "262"]
    sources = (["--counts", str(tmp_path / "counts")], ["--corpus", str(tmp_path / "text.txt")])
    for name, source in zip("ab", sources, strict=True):
        assert 0 == main([*train, *source, "-o", str(tmp_path / name)])
    capsys.readouterr()
    a, b = ((tmp_path / name / "tokenizer.json").read_bytes() for name in "ab")
    assert a == b


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a corpus"),
        (["SPEC", "--join", "counts"], "--join adds up counts and reads no text"),
        (["--join", "counts", "--languages", "en"], "--languages chooses text"),
        (["--join", "nowhere"], "nowhere holds no counts"),
    ],
)
def test_what_join_refuses(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["count", "-o", str(tmp_path / "out"), *words])
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--master", "yarn"], "--master is for --engine spark"),
        (["--bad-rows", "keep"], "--bad-rows is for --engine spark"),
        (["--engine", "spark", "-j", "2"], "-j is for --engine local"),
        (["--engine", "spark", "--join", "x"], "leave --engine out"),
    ],
)
def test_flags_of_another_engine(
    texts: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    assert 2 == main(["count", *texts, "-o", str(tmp_path / "counts"), *words])
    assert message in capsys.readouterr().err
