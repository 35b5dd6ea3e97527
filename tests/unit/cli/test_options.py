"""Shared options."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from vocabshift.cli import options
from vocabshift.cli.config import add_config, fill_from_config


@pytest.mark.parametrize("word", ["{}", "en={}", "file:{}"])
def test_inputs_in_the_folder_to_be_replaced(tmp_path: Path, word: str) -> None:
    """With a label or a kind, in a list or alone; a path that is not there is none."""
    (tmp_path / "out").mkdir()
    given = word.format(tmp_path / "out" / "a=b.txt")
    options.check_inputs_stay(tmp_path / "out", [given, [given], None, 3, "x" * 5000, "a\0b"])
    (tmp_path / "out" / "a=b.txt").write_text("text")
    for values in ([given], [["bpe", given]]):
        with pytest.raises(ValueError, match=r"out would replace the input .*a=b\.txt"):
            options.check_inputs_stay(tmp_path / "out", values)
    options.check_inputs_stay(tmp_path / "outer", [given, str(tmp_path / "out")])


def test_both_forms_of_many_mean_the_same() -> None:
    """Several values after one flag, or the flag repeated."""
    parser = options.Parser(prog="x")
    options.add_many(parser, "--corpus", metavar="SPEC", help="text")
    together = parser.parse_args(["--corpus", "a", "b"])
    assert together == parser.parse_args(["--corpus", "a", "--corpus", "b"])
    assert ["a", "b"] == together.corpus


def test_threads_default_to_the_cores_of_this_process(monkeypatch) -> None:
    """A container's share counts, not the machine."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 7}, raising=False)
    assert 3 == options.threads(argparse.Namespace(threads=None))
    assert 2 == options.threads(argparse.Namespace(threads=2))
    assert options.MOST_THREADS == options.threads(argparse.Namespace(threads=options.MOST))


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "x", ""])
def test_positive_refuses(text: str) -> None:
    """Only whole numbers of at least 1 pass."""
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        options.positive(text)


@pytest.mark.parametrize("text", ["9" * 20, "1" + "0" * 400])
def test_numbers_that_64_bits_do_not_hold(text: str) -> None:
    """They are refused where they are read, not by what counts with them."""
    assert options.MOST == options.positive(str(options.MOST))
    with pytest.raises(argparse.ArgumentTypeError, match="too large"):
        options.positive(text)
    with pytest.raises(argparse.ArgumentTypeError, match="no size"):
        options.size(text)


@pytest.mark.parametrize("text", ["0", "0GB", "0.0001KB", "99999999999999TB"])
def test_sizes_that_cannot_be_meant(text: str) -> None:
    """A budget of nothing is no way to say that there is none."""
    with pytest.raises(argparse.ArgumentTypeError, match=r"no (size|room)"):
        options.size(text)


@pytest.mark.parametrize("text", ["0", "1.01", "nan", "-1", "x"])
def test_share_refuses(text: str) -> None:
    """Only numbers in (0, 1] pass."""
    assert 1.0 == options.share("1")
    with pytest.raises(argparse.ArgumentTypeError, match="up to 1"):
        options.share(text)


def test_a_deprecated_flag_is_the_new_one_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """On stderr, once for each use: as a word, with an equals sign, and in a CONFIG.toml; help, the
    golden files and what follows `--` know nothing of it."""
    parser = options.Parser(prog="x")
    verb = options.add_verb(parser.add_subparsers(), "train", "", "", "")
    add_config(verb, keys="options")
    verb.add_argument("--vocab-size", type=int, required=True)
    verb.renamed("--old-size", "--vocab-size", "0.3")
    said = (
        "vocabshift: warning: --old-size is deprecated and goes with version 0.3; "
        "write --vocab-size\n"
    )
    for words in (["--old-size", "3"], ["--old-size=3"]):
        assert 3 == parser.parse_args(["train", *words]).vocab_size
        assert said == capsys.readouterr().err
    args = parser.parse_args(["train", "--vocab-size", "3", "--", "--old-size"])
    assert ["--old-size"] == args.given
    assert "" == capsys.readouterr().err
    file = tmp_path / "x.toml"
    file.write_text("old_size = 4\n", encoding="utf-8")
    args = argparse.Namespace(given=[], config=str(file), parser=verb, vocab_size=None)
    fill_from_config(args)
    assert 4 == args.vocab_size
    assert said == capsys.readouterr().err
    assert "old-size" not in verb.format_help()
    with pytest.raises(options.UsageError, match="expected one argument"):
        parser.parse_args(["train", "--old-size"])
