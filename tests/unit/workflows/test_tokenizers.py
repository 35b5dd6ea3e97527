"""Several tokenizers by name: patterns go where one is missing, rows come from the model beside."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from vocabshift.checks import runtime_reports
from vocabshift.checks.check import CheckReport
from vocabshift.checks.runtime_reports import RuntimeReport
from vocabshift.cli.main import main
from vocabshift.errors import InvalidTokenizerError
from vocabshift.text.corpus import Corpus
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.workflows.tokenizers import (
    CHECKED,
    FAULTS,
    advice,
    check_tokenizers,
    load_bpe_tokenizers,
    load_named,
    load_tokenizers,
    model_rows,
)


@pytest.fixture
def fake_files(monkeypatch) -> None:
    """Files that end with "ranks" lack their pattern; "unigram" is of no kind but that."""

    def load_tokenizer(source, *, pattern=None):
        if source == "unigram":
            raise InvalidTokenizerError("it is Unigram")
        if source.endswith("ranks") and pattern is None:
            raise InvalidTokenizerError("name its pattern with --pattern")
        return f"<{source}>" if pattern is None else f"<{source} {pattern}>"

    def open_tokenizer(source):
        return "<other>" if source == "unigram" else load_tokenizer(source)

    monkeypatch.setattr("vocabshift.tokenizer.formats.load.load_tokenizer", load_tokenizer)
    monkeypatch.setattr("vocabshift.tokenizer.formats.load.open_tokenizer", open_tokenizer)


@pytest.mark.usefixtures("fake_files")
def test_a_pattern_goes_where_one_is_missing() -> None:
    """Of several tokenizers only the rank file gets the pattern; one that none needs is refused."""
    for load in (load_tokenizers, load_bpe_tokenizers):
        assert ["<t>", "<x.ranks gpt2>"] == load(["t", "x.ranks"], pattern="gpt2")
        with pytest.raises(InvalidTokenizerError, match="name its pattern with --pattern"):
            load(["x.ranks"])
        with pytest.raises(ValueError, match="--pattern is not needed"):
            load(["t"], pattern="gpt2")


@pytest.mark.usefixtures("fake_files")
def test_the_command_line_says_the_same(capsys) -> None:
    assert 2 == main(["check", "t", "--pattern", "gpt2"])
    assert "--pattern is not needed" in capsys.readouterr().err


@pytest.mark.usefixtures("fake_files")
def test_other_kinds_are_loaded_where_bpe_is_not_required() -> None:
    assert ["<other>", "<t>"] == load_tokenizers(["unigram", "t"])
    with pytest.raises(InvalidTokenizerError, match="it is Unigram"):
        load_bpe_tokenizers(["unigram"])


@pytest.mark.usefixtures("fake_files")
def test_every_name_is_another() -> None:
    """A folder goes in front of names that are alike."""
    expected = {"runs/ist": "<runs/ist>", "old/ist": "<old/ist>", "bpe": "<runs/bpe>"}
    assert expected == load_named(["runs/ist", "old/ist", "runs/bpe"])


def test_every_count_is_one_of_the_report() -> None:
    """What is shown, and what should be 0, are figures of `CheckReport`."""
    assert set(FAULTS) < set(CHECKED)
    for name in CHECKED:
        assert name in CheckReport.__dataclass_fields__ or hasattr(CheckReport, name)


@pytest.mark.parametrize(
    ("config", "rows"),
    [
        ({"vocab_size": 256}, 256),
        ({"text_config": {"vocab_size": 256}}, 256),
        ({"vocab_size": "256"}, None),
        ({"vocab_size": True}, None),
        ({"vocab_size": 0}, None),
        ([], None),
        ("no JSON", None),
    ],
)
def test_rows_of_the_model_beside(tmp_path: Path, config: object, rows: int | None) -> None:
    """`config.json` beside the file or in the folder says them, or nothing does."""
    text = config if isinstance(config, str) else json.dumps(config)
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert rows == model_rows(tmp_path) == model_rows(tmp_path / "tokenizer.json")
    assert model_rows(tmp_path / "none" / "tokenizer.json") is None


@pytest.mark.parametrize("rows", [256, None])
def test_a_model_beside_may_lack_rows(tmp_path: Path, rows: int | None) -> None:
    """They are counted where its rows are known; elsewhere the key is not there."""
    corpus = Corpus.from_texts({"en": ["the cat sat on the mat"] * 3})
    folder = BpeTrainer(vocab_size=260).train(corpus).save_pretrained(tmp_path / "bpe")
    if rows is not None:
        (folder / "config.json").write_text(json.dumps({"vocab_size": rows}), encoding="utf-8")
    (entry,) = check_tokenizers([folder])
    assert str(folder) == entry["tokenizer"]
    assert rows == entry.get("model_rows")
    missing = None if rows is None else entry["rows"] - rows
    assert missing == entry.get("missing_rows")
    assert not {"details", "runtimes"} & entry.keys()


# Runtimes.


def entries_of(monkeypatch, *reports: tuple[str, ...], runtimes: str = "all") -> list[dict]:
    """Of several tokenizers on which the runtimes have these verdicts."""
    queue = [
        tuple(
            RuntimeReport(
                name,
                status,
                None if status == "not installed" else "1.0",
            )
            for name, status in zip(("kitoken", "morpheme", "tuetoken"), statuses, strict=False)
        )
        for statuses in reports
    ]
    monkeypatch.setattr(runtime_reports, "choose", lambda names: names)
    monkeypatch.setattr(runtime_reports, "compare_runtimes", lambda *_, **__: queue.pop(0))
    tokenizer = BpeTrainer(vocab_size=256).train(Corpus.from_texts(["a"]))
    monkeypatch.setattr(
        "vocabshift.tokenizer.formats.load.load_tokenizer", lambda _source: tokenizer
    )
    names = [f"runs/{letter}" for letter in "abc"[: len(reports)]]
    return check_tokenizers(names, runtimes=runtimes)


@pytest.mark.parametrize(
    ("status", "is_fault_of_all", "is_fault_if_named"),
    [
        ("ok", False, False),
        ("wrong ids", True, True),
        ("lost text", True, True),
        ("crashes", True, True),
        ("times out", True, True),
        ("refuses", False, True),
        ("does not apply", False, True),
        ("not installed", False, True),
    ],
)
def test_faults_of_runtimes(
    monkeypatch, status: str, is_fault_of_all: bool, is_fault_if_named: bool
) -> None:
    """A refusal is safe, unless it is of a runtime that was asked for."""
    for runtimes, is_fault in (("all", is_fault_of_all), ("kitoken", is_fault_if_named)):
        (entry,) = entries_of(monkeypatch, (status,), runtimes=runtimes)
        (verdict,) = entry["runtimes"]
        assert ("kitoken", status, is_fault) == (
            verdict["label"],
            verdict["status"],
            verdict["is_fault"],
        )
        assert is_fault is not entry["ok"]


def test_the_advised_command_is_quoted_for_a_shell() -> None:
    """A tokenizer's path may have spaces and quotes."""
    path = "with space/it's"
    row = {"language": "hi", "is_bound": True, "tokens": 9, "bytes_per_token": 1.0}
    row |= {"ceiling_bytes_per_token": 2.0, "repaired_ceiling_bytes_per_token": 4.0}
    entry = {"tokenizer": path, "languages": [row], "lost_characters": 0, "merge_residue": 0}
    (line,) = advice(entry)
    command = line[line.index("vocabshift extend") : line.index(" lifts the ceiling")]
    assert ["vocabshift", "extend", path, "--pre-tokenizer", "repaired"] == shlex.split(command)
