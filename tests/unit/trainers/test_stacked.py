"""Stacked vocabularies: whose word is whose, budgets, and what one script's rules do to another."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.storage.outcome import config_hash
from vocabshift.text.corpus import Corpus
from vocabshift.trainers.base import RunContext, config_of
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.stacked import ScriptPart, StackedReport, StackedTrainer, divide

FOLDER = Path(str(resources.files("vocabshift.demo"))) / "texts"
CORPUS = Corpus.from_files({label: FOLDER / f"{label}.txt" for label in ("eng", "hin", "ben")})


def run(vocab_size: int = 420, corpus: Corpus = CORPUS, **options: Any) -> StackedReport:
    report = StackedTrainer(vocab_size=vocab_size, **options).run(corpus).report
    assert isinstance(report, StackedReport)
    return report


def by_script(report: StackedReport) -> dict[str, ScriptPart]:
    return {part.script: part for part in report.scripts}


def test_every_script_gets_its_share() -> None:
    report = run()
    parts = by_script(report)
    assert {"Latin", "Devanagari", "Bengali", "Common"} == set(parts)
    assert report.training_bytes == sum(part.corpus_bytes for part in parts.values())
    assert 164 == report.merges == sum(part.budget for part in parts.values())
    budgets = [part.budget for part in report.scripts]
    assert sorted(budgets, reverse=True) == budgets
    largest = max(report.scripts, key=lambda part: part.corpus_bytes)
    assert report.scripts[0] == largest
    assert ["count", "stage 1", "stack", "encode"] == [phase.name for phase in report.phases]


def test_one_script_alone_is_bpe() -> None:
    corpus = Corpus.from_texts(["the cat sat on the mat with the other cat"] * 4)
    merges = [
        kind(vocab_size=290).train(corpus).model.merges for kind in (BpeTrainer, StackedTrainer)
    ]
    assert merges[0] == merges[1]


def test_it_is_no_better_than_one_vocabulary() -> None:
    """What the paper shows: the joint vocabulary has the lower fertility."""
    joint = BpeTrainer(vocab_size=420).run(CORPUS).report.training_tokens
    assert joint <= run().training_tokens


def test_given_budgets_hold() -> None:
    parts = by_script(run(356, budgets={"Latin": 0.5, "Bengali": 0.1}))
    assert (50, 10) == (parts["Latin"].tokens, parts["Bengali"].tokens)
    assert 40 == parts["Devanagari"].tokens + parts["Common"].tokens


def test_budgets_in_three_spellings() -> None:
    spellings: list[Any] = [
        {"Latin": 0.5, "Bengali": 0.1},
        ["Latin=0.5", "Bengali=0.1"],
        "Latin=0.5, Bengali=0.1",
        (("Bengali", 0.1), ("Latin", 0.5)),
    ]
    trainers = {StackedTrainer(vocab_size=300, budgets=budgets) for budgets in spellings}
    assert 1 == len(trainers)
    (trainer,) = trainers
    assert (("Bengali", 0.1), ("Latin", 0.5)) == trainer.budgets
    assert config_hash(config_of(trainer)) != config_hash(config_of(StackedTrainer(vocab_size=300)))


def test_what_a_script_cannot_use_goes_to_the_next() -> None:
    report = run(1256, budgets={"Common": 0.9})
    parts = by_script(report)
    assert parts["Common"].tokens < parts["Common"].budget == 900
    assert 1000 == report.merges
    assert "vocab_size" == report.stopped_because


def test_when_all_pairs_run_out() -> None:
    report = run(20_000)
    assert report.vocab_size < 20_000
    assert "no_pair_left" == report.stopped_because
    assert "min_frequency" == run(20_000, min_frequency=2).stopped_because


def test_a_shared_token_is_stacked_once() -> None:
    """A word of one script may hold letters of another; both learn "ab"."""
    texts = ["ab ab कab"] * 2
    trainer = StackedTrainer(vocab_size=300)
    training = trainer.run(Corpus.from_texts(texts))
    report = training.report
    assert isinstance(report, StackedReport)
    assert 1 == sum(part.known for part in report.scripts)
    ids = training.tokenizer.model.vocab.values()
    assert sorted(ids) == list(range(report.vocab_size))


def test_a_token_out_of_reach_is_skipped() -> None:
    """The merge stack by itself: "bc" goes first, so "abcd" in two steps is cut into three."""
    stack = _core.MergeStack(300)
    assert [2, 2, 2, 1] == [stack.push(token) for token in (b"bc", b"ab", b"cd", b"cd")]
    assert 3 == stack.push(b"abcd")
    assert 2 == stack.push(b"abc")  # of other parts than its own list may have had: "a" + "bc"
    assert 2 == stack.push(b"abcd")
    assert [0, 1] == [stack.push(b""), stack.push(b"a")]
    assert [b"bc", b"ab", b"cd", b"abc", b"abcd"] == stack.tokens[256:]
    full = _core.MergeStack(257)
    full.push(b"ab")
    with pytest.raises(ValueError, match="full"):
        full.push(b"cd")


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ("Klingon=0.5", "no script is named 'Klingon'"),
        ("Latin", "'Latin' is not SCRIPT=SHARE"),
        ("Latin=much", "'Latin=much' is not SCRIPT=SHARE"),
        ("Latin=1.5", "the budget of Latin is 1.5"),
        ("Latin=-1", "the budget of Latin is -1"),
        ("Latin=nan", "the budget of Latin is nan"),
        ("Latin=0.1,Latin=0.2", "two budgets"),
        ("Latin=0.6,Tamil=0.6", "sum to more than 1"),
    ],
)
def test_bad_budgets(budgets: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StackedTrainer(vocab_size=300, budgets=budgets)  # type: ignore[arg-type]


def test_a_budget_for_a_script_without_text() -> None:
    with pytest.raises(CorpusError, match="corpus holds Bengali, Common, Devanagari, Latin"):
        run(budgets="Tamil=0.2")


def test_divide_by_largest_remainder() -> None:
    assert {"a": 4, "b": 3, "c": 3} == divide(10, {"a": 1, "b": 1, "c": 1}, {})
    assert {"a": 5, "b": 5} == divide(10, {"a": 1, "b": 9}, {"a": 0.5})
    assert {"a": 5} == divide(10, {"a": 9}, {"a": 0.5})
    assert {} == divide(10, {}, {})


def test_a_memory_budget_is_refused_rather_than_ignored() -> None:
    with pytest.raises(ValueError, match="knows no budget"):
        StackedTrainer(vocab_size=300).run(CORPUS, RunContext(memory_bytes=1 << 30))
