"""The reference: rows that are known to be unused, with which others are compared.

Owns the order of preference: tokens named by the user; the dummies that `--reserve-dummies` added;
rows beyond the tokenizer; bytes that UTF-8 never has; tokens that are called unused; for a tied
model, special tokens that have one row in common. The first of these sets with at least two rows
that are not all zeros is used. Source: Land and Bartolo 2024, section 3.2 (unused tokens by hand
for each model); IST, section 4.5 (dummies).

Special tokens with one row: the head gives all tokens that never occur the same gradient, so
training draws their rows together, while a token that occurs is drawn away from them. SmolLM2 has
11 of these among 17. Only for a tied model: the head of an untied one says nothing about what was
read. Rows at the mean of all rows are passed over: that is where new tokens begin.

The reference curve counts late tokens among the K rows nearest to unused ones. Source: IST, section
4.5 and appendix C.3 (Figure 5), K = 10, 50, 100, … 400. In a subword vocabulary it counts the
tokens of the last 10 % of the ids, in a superword vocabulary its superwords. Only the model's
tokens without byte tokens are ranked; added tokens have a class of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.checks.vocabulary import called_unused, never_in_text, our_unused
from vocabshift.evaluation.glitch.indicators import mean_of
from vocabshift.models.row_blocks import RowTable
from vocabshift.tokenizer.tokenizer import Tokenizer

Ids = npt.NDArray[np.int64]

ONE_ROW = "one row"

ENOUGH = 2
"""Rows that a set found by itself needs: of one alone nothing can be said about spread."""

_MOST_ROWS = 4096  # of the padding of a table: more say nothing more
_APART = 3.0
_SAME = 0.999  # cosine: rows that training did not tell apart
_FEWEST_ALIKE = 4


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows known to be unused."""

    name: str  # "given" or "dummies", "beyond the tokenizer", "bytes", "called unused", "one row"
    ids: Ids  # ascending
    why: str  # one sentence for people
    left_out: Ids  # of the same kind, but unlike the others


def find_reference(
    tokenizer: Tokenizer, table: RowTable, given: Sequence[str] = (), *, tied: bool = False
) -> Reference | None:
    """The reference of a model, or None where nothing is known to be unused.

    `table`: the rows of the head; `given`: ids, ranges of ids ("5-9") or tokens; `tied`: the head's
    rows are the embeddings. ValueError for what names no row.
    """
    if given:
        ids = _given(tokenizer, table, given)
        return Reference("given", ids, f"the {len(ids)} rows that --reference names", ids[:0])
    for name, ids, what in _kinds(tokenizer, table):
        if len(ids) < ENOUGH:
            continue
        rows = table.take(ids)
        is_set = np.abs(rows).max(axis=1) > 0
        if np.count_nonzero(is_set) < ENOUGH:
            continue  # zeros: rows that were put there after training
        alike = _alike(rows[is_set])
        kept, left_out = ids[is_set][alike], ids[is_set][~alike]
        return Reference(name, kept, f"{len(kept)} {what}", left_out)
    ids = _of_one_row(tokenizer, table) if tied else np.zeros(0, dtype=np.int64)
    if not len(ids):
        return None
    what = "special tokens that have one row in common: no text told them apart"
    return Reference(
        "one row", np.array(ids, dtype=np.int64), f"{len(ids)} {what}", np.zeros(0, np.int64)
    )


def _of_one_row(tokenizer: Tokenizer, table: RowTable) -> Ids:
    """Special tokens with all but one row; none where they are few, or new."""
    ids = np.array(sorted(t.id for t in tokenizer.added_tokens if t.special), dtype=np.int64)
    ids = ids[ids < table.rows]
    if len(ids) < _FEWEST_ALIKE:
        return ids[:0]
    rows = table.take(ids)
    lengths = np.sqrt(np.square(rows).sum(axis=1))
    unit = rows / np.maximum(lengths, np.finfo(np.float32).tiny)[:, None]
    alike = unit @ unit.T > _SAME
    most = int(alike.sum(axis=1).argmax())
    centre = mean_of(table)
    to_centre = float(unit[most] @ centre) / max(float(np.sqrt(centre @ centre)), 1e-12)
    if to_centre > _SAME or np.count_nonzero(alike[most]) < _FEWEST_ALIKE:
        return ids[:0]
    found: Ids = ids[alike[most]]
    return found


def _kinds(tokenizer: Tokenizer, table: RowTable) -> list[tuple[str, Ids, str]]:
    beyond = list(range(tokenizer.row_count, table.rows))[:_MOST_ROWS]
    return [
        (name, np.array(ids, dtype=np.int64), what)
        for name, ids, what in (
            (
                "dummies",
                our_unused(tokenizer),
                "tokens that --reserve-dummies added before training: no text has them",
            ),
            (
                "beyond the tokenizer",
                beyond,
                "rows beyond the tokenizer's last id: no text can reach them",
            ),
            (
                "bytes",
                never_in_text(tokenizer),
                "tokens of single bytes that UTF-8 never has (C0, C1, F5-FF)",
            ),
            (
                "called unused",
                called_unused(tokenizer),
                "tokens whose names say that they are unused or reserved",
            ),
        )
    ]


def _alike(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """Return the rows whose distance from the middle is at most 3 times the median distance.

    A byte that broken text did hold, or a reserved token that was used after all, would stretch
    the threshold over everything.
    """
    middle = np.median(rows, axis=0)
    away = np.sqrt(np.square(rows - middle).sum(axis=1))
    return np.asarray(away <= max(_APART * float(np.median(away)), 1e-6))


def _given(tokenizer: Tokenizer, table: RowTable, given: Sequence[str]) -> Ids:
    named = dict(tokenizer.model.vocab)
    named |= {token.content: token.id for token in tokenizer.added_tokens}
    found: set[int] = set()
    for value in given:
        first, dash, last = value.partition("-")
        if value.isdecimal():
            found.add(int(value))
        elif dash and first.isdecimal() and last.isdecimal() and int(last) < table.rows:
            found |= set(range(int(first), int(last) + 1))
        elif value in named:
            found.add(named[value])
        else:
            raise ValueError(
                f"--reference {value!r} is no token of {tokenizer.name}, no id and no range of ids "
                "such as 128002-128255"
            )
    if not found or max(found) >= table.rows:
        raise ValueError(
            f"--reference {' '.join(given)} names no row, or one beyond the {table.rows} rows of "
            f"{table.name}"
        )
    return np.array(sorted(found), dtype=np.int64)


Bools = npt.NDArray[np.bool_]

K = (10, *range(50, 401, 50))
LAST_SHARE = 0.1
"""Of the ids of the model's vocabulary: what IST learns as superwords."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One K; `counts`: how many of the K most suspect tokens are in each group."""

    k: int
    counts: Mapping[str, int]


def reference_curve(
    values: npt.NDArray[np.float32], ranked: Bools, groups: Mapping[str, Bools]
) -> list[CurvePoint]:
    """The curve over the `ranked` rows (rows,), lowest value first; ties by id.

    A K above the number of ranked rows is left out.
    """
    ids = np.flatnonzero(ranked)
    order = ids[np.argsort(values[ids], kind="stable")]
    return [
        CurvePoint(k, {name: int(group[order[:k]].sum()) for name, group in groups.items()})
        for k in K
        if k <= len(order)
    ]


def last_of_vocabulary(in_model: Bools, share: float = LAST_SHARE) -> Bools:
    """(rows,) the last `share` of the ids that name a token of the model."""
    ids = np.flatnonzero(in_model)
    found = np.zeros(len(in_model), dtype=np.bool_)
    found[ids[len(ids) - round(share * len(ids)) :]] = True
    return found
