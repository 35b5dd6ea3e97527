"""Where each token of a line stands in it: spans in bytes of UTF-8.

Owns how spans are found. Tokens whose bytes joined are the line (with at most a space in front,
the dummy prefix of SentencePiece) are laid end to end: exact for every byte-level tokenizer.
Where a normalizer changed the text, it tells where (see `normalized_spans`). Where that is not
enough, or words lose their spaces (WordPiece), the offsets of `tokenizers` tell, and tokens that
share a character share it byte by byte where that adds up.
Knows nothing of what a span means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.engine import Engine, Ids
from vocabshift.evaluation.normalized_spans import edges_in_text

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LineSpans:
    """Tokens of one line; each array is (n_tokens,). Spans ascend and never overlap."""

    ids: Ids
    starts: Int64  # bytes into the line's UTF-8
    ends: Int64  # exclusive; equal to the start for a token that stands for nothing in the line
    exact: bool  # whether the spans cover the line byte for byte with the tokens' own bytes


def token_spans(engine: Engine, lines: Sequence[str], *, threads: int = 1) -> list[LineSpans]:
    """Spans of the tokens of each line, in order; no BOS or EOS."""
    return list(iter_token_spans(engine, lines, threads=threads))


def iter_token_spans(
    engine: Engine, lines: Sequence[str], *, threads: int = 1, parse_special: bool = True
) -> Iterator[LineSpans]:
    """The same, a line at a time; `parse_special` as in `Engine.encode_batch`."""
    ids, offsets = engine.encode_batch(lines, threads=threads, parse_special=parse_special)
    yield from spans_of_ids(engine, lines, ids, offsets, parse_special=parse_special)


def spans_of_ids(
    engine: Engine, lines: Sequence[str], ids: Ids, offsets: Int64, *, parse_special: bool = True
) -> Iterator[LineSpans]:
    """The same for lines whose `ids` are known already; `offsets`: (n_lines + 1,)."""
    spelled = engine.spelled
    lengths = engine.byte_counts
    for number, line in enumerate(lines):
        of_line = ids[offsets[number] : offsets[number + 1]]
        data = line.encode()
        joined = b"".join([spelled[token_id] for token_id in of_line.tolist()])
        extra = len(joined) - len(data)
        edges = np.cumsum(lengths[of_line])
        if extra in (0, 1) and joined == b" " * extra + data:
            yield _end_to_end(of_line, np.maximum(edges - extra, 0), exact=True)
            continue
        # Only here: most tokenizers give every line back, and building the backend is slow.
        normalizer = engine.tokenizer.backend.normalizer
        in_line = (
            None
            if normalizer is None
            else edges_in_text(line, joined, edges, normalizer.normalize_str)
        )
        if in_line is not None:
            yield _end_to_end(of_line, in_line, exact=False)
            continue
        with engine.backend(parse_special=parse_special) as backend:
            encoding = backend.encode(line, add_special_tokens=False)
        if encoding.ids != of_line.tolist():
            raise AssertionError(f"the encoder and tokenizers disagree on {line!r}")
        yield _by_offsets(line, of_line, lengths[of_line], encoding.offsets)


def _end_to_end(ids: Ids, ends: Int64, *, exact: bool) -> LineSpans:
    """Spans of tokens each of which begins where the one before it ends."""
    starts = np.concatenate([np.zeros(min(1, len(ends)), np.int64), ends[:-1]])
    return LineSpans(ids, starts, ends, exact)


def _by_offsets(
    line: str, ids: Ids, lengths: Int64, offsets: Sequence[tuple[int, int]]
) -> LineSpans:
    """Spans from the offsets of `tokenizers`, which are in characters."""
    byte_at = [0, *accumulate(len(character.encode()) for character in line)]  # of each character
    own = lengths.tolist()
    starts, ends = [0] * len(own), [0] * len(own)
    done = 0  # bytes that earlier tokens stand for
    for first, last in _sharing(offsets):
        begin = max(done, byte_at[min(start for start, _ in offsets[first:last])])
        end = max(begin, byte_at[max(end for _, end in offsets[first:last])])
        cuts = [begin + length for length in accumulate(own[first:last])]
        if cuts[-1] != end:  # the first of them stands for all of it
            cuts = [end] * (last - first)
        starts[first], starts[first + 1 : last] = begin, cuts[:-1]
        ends[first:last] = cuts
        done = end
    return LineSpans(ids, np.array(starts, np.int64), np.array(ends, np.int64), exact=False)


def _sharing(offsets: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs [first, last) of tokens whose spans in characters overlap."""
    first, reached = 0, 0
    for number, (start, end) in enumerate(offsets):
        if number > first and start >= reached:
            yield first, number
            first, reached = number, 0
        reached = max(reached, end)
    if offsets:
        yield first, len(offsets)
