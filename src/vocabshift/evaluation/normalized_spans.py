"""Where tokens stand in a text that a normalizer changed, told by the normalizer itself.

Owns the way from bytes of the normalized text back to bytes of the text: words that the normalizer
leaves alone are the same in both, in the others the characters that change are found one by one.
Much faster than asking `tokenizers` for offsets, but only for normalizers that change characters
where they stand (NFC, NFKC, lower case); for all others the answer is None. Knows nothing of ids.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, takewhile
from unicodedata import category

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

Change = tuple[int, int, int, int]
"""Bytes [start, end) of a sign after the normalizer, and before."""


def edges_in_text(
    text: str, joined: bytes, edges: Int64, normalize: Callable[[str], str]
) -> Int64 | None:
    """Bytes of `text` at which tokens end that end at `edges` of `joined`, their bytes laid end to
    end; both (n_tokens,), ascending. None where `joined` is not the normalized text, or where it
    cannot be told which part of the text became what.

    A token that ends inside of what became of a sign ends behind it in the text.
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
    behind = edges - end_after + end_before
    return np.where(last < 0, edges, np.where(edges < end_after, inside, behind))


def _changes(
    words: list[str], made: dict[str, str], normalize: Callable[[str], str]
) -> list[Change] | None:
    """The signs that a normalizer changes, ascending; None where some cannot be told apart."""
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
    """Characters, each with the marks behind it."""
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
