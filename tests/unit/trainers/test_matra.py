"""Matra's options: what its variants mean, what it refuses, and where words weigh more."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, from_spec
from vocabshift.tokenizer import byte_level
from vocabshift.trainers.base import MIN_MEMORY, RunContext
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.matra import VARIANTS, MatraTrainer, variant_options
from vocabshift.trainers.recipes import make_trainer
from vocabshift.trainers.superword import SuperwordTrainer
from vocabshift.workflows.train import train_to_folder

TEXTS = [
    "the cat sat. the cat sat on the mat. v1.2 costs 1234567 of 3.14",
    "राम घर गया। सीता घर आई। राम घर आया। वह घर गया।",
] * 3
CORPUS = Corpus.from_texts(TEXTS)


def stage2(trainer: MatraTrainer) -> list[str]:
    training = trainer.run(CORPUS)
    made = training.tokenizer.model.merges[training.report.stage1_merges :]
    return [byte_level.to_bytes(a + b).decode(errors="replace") for a, b in made]


def test_target_words_weigh_more() -> None:
    """Two pairs of Devanagari bytes lose against three of Latin letters, unless they weigh more."""
    texts = ["xyz xyz xyz", "कक"]
    latin = MatraTrainer(vocab_size=257, transition=1.0, word_weight="none")
    indic = MatraTrainer(vocab_size=257, transition=1.0, alpha=0.4)
    (pair,) = latin.train(Corpus.from_texts(texts)).model.merges
    assert "xy" == "".join(pair)
    (pair,) = indic.train(Corpus.from_texts(texts)).model.merges
    assert byte_level.to_bytes("".join(pair)) in "\u0915".encode()


def test_the_pattern_of_the_file_is_that_of_stage2() -> None:
    assert NAMED["matra-stage2"] == from_spec(
        MatraTrainer(vocab_size=330).train(CORPUS).pre_tokenizer
    )


def test_terminals_are_refused_and_pieces_go_on() -> None:
    """E joins no terminal; C does, for its pieces are whole lines."""
    e = stage2(MatraTrainer(vocab_size=420, transition=0.75))
    c = stage2(MatraTrainer(**variant_options("C", {"vocab_size": 420, "transition": 0.75})))
    assert [] == [token for token in e if "." in token or "।" in token]
    assert any("। " in token for token in c)
    assert any(". " in token for token in c)
    assert any(" " in token.strip() for token in e)


def test_variants() -> None:
    trainers = {
        name: MatraTrainer(**variant_options(name, {"vocab_size": 400})) for name in VARIANTS
    }
    assert trainers["E"] == MatraTrainer(vocab_size=400)
    assert "none" == trainers["A"].word_weight == trainers["D"].word_weight
    assert 1.0 == trainers["B"].transition
    assert not trainers["C"].terminal_prohibition
    assert 5 == len(set(trainers.values()))
    assert trainers["C"] == make_trainer("matra", {"vocab_size": 400, "variant": "C"})


@pytest.mark.parametrize(
    ("variant", "given"),
    [
        ("A", {"word_weight": "constant"}),
        ("B", {"transition": 0.9}),
        ("C", {"terminal_prohibition": True}),
        ("D", {"word_weight": "smoothed"}),
        ("D", {"pre_tokenizer": "matra"}),
    ],
)
def test_options_against_a_variant(variant: str, given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"variant {variant} means {next(iter(given))}"):
        make_trainer("matra", {"vocab_size": 400, "variant": variant, **given})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha is 0"),
        ({"alpha": -1.0}, "alpha is -1"),
        ({"alpha": 1.01}, "alpha is 1.01"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"alpha": 1e-9}, "at least 0.000001"),
        ({"word_weight": "heavy"}, "word_weight is 'heavy'"),
        ({"transition": 0.5}, "leaves stage 1 200 tokens, below the alphabet"),
        ({"transition": 0.0}, "transition is 0"),
        ({"stage2_pre_tokenizer": r"(\w)\1"}, "weighted sentences need a stage-2 pattern"),
        ({"variant": "F"}, "no variant of Matra is named 'F'"),
        ({"colour": 1}, "recipe matra has no option 'colour'"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_trainer("matra", {"vocab_size": 400, **options})


def test_the_least_alpha_trains() -> None:
    assert MatraTrainer(vocab_size=330, alpha=1e-6).train(CORPUS).model.merges


@pytest.mark.parametrize("alpha", [0, -0.1, 1.5, float("nan")])
@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
def test_sampling_alpha_is_a_temperature(kind: type[BpeTrainer], alpha: float) -> None:
    with pytest.raises(ValueError, match="sampling_alpha is"):
        kind(vocab_size=400, sampling_alpha=alpha).run(Corpus.from_texts({"hin": TEXTS}))


def test_sampling_needs_labels() -> None:
    with pytest.raises(ValueError, match="needs languages, and the corpus has no labels"):
        MatraTrainer(vocab_size=400, sampling_alpha=0.3).run(CORPUS)


@pytest.mark.parametrize("empty", ["", "\n\n"])
@pytest.mark.parametrize(
    "recipe", ["bpe", "ist", "matra", "boundless", "picky", "overlap", "stacked"]
)
def test_a_language_without_text(recipe: str, empty: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "b.txt").write_text(empty, encoding="utf-8")
    corpus = Corpus.from_files({"eng": tmp_path / "a.txt", "hin": tmp_path / "b.txt"})
    with pytest.raises(CorpusError, match="no text in 'hin'"):
        train_to_folder(recipe, corpus, {"vocab_size": 400}, tmp_path / "out")
    assert ["a.txt", "b.txt"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("weights", [(1e-18, 1.0), (1.0, 1e18), (1e-300, 1e300)])
@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
def test_weights_too_far_apart(kind: type[BpeTrainer], weights: tuple[float, float]) -> None:
    corpus = Corpus.from_texts(
        {"eng": TEXTS[:1], "hin": TEXTS[1:]},
        weights=dict(zip(("eng", "hin"), weights, strict=True)),
    )
    with pytest.raises(ValueError, match="make the weights less different"):
        kind(vocab_size=330).run(corpus)


@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
def test_weights_as_far_apart_as_they_may_be(kind: type[BpeTrainer]) -> None:
    corpus = Corpus.from_texts(
        {"eng": TEXTS[:1], "hin": TEXTS[1:]}, weights={"eng": 1e-6, "hin": 1e6}
    )
    assert kind(vocab_size=330).train(corpus).model.merges


def test_the_circumstances_of_a_run() -> None:
    with pytest.raises(ValueError, match="threads is 0"):
        RunContext(threads=0)
    with pytest.raises(ValueError, match=r"63,999,999 bytes is too small.*--memory 64MB"):
        RunContext(memory_bytes=MIN_MEMORY - 1)
    assert 64_000_000 == RunContext(memory_bytes=64_000_000).memory_bytes


def test_what_a_budget_leaves_out_of_syllables_is_told() -> None:
    """One long word of many syllables: it fits, and they do not."""
    texts = ["".join(chr(0x0915 + i % 37) + chr(0x093E + i % 11) for i in range(407))]
    trainer = BpeTrainer(vocab_size=400, pre_tokenizer=(), grapheme_safe=True)
    whole = trainer.train(Corpus.from_texts(texts)).model.merges
    outcomes = set()
    for memory_bytes in range(10_000, 200_000, 5_000):
        work = RunContext()
        work.memory_bytes = memory_bytes
        training = trainer.run(Corpus.from_texts(texts), work)
        assert training.report.dropped_words or training.tokenizer.model.merges == whole
        outcomes.add(training.report.dropped_words)
    assert len(outcomes) > 1


def test_alpha_is_that_of_the_paper() -> None:
    """With another one target words weigh otherwise, and it is another recipe."""
    assert 0.75 == MatraTrainer(vocab_size=300).alpha
