"""Continued BPE: training goes on where a tokenizer's own merges end.

Source: "Teaching Old Tokenizers New Words" (arXiv:2512.03989), section 3: the corpus is segmented
by the tokenizer as it is, merge skipping included, pairs of its tokens are counted, and the best
pair becomes a new token, again and again. Every new token is rebuilt by the merges that made it.

Where we differ: equal counts are decided by ids unless asked for the paper's toolkit's order
("lexicographic"); a pair whose product the base has already takes that token's id (a repair) as
long as no merge holds it, and is refused otherwise, so that running all merges by rank ends where
training ended; training that runs out of pairs keeps what it learned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from vocabshift import _core
from vocabshift.extension.base import Learned, TrainingBase
from vocabshift.extension.counting import CountedText
from vocabshift.tokenizer.model import Merge

TieBreak = Literal["id", "lexicographic"]

Progress = Callable[[int, int | None], None]

_STOPPED = {"vocab_size": "n_tokens"}


def learn(
    base: TrainingBase,
    text: CountedText,
    *,
    n_tokens: int,
    tie_break: TieBreak = "id",
    min_frequency: int = 1,
    threads: int = 1,
    progress: Progress | None = None,
) -> Learned:
    """Up to `n_tokens` new tokens; the counted words stay in `text`.

    Fewer tokens come back where no pair is left that occurs `min_frequency` times.
    """
    check_tie_break(tie_break)
    n_base = len(base.names)
    trained = _core.continue_bpe(
        text.words,
        _core.WordWeights(text.weighed.fixed_point_weights()),
        n_base + n_tokens,
        text.encoder,
        base.tokens,
        base.held,
        min_frequency=text.weighed.min_count(min_frequency),
        rule=text.rule,
        tie_break=_core_tie_break(tie_break, base.byte_level),
        # The paper's toolkit merges such pairs whatever holds their product.
        duplicates=_core.Duplicates.REUSE_ID
        if tie_break == "lexicographic"
        else _core.Duplicates.REUSE_UNHELD,
        keep_words=True,
        threads=threads,
        progress=progress,
    )
    new = [base.spell(token) for token in trained.tokens[n_base:]]
    names = [*base.names, *new]
    merges: list[Merge] = []
    counts: list[int] = []
    n_repaired = 0
    known = set(base.tokenizer.model.merges)
    rows = zip(trained.merges.tolist(), trained.counts.tolist(), strict=True)
    for (left, right, product), count in rows:
        merge = (names[left], names[right])
        if merge in known:  # a pair listed twice would get its later rank
            continue
        known.add(merge)
        merges.append(merge)
        counts.append(count)
        n_repaired += product < n_base
    stopped = trained.stopped.name.lower()
    if stopped == "min_frequency" and min_frequency == 1:
        stopped = "no_pair_left"  # in fixed point even one occurrence counts more than 1
    return Learned(
        tuple(new), tuple(merges), tuple(counts), _STOPPED.get(stopped, stopped), n_repaired
    )


def check_tie_break(tie_break: str) -> None:
    """ValueError for an order that does not exist."""
    if tie_break not in get_args(TieBreak):
        raise ValueError(f"tie_break is {tie_break!r}; give one of {get_args(TieBreak)}")


def _core_tie_break(tie_break: TieBreak, byte_level: bool) -> _core.TieBreak:
    if tie_break == "id":
        return _core.TieBreak.IDS
    return _core.TieBreak.BYTE_IMAGES if byte_level else _core.TieBreak.TEXTS
