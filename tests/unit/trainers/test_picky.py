"""PickyBPE on a few words: what goes, what comes back, what is written."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import get_pattern
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.picky import Export, PickyReport, PickyTrainer

FOLDER = Path(str(resources.files("vocabshift.demo"))) / "texts"
CORPUS = Corpus.from_files({label: FOLDER / f"{label}.txt" for label in ("eng", "hin", "ben")})
NO_TOKEN = 0xFFFFFFFF


def learn(texts: list[str], vocab_size: int, threshold: float) -> _core.PickyTrained:
    reader = CorpusReader(Corpus.from_texts(texts), get_pattern("o200k"))
    return PickyTrainer(vocab_size=vocab_size, threshold=threshold).learn(reader, RunContext())


def told(trained: _core.PickyTrained) -> list[str]:
    """Events as text: "+ab" a merge, "-ab" a removal."""
    return [
        f"-{trained.tokens[left].decode()}"
        if right == NO_TOKEN
        else f"+{trained.tokens[product].decode()}"
        for left, right, product in trained.events.tolist()
    ]


def test_a_part_that_has_served_its_purpose_goes() -> None:
    """Of 10 "ab" nine become "abc": not above 0.9, but above 0.8."""
    texts = ["abc"] * 9 + ["ab"]
    assert ["+ab", "+abc"] == told(learn(texts, 258, 0.9))
    trained = learn(texts, 258, 0.8)
    assert ["+ab", "+abc", "-ab", "+ab"] == told(trained)
    assert [10, 9, 1, 1] == trained.counts.tolist()
    assert [[trained.tokens.index(b"a"), trained.tokens.index(b"b")]] == trained.parts
    assert 258 == len(trained.tokens)  # it came back under its old id
    assert trained.present[256]
    at_once = learn(texts, 257, 0.8)
    assert (["+ab"], 257) == (told(at_once), sum(at_once.present))


def test_the_left_part_goes_before_the_right_one_is_looked_at() -> None:
    """ "xyab" falls into "x", "y" and "ab": 3 "ab" are left beside 20 merges, where 1 would go."""
    texts = ["xyabab"] * 20 + ["xyab"] * 2 + ["ab"]
    events = told(learn(texts, 300, 0.9))
    assert ["+ab", "+xy", "+xyab", "-xy", "+xyabab", "-xyab"] == events[:6]
    assert "-ab" not in events


def test_two_equal_parts_are_looked_at_once() -> None:
    trained = learn(["abab"] * 20, 300, 0.9)
    assert ["+ab", "+abab", "-ab"] == told(trained)
    assert [40, 20, 0] == trained.counts.tolist()


def test_bytes_stay() -> None:
    trained = learn(["xy"] * 5, 300, 0.01)
    assert ["+xy"] == told(trained)
    assert all(trained.present)


def test_a_removed_part_comes_back_where_the_longer_token_needs_it() -> None:
    texts = ["abc"] * 9 + ["xy"] * 5
    trained = learn(texts, 258, 0.8)
    assert ["+ab", "+abc", "-ab", "+xy"] == told(trained)
    roomy = Export(trained.tokens, trained.present, 259)
    assert [b"ab", b"abc", b"xy"] == list(roomy.stack.tokens[256:])
    assert (1, 0) == (roomy.returned, roomy.left_out)
    tight = Export(trained.tokens, trained.present, 258)
    assert [b"ab", b"abc"] == list(tight.stack.tokens[256:])
    assert (1, 1) == (tight.returned, tight.left_out)
    # What needs two places does not keep others from the last one.
    last = Export(trained.tokens, trained.present, 257)
    assert [b"xy"] == list(last.stack.tokens[256:])


def test_a_product_that_training_never_made() -> None:
    """Then the first two parts join; a kept token that came early is no extra one."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"abcd", b"ab"]
    export = Export(tokens, [True] * 258, 300)
    assert [b"ab", b"abc", b"abcd"] == list(export.stack.tokens[256:])
    assert (1, 0) == (export.returned, export.left_out)


def test_the_report_on_real_text() -> None:
    training = PickyTrainer(vocab_size=1500).run(CORPUS)
    report = training.report
    assert isinstance(report, PickyReport)
    assert ("picky", 1500, 1244) == (report.recipe, report.vocab_size, report.merges)
    assert report.removals > 20
    assert 0 < report.returned <= report.removals
    assert report.left_out == report.returned
    assert 1500 == report.kept_tokens
    assert 0 < report.words_differing < 0.5
    assert report.replayed_tokens < report.training_tokens
    assert ["count", "stage 1", "export"] == [phase.name for phase in report.phases]


def test_special_tokens_in_the_text_are_counted_by_both() -> None:
    options: dict[str, Any] = {"vocab_size": 258, "threshold": 1.0}
    texts = ["ab<s>ab", "<s>"]
    report = PickyTrainer(**options, special_tokens=("<s>",)).run(Corpus.from_texts(texts)).report
    assert isinstance(report, PickyReport)
    assert (4, 4) == (report.training_tokens, report.replayed_tokens)


def test_the_threshold_is_the_papers() -> None:
    """Below it the recipe removes tokens that PickyBPE keeps, and is another one."""
    assert 0.9 == PickyTrainer(vocab_size=300).threshold


@pytest.mark.parametrize("threshold", [0, -0.1, 1.0001, 2, float("nan")])
def test_threshold_outside(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"threshold is .*; give a share above 0 and up to 1"):
        PickyTrainer(vocab_size=300, threshold=threshold)


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="below the alphabet"):
        PickyTrainer(vocab_size=255)
    with pytest.raises(ValueError, match="grapheme_safe puts syllables first"):
        PickyTrainer(vocab_size=300, grapheme_safe=True)
    with pytest.raises(ValueError, match="knows no budget"):
        PickyTrainer(vocab_size=300).run(CORPUS, RunContext(memory_bytes=1 << 30))


def test_the_core_refuses_what_does_not_fit() -> None:
    counter = _core.WordCounter(_core.PreTokenizer([]), 1)
    with pytest.raises(ValueError, match="threshold must be in"):
        _core.train_picky(counter, [(1, 0)], 300, threshold=0.0)
    with pytest.raises(ValueError, match="no such language"):
        _core.train_picky(counter, [(1, 1)], 300)
