"""Stage 2 from counted runs: what is refused, and what the error says to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from run_counting import count_runs, count_words, sketch
from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder, write_counts
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import get_pattern
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.trainers.recipes import RECIPES, TAKE_RUNS, require_takes_runs
from vocabshift.trainers.superword import SuperwordTrainer

TEXTS = ["a b a b a b. a b", "b a b a c d"]
TRAINER = SuperwordTrainer(vocab_size=264, transition=260 / 264)


def counted(texts: list[str], base: Path, trainer: SuperwordTrainer = TRAINER) -> CountFolder:
    """The words and runs of texts."""
    base.mkdir()
    words = count_words(Corpus.from_texts(texts), trainer, base / "words")
    parts = [[[(None, text) for text in texts]]]
    borders = sketch(trainer.plan_runs(words), parts)
    runs = count_runs(borders, borders.guess_bound(), parts, base / "runs")
    return replace(words, runs=runs)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> CountFolder:
    return counted(TEXTS, tmp_path_factory.mktemp("counts") / "base")


def test_it_is_trained(source: CountFolder) -> None:
    local = TRAINER.run(Corpus.from_texts(TEXTS))
    assert local.tokenizer.model.merges == TRAINER.run(source).tokenizer.model.merges
    assert source.paths == [source.path, source.runs and source.runs.path]


def test_words_without_runs(source: CountFolder) -> None:
    with pytest.raises(CorpusError, match=r"count --runs\) and name them with --runs"):
        TRAINER.run(replace(source, runs=None))


@pytest.mark.parametrize("is_scanned", [True, False], ids=["core", "regex"])
@pytest.mark.parametrize("threads", [1, 3])
def test_whole_pre_tokens_are_trained_as_their_text(
    *, is_scanned: bool, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted pre-tokens of stage 2 need no runs, whoever cuts them into words."""
    texts = {"en": [*TEXTS, "some more words. some more"], "hi": ["राम का घर। राम का घर"] * 2}
    corpus = Corpus.from_texts(texts)
    trainer = SuperwordTrainer(vocab_size=290, transition=0.94)
    reader = CorpusReader(corpus, get_pattern("ist-stage2"), by_language=True)
    write_counts(reader.count_words(), reader, tmp_path)
    local = trainer.run(corpus, RunContext(threads=threads))
    if not is_scanned:
        monkeypatch.setattr("vocabshift.text.counting.compile_pattern", lambda _: None)
    seen: list[tuple[str, int]] = []
    context = RunContext(
        threads=threads, progress=lambda phase, done, _: seen.append((phase, done))
    )
    found = trainer.run(CountFolder.open(tmp_path), context)
    assert found.tokenizer.model.merges == local.tokenizer.model.merges
    assert found.report.superwords == local.report.superwords > 0
    assert {"count", "encode"} <= {phase for phase, _ in seen}


def test_runs_beside_whole_pre_tokens(source: CountFolder, tmp_path: Path) -> None:
    reader = CorpusReader(Corpus.from_texts(TEXTS), get_pattern("ist-stage2"), by_language=True)
    write_counts(reader.count_words(), reader, tmp_path)
    pieces = CountFolder.open(tmp_path)
    with pytest.raises(CorpusError, match="need no runs"):
        TRAINER.run(replace(pieces, runs=source.runs))
    with pytest.raises(CorpusError, match=r"count --pattern ist-stage2\+o200k"):
        TRAINER.plan_runs(pieces)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"transition": 259 / 264}, "another stage 1 tokens"),
        ({"max_token_bytes": 1}, "another stage 1"),
        ({"min_frequency": 9}, "another stage 1"),
    ],
)
def test_runs_of_another_stage_1(source: CountFolder, options: dict[str, Any], what: str) -> None:
    with pytest.raises(CorpusError, match=what):
        replace(TRAINER, **options).run(source)


def test_options_of_stage_2_alone_may_differ(source: CountFolder) -> None:
    trainer = replace(TRAINER, max_words=1)
    local = trainer.run(Corpus.from_texts(TEXTS))
    assert local.tokenizer.model.merges == trainer.run(source).tokenizer.model.merges


def test_other_weights_or_terminals(tmp_path: Path) -> None:
    matra = MatraTrainer(vocab_size=270, transition=262 / 270)
    source = counted(TEXTS, tmp_path / "base", matra)
    matra.run(source)
    for other in (replace(matra, alpha=0.5), replace(matra, terminal_prohibition=False)):
        with pytest.raises(CorpusError, match=r"another (sentence weights|terminals)"):
            other.run(source)


def test_runs_of_other_text(source: CountFolder, tmp_path: Path) -> None:
    """One word is added to the text: stage 1 is the same, the sums of bytes are not."""
    words = count_words(Corpus.from_texts([*TEXTS, " e"]), TRAINER, tmp_path / "words")
    assert TRAINER.plan_runs(words).settings == TRAINER.plan_runs(source).settings
    with pytest.raises(CorpusError, match="counts words of other text than"):
        TRAINER.run(replace(words, runs=source.runs))


def test_a_language_of_two_weights(tmp_path: Path) -> None:
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("a b a b\n", "utf-8")
    corpus = Corpus.from_specs([f"en={files[0]}", f"en={files[1]}@2"])
    words = count_words(corpus, TRAINER, tmp_path / "words")
    with pytest.raises(CorpusError, match="en: a language with several weights"):
        TRAINER.plan_runs(words)


def test_no_second_stage(source: CountFolder) -> None:
    with pytest.raises(CorpusError, match="transition 1 leaves out stage 2"):
        replace(TRAINER, transition=1.0).plan_runs(source)


def test_a_budget_that_is_too_small(source: CountFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = TRAINER.plan_runs(source)
    monkeypatch.setattr(RunContext, "share_of_memory", lambda self, share: 1)
    assert source.runs is not None
    with pytest.raises(CorpusError, match="do not fit into half of the memory budget"):
        TRAINER.train_runs(plan, source, source.runs)


def test_recipes_that_learn_from_runs() -> None:
    assert ("superbpe", "ist", "matra") == TAKE_RUNS
    for recipe in set(RECIPES) - set(TAKE_RUNS):
        with pytest.raises(ValueError, match=f"recipe {recipe} learns nothing from runs"):
            require_takes_runs(recipe)


# The core's door: runs that another program may have written.

BYTES = [byte_level.to_bytes(image) for image in byte_level.ALPHABET]


def core(run: bytes, *, weighted: bool = False) -> _core.CountedRuns:
    runs = _core.CountedRuns(BYTES, 1, weighted)
    runs.add(run, np.array([len(run)], np.int64), np.array([1], np.uint64))
    return runs


@pytest.mark.parametrize(
    "run",
    [b"", b"\0" * 4, b"\0" * 7, b"\0" * 8 + b"x", b"\0" * 8 + b"w", b"\0\1\0\0" * 2, b"\xff" * 8],
)
def test_what_is_no_run(run: bytes) -> None:
    with pytest.raises(ValueError, match="run"):
        core(run)


def test_a_run_without_its_weight() -> None:
    runs = core(b"\1\0\0\0" * 2, weighted=True)
    with pytest.raises(ValueError, match="not every run has a weight"):
        runs.train([1], 300, bound=1, tokens=2)


def test_ends_that_overlap() -> None:
    runs = _core.CountedRuns(BYTES, 1)
    for ends in ([8, 4], [-1, 8], [8, 24]):
        with pytest.raises(ValueError, match="run"):
            runs.add(b"\1\0\0\0" * 4, np.array(ends, np.int64), np.array([1, 1], np.uint64))
    with pytest.raises(ValueError, match="no group"):
        runs.add(b"", np.zeros(0, np.int64), np.zeros(0, np.uint64), 1)


def test_sizes_of_a_sketch() -> None:
    encoder = compile_merges(BYTES, np.zeros((0, 3), np.uint32))
    for cells in (0, 1000, 512, 1 << 27):
        with pytest.raises(ValueError, match="a power of two of cells"):
            _core.BorderPass(encoder, BYTES, _core.PreTokenizer([]), [1], cells)
    for bits in (b"", b"\0" * 3):
        with pytest.raises(ValueError, match="a power of two of bits"):
            _core.RunPass(encoder, BYTES, _core.PreTokenizer([]), bits, _core.MergeRule())
