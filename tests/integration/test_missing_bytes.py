"""The verbs on tokenizers that lack bytes: what they say, what they refuse, --complete-bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import small_models
from vocabshift.cli.main import main
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.missing_bytes import lost_characters
from vocabshift.tokenizer.tokenizer import Tokenizer


def lacking(tokenizer: Tokenizer, *data: int) -> Tokenizer:
    """The tokenizer without the tokens of these bytes, and without what is made of them."""
    images = {byte_level.BYTE_IMAGES[byte] for byte in data}
    return tokenizer.without([i for token, i in tokenizer.vocab.items() if images & set(token)])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama whose tokenizer lacks a control character, and two bytes that lose nothing."""
    poor = lacking(small_models.old_tokenizer(), 0x04, 0xC0, 0xF1)
    place = tmp_path_factory.mktemp("model") / "model"
    return small_models.save(small_models.build("llama", poor), poor, place)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    lines = [*small_models.ENGLISH, *small_models.HINDI, "a \x04 line"] * 3
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    return f"en={file}"


def run(capsys: pytest.CaptureFixture[str], *words: Any) -> dict[str, Any]:
    """The object that --json prints."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_check_exits_with_2_for_lost_characters_alone(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = lacking(small_models.train(small_models.ENGLISH, 283), 0xC0, 0xF1, 0xFF)
    folder = harmless.save_pretrained(tmp_path / "harmless")
    assert main(["check", str(folder), "--strict"]) == 0
    out = capsys.readouterr().out
    assert "lacks 2 that no UTF-8 text holds (C0 FF)" in out
    assert "1 that only unassigned characters are spelt with (F1)" in out
    assert "text may hold" not in out
    assert main(["check", str(model), "--strict"]) == 2
    out = capsys.readouterr().out
    assert "lacks 1 that text may hold (04): of the assigned characters it loses 1 (U+0004)" in out


LOST = {"before": 1, "after": 1, "names": ["U+0004"], "bytes_added": []}
FOUND = {"before": 1, "after": 0, "names": [], "bytes_added": ["04", "F1"]}


@pytest.mark.parametrize("complete", [False, True])
def test_prune_extend_and_adapt(
    model: Path,
    corpus: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    complete: bool,
) -> None:
    """They say what is lost before and after; the bytes are added with the flag alone."""
    flag = ["--complete-bytes"] if complete else []
    rows = load_tokenizer(model).row_count
    for verb, n, n_rows in (
        ("prune", ["--n-tokens", "5"], rows - 5 + 2 * complete),
        ("extend", ["--n-tokens", "5"], rows + 5 + 2 * complete),
        ("adapt", ["--n-tokens", "5", "--tokenizer-only"], rows),
    ):
        out = tmp_path / verb
        result = run(capsys, verb, model, "--corpus", corpus, *n, *flag, "-o", out)
        assert result["lost_characters"] == (FOUND if complete else LOST), verb
        new = load_tokenizer(out)
        assert new.row_count == n_rows, verb
        assert lost_characters(new).tolist() == ([] if complete else [4])
        warnings = result.get("pruning", result).get("warnings", [])
        assert any("loses 1 assigned characters (U+0004)" in text for text in warnings) == (
            not complete and verb != "extend"
        )
        moved = run(capsys, "transfer", model, out, "-o", tmp_path / f"{verb}-model")
        assert moved["lost_characters"] == (FOUND if complete else LOST)
        assert moved["n_by_mean"] == 2 * complete


def test_a_model_is_adapted(
    model: Path, corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ("--n-tokens", "5", "--complete-bytes", "--no-score", "-o", out)
    result = run(capsys, "adapt", model, "--corpus", corpus, *words)
    assert result["lost_characters"] == FOUND
    assert result["n_initialized"] == 5
    assert result["extension"]["n_bytes_added"] == 2
    assert json.loads((out / "vocabshift.json").read_text())["config"]["complete_bytes"] is True


def test_summaries_say_it(
    model: Path, corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--corpus", corpus, "--n-tokens", "5"]
    assert main(["prune", str(model), *words, "-o", str(tmp_path / "a")]) == 0
    streams = capsys.readouterr()
    assert "1 before, 1 after (U+0004)" in streams.out
    assert "--complete-bytes adds tokens for them" in streams.err
    assert main(["extend", str(model), *words, "--complete-bytes", "-o", str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "1 before, 0 after" in out
    assert "04 F1" in out
    assert main(["transfer", str(model), str(tmp_path / "b"), "-o", str(tmp_path / "c")]) == 0
    assert "2: the old tokenizer lacks their bytes" in capsys.readouterr().out


def test_a_transfer_that_would_lose_more(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused with the characters' names; --complete-bytes lets it through."""
    new = lacking(small_models.new_tokenizer(), 0x04, 0x06, 0xC1, 0xF2)
    folder = new.save_pretrained(tmp_path / "new")
    words = ["transfer", str(model), str(folder), "-o", str(tmp_path / "out")]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "would lose 1 assigned characters that the old one keeps (U+0006)" in error
    assert "--complete-bytes" in error
    assert not (tmp_path / "out").exists()
    result = run(capsys, *words, "--complete-bytes")
    assert result["lost_characters"]["after"] == 0
    written = load_tokenizer(tmp_path / "out")
    assert written.row_count == new.row_count + 3 + len(small_models.SPECIALS)
