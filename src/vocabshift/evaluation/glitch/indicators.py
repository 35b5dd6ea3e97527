"""Indicators of under-training, one number for each row; low means suspect.

Source: Land and Bartolo 2024, "Fishing for Magikarp" (arXiv:2405.05417), section 3, and their
program: for untied models the L2 norm of the input embeddings; for the output head (that of tied
models is the input embeddings) the cosine distance to the mean of rows known to be unused, also
after the mean of all rows, or the first principal component, is subtracted; the L2 distance; the
head's bias. Each is one pass over a table, block by block, in float32.

Drift: how far rows moved since another state of the model. Source: "Teaching Old Tokenizers New
Words", appendix B.2: L2 distance of a row from its initial one and the change of its norm. An
unused row moves by weight decay and by what all rows share, and a tail of negative norm changes
shows it.

Differences: a row of zeros has the cosine distance 0 (it was not trained; theirs is 1), and of more
than 8,192 rows the principal component is that of 8,192 evenly picked ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.errors import VocabMismatchError
from vocabshift.evaluation.glitch import CENTRED, COSINE, DISTANCE, WITHOUT_COMPONENT
from vocabshift.models.row_blocks import ModelTables, RowTable
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.token_bytes import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

_SAMPLE = 8192
_COLUMNS = 16
_ROUNDS = 200
_SETTLED = 1e-6  # of any number, between two rounds
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Scores:
    """One indicator."""

    values: Floats  # (rows,)
    of_reference: Floats  # (n,) each reference row against the others (for a norm: its own)


def norms(table: RowTable) -> Floats:
    """(rows,) L2 norm of each row."""
    found = np.empty(table.rows, dtype=np.float32)
    for start, block in table.blocks():
        found[start : start + len(block)] = np.sqrt(_squares(block))
    return found


def flat(table: RowTable) -> Floats:
    """(rows,) the numbers of a bias."""
    return np.concatenate([block[:, 0] for _, block in table.blocks()])


def distances(table: RowTable, reference: Ids) -> dict[str, Scores]:
    """Distance of each row to the mean of the rows `reference` (one at least), in four ways."""
    centre = mean_of(table)
    component = first_component(table, centre)
    ways: dict[str, Callable[[Floats], Floats]] = {
        COSINE: lambda rows: rows,
        CENTRED: lambda rows: rows - centre,
        WITHOUT_COMPONENT: lambda rows: rows - np.outer(rows @ component, component),
        DISTANCE: lambda rows: rows,
    }
    known = table.take(reference)
    means = {name: way(known).mean(axis=0) for name, way in ways.items()}
    values = {name: np.empty(table.rows, dtype=np.float32) for name in ways}
    for start, block in table.blocks():
        for name, way in ways.items():
            measure = _lengths if name == DISTANCE else cosine_distances
            values[name][start : start + len(block)] = measure(way(block), means[name])
    return {
        name: Scores(values[name], _among_themselves(way(known), name))
        for name, way in ways.items()
    }


def cosine_distances(rows: Floats, to: Floats) -> Floats:
    """(n,) 1 - cosine of each row and `to`; 0 for a row of zeros.

    Computed as half the squared distance of the unit vectors, which is accurate near 0.
    """
    length = float(np.sqrt(to @ to))
    lengths = np.sqrt(_squares(rows))
    unit = rows / np.maximum(lengths, _TINY)[:, None]
    unit -= to / max(length, _TINY)
    found = np.where(lengths <= _TINY, 0.0, _squares(unit) / 2)
    return np.asarray(found, dtype=np.float32)


def first_component(table: RowTable, centre: Floats) -> Floats:
    """(width,) the first principal component of the rows, of length 1.

    Subspace iteration (Halko et al. 2011, section 4.5) with _COLUMNS directions: one alone hardly
    moves where the first two components are about as strong.
    """
    ids = np.unique(np.linspace(0, table.rows - 1, min(table.rows, _SAMPLE)).astype(np.int64))
    rows = table.take(ids) - centre
    start = np.random.default_rng(0).standard_normal((table.width, min(_COLUMNS, table.width)))
    basis = np.linalg.qr(start.astype(np.float32))[0]
    found: Floats = basis[:, 0]
    for _ in range(_ROUNDS):
        seen = rows @ basis
        strongest = np.linalg.eigh(seen.T @ seen)[1][:, -1]
        after = np.asarray(basis @ strongest, dtype=np.float32)
        after = after if after @ found > 0 else -after
        change = float(np.abs(after - found).max())
        found = after
        if change < _SETTLED:
            break
        basis = np.linalg.qr(rows.T @ seen)[0]
    return found


def _among_themselves(rows: Floats, name: str) -> Floats:
    """(n,) each reference row against the mean of the others; a single one against itself."""
    if len(rows) < 2:
        return np.zeros(len(rows), dtype=np.float32)
    total = rows.sum(axis=0)
    measure = _lengths if name == DISTANCE else cosine_distances
    return np.concatenate([measure(row[None], (total - row) / (len(rows) - 1)) for row in rows])


def mean_of(table: RowTable) -> Floats:
    """(width,) the mean of all rows."""
    total = np.zeros(table.width, dtype=np.float64)
    for _, block in table.blocks():
        total += block.sum(axis=0, dtype=np.float64)
    return (total / max(table.rows, 1)).astype(np.float32)


def _lengths(rows: Floats, to: Floats) -> Floats:
    return np.asarray(np.sqrt(_squares(rows - to)), dtype=np.float32)


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows), dtype=np.float32)


_MAPS = ("transfer_map.json", id_map.FILE)
_AT_ONCE = 1024
_HELD = 0.25  # of the matched rows: so many do not stay bit for bit by chance


@dataclass(frozen=True, eq=False)
class Drift:
    """Each array is (rows,) of the model as it is now; NaN where no initial row is known."""

    how: str  # how rows were matched, for people
    n_matched: int
    n_held: int  # rows that are bit for bit what they were, if these are many; NaN in `distance`
    distance: Floats  # of the input embeddings
    norm_change: Floats  # negative: the row became shorter
    head_distance: Floats | None  # the same of an untied head
    head_norm_change: Floats | None


def drift(
    now: ModelTables, tokenizer: Tokenizer, initial: ModelTables, initial_tokenizer: Tokenizer
) -> Drift:
    """The drift of every row that both models have; VocabMismatchError for other widths.

    Rows that training held (`trained = "new-rows"`) did not move, and that says nothing about them.
    A few rows that did not move are tokens that training never met.
    """
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
    held = (distance == 0) & (True if head is None else head == 0)
    n_held = int(held.sum())
    if n_held > _HELD * len(new_ids):
        distance[held] = np.nan
    else:
        n_held = 0
    return Drift(how, len(new_ids), n_held, distance, change, head, head_change)


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
