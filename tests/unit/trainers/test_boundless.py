"""BoundlessBPE: which words join, where they may not, and what the report says of the export."""

from __future__ import annotations

import pytest

from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, from_spec
from vocabshift.tokenizer import byte_level
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.boundless import BoundlessReport, BoundlessTrainer

SENTENCES = [
    "of the people, by the people, for the people of the land. by the sea. by the sea shore.",
    "राम घर गया और सीता घर आई। राम घर आया। वह बाज़ार से घर आया।",
    "some further words so that there are enough pairs: quick brown foxes jump over lazy dogs.",
] * 3
CORPUS = Corpus.from_texts(SENTENCES)


def run(trainer: BoundlessTrainer, corpus: Corpus = CORPUS) -> BoundlessReport:
    report = trainer.run(corpus).report
    assert isinstance(report, BoundlessReport)
    return report


def tokens_of(texts: list[str], **options: object) -> list[str]:
    """The tokens learned, as text."""
    options = {"vocab_size": 400} | options
    trainer = BoundlessTrainer(**options)  # type: ignore[arg-type]
    tokens = trainer.learn(Corpus.from_texts(texts), RunContext()).joined.tokens[256:]
    return [token.decode(errors="replace") for token in tokens]


def test_both_kinds_compete_in_one_run() -> None:
    report = run(BoundlessTrainer(vocab_size=400))
    assert "boundless" == report.recipe
    assert 144 == report.merges == report.stage1_merges + report.stage2_merges
    assert report.stage2_merges > 0
    assert report.superwords > 0
    assert 0 == report.left_out
    names = [phase.name for phase in report.phases]
    assert ["count", "stage 1", "borders", "runs", "merge", "measure"] == names


def test_a_word_joins_only_when_it_is_one_token() -> None:
    """ " ab" is whole after two merges; until then " ab ab" holds nothing to join."""
    learned = BoundlessTrainer(vocab_size=259).learn(Corpus.from_texts([" ab ab ab"]), RunContext())
    assert [b"ab", b" ab", b" ab ab"] == learned.joined.tokens[256:]
    assert [False, False, True] == learned.joined.is_supermerge.tolist()
    assert [3, 3, 2] == learned.joined.counts.tolist()


@pytest.mark.parametrize("pre_tokenizer", ["gpt2", "o200k"])
def test_patterns_that_the_core_cannot_scan_cut_the_same(
    pre_tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python cuts the text for it then, with `regex`."""
    trainer = BoundlessTrainer(vocab_size=400, pre_tokenizer=pre_tokenizer)
    scanned = trainer.run(CORPUS)
    monkeypatch.setattr("vocabshift.trainers.boundless.compile_pattern", lambda _: None)
    cut = trainer.run(CORPUS)
    assert cut.tokenizer.model.merges == scanned.tokenizer.model.merges
    assert cut.report.superwords == scanned.report.superwords > 0


def test_words_that_hold_no_letter_stay_apart() -> None:
    texts = ["a - b - c - a - b - c 12 - 12 - 12 - 12"] * 5
    superwords = [token for token in tokens_of(texts) if " " in token.strip()]
    assert [] == superwords
    joined = tokens_of(texts, merge_pattern=r"\p{L}|-")
    assert " - b" in joined
    assert not any("12" in token and "-" in token for token in joined)


def test_marks_count_as_letters() -> None:
    """GPT-2's words are cut at every vowel sign; joined, they make words again."""
    texts = ["किताब किताब किताब"] * 3
    assert "किताब किताब किताब" in tokens_of(texts, pre_tokenizer="gpt2")
    letters_alone = tokens_of(texts, pre_tokenizer="gpt2", merge_pattern=r"\p{L}")
    assert not any("कि" in token for token in letters_alone)


def test_boundaries() -> None:
    texts = ["one two. one two. one two. one two 12 one two"] * 4
    tokens = tokens_of(texts)
    assert "one two" in tokens
    assert not any("." in token.strip(".") for token in tokens)
    assert not any("2" in token and "o" in token for token in tokens)
    assert any(
        ". one" in token
        for token in tokens_of(
            texts, merge_pattern=".", vocab_size=500, stage2_pre_tokenizer="superbpe-stage2"
        )
    )


@pytest.mark.parametrize("max_words", [1, 2, 3])
def test_max_words(max_words: int) -> None:
    tokens = tokens_of(["of the old people of the old land"] * 5, max_words=max_words)
    assert max_words == max(len(token.split()) for token in tokens)


def test_max_token_bytes_holds_for_both_kinds() -> None:
    assert 7 == max(len(token) for token in tokens_of(SENTENCES, max_token_bytes=7))


def test_special_tokens_are_not_made_of_words() -> None:
    texts = ["to be or not to be, to be"] * 4
    assert "to be" in tokens_of(texts)
    trainer = BoundlessTrainer(vocab_size=400, special_tokens=("to be",))
    training = trainer.run(Corpus.from_texts(texts))
    assert "toĠbe" not in training.tokenizer.model.vocab
    assert 12 <= training.report.training_tokens


def test_the_exported_pattern_is_the_boundary_pattern() -> None:
    tokenizer = BoundlessTrainer(vocab_size=320).train(CORPUS)
    assert NAMED["ist-stage2"] == from_spec(tokenizer.pre_tokenizer)


def test_word_merges_come_first_in_the_file() -> None:
    training = BoundlessTrainer(vocab_size=400).run(CORPUS)
    split = training.report.stage1_merges
    images = ["".join(pair) for pair in training.tokenizer.model.merges]
    in_words = [byte_level.to_bytes(image).strip() for image in images[:split]]
    assert not any(b" " in token for token in in_words)
    assert sum("Ġ" in image.strip("Ġ") for image in images[split:]) == training.report.superwords


def test_the_drift_of_the_export_is_measured() -> None:
    """ " of the" fires inside " of them", which BoundlessBPE leaves " of", " the", "m"."""
    texts = [" of the"] * 9 + [" of them"]
    report = run(BoundlessTrainer(vocab_size=262), Corpus.from_texts(texts))
    assert (9 + 3, 9 + 2) == (report.boundless_tokens, report.training_tokens)
    assert 0.1 == report.documents_differing


def test_a_superword_out_of_reach_is_left_out() -> None:
    """Words cut by place: two letters at the start, then one by one. "xx" + "a" + "b" + "c" + "d"
    joins to "xxabc" + "d"; but "cd" is a word elsewhere, and in the file it merges first."""
    texts = ["xxabcd"] * 5 + ["cdxx"] * 9
    trainer = BoundlessTrainer(
        vocab_size=264, pre_tokenizer=r"^..|\w", stage2_pre_tokenizer="superbpe-stage2"
    )
    corpus = Corpus.from_texts(texts)
    assert b"xxabcd" == trainer.learn(corpus, RunContext()).joined.tokens[-1]
    report = run(trainer, corpus)
    assert (1, 263) == (report.left_out, report.vocab_size)


def test_weights_decide() -> None:
    corpora = [
        Corpus.from_texts({"a": [" b c"] * 3, "x": [" y z"] * 2}, weights={"x": weight})
        for weight in (1.0, 9.0)
    ]
    trainer = BoundlessTrainer(vocab_size=261)
    learned = [trainer.learn(corpus, RunContext()).joined.tokens[256:] for corpus in corpora]
    assert [b" b c", b" y z"] == [one[2] for one in learned]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 100}, "below the alphabet"),
        ({"vocab_size": 1000, "max_words": 0}, "max_words"),
        ({"vocab_size": 1000, "stage2_pre_tokenizer": "nothing"}, "no pre-tokenizer is named"),
        ({"vocab_size": 1000, "merge_pattern": "("}, r"merge_pattern '\(' is not a regex"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoundlessTrainer(**options)  # type: ignore[arg-type]


def make_stage(**changes: object) -> _core.BoundlessStage:
    """A stage over the 256 bytes alone."""
    import numpy as np

    whole = _core.PreTokenizer([])
    options = {
        "tokens": BYTES,
        "merges": np.empty((0, 3), np.uint32),
        "counts": np.empty(0, np.uint64),
        "may_join": [True] * 256,
        "pieces": whole,
        "words": whole,
        "weights": [1],
        "vocab_size": 300,
    }
    return _core.BoundlessStage(**(options | changes))  # type: ignore[arg-type]


BYTES = _core.MergeStack(256).tokens


def test_the_core_refuses_what_does_not_fit() -> None:
    import numpy as np

    def ints(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    with pytest.raises(ValueError, match="may_join"):
        make_stage(may_join=[True])
    with pytest.raises(ValueError, match="one for every merge"):
        make_stage(tokens=BYTES[:-1])
    with pytest.raises(ValueError, match="needs a count"):
        make_stage(tokens=[*BYTES, b"ab"], merges=np.array([[0, 1, 256]], np.uint32))
    with pytest.raises(ValueError, match="merge i must be token"):
        make_stage(
            tokens=[*BYTES, b"ab"],
            may_join=[True] * 257,
            merges=np.array([[256, 1, 256]], np.uint32),
            counts=np.array([1], np.uint64),
        )
    stage = make_stage()
    with pytest.raises(ValueError, match="needs a weight"):
        stage.count_runs(b"ab", ints(0), ints(2), 1)
    with pytest.raises(ValueError, match="or neither"):
        stage.count_borders(b"ab", ints(0), ints(2), 0, ints(2))
    for piece_ends, word_ends in (((1,), (1,)), ((3,), (3,)), ((2,), (1,)), ((2,), (0, 2))):
        with pytest.raises(ValueError, match="do not fit"):
            stage.count_runs(b"ab", ints(0), ints(2), 0, ints(*piece_ends), ints(*word_ends))
    with pytest.raises(ValueError, match="outside the data"):
        stage.count_runs(b"ab", ints(0), ints(3))
    stage.train()
    with pytest.raises(ValueError, match="trained already"):
        stage.count_runs(b"ab", ints(0), ints(2))


def test_words_left_out_for_want_of_memory_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report never calls a run exact that was not."""
    monkeypatch.setattr("vocabshift.trainers.base.MIN_MEMORY", 1)
    words = " ".join(f"word{i}" for i in range(500)) + " again" * 500
    corpus = Corpus.from_texts([words])
    trainer = BoundlessTrainer(vocab_size=300)
    assert 0 == run(trainer, corpus).dropped_words
    report = trainer.run(corpus, RunContext(memory_bytes=10_000)).report
    assert 501 == report.dropped_words == report.dropped_occurrences  # all that stand there once
