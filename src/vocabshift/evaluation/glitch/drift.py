"""How far rows moved since another state of the model: what training did to each token.

Source: "Teaching Old Tokenizers New Words", appendix B.2: L2 distance of a row from its initial
one and the change of its norm. An unused row moves by weight decay and by what all rows share, and
a tail of negative norm changes shows it. Owns which row is which where the ids of the two models
differ. Knows nothing of verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.bpe import id_map
from vocabshift.bpe.fingerprint import fingerprint
from vocabshift.bpe.token_bytes import token_bytes
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import VocabMismatchError
from vocabshift.evaluation.glitch.tables import ModelTables, RowTable

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

_MAPS = ("transfer_map.json", id_map.FILE)
_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Drift:
    """Each array is (rows,) of the model as it is now; NaN where no initial row is known."""

    how: str  # how rows were matched, for people
    n_matched: int
    distance: Floats  # of the input embeddings
    norm_change: Floats  # negative: the row became shorter
    head_distance: Floats | None  # the same of an untied head
    head_norm_change: Floats | None


def drift(
    now: ModelTables, tokenizer: Tokenizer, initial: ModelTables, initial_tokenizer: Tokenizer
) -> Drift:
    """The drift of every row that both models have; VocabMismatchError for other widths."""
    if now.embeddings.width != initial.embeddings.width:
        raise VocabMismatchError(
            f"rows of the model have {now.embeddings.width} numbers and those of --initial "
            f"{initial.embeddings.width}: it is not the same model at another time"
        )
    how, new_ids, old_ids = _matched(now, tokenizer, initial, initial_tokenizer)
    if not len(new_ids):
        raise VocabMismatchError("the model and that of --initial have no token in common")
    distance, change = _moved(now.embeddings, initial.embeddings, new_ids, old_ids)
    head, head_change = None, None
    if not now.tied:
        head, head_change = _moved(now.head, initial.head, new_ids, old_ids)
    return Drift(how, len(new_ids), distance, change, head, head_change)


def _matched(
    now: ModelTables, tokenizer: Tokenizer, initial: ModelTables, before: Tokenizer
) -> tuple[str, Ids, Ids]:
    """How, and ids of the same tokens in both models."""
    old, new = fingerprint(before), fingerprint(tokenizer)
    if old == new:
        same = np.arange(min(now.embeddings.rows, initial.embeddings.rows), dtype=np.int64)
        return "the tokenizers are the same: by id", same, same
    for name in _MAPS:
        file = now.folder / name
        if not file.is_file():
            continue
        mapping = id_map.load(file)
        if (mapping.old, mapping.new) == (old, new):
            pairs = mapping.new_to_old()
            return f"by {name}", *_arrays(pairs)
    return "by the bytes of tokens", *_arrays(_by_bytes(tokenizer, before))


def _by_bytes(tokenizer: Tokenizer, before: Tokenizer) -> dict[int, int]:
    known = {data: token_id for token_id, data in token_bytes(before).items()}
    special = {token.content: token.id for token in before.added_tokens if token.special}
    pairs = {
        token_id: known[data] for token_id, data in token_bytes(tokenizer).items() if data in known
    }
    pairs |= {
        token.id: special[token.content]
        for token in tokenizer.added_tokens
        if token.special and token.content in special
    }
    return pairs


def _arrays(pairs: dict[int, int]) -> tuple[Ids, Ids]:
    new = sorted(pairs)
    return np.array(new, dtype=np.int64), np.array([pairs[i] for i in new], dtype=np.int64)


def _moved(now: RowTable, initial: RowTable, new: Ids, old: Ids) -> tuple[Floats, Floats]:
    """(rows,) distance and change of norm, block by block."""
    distance = np.full(now.rows, np.nan, dtype=np.float32)
    change = np.full(now.rows, np.nan, dtype=np.float32)
    fits = (new < now.rows) & (old < initial.rows)
    new, old = new[fits], old[fits]
    for start in range(0, len(new), _AT_ONCE):
        ids, before = new[start : start + _AT_ONCE], old[start : start + _AT_ONCE]
        rows, first = now.take(ids), initial.take(before)
        distance[ids] = np.sqrt(np.square(rows - first).sum(axis=1))
        change[ids] = np.linalg.norm(rows, axis=1) - np.linalg.norm(first, axis=1)
    return distance, change
