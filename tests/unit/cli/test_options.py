"""Shared options."""

from __future__ import annotations

import argparse
import os

import pytest

from vocabshift.cli import options


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


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "x", ""])
def test_positive_refuses(text: str) -> None:
    """Only whole numbers of at least 1 pass."""
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        options.positive(text)


@pytest.mark.parametrize("text", ["0", "1.01", "nan", "-1", "x"])
def test_share_refuses(text: str) -> None:
    """Only numbers in (0, 1] pass."""
    assert 1.0 == options.share("1")
    with pytest.raises(argparse.ArgumentTypeError, match="up to 1"):
        options.share(text)
