"""`vocabshift prune`: the folder, the keys, what is refused before any text is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.pruning.orders import NEED_COUNTS, ORDERS
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.tokenizer_json import fingerprint

TEXT = "the cat and the other cat sat by the heater\nanother day, another letter\n" * 4


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with a tokenizer of 280 tokens, and its text beside it."""
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    trained = vs.BpeTrainer(vocab_size=280).train(vs.Corpus.from_texts(TEXT.splitlines()))
    return trained.save_pretrained(tmp_path / "base")


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["prune", *argv, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_the_folder_and_the_keys(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, out = f"en={tmp_path}/text.txt", tmp_path / "out"
    result = run(capsys, str(base), "--corpus", text, "--n-tokens", "10", "-o", str(out))
    assert result["out"] == str(out)
    integers = ("n_removed", "n_decided_by_ties", "unreachable_before", "unreachable_after")
    assert {key: type(result[key]) for key in integers} == dict.fromkeys(integers, int)
    assert (result["n_removed"], result["vocab_size"], result["n_removable"]) == (10, 270, 24)
    assert result["round_trip_failures"] == 0
    assert [row["language"] for row in result["languages"]] == ["en"]
    files = {"token_map.json", "tokenizer.json", "tokenizer_config.json", "vocabshift.json"}
    assert {file.name for file in out.iterdir()} == files
    written = vs.load_tokenizer(out)
    assert written.vocab_size == 270
    mapped = id_map.load(out)
    mapped.check(vs.load_tokenizer(base), written)
    assert mapped.n_kept == 270
    provenance = json.loads((out / "vocabshift.json").read_text(encoding="utf-8"))
    assert provenance["operation"] == "prune"
    assert provenance["config"]["base_fingerprint"] == fingerprint(vs.load_tokenizer(base))
    assert provenance["figures"]["n_removed"] == 10
    assert provenance["corpus_fingerprint"]


def test_equal_runs_write_equal_bytes(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = (str(base), "--corpus", f"{tmp_path}/text.txt", "--vocab-size", "265")
    for out, threads in (("a", "1"), ("b", "3")):
        run(capsys, *argv, "-j", threads, "-o", str(tmp_path / out))
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_a_dry_run_writes_nothing(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.iterdir())
    argv = (str(base), "--corpus", f"{tmp_path}/text.txt", "--n-tokens", "24")
    result = run(capsys, *argv, "--dry-run")
    assert (result["out"], result["vocab_size"]) == (None, 256)
    assert sorted(tmp_path.iterdir()) == before


def test_maps_are_composed_along_the_chain(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run(capsys, str(base), "--order", "id", "--n-tokens", "4", "-o", str(first))
    corpus = ("--corpus", f"{tmp_path}/text.txt")
    run(capsys, str(first), *corpus, "--n-tokens", "4", "-o", str(second))
    id_map.load(second).check(vs.load_tokenizer(base), vs.load_tokenizer(second))
    assert id_map.load(second).n_kept == 272


def test_the_table_for_people(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["prune", str(base), "--corpus", f"en={tmp_path}/text.txt", "--n-tokens", "20"]
    assert main([*argv, "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    for text in ("removed by script", "Latin", "bytes per token, en", "8 of 8", "next: "):
        assert text in shown


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--corpus", "TEXT", "-o", "OUT"], "--vocab-size or --until"),
        (
            ["--n-tokens", "1", "--vocab-size", "9", "--dry-run"],
            "--vocab-size or --until",
        ),
        (["--n-tokens", "1", "--corpus", "TEXT"], "give -o DIR, or --dry-run"),
        (["--n-tokens", "1", "--corpus", "TEXT", "-o", "OUT", "--dry-run"], "give -o DIR"),
        (["--n-tokens", "1", "-o", "OUT"], "--corpus (or --counts) is required"),
        (["--n-tokens", "1", "--corpus", "TEXT", "--counts", "X", "-o", "OUT"], "leave --corpus"),
        (["--n-tokens", "1", "--order", "id", "--drop-unseen-characters", "-o", "OUT"], "--corpus"),
        (["--n-tokens", "0", "--corpus", "TEXT", "-o", "OUT"], "at least 1"),
        (["--n-tokens", "1", "--corpus", "TEXT", "--order", "x", "-o", "OUT"], "invalid choice"),
        (["--n-tokens", "25", "--corpus", "TEXT", "-o", "OUT"], "at most 24"),
        (["--n-tokens", "1", "--corpus", "TEXT", "--keep", "qq", "-o", "OUT"], "no such token"),
        (["--n-tokens", "1", "--corpus", "NONE", "-o", "OUT"], "NONE"),
        (["--n-tokens", "1", "--corpus", "TEXT", "-o", "BASE", "--force"], "replace the input"),
        (["--n-tokens", "1", "--corpus", "TEXT", "--keep", "language:hi", "-o", "OUT"], "no 'hi'"),
        (["--n-tokens", "1", "--counts", "NONE", "-o", "OUT"], "NONE"),
    ],
)
def test_bad_requests_are_one_line(
    base: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    message: str,
) -> None:
    names = {"TEXT": f"{tmp_path}/text.txt", "OUT": f"{tmp_path}/out", "BASE": str(base)}
    assert main(["prune", str(base), *(names.get(word, word) for word in argv)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_what_is_cheap_is_checked_before_the_corpus_is_read(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff\xff\n")
    argv = ["prune", str(base), "--corpus", f"{tmp_path}/bad.txt", "-o", f"{tmp_path}/out"]
    assert main([*argv, "--n-tokens", "25"]) == 2
    assert "at most 24" in capsys.readouterr().err
    assert main([*argv, "--n-tokens", "24"]) == 2
    assert "UTF-8" in capsys.readouterr().err


def test_a_tokenizer_of_another_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tokenizers import Tokenizer, models

    file = tmp_path / "tokenizer.json"
    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(file))
    argv = ["prune", str(file), "--order", "id", "--n-tokens", "1", "-o", f"{tmp_path}/out"]
    assert main(argv) == 2
    assert "of type 'WordLevel'; prune takes BPE, Unigram and WordPiece" in capsys.readouterr().err


def test_the_flags_know_the_orders(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each can be asked for; those that look at text say so without one."""
    for order in ORDERS:
        argv = ["prune", str(base), "--order", order, "--n-tokens", "1", "--dry-run"]
        assert (2 if order in NEED_COUNTS else 0) == main(argv)
        said = capsys.readouterr().err
        assert (f"--order {order} looks at text" in said) == (order in NEED_COUNTS)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prune", "--help"]) == 0
    assert capsys.readouterr().out.count("  vocabshift prune ") == 3
