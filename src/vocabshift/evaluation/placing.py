"""Where every token of many lines stands, and what the tokens of a line do not give back.

Owns two judgements, of all lines of a language at once. Places: tokens whose bytes joined are the
line (with at most the dummy prefix in front) are laid end to end, all others are `token_spans`'.
Loss: a line is lost where its tokens do not give it back, up to canonical equivalence (Unicode NFC
of both) and one space in front; what a normalizer folds away otherwise (case, compatibility
characters, spaces) is lost. Knows nothing of words or metrics.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.engine import Engine, Ids
from vocabshift.evaluation.token_facts import TokenFacts
from vocabshift.evaluation.token_spans import token_spans
from vocabshift.evaluation.words import Layout

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The tokens of all lines of a layout."""

    starts: Int64  # (n_tokens,) bytes into the layout
    ends: Int64  # exclusive
    n_lost_characters: Int64  # (n_lines,) code points
    is_lost: Int64  # (n_lines,) 1 for a line that does not come back


def place(
    engine: Engine,
    facts: TokenFacts,
    lines: Sequence[str],
    layout: Layout,
    ids: Ids,
    offsets: Int64,
) -> Placed:
    """Places and losses of `ids`, which are those of `lines` (`offsets`: (n_lines + 1,))."""
    lengths = facts.lengths[ids]
    joined = facts.join(ids)
    reached = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(lengths, out=reached[1:])
    of_line = reached[offsets]  # where the tokens of each line begin in `joined`
    backs = [joined[start:end] for start, end in pairwise(of_line.tolist())]
    prefixed = [_prefix(data, back) for data, back in zip(layout.data, backs, strict=True)]

    extra = np.fromiter((max(prefix, 0) for prefix in prefixed), np.int64, len(lines))
    shift = np.repeat(layout.line_starts[:-1] - of_line[:-1] - extra, np.diff(offsets))
    floor = np.repeat(layout.line_starts[:-1], np.diff(offsets))
    starts = np.maximum(reached[:-1] + shift, floor)
    ends = np.maximum(reached[1:] + shift, floor)

    lost = np.zeros(len(lines), dtype=np.int64)
    is_lost = np.zeros(len(lines), dtype=np.int64)
    inexact = [number for number, prefix in enumerate(prefixed) if prefix < 0]
    spans = token_spans(engine, [lines[number] for number in inexact])
    for number, of_tokens in zip(inexact, spans, strict=True):
        here = slice(int(offsets[number]), int(offsets[number + 1]))
        starts[here] = of_tokens.starts + layout.line_starts[number]
        ends[here] = of_tokens.ends + layout.line_starts[number]
        if not _is_same(lines[number], backs[number].decode(errors="replace")):
            (decoded,) = engine.decode_batch(ids[here], np.array([0, here.stop - here.start]))
            is_lost[number] = not _is_same(lines[number], decoded)
            lost[number] = lost_characters(lines[number], decoded) if is_lost[number] else 0
    return Placed(starts, ends, lost, is_lost)


def lost_characters(line: str, back: str) -> int:
    """Characters of `line`, in NFC and counted as a multiset, that `back` does not hold."""
    wanted = Counter(unicodedata.normalize("NFC", line))
    return (wanted - Counter(unicodedata.normalize("NFC", back))).total()


def _prefix(data: bytes, back: bytes) -> int:
    """How many spaces the tokens put in front of the line, 0 or 1; -1 where they are not it."""
    if back == data:
        return 0
    return 1 if len(back) == len(data) + 1 and back[:1] == b" " and back[1:] == data else -1


def _is_same(line: str, back: str) -> bool:
    """Whether `back` is the line up to canonical equivalence and one space in front."""
    wanted = unicodedata.normalize("NFC", line)
    found = unicodedata.normalize("NFC", back)
    return found in (wanted, f" {wanted}")
