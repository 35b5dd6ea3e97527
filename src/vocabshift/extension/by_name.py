"""Adding words and special tokens by name, and what that changes in other text.

Owns the order (words, then special tokens, so that no chain of merges can make one), the report,
and the comparison on a sample of text. The tokens in between that chains of merges need may occur
in other words, a word may begin another one, and an added token is cut out of the middle of words.
Only lines that changed are looked at token by token, with the places that `tokenizers` gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from vocabshift.checks.text import SAMPLE_BYTES, sample
from vocabshift.extension.named_tokens import (
    AnyKind,
    NamedTokens,
    SpecialRow,
    with_special_tokens,
)
from vocabshift.extension.words import WordRow, add_words
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_of_tokens
from vocabshift.tokenizer.model import Merge
from vocabshift.tokenizer.tokenizer import Tokenizer

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


@dataclass(frozen=True)
class ByName:
    """A tokenizer with words and special tokens added by name, and what became of them."""

    tokenizer: AnyKind
    words: tuple[WordRow, ...]
    special_tokens: tuple[SpecialRow, ...]
    roles: Mapping[str, str]
    n_added: int  # new tokens of all kinds
    n_between: int  # of these, tokens that only chains of merges need
    n_characters: int  # of these, characters that the vocabulary lacked
    n_repaired: int  # new merges that make a token of the base
    effects: tuple[WordEffect, ...] = ()  # on the sample of text; none without text
    other_tokens: Mapping[str, int] | None = None  # word -> changed tokens outside of all words

    def figures(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The figures of a verb with those of the words: plain JSON values, counts are integers."""
        rows = [asdict(row) for row in self.words]
        for row in rows if self.other_tokens is not None else ():
            row["other_tokens_changed"] = (self.other_tokens or {}).get(row["word"], 0)
        return {
            **before,
            "n_added": before["n_added"] + self.n_added,
            "n_repaired": before.get("n_repaired", 0) + self.n_repaired,
            "vocab_size": self.tokenizer.vocab_size,
            "row_count": self.tokenizer.row_count,
            "unreachable": len(self.tokenizer.unreachable()),
            "words": rows,
            "special_tokens": [asdict(row) for row in self.special_tokens],
            "roles": dict(self.roles),
            "by_name": {
                "n_added": self.n_added,
                "n_between": self.n_between,
                "n_characters": self.n_characters,
                "effects": [asdict(effect) for effect in self.effects],
            },
        }


def add_by_name(
    tokenizer: AnyKind,
    named: NamedTokens,
    *,
    text: Corpus | None = None,
    free_ids: Sequence[int] = (),
    threads: int = 1,
    sample_bytes: int = SAMPLE_BYTES,
) -> ByName:
    """Add the words, then the special tokens of `named`.

    text: other text, of which the first `sample_bytes` bytes of each language are compared.
    free_ids: ids that no token has, to be taken before new ones (BPE alone).

    Existing tokens keep their ids. The same request gives the same tokenizer. ValueError for what
    cannot be added or given a role.
    """
    words = add_words(tokenizer, named, free_ids=free_ids)
    taken = ids_of_tokens(words.tokenizer)
    left = [token_id for token_id in free_ids if token_id not in taken]
    result, special = with_special_tokens(words.tokenizer, named, free_ids=left)
    effects: tuple[WordEffect, ...] = ()
    costs = None
    if text is not None and named.words:
        texts = sample(text, sample_bytes)
        effects, costs = word_effects(tokenizer, result, words.rows, texts, threads=threads)
    new_merges = _merges(result)[len(_merges(tokenizer)) :]
    return ByName(
        tokenizer=result,
        words=words.rows,
        special_tokens=special,
        roles=named.roles,
        n_added=len(ids_of_tokens(result)) - len(ids_of_tokens(tokenizer)),
        n_between=words.n_between,
        n_characters=words.n_characters,
        n_repaired=sum(left + right in tokenizer.vocab for left, right in new_merges),
        effects=effects,
        other_tokens=costs,
    )


def _merges(tokenizer: AnyKind) -> tuple[Merge, ...]:
    return tokenizer.model.merges if isinstance(tokenizer, Tokenizer) else ()


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
