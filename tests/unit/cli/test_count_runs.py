"""`vocabshift count --runs`, from the command line to a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.run_folder import RunFolder

SIZED = ["--runs", "--counts", "x", "--recipe", "ist", "--vocab-size", "300"]
MEASURED = ("superwords", "bound", "tokens", "runs", "occurrences")


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    (tmp_path / "en.txt").write_text("some words\nand some more\n", "utf-8")
    (tmp_path / "hi.txt").write_text("राम का घर\n", "utf-8")
    return [f"en={tmp_path / 'en.txt'}", f"hi={tmp_path / 'hi.txt'}@2"]


def test_runs_and_what_is_trained_on_them(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tokenizer equals that of the text, byte for byte."""
    words, runs = str(tmp_path / "words"), str(tmp_path / "runs")
    sizes = ["--recipe", "ist", "--vocab-size", "270", "--transition", "0.96"]
    assert 0 == main(["count", *texts, "--pattern", "ist-stage2+o200k", "-o", words])
    count = ["count", *texts, "--runs", "--counts", words, *sizes, "-o", runs]
    assert 0 == main(count)
    assert f"train --counts {words} --runs {runs}" in " ".join(capsys.readouterr().out.split())
    before = {file.name: file.read_bytes() for file in (tmp_path / "runs").iterdir()}
    assert 0 == main([*count, "--force", "--json", "-j", "3", "--memory", "64MB"])
    result = json.loads(capsys.readouterr().out)
    assert before == {file.name: file.read_bytes() for file in (tmp_path / "runs").iterdir()}
    assert {
        "out": runs,
        "recipe": "ist",
        "stage1_tokens": 259,
        "groups": 2,
        "passes": 1,
        "bytes": sum(group.bytes for group in CountFolder.open(words).groups),
    } == {name: result[name] for name in result if name not in MEASURED}
    assert set(MEASURED) <= set(result)
    train = ["train", *sizes, "-o"]
    assert 0 == main([*train, str(tmp_path / "a"), "--corpus", *texts])
    assert 0 == main([*train, str(tmp_path / "b"), "--counts", words, "--runs", runs])
    files = [tmp_path / name / "tokenizer.json" for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_runs_are_added_up(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If all were cut at the same borders, as those of one text that is counted twice."""
    words, sizes = str(tmp_path / "words"), ["--recipe", "ist", "--vocab-size", "270"]
    sizes += ["--transition", "0.96"]
    assert 0 == main(["count", *texts, "--pattern", "ist-stage2+o200k", "-o", words])
    for number, bound in enumerate(["1", "1", "5000"]):
        count = ["count", *texts, "--runs", "--counts", words, *sizes, "--bound", bound]
        assert 0 == main([*count, "-o", str(tmp_path / f"runs{number}")])
    parts = [str(tmp_path / f"runs{number}") for number in range(3)]
    join = ["count", "-o", str(tmp_path / "joined"), "--join"]
    capsys.readouterr()
    assert 0 == main([*join, *parts[:2], "--json"])
    result = json.loads(capsys.readouterr().out)
    one = RunFolder.open(parts[0])
    assert {"out": str(tmp_path / "joined"), **one.figures} == result | {
        name: result[name] // 2 for name in ("tokens", "bytes", "occurrences")
    }
    assert 0 == main([*join, parts[0], "--force", "--memory", "1KB"])
    assert "train --counts WORDS --runs" in " ".join(capsys.readouterr().out.split())
    for more, message in (
        ([parts[2]], "was counted under other options, words or bound"),
        ([parts[0]], "given twice"),
        ([words], "is no folder of runs"),
        (["--pattern", "o200k"], "runs say under what they were counted"),
    ):
        assert 2 == main([*join, parts[0], *more, "--force"])
        assert message in " ".join(capsys.readouterr().err.split())


def test_a_bound_that_is_too_high(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, runs = str(tmp_path / "words"), tmp_path / "runs"
    sizes = ["--recipe", "ist", "--vocab-size", "270", "--transition", "0.96"]
    assert 0 == main(["count", *texts, "--pattern", "ist-stage2+o200k", "-o", words])
    count = ["count", *texts, "--runs", "--counts", words, *sizes, "-o", str(runs)]
    assert 2 == main([*count, "--bound", "1000000"])
    assert "lower bound, such as --bound 250000" in " ".join(capsys.readouterr().err.split())
    assert not runs.exists()
    other = [spec.replace("@2", "@3") for spec in texts]
    assert 2 == main(["count", *other, *count[3:]])
    assert "give the weights of the words" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs"], "--runs needs --counts"),
        (["--runs", "--counts", "x"], "--runs needs --recipe"),
        (["--runs", "--counts", "x", "--recipe", "ist"], "--runs needs --vocab-size"),
        (["--counts", "x"], "--counts is for --runs"),
        (["--vocab-size", "300"], "--vocab-size is for --runs"),
        (["--runs", "--join", "y"], "leave --join out"),
        (["--runs", "--pattern", "o200k"], "leave --pattern out"),
        (["--runs", "--normalizer", "nfc"], "leave --normalizer out"),
        ([*SIZED, "--alpha", "0.5"], "does not take --alpha"),
    ],
)
def test_flags_that_do_not_go_together(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["count", "x.txt", "-o", "out", *flags])
    assert message in " ".join(capsys.readouterr().err.split())


def test_runs_of_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["count", "-o", "out", *SIZED])
    assert "--runs needs SPEC..." in " ".join(capsys.readouterr().err.split())


def test_train_with_runs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--recipe", "ist", "--vocab-size", "300", "-o", "out", "--corpus", "x", "--runs", "y"]
    assert 2 == main(["train", *flags])
    assert "give --counts too" in " ".join(capsys.readouterr().err.split())


def test_a_recipe_that_learns_nothing_from_runs(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, runs = str(tmp_path / "words"), str(tmp_path / "runs")
    assert 0 == main(["count", *texts, "--pattern", "ist-stage2+o200k", "-o", words])
    sizes = ["--recipe", "ist", "--vocab-size", "270", "--transition", "0.96"]
    assert 0 == main(["count", *texts, "--runs", "--counts", words, *sizes, "-o", runs])
    flags = ["--recipe", "bpe", "--vocab-size", "300", "--counts", words, "--runs", runs]
    assert 2 == main(["train", *flags, "-o", str(tmp_path / "out")])
    assert "recipe bpe learns nothing from runs" in " ".join(capsys.readouterr().err.split())
