"""The position of each token in a line: spans in bytes of UTF-8.

Three methods are tried in turn. If the tokens' joined bytes are the line (with at most a leading
space, SentencePiece's dummy prefix), tokens are placed end to end. That is exact for every
byte-level tokenizer.

If a normalizer changed the text, bytes of the normalized text are mapped back to bytes of the text
(`edges_in_text`): words that the normalizer leaves alone are the same in both, and in the others
the changed characters are found one by one. That is much faster than the offsets of `tokenizers`,
but works only for normalizers that change characters in place (NFC, NFKC, lower case).

Otherwise, or if words lose their spaces (WordPiece), the offsets of `tokenizers` are used. Tokens
that share a character divide its bytes among them if the numbers add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from unicodedata import category

import numpy as np
import numpy.typing as npt

from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.engine import Engine

Int64 = npt.NDArray[np.int64]

Change = tuple[int, int, int, int]
"""Bytes [start, end) of a sign after the normalizer, and before."""


def edges_in_text(
    text: str, joined: bytes, edges: Int64, normalize: Callable[[str], str]
) -> Int64 | None:
    """Bytes of `text` at which tokens end that end at `edges` of `joined`, their bytes laid end to
    end; both (n_tokens,), ascending. None where `joined` is not the normalized text, or where it
    it is not known which part of the text became what.

    A token that ends inside of what became of a sign ends after it in the text.
    """
    normalized = normalize(text)
    words = text.split(" ")
    made = {word: normalize(word) for word in words}
    if normalized.encode() != joined or normalized != " ".join([made[word] for word in words]):
        return None
    changes = _changes(words, made, normalize)
    if changes is None:
        return None
    if not changes:
        return edges
    table = np.array(changes, dtype=np.int64)  # (n_changes, 4)
    last = np.searchsorted(table[:, 0], edges, side="left") - 1  # the change that begins before
    begin_after, end_after, begin_before, end_before = table[last].T
    inside = np.where(
        end_after - begin_after == end_before - begin_before,
        edges - begin_after + begin_before,
        end_before,
    )
    beyond = edges - end_after + end_before
    return np.where(last < 0, edges, np.where(edges < end_after, inside, beyond))


def _changes(
    words: list[str], made: dict[str, str], normalize: Callable[[str], str]
) -> list[Change] | None:
    """The signs that a normalizer changes, ascending; None if some cannot be distinguished."""
    of_words: dict[str, list[Change]] = {}
    for word, normal in made.items():
        if normal != word:
            found = _of_word(word, normal, normalize)
            if found is None:
                return None
            of_words[word] = found
    changes: list[Change] = []
    after = before = 0
    for word in words:
        for change in of_words.get(word, ()):
            begin_after, end_after, begin_before, end_before = change
            changes.append(
                (begin_after + after, end_after + after, begin_before + before, end_before + before)
            )
        after += len(made[word].encode()) + 1
        before += len(word.encode()) + 1
    return changes


def _of_word(word: str, normal: str, normalize: Callable[[str], str]) -> list[Change] | None:
    """The same of one word."""
    signs = _signs(word)
    made = [normalize(sign) for sign in signs]
    if "".join(made) != normal:
        return None
    changes = []
    after = before = 0
    for sign, of_sign in zip(signs, made, strict=True):
        ends = after + len(of_sign.encode()), before + len(sign.encode())
        if of_sign != sign:
            first, last = _alike(of_sign, sign)
            changes.append((after + first, ends[0] - last, before + first, ends[1] - last))
        after, before = ends
    return changes


def _signs(word: str) -> list[str]:
    """Characters, each with the marks after it."""
    begins = [i for i, character in enumerate(word) if not category(character).startswith("M")]
    if not begins or begins[0] > 0:
        begins = [0, *begins]
    return [word[begin:end] for begin, end in pairwise([*begins, len(word)])]


def _alike(one: str, other: str) -> tuple[int, int]:
    """Bytes of the characters that two different texts begin with, and end with, alike."""
    first = _n_alike(one, other)
    last = _n_alike(one[first:][::-1], other[first:][::-1])
    return len(one[:first].encode()), len(one[len(one) - last :].encode())


def _n_alike(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


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
        # Built only here: most tokenizers round-trip every line, and building the backend is slow.
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
