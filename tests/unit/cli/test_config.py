"""A TOML in place of flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.cli.config import config_first, fill_from_config, split_given
from vocabshift.cli.main import build_parser
from vocabshift.cli.options import UsageError


@pytest.fixture
def fill(tmp_path: Path):
    """Parses `vocabshift train ...` and fills it from TOML text."""

    def run(toml: str | bytes, *words: str):
        path = tmp_path / "f.toml"
        path.write_bytes(toml if isinstance(toml, bytes) else toml.encode())
        line = config_first(["train", "--config", str(path), *words])
        args = build_parser().parse_args(line)
        fill_from_config(args)
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


def test_a_key_on_the_command_line_goes_before_the_file(fill) -> None:
    """Its value is read as TOML, or else as a string; a flag goes before both."""
    toml = 'vocab_size = 300\nforce = true\nrecipe = "bpe"\nmemory = "8GB"\n'
    keys = (
        "vocab-size=400",
        "force=false",
        "recipe=ist",
        "corpus=hi=a.txt",
        "special_tokens=['x']",
    )
    args = fill(toml, *keys)
    assert (400, False, "ist", 8 * 10**9) == (args.vocab_size, args.force, args.recipe, args.memory)
    assert (["hi=a.txt"], ["x"]) == (args.corpus, args.special_tokens)
    assert 500 == fill(toml, *keys, "--vocab-size", "500").vocab_size


@pytest.mark.parametrize("words", ["F a=1 b=2 --force", "a=1 F b=2 --force", "--config F a=1 b=2"])
def test_the_file_is_named_in_two_ways(words: str) -> None:
    """As the first words or by a flag: both mean the same, for both verbs."""
    for verb in ("train", "cpt"):
        args = build_parser().parse_args(config_first([verb, *words.split()]))
        assert ("F", ["a=1", "b=2"]) == split_given(args)


def test_specs_of_train_are_not_keys() -> None:
    """Flags that take several words keep those with an equals sign."""
    words = ["train", "--config", "f.toml", "vocab_size=3", "--corpus", "hi=a.txt", "en=b.txt"]
    args = build_parser().parse_args(config_first(words))
    assert (["vocab_size=3"], ["hi=a.txt", "en=b.txt"]) == (args.given, args.corpus)


def test_two_files_are_refused() -> None:
    args = build_parser().parse_args(["train", "a.toml", "--config", "b.toml"])
    with pytest.raises(UsageError, match=r"'b.toml' is no key=value, and 'a.toml' is the CONFIG"):
        split_given(args)


def test_a_bad_key_on_the_command_line(fill) -> None:
    with pytest.raises(UsageError, match=r"key=value: unknown key 'sise'; the nearest option"):
        fill("", "sise=3")


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("vocab_sise = 3", "unknown key 'vocab_sise'; the nearest option is 'vocab_size'"),
        ("config = 'x'", "unknown key 'config'"),
        ("vocab-size = 3\nvocab_size = 4", "'vocab_size' is given twice"),
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
