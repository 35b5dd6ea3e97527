"""`vocabshift extend`, `plan` and `adapt`: keys, tables, and what is refused early."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.cli.main import main

ENGLISH = "the cat and the other cat sat by the heater\nanother day, another letter\n" * 4
HINDI = "राम घर गया और सीता घर आई\nहिन्दी में राम घर आया\nसीता की किताब मेज पर है\n" * 8


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with a tokenizer of English as Llama-3 cuts it, and text beside it."""
    (tmp_path / "en.txt").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "hi.txt").write_text(HINDI, encoding="utf-8")
    corpus = vs.Corpus.from_texts(ENGLISH.splitlines())
    trained = vs.BpeTrainer(vocab_size=280, pre_tokenizer="cl100k").train(corpus)
    return trained.save_pretrained(tmp_path / "base")


def specs(base: Path) -> list[str]:
    """The text beside the tokenizer."""
    return ["--corpus", f"en={base.parent}/en.txt", f"hi={base.parent}/hi.txt"]


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    """The object that --json prints."""
    capsys.readouterr()
    assert main([*argv, "--json"]) == 0, capsys.readouterr().err
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line of an error."""
    capsys.readouterr()
    assert main(list(argv)) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert len(found.err.strip().splitlines()) == 1
    return found.err


def test_extend_writes_the_folder_and_prints_the_contract(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys of the contract, with their types; the folder loads."""
    out = tmp_path / "out"
    result = run(capsys, "extend", str(base), *specs(base), "--n-tokens", "20", "-o", str(out))
    assert result["out"] == str(out)
    assert type(result["n_added"]) is type(result["n_repaired"]) is int
    assert result["n_added"] == 20
    assert result["stopped_because"] == "n_tokens"
    assert result["ceiling_bytes_per_token"] > 0
    assert set(result["ceilings"]) == {"en", "hi"}
    assert {"n_tokens", "bytes_per_token"} == set(result["curve"][0])
    files = {"token_map.json", "tokenizer.json", "tokenizer_config.json", "vocabshift.json"}
    assert files == {file.name for file in out.iterdir()}
    assert vs.load_tokenizer(out).row_count == vs.load_tokenizer(base).row_count + 20


def test_the_same_bytes_for_any_number_of_threads(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file, provenance included."""
    folders = []
    for threads in ("1", "3"):
        out = tmp_path / threads
        arguments = ("--n-tokens", "20", "-j", threads, "-o", str(out))
        run(capsys, "extend", str(base), *specs(base), *arguments)
        folders.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert folders[0] == folders[1]


def test_people_are_told_of_the_ceiling(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table by language, and what the repaired pre-tokenizer would allow."""
    arguments = (*specs(base), "--n-tokens", "20", "-o", str(tmp_path / "out"))
    assert main(["extend", str(base), *arguments]) == 0
    shown = capsys.readouterr().out
    assert "--pre-tokenizer repaired lifts the ceiling" in shown
    assert "hi" in shown.split("lifts the ceiling")[1]
    assert main(["extend", str(base), *arguments, "--force", "--pre-tokenizer", "repaired"]) == 0
    assert "The repaired pre-tokenizer alone changes" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["regen", "append", "prepend", "add-tokens"])
def test_baselines_are_told_with_their_cost(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    """Dead tokens and lost lines are counted, not claimed."""
    out = str(tmp_path / "out")
    arguments = ("--n-tokens", "10", "--method", method, "-o", out)
    result = run(capsys, "extend", str(base), *specs(base), *arguments)
    assert result["method"] == method
    assert result["cost"]["n_added"] == result["n_added"] == 10
    assert set(result["cost"]["lost_lines"]) == {"en", "hi"}


def test_superwords_on_the_command_line(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told by language; the table for people too."""
    out = str(tmp_path / "out")
    arguments = ("--n-tokens", "10", "--superwords", "3", "-o", out)
    result = run(capsys, "extend", str(base), *specs(base), *arguments)
    assert result["superwords"] == 3
    assert main(["extend", str(base), *specs(base), *arguments, "--force"]) == 0
    assert "with superwords" in capsys.readouterr().out


def test_plan_prints_rows_and_draws(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row for each number of tokens, the knee among them, and a picture if asked."""
    picture = tmp_path / "plan.svg"
    arguments = ("--max-tokens", "40", "--picture", str(picture))
    result = run(capsys, "plan", str(base), *specs(base), *arguments)
    assert {row["pre_tokenizer"] for row in result["rows"]} == {"kept", "repaired"}
    assert any(row["is_knee"] for row in result["rows"])
    assert result["picture"] == str(picture)
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    model = tmp_path / "model"
    model.mkdir()
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 300}
    config = {"model_type": "llama", "num_attention_heads": 4, **sizes}
    (model / "config.json").write_text(json.dumps(config))
    assert main(["plan", str(base), *specs(base), *arguments, "--model", str(model)]) == 0
    shown = capsys.readouterr().out
    assert "<- knee" in shown
    assert "picture: " in shown
    assert "logits of" in shown
    assert f"vocabshift extend {base}" in shown


def test_adapt_takes_the_knee_where_no_number_is_given(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many go as come; the rows stay."""
    out = tmp_path / "out"
    result = run(capsys, "adapt", str(base), *specs(base), "-o", str(out))
    assert result["n_added"] == result["n_removed"] > 0
    assert vs.load_tokenizer(out).row_count == vs.load_tokenizer(base).row_count
    arguments = (*specs(base), "--n-tokens", "3", "--first", "extend", "--force", "-o", str(out))
    assert main(["adapt", str(base), *arguments]) == 0
    assert "tokens taken out" in capsys.readouterr().out


def test_what_is_refused(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, and nothing is written."""
    out = str(tmp_path / "out")
    text = specs(base)
    for argv, message in (
        (("extend", str(base), "--n-tokens", "5", "-o", out), "--corpus (or --counts)"),
        (("extend", str(base), *text, "--n-tokens", "0", "-o", out), "at least 1"),
        (("extend", str(base), *text, "--n-tokens", "5", "-o", str(base)), "input"),
        (
            ("extend", "nowhere/none.json", *text, "--n-tokens", "5", "-o", out),
            "no such file or folder",
        ),
        (("plan", str(base), *text, "--picture", "p.jpeg"), ".svg"),
        (("plan", str(base), *text, "--model", str(tmp_path)), "config.json"),
        (("adapt", str(base), *text, "--n-tokens", "9999", "-o", out), "can be"),
        (("adapt", str(base), *text, "--n-tokens", "5", "--order", "best", "-o", out), "order"),
    ):
        assert message in refused(capsys, *argv)
    assert not Path(out).exists()


def test_counts_stand_for_a_corpus(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same tokenizer, from a folder that `vocabshift count` wrote under the same pattern."""
    pytest.importorskip("pyarrow")
    counts = str(tmp_path / "counts")
    run(capsys, "count", *specs(base)[1:], "--pattern", "cl100k", "-o", counts)
    one, two = tmp_path / "one", tmp_path / "two"
    run(capsys, "extend", str(base), *specs(base), "--n-tokens", "20", "-o", str(one))
    run(capsys, "extend", str(base), "--counts", counts, "--n-tokens", "20", "-o", str(two))
    assert (one / "tokenizer.json").read_bytes() == (two / "tokenizer.json").read_bytes()
    wrong = str(tmp_path / "wrong")
    run(capsys, "count", *specs(base)[1:], "--pattern", "o200k", "-o", wrong)
    arguments = ("--counts", wrong, "--n-tokens", "20", "-o", str(tmp_path / "three"))
    assert "was counted with the pattern" in refused(capsys, "extend", str(base), *arguments)
