"""The invariants' counts: each fault is found where it is, and only there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import get_pattern, to_spec
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.train import train_to_folder

LINES = ["the mill is old. is the mill old? 12 345 mills.", "घर है। घर में 3 हैं।"] * 4


def save(folder: Path, *tokens: str) -> str:
    """A tokenizer of these tokens and what they are made from, without any boundary."""
    merges: list[tuple[str, str]] = []
    for token in (byte_level.to_image(token.encode()) for token in tokens):
        pairs = [(token[: end - 1], token[end - 1]) for end in range(2, len(token) + 1)]
        merges += [pair for pair in pairs if pair not in merges]
    vocab = dict.fromkeys([*byte_level.ALPHABET, *(left + right for left, right in merges)])
    tokenizer = Tokenizer(
        BpeModel({token: i for i, token in enumerate(vocab)}, tuple(merges)),
        pre_tokenizer=to_spec(()),
        decoder={"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True),
    )
    return str(tokenizer.save_pretrained(folder))


def run(program, monkeypatch, capsys, *arguments: object) -> tuple[int, dict[str, list[str]], str]:
    """Exit status, cells by the name of the row, and what went to stderr."""
    monkeypatch.setattr(sys, "argv", ["invariants.py", *map(str, arguments)])
    status = program("ist/invariants.py").main()
    streams = capsys.readouterr()
    lines = [line.strip("| ").split(" | ") for line in streams.out.splitlines()]
    return status, {line[0]: line[1:] for line in lines}, streams.err


@pytest.mark.parametrize(
    ("token", "row"),
    [
        ("1234", "tokens of more than three digits"),
        ("a1", "tokens that join a digit and something else"),
        (" १", "tokens that join a digit and something else"),
        ("a. b", "tokens that span a sentence end"),
        ("क। k", "tokens that span a sentence end"),
    ],
)
def test_a_fault_is_counted(program, tmp_path: Path, monkeypatch, capsys, token, row) -> None:
    sound, faulty = save(tmp_path / "sound", "ab", "a b", "123"), save(tmp_path / "faulty", token)
    status, rows, _ = run(program, monkeypatch, capsys, sound, faulty)
    assert 0 == status
    assert ["0", "1"] == rows[row]
    assert ["1", "1" if " " in token.strip() else "0"] == rows["superwords"]
    assert 0 == run(program, monkeypatch, capsys, sound, "--strict")[0]
    status, _, errors = run(program, monkeypatch, capsys, sound, faulty, "--strict")
    assert 2 == status
    assert f"{faulty}: 1 {row}" in errors


def test_superwords_with_terminals(program, tmp_path: Path, monkeypatch, capsys) -> None:
    folder = save(tmp_path / "mine", "a b?", "c d.", "e?", "f g")
    _, rows, _ = run(program, monkeypatch, capsys, folder)
    names = ("superwords", "superwords that hold a terminal", "superwords that hold a period")
    assert [["5"], ["1"], ["1"]] == [rows[name] for name in names]  # "a b" and "c d" are made first


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """An IST tokenizer's folder and its text."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    corpus = Corpus.from_files({"all": folder / "text.txt"})
    options = {"vocab_size": 310, "transition": 0.9}
    train_to_folder("ist", corpus, options, folder / "ist")
    return str(folder / "ist"), str(folder / "text.txt")


def test_what_was_trained_is_sound(program, trained, monkeypatch, capsys) -> None:
    folder, text = trained
    arguments = (folder, "--eval", text, "--corpus", text, "--strict")
    status, rows, errors = run(program, monkeypatch, capsys, *arguments)
    figures = json.loads((Path(folder) / "vocabshift.json").read_text(encoding="utf-8"))["figures"]
    assert (0, "") == (status, errors)
    assert [f"{figures['training_tokens']:,}"] == rows["tokens of the corpus, by tokenizers"]
    assert [str(figures["stage2_merges"])] == rows["tokens of stage 2"]
    assert ["8"] == rows["documents of the corpus"]
    for name in (
        "documents that do not come back",
        "documents with other ids than by tokenizers",
        "tokens more or fewer than at the end of training",
    ):
        assert ["0"] == rows[name]


def test_other_text_than_that_of_training_is_noticed(
    program, trained, tmp_path: Path, monkeypatch, capsys
) -> None:
    folder, _ = trained
    (tmp_path / "more.txt").write_text("\n".join([*LINES, "mill"]) + "\n", encoding="utf-8")
    arguments = (folder, "--corpus", tmp_path / "more.txt", "--strict")
    status, rows, _ = run(program, monkeypatch, capsys, *arguments)
    assert 2 == status
    assert rows["tokens more or fewer than at the end of training"] != ["0"]


def test_a_terminal_in_stage_2_is_a_fault_where_that_is_asked(
    program, trained, monkeypatch, capsys
) -> None:
    """IST's second stage ends tokens with terminals; Matra's must not."""
    folder, _ = trained
    status, rows, _ = run(program, monkeypatch, capsys, folder, "--matra", "--strict")
    holding = (
        rows["tokens of stage 2 that hold a terminal"]
        + (rows["tokens of stage 2 that hold a period"])
    )
    assert (2 if holding != ["0", "0"] else 0) == status
    assert holding != ["0", "0"]


def test_stage_1_may_join_signs_where_that_is_matras(
    program, tmp_path: Path, monkeypatch, capsys
) -> None:
    """ "!=" is a word of Matra's first stage: counted, and no fault there."""
    folder = save(tmp_path / "matra", "!=", "a b")
    for stage1_merges, late in ((1, "0"), (0, "1")):
        figures = json.dumps({"figures": {"stage1_merges": stage1_merges}})
        (Path(folder) / "vocabshift.json").write_text(figures, encoding="utf-8")
        status, rows, _ = run(program, monkeypatch, capsys, folder, "--strict", "--matra")
        assert ["1"] == rows["tokens that span a sentence end"]
        assert [late] == rows["tokens of stage 2 that span a sentence end"]
        # "!=" holds a terminal too, which its second stage may not.
        assert [late] == rows["tokens of stage 2 that hold a terminal"]
        assert (0 if late == "0" else 2) == status
    assert 2 == run(program, monkeypatch, capsys, folder, "--strict")[0]


def test_text_that_is_lost_is_counted(program, tmp_path: Path, monkeypatch, capsys) -> None:
    from dataclasses import replace

    from vocabshift.tokenizer.formats.load import load_tokenizer

    sound = load_tokenizer(save(tmp_path / "sound", "ab"))
    spec = to_spec(get_pattern("o200k"))
    composing = replace(sound, normalizer={"type": "NFC"}, pre_tokenizer=spec)
    composing.save_pretrained(tmp_path / "nfc")
    (tmp_path / "text.txt").write_text("cafe\u0301\ncafé\n", encoding="utf-8")
    text = tmp_path / "text.txt"
    status, rows, _ = run(
        program, monkeypatch, capsys, tmp_path / "nfc", "--eval", text, "--corpus", text
    )
    assert 0 == status
    assert ["1"] == rows["documents that do not come back"]
    assert ["0"] == rows["documents with other ids than by tokenizers"]
