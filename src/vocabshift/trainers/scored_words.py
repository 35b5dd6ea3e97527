"""The word stage of PickyBPE and OBPE: tokens that may go again, pairs that compete by a score.

Owns what both recipes share beside their options: counting with its checkpoint, and the call of the
core's loop (picky_loop.h). What is made of the events is each recipe's business.
"""

from __future__ import annotations

from collections.abc import Callable

from vocabshift import _core
from vocabshift.trainers.source import Reader
from vocabshift.trainers.word_stage import WordRule, count_words
from vocabshift.trainers.work import Work

Groups = list[tuple[int, int]]
"""Weight, fixed point, and number of the language of each group of documents."""


def learn_scored_words(
    reader: Reader,
    rule: WordRule,
    work: Work,
    *,
    recipe: str,
    groups_and_score: Callable[[], tuple[Groups, _core.PairScore | None]],
    threshold: float = 1.0,
) -> _core.PickyTrained:
    """Events inside the words of the reader's pattern, up to `rule.vocab_size` tokens.

    `groups_and_score` is asked once the words are counted and the reader knows its groups; no score
    is the count, of one language.
    """
    if work.memory_bytes:
        raise ValueError(
            f"{recipe} keeps all words and pairs in memory and knows no budget; leave --memory "
            "out, or use another recipe"
        )
    counter = count_words(reader, work)
    groups, score = groups_and_score()
    with work.watch.phase("stage 1"):
        return _core.train_picky(
            counter,
            groups,
            rule.vocab_size,
            reader.min_count(rule.min_frequency),
            rule.to_core(),
            threshold=threshold,
            score=score,
            progress=work.in_phase("stage 1"),
        )


def why_stopped(trained: _core.PickyTrained, min_frequency: int) -> str:
    """The report's word for it."""
    stopped: str = trained.stopped.name.lower()
    # In fixed point even one occurrence counts more than 1.
    return "no_pair_left" if stopped == "min_frequency" and min_frequency == 1 else stopped


def refuse_grapheme_safe(recipe: str, grapheme_safe: bool) -> None:
    """ValueError: these recipes take merges by score alone."""
    if grapheme_safe:
        raise ValueError(
            f"{recipe} takes merges by its score alone, and grapheme_safe puts syllables first; "
            "leave it out, or use recipe bpe"
        )
