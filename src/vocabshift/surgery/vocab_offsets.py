"""Ids that a wrapper's other embedders answer for: they lie behind the text's, at a fixed place.

Owns the refusal of transfers that would change anything there. Gemma 3n embeds every id from its
vision (then its audio) config's `vocab_offset` on with a small table of that part, and not with the
text's row; new tokens that came to lie there would be taken for images. Knows nothing of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery.token_map import TokenMap


def offsets_of(config: Any) -> dict[str, int]:
    """Name of a part of the config -> the first id that this part embeds."""
    parts = {name: part for name, part in vars(config).items() if not name.startswith("_")}
    found = {name: getattr(part, "vocab_offset", None) for name, part in parts.items()}
    return {name: offset for name, offset in found.items() if isinstance(offset, int)}


def check_offsets(config: Any, token_map: TokenMap, rows: int, n_rows: int) -> None:
    """VocabMismatchError where tokens behind a `vocab_offset`, or the number of rows, change.

    `rows`, `n_rows`: of the embeddings before and after (the last id ends an audio's padding).
    """
    offsets = offsets_of(config)
    if not offsets:
        return
    first = min(offsets.values())
    copied_from, copied_to = token_map.copied_from, token_map.copied_to
    moved = copied_from != copied_to
    wrong = [
        *copied_to[moved & ((copied_to >= first) | (copied_from >= first))].tolist(),
        *token_map.made[token_map.made >= first].tolist(),
    ]
    old_ids = token_map.old_ids
    lost = np.setdiff1d(old_ids[old_ids >= first], copied_from).tolist()
    reasons = []
    if wrong:
        reasons.append(f"{len(wrong)} tokens would move there or away, such as new id {wrong[0]}")
    if lost:
        reasons.append(f"{len(lost)} tokens there would be gone, such as old id {lost[0]}")
    if n_rows != rows:
        reasons.append(f"the rows would become {n_rows} instead of {rows}")
    if reasons:
        raise VocabMismatchError(
            f"this model embeds the ids from {first} on by its {' and '.join(offsets)} "
            f"(vocab_offset), and {'; '.join(reasons)}. Give a tokenizer that has all tokens from "
            f"{first} on under the same ids and its own below (as many tokens removed as added), "
            "or transfer the text model alone"
        )
