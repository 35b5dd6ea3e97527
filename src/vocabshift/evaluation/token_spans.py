"""Where each token of a line stands in it: spans in bytes of UTF-8.

Owns how spans are found. Tokens whose bytes joined are the line (with at most a space in front,
the dummy prefix of SentencePiece) are laid end to end: exact for every byte-level tokenizer.
Where a normalizer changed the text, or words lose their spaces (WordPiece), the offsets of
`tokenizers` tell, and tokens that share a character share it byte by byte where that adds up.
Knows nothing of what a span means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.engine import Engine, Ids

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
    engine: Engine, lines: Sequence[str], *, threads: int = 1
) -> Iterator[LineSpans]:
    """The same, a line at a time."""
    ids, offsets = engine.encode_batch(lines, threads=threads)
    spelled = engine.spelled
    lengths = np.fromiter(map(len, spelled), np.int64, len(spelled))
    for number, line in enumerate(lines):
        of_line = ids[offsets[number] : offsets[number + 1]]
        data = line.encode()
        joined = b"".join([spelled[token_id] for token_id in of_line.tolist()])
        extra = len(joined) - len(data)
        if extra in (0, 1) and joined == b" " * extra + data:
            ends = np.maximum(np.cumsum(lengths[of_line]) - extra, 0)
            starts = np.concatenate([np.zeros(min(1, len(ends)), np.int64), ends[:-1]])
            yield LineSpans(of_line, starts, ends, exact=True)
        else:
            yield _by_offsets(engine, line, of_line, lengths[of_line])


def _by_offsets(engine: Engine, line: str, ids: Ids, lengths: Int64) -> LineSpans:
    """Spans from the offsets of `tokenizers`, which are in characters."""
    encoding = engine.tokenizer.backend.encode(line, add_special_tokens=False)
    if encoding.ids != ids.tolist():
        raise AssertionError(f"the encoder and tokenizers disagree on {line!r}")
    byte_at = np.zeros(len(line) + 1, dtype=np.int64)  # of each character
    np.cumsum([len(character.encode()) for character in line], out=byte_at[1:])
    starts = np.zeros(len(ids), dtype=np.int64)
    ends = np.zeros(len(ids), dtype=np.int64)
    done = 0  # bytes that earlier tokens stand for
    for first, last in _sharing(encoding.offsets):
        begin = max(done, int(byte_at[min(start for start, _ in encoding.offsets[first:last])]))
        end = max(begin, int(byte_at[max(end for _, end in encoding.offsets[first:last])]))
        if int(lengths[first:last].sum()) == end - begin:
            cuts = begin + np.cumsum(lengths[first:last])
        else:  # the first of them stands for all of it
            cuts = np.full(last - first, end)
        ends[first:last] = cuts
        starts[first] = begin
        starts[first + 1 : last] = cuts[:-1]
        done = end
    return LineSpans(ids, starts, ends, exact=False)


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
