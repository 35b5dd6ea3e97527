"""What added words change in other text: tokens of words that nobody named.

Owns the comparison on a sample of text. The tokens in between that chains of merges need may occur
in other words, a word may begin another one, and an added token is cut out of the middle of words.
Only lines that changed are looked at token by token, with the places that `tokenizers` gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vocabshift.extension.words import WordRow
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer

Place = tuple[int, int, int]  # id, first character, last character plus one


@dataclass(frozen=True)
class WordEffect:
    """One language of the sample; `other_tokens` are the cost of the words."""

    language: str
    lines: int
    changed_lines: int
    tokens: int  # before
    tokens_after: int
    changed_tokens: int  # of those before, not there at the same place afterwards
    other_tokens: int  # of these, tokens outside of the words themselves


def word_effects(
    base: AnyTokenizer,
    longer: AnyTokenizer,
    rows: Sequence[WordRow],
    texts: Mapping[str, Sequence[str]],
    *,
    threads: int = 1,
) -> tuple[tuple[WordEffect, ...], dict[str, int]]:
    """Compare both on texts by language; and by word, the changed tokens outside of the words.

    A changed token counts for the word whose new tokens stand in its place.
    """
    words = {token_id for row in rows if row.how != "present" for token_id in row.ids}
    owner = {token_id: row.word for row in rows for token_id in row.new_tokens}
    costs: Counter[str] = Counter()
    effects = []
    for language, lines in texts.items():
        before = base.encode_batch(list(lines), threads=threads)
        after = longer.encode_batch(list(lines), threads=threads)
        spans = [pairwise(offsets.tolist()) for _, offsets in (before, after)]
        changed = [
            line
            for line, (a, b), (c, d) in zip(lines, *spans, strict=True)
            if not np.array_equal(before[0][a:b], after[0][c:d])
        ]
        pairs = zip(_places(base, changed), _places(longer, changed), strict=True)
        n_changed = n_other = 0
        for line, (old, new) in zip(changed, pairs, strict=True):
            gone = list((Counter(old) - Counter(new)).elements())
            named = [place for place in new if place[0] in words and _is_whole(line, place)]
            other = [place for place in gone if not _overlapping(place, named)]
            n_changed, n_other = n_changed + len(gone), n_other + len(other)
            made = [place for place in new if place[0] in owner]
            for place in other:
                costs.update({owner[found[0]] for found in _overlapping(place, made)})
        sizes = (len(before[0]), len(after[0]))
        effects.append(WordEffect(language, len(lines), len(changed), *sizes, n_changed, n_other))
    return tuple(effects), dict(costs)


def _places(tokenizer: AnyTokenizer, lines: Sequence[str]) -> Iterable[list[Place]]:
    for encoding in tokenizer.backend.encode_batch(list(lines), add_special_tokens=False):
        yield [(i, *span) for i, span in zip(encoding.ids, encoding.offsets, strict=True)]


def _is_whole(line: str, place: Place) -> bool:
    """Whether a token stands between characters of no word, its own spaces left out."""
    _, start, end = place
    text = line[start:end]
    start += len(text) - len(text.lstrip())
    around = (line[start - 1 : start], line[end : end + 1])
    return not any(character.isalnum() for character in around)


def _overlapping(place: Place, others: Sequence[Place]) -> list[Place]:
    _, start, end = place
    return [other for other in others if other[1] < end and start < other[2]]
