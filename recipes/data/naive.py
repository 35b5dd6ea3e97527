"""The naive orders of pruning, which people use and which leave tokens that no text yields.

"Teaching Old Tokenizers New Words", section 3.2. They stand beside ours in tables; they are no
option of `vocabshift prune`.
"""

from __future__ import annotations

import numpy as np

from vocabshift.pruning.counts import SourceCounts
from vocabshift.pruning.protection import protected
from vocabshift.tokenizer.tokenizer import Tokenizer

ORDERS = ("last-n", "least-frequent")


def removed(
    base: Tokenizer, order: str, n_tokens: int, counts: SourceCounts
) -> tuple[list[int], int]:
    """The last ids, or the least frequent ones (of equal ones the last): whoever needs them.

    And how many of these only the tie-break chose. Bytes and special tokens stay, so no text is
    lost; a token that is left with no merge that makes it is unreachable.
    """
    in_model = np.zeros(base.row_count, dtype=bool)
    in_model[list(base.model.vocab.values())] = True
    last_first = np.flatnonzero(in_model & ~protected(base, base.splits()))[::-1]
    if order == "last-n":
        return last_first[:n_tokens].tolist(), 0
    by_id = counts.count(base).weighted[last_first]
    by_count = np.argsort(by_id, kind="stable")
    goes, stays = np.split(by_id[by_count], [n_tokens])
    n_ties = int(np.count_nonzero(goes == stays[0])) if len(stays) else 0
    return last_first[by_count[:n_tokens]].tolist(), n_ties
