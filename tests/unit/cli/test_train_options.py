"""`vocabshift train` for what takes real work: Matra, memory, sampling, graphemes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from vocabshift.cli.main import main
from vocabshift.trainers.matra import VARIANTS


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("en.txt").write_text("the cat sat. the cat sat on the mat.\n" * 3, encoding="utf-8")
    Path("hi.txt").write_text("राम घर गया। सीता घर आई। राम घर गया।\n" * 3, encoding="utf-8")


TRAIN = ("train", "--corpus", "en=en.txt", "hi=hi.txt", "--vocab-size", "330", "-o", "out")


def run(capsys, *words: str) -> dict:
    assert 0 == main([*TRAIN, *words, "--json"]), capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def backend() -> Tokenizer:
    return Tokenizer.from_file("out/tokenizer.json")


def test_matra_says_all_of_it(capsys) -> None:
    result = run(capsys, "--recipe", "matra", "--memory", "64MB", "-j", "2")
    assert "matra" == result["recipe"]
    assert 0 == result["dropped_words"] == result["dropped_occurrences"] == result["unreachable"]
    assert ["count", "stage 1", "encode", "stage 2"] == [p["name"] for p in result["phases"]]
    lines = [line for name in ("en", "hi") for line in Path(f"{name}.txt").read_text().splitlines()]
    encoded = backend().encode_batch(lines, add_special_tokens=False)
    assert sum(len(e.ids) for e in encoded) == result["training_tokens"]
    first = Path("out/tokenizer.json").read_bytes()
    run(capsys, "--recipe", "matra", "--force")
    assert first == Path("out/tokenizer.json").read_bytes()


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants(capsys, variant: str) -> None:
    result = run(capsys, "--recipe", "matra", "--variant", variant)
    assert (result["stage2_merges"] == 0) == (variant == "B")
    config = json.loads(Path("out/vocabshift.json").read_text(encoding="utf-8"))["config"]
    assert {**config, **VARIANTS[variant]} == config


@pytest.mark.parametrize("recipe", ["bpe", "ist", "superbpe", "matra"])
def test_sampling_and_graphemes(capsys, recipe: str) -> None:
    plain = run(capsys, "--recipe", recipe)
    more = ("--sampling-alpha", "0.3", "--grapheme-safe", "--force")
    result = run(capsys, "--recipe", recipe, *more)
    assert plain["config_hash"] != result["config_hash"]
    config = json.loads(Path("out/vocabshift.json").read_text(encoding="utf-8"))["config"]
    assert (0.3, True) == (config["sampling_alpha"], config["grapheme_safe"])


def test_fewer_tokens_than_asked_for(capsys) -> None:
    """A text has only so many pairs; the summary says so."""
    for size, is_short in (("300", False), ("9000", True)):
        assert 0 == main([*TRAIN, "--vocab-size", size, "--recipe", "ist", "--force"])
        assert is_short == ("no pair is left to merge" in capsys.readouterr().out)


def test_a_toml_says_the_same(capsys) -> None:
    words = ("--memory", "1GB", "--grapheme-safe", "--alpha", "0.5", "--word-weight", "smoothed")
    result = run(capsys, "--recipe", "matra", *words)
    Path("f.toml").write_text(
        'recipe = "matra"\nmemory = "1GB"\ngrapheme-safe = true\nalpha = 0.5\n'
        'word_weight = "smoothed"\n',
        encoding="utf-8",
    )
    again = run(capsys, "--config", "f.toml", "--force")
    assert result["config_hash"] == again["config_hash"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--memory", "bad"), "'bad' is not a size; write for example 8GB"),
        (("--memory", "63MB"), "63,000,000 bytes is too small"),
        (("--memory", ""), "is not a size"),
        (("--memory", "0"), "no room at all"),
        (("--alpha", "0"), "--alpha"),
        (("--alpha", "1e-9"), "alpha is 1e-09"),
        (("--sampling-alpha", "1.1"), "--sampling-alpha"),
        (("--variant", "Z"), "--variant"),
        (("--variant", "B", "--transition", "0.9"), "variant B means transition"),
        (("--transition", "0.5"), "below the alphabet"),
        (("--languages", "ta"), "ta"),
        (("-o", "."), "exists already"),
        (("--special-tokens", "a"), "is one byte"),
    ],
)
def test_refused(capsys, words: tuple[str, ...], message: str) -> None:
    assert 2 == main([*TRAIN, "--recipe", "matra", *words])
    streams = capsys.readouterr()
    assert message in streams.err
    assert "" == streams.out
    assert not Path("out").exists()


def test_an_empty_language_is_refused(capsys) -> None:
    Path("hi.txt").write_text("\n", encoding="utf-8")
    assert 2 == main([*TRAIN, "--recipe", "matra", "--sampling-alpha", "0.3"])
    assert "no text in 'hi'" in capsys.readouterr().err
    assert ["en.txt", "hi.txt"] == sorted(path.name for path in Path().iterdir())
