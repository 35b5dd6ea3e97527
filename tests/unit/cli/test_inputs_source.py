"""The flags that cut a corpus down, in every verb that learns from one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

import vocabshift as vs
from vocabshift.cli.inputs import add_choices, corpus_of, language_budgets, words_of
from vocabshift.cli.main import main
from vocabshift.cli.options import Parser, UsageError

ENGLISH = [f"line {i} of a text" for i in range(60)]
HINDI = [f"यह वाक्य {i} है" for i in range(60)] + ["यह four words in Roman"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two texts, and a tokenizer of 300 tokens."""
    made = tmp_path_factory.mktemp("source")
    (made / "en.txt").write_text("\n".join(ENGLISH), encoding="utf-8")
    (made / "hi.txt").write_text("\n".join(HINDI), encoding="utf-8")
    corpus = vs.Corpus.from_texts(ENGLISH + HINDI)
    vs.BpeTrainer(vocab_size=300).train(corpus).save_pretrained(made / "base")
    return made


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser(prog="x")
    add_choices(parser)
    return parser.parse_args(list(words))


def texts_of(*words: str) -> list[tuple[str | None, str]]:
    return list(corpus_of(["hi=hi.txt", "en=en.txt"], parsed(*words)).texts())


def test_one_after_the_other() -> None:
    """Languages first, then Roman words, then bytes: the budget is of what the others left."""
    hindi = [("hi", line) for line in HINDI]
    english = [("en", line) for line in ENGLISH]
    assert hindi + english == texts_of()
    assert hindi[:-1] + english == texts_of("--max-roman-words", "3")
    assert hindi[:-1] == texts_of("--languages", "hi", "--max-roman-words", "3")
    roman = ("--max-roman-words", "3")
    drawn = texts_of(*roman, "--language-bytes", "400B", "en=0.1KB", "--draw-seed", "3")
    corpus = vs.Corpus.from_specs(["hi=hi.txt", "en=en.txt"]).limit_roman_words(3)
    assert drawn == list(corpus.limit_bytes({"hi": 400, "en": 100}, seed=3).texts())
    assert drawn != list(corpus.limit_bytes({"hi": 400, "en": 100}).texts())
    only = texts_of("--language-bytes", "en=100")
    assert [pair for pair in only if pair[0] == "hi"] == hindi


VERBS = {
    "train": "train --recipe bpe --vocab-size 300 -o out --corpus",
    "unigram": "train --recipe unigram --vocab-size 300 -o out --corpus",
    "count": "count -o out",
    "encode": "encode base --eos none -o out",
    "extend": "extend base --n-tokens 3 -o out --corpus",
    "prune": "prune base --n-tokens 3 -o out --corpus",
    "adapt": "adapt base --n-tokens 3 -o out --corpus",
    "plan": "plan base --corpus",
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_draws(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Seen by a budget that holds no document: told in one line, and nothing is left."""
    budget = ("--max-roman-words", "3", "--language-bytes", "en=1KB", "hi=2")
    assert 2 == main([*VERBS[verb].split(), "hi=hi.txt", "en=en.txt", *budget])
    streams = capsys.readouterr()
    assert "2 bytes of 'hi' are asked for" in streams.err.splitlines()[-1]
    assert not Path("out").exists()


def test_the_fingerprint_is_of_what_was_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """And a TOML says the same as the command line."""

    def trained(*words: str) -> tuple[str, int]:
        command = ["train", "--recipe", "bpe", "--vocab-size", "280", "-o", "made", "--force"]
        assert 0 == main([*command, *words, "--json"]), capsys.readouterr().err
        result = json.loads(capsys.readouterr().out)
        return result["corpus_fingerprint"], result["training_bytes"]

    corpus = ("--corpus", "hi=hi.txt", "en=en.txt")
    whole, budget = trained(*corpus), trained(*corpus, "--language-bytes", "400B")
    assert 740 < budget[1] <= 800 < whole[1]
    assert budget == trained(*corpus, "--language-bytes", "400B")
    assert budget != trained(*corpus, "--language-bytes", "400B", "--draw-seed", "1")
    Path("f.toml").write_text(
        'corpus = ["hi=hi.txt", "en=en.txt"]\nlanguage-bytes = ["hi=400", "en=400"]\n'
        "max_roman_words = 9\ndraw-seed = 0\n",
        encoding="utf-8",
    )
    assert budget == trained("--config", "f.toml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-roman-words", "-1"), "'-1' is not a whole number of at least 0"),
        (("--max-roman-words", "9" * 30), "too large"),
        (("--language-bytes", "many"), "--language-bytes many: 'many' is not a size"),
        (("--language-bytes", "hi="), "'' is not a size"),
        (("--language-bytes", "hi=0"), "no room at all"),
        (("--language-bytes", "ta=5KB"), "no 'ta' in the corpus"),
        (("--language-bytes", "5KB", "hi=1KB", "6KB"), "6KB: it is given twice"),
        (("--draw-seed", "1"), "give both"),
        (("--languages", "en", "--max-roman-words", "3"), "other than Latin"),
    ],
)
def test_refused(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["count", "hi=hi.txt", "en=en.txt", "-o", "out", *words])
    streams = capsys.readouterr()
    assert message in streams.err
    assert 1 == streams.err.count("\n")


def test_counts_are_a_corpus_cut_down_already(capsys: pytest.CaptureFixture[str]) -> None:
    choices = {"languages": "hi", "documents": "line", "max-roman-words": "0"}
    for flag, value in {**choices, "language-bytes": "5KB", "draw-seed": "1"}.items():
        for verb in ("train --recipe bpe --vocab-size 300", "prune base --n-tokens 3"):
            assert 2 == main([*verb.split(), "-o", "out", "--counts", "x", f"--{flag}", value])
            assert f"leave --{flag} out" in capsys.readouterr().err


def test_without_a_corpus_there_is_nothing_to_cut(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("prune", "base", "--n-tokens", "3", "--order", "leaf-id", "-o", "out")
    assert 2 == main([*words, "--max-roman-words", "3"])
    assert "--max-roman-words looks at text: --corpus is required" in capsys.readouterr().err


def test_the_flags_as_they_were_given() -> None:
    words = ["--documents", "file", "--max-roman-words", "0", "--language-bytes", "a=b=5KB", "1MB"]
    assert words == words_of(parsed(*words))
    assert [] == words_of(parsed())
    assert {"a=b": 5000, None: 1_000_000} == language_budgets(["a=b=5KB", "1MB"])
    with pytest.raises(UsageError, match="twice"):
        language_budgets(["a=1", "a=2"])
