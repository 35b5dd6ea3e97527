"""Chunks of random bytes cut in two random ways, against a loop over all bytes."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reference.likelihood_matching import spans_in_common
from strategies import examples
from vocabshift.cpt.chunks import Reading, find_chunks
from vocabshift.cpt.config import LoopConfig

LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=12)


def ends_of(lengths: list[int], n_bytes: int) -> list[int]:
    """Ends of tokens of these lengths, the last one at the end of the text."""
    return [*(min(end, n_bytes) for end in accumulate(lengths)), n_bytes]


@given(
    student=LENGTHS,
    teacher=LENGTHS,
    n_bytes=st.integers(1, 20),
    start=st.integers(0, 12),
    stop=st.integers(1, 13),
    boundaries=st.lists(st.sampled_from([-9.0, -0.1]), min_size=13, max_size=13),
    debiasing=st.booleans(),
    no_logprob=st.sets(st.integers(0, 12), max_size=2),
)
@examples(300)
def test_chunks_are_those_of_the_slow_way(
    student: list[int],
    teacher: list[int],
    n_bytes: int,
    start: int,
    stop: int,
    boundaries: list[float],
    debiasing: bool,
    no_logprob: set[int],
) -> None:
    """The student's tokens of each chunk, and the teacher's sum over its own tokens."""
    own, others = (ends_of(lengths, n_bytes) for lengths in (student, teacher))
    start = min(start, len(own) - 1)
    stop = min(max(stop, start + 1), len(own))
    stretch = [0, *own][start : stop + 1]
    logprobs = -np.arange(1, len(others) + 1, dtype=np.float32)
    for place in no_logprob & {*range(len(others))}:
        logprobs[place] = np.nan
    reading = Reading(
        np.array(others), logprobs, np.array(boundaries[: len(others)], dtype=np.float32)
    )
    config = LoopConfig(debiasing=debiasing, boundary_threshold=0.5)
    found = find_chunks(np.array(stretch), reading, n_bytes, config, is_start=start == 0)

    edges = [0, *others]
    last = {edge: place for place, edge in enumerate(others)}  # the last token that ends there
    allowed = {*range(n_bytes + 1)}
    if debiasing:
        likely = {edge for edge, at in last.items() if boundaries[at] > math.log(0.5)}
        allowed = {0, n_bytes} | likely
    if start > 0:
        allowed -= {0}  # the document begins before this stretch
    expected = spans_in_common(stretch, edges, allowed)
    assert [(a, b) for (a, b), _ in expected] == list(
        zip(found.edges[:-1].tolist(), found.edges[1:].tolist(), strict=True)
    )
    sums = [
        float(logprobs[a:b].sum() + (boundaries[b - 1] if debiasing else 0))
        for _, (a, b) in expected
    ]
    np.testing.assert_allclose(found.teacher, sums, rtol=1e-5)
