"""A TOML in place of flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.cli.main import build_parser
from vocabshift.cli.options import UsageError, fill_from_toml


@pytest.fixture
def fill(tmp_path: Path):
    """Parses `vocabshift train ...` and fills it from TOML text."""

    def run(toml: str | bytes, *words: str):
        path = tmp_path / "f.toml"
        path.write_bytes(toml if isinstance(toml, bytes) else toml.encode())
        args = build_parser().parse_args(["train", *words])
        fill_from_toml(args, args.parser, str(path))
        return args

    return run


def test_keys_are_option_names(fill) -> None:
    """Hyphens or underscores, one value or a list, numbers and switches."""
    args = fill(
        'recipe = "ist"\ncorpus = ["hi=a.txt", "b.txt"]\nvocab_size = 32_000\ntransition = 0.8\n'
        'special-tokens = "--x--"\nforce = true\nno-resume = false\nthreads = 2\nout = "o"\n'
    )
    assert "ist" == args.recipe
    assert ["hi=a.txt", "b.txt"] == args.corpus
    assert (32000, 0.8, 2, "o") == (args.vocab_size, args.transition, args.threads, args.out)
    assert ["--x--"] == args.special_tokens
    assert (True, False) == (args.force, args.no_resume)


def test_flags_win(fill) -> None:
    """A flag on the command line replaces the file's value, lists included."""
    args = fill('vocab_size = 300\ncorpus = ["a"]\n', "--vocab-size", "400", "--corpus", "b", "c")
    assert (400, ["b", "c"]) == (args.vocab_size, args.corpus)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("vocab_sise = 3", "unknown key 'vocab_sise'; the nearest option is 'vocab_size'"),
        ("config = 'x'", "unknown key 'config'"),
        ("transition = 1.5", "above 0 and up to 1"),
        ("vocab_size = true", "one value is needed"),
        ("vocab_size = [1, 2]", "one value is needed"),
        ("force = 'yes'", "true or false is needed"),
        ("[train]\nvocab_size = 3", "unknown key 'train'"),
        ("vocab_size =", "is not a TOML file"),
        (b"\xff", "is not a TOML file"),
    ],
)
def test_bad_files(fill, toml, message: str) -> None:
    """Each fault is named together with the file."""
    with pytest.raises(UsageError, match=message) as raised:
        fill(toml)
    assert "f.toml" in str(raised.value)
