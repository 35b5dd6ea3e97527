"""Where `until` stops, held to trying every number of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import prune_with_report
from vocabshift.pruning.stopping import PruningStep, bytes_per_token, change_of, most_removable
from vocabshift.text.corpus import Corpus
from vocabshift.trainers.byte_level import BpeTrainer

CORPUS = Corpus.from_texts(
    {"en": ["the cat and the other cat sat by the heater"] * 3, "hi": ["बिल्ली और दूसरी बिल्ली"] * 3}
)
HELD_OUT = Corpus.from_texts({"en": ["another cat, the hat"], "hi": ["बिल्ली बैठी"]})
TOKENIZER = BpeTrainer(vocab_size=310).train(CORPUS)


def a_step(n: int, change: float) -> PruningStep:
    return PruningStep(n, 1000 - n, {"en": change}, change)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=200).map(sorted),
    st.floats(0, 1.2),
    st.integers(1, 9),
)
def test_the_last_one_within_the_limit_is_found(
    changes: list[float], until: float, finest: int
) -> None:
    """`changes`: after one token is gone, after two, …"""
    most = max([n for n, change in enumerate(changes, 1) if change <= until], default=0)

    def search() -> tuple[int, list[PruningStep]]:
        return most_removable(
            len(changes), lambda n: a_step(n, changes[n - 1]), until, finest=finest
        )

    if most < finest and most < len(changes):
        # Too coarse a search may miss so few, and must then say so.
        try:
            n, _ = search()
        except ValueError as error:
            assert "nothing can be pruned within" in str(error)
            return
        assert n <= most
        return
    n, steps = search()
    assert most - finest < n <= most
    assert n in [step.n_removed for step in steps]
    assert [step.n_removed for step in steps] == sorted(step.n_removed for step in steps)


def test_the_label_that_loses_most_decides() -> None:
    before, after = {"en": 4.0, "hi": 2.0}, {"en": 3.9, "hi": 1.8}
    assert change_of("bytes-per-token", before, after) == pytest.approx(0.1)
    assert change_of("bits-per-byte", before, {"en": 3.0, "hi": 2.1}) == pytest.approx(0.05)


@pytest.mark.parametrize("until", [0.0, 0.02, 0.1, 0.3])
def test_pruning_stops_at_the_last_vocabulary_within_the_limit(until: float) -> None:
    measure = bytes_per_token(HELD_OUT)

    def pruned(**options: object) -> object:
        return prune_with_report(TOKENIZER, CORPUS, PruningOptions(**options), held_out=measure)

    before = measure(TOKENIZER, None)
    all_removable = pruned(n_tokens=1).report.n_removable
    within = 0
    for n in range(1, all_removable + 1):
        tokenizer = pruned(n_tokens=n).tokenizer
        if change_of("bytes-per-token", before, measure(tokenizer, None)) > until:
            break
        within = n
    report = pruned(until=until, by="bytes-per-token").report
    assert report.n_removed == within > 0
    assert report.vocab_size == TOKENIZER.vocab_size - within
    assert report.steps[0].values == before
    [last] = [step for step in report.steps if step.n_removed == within]
    assert (
        last.change <= until < min(step.change for step in report.steps if step.n_removed > within)
    )


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(ValueError, match="one of them"):
        PruningOptions(until=0.1, n_tokens=4)
    with pytest.raises(ValueError, match="give a share from 0 up"):
        PruningOptions(until=-0.1)
    with pytest.raises(ValueError, match="unknown measure 'perplexity'"):
        PruningOptions(until=0.1, by="perplexity")
    with pytest.raises(ValueError, match="until needs held-out text"):
        prune_with_report(TOKENIZER, CORPUS, PruningOptions(until=0.1))
