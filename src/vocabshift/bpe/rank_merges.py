"""Merges for vocabularies that come without any: from ranks, or from SentencePiece scores.

Owns the three rules by which `tokenizers` can be given a vocabulary whose own encoder needs no
merge list. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from vocabshift.bpe import byte_level
from vocabshift.bpe.model import Merge

_Text = TypeVar("_Text", str, bytes)


def every_split(ranks: Mapping[bytes, int]) -> list[Merge]:
    """Every split of every token into two tokens, by (rank of token, of left, of right part).

    With `ignore_merges` this is tiktoken's own rule: the pair whose *product* has the lowest rank
    merges first. (transformers' TikTokenConverter; byte images.)
    """
    image = dict(zip(ranks, byte_level.all_to_images(list(ranks)), strict=True))
    merges: list[Merge] = []
    for token in sorted(ranks, key=ranks.__getitem__):
        splits = _splits(token, ranks)
        splits.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [(image[left], image[right]) for left, right in splits]
    return merges


def one_split(ranks: Mapping[bytes, int]) -> list[Merge]:
    """One merge per token: the last one that BPE makes on the way to it (byte images).

    This recovers the merge list that the ranks were made of (Qwen's released one). A token that
    lower ranks do not build from two parts gets none.
    """
    merges: list[Merge] = []
    for token in sorted(ranks, key=ranks.__getitem__):
        if len(token) == 1:
            continue
        splits = _splits(token, ranks)
        if len(splits) > 1:
            halves = _parts_below(token, ranks)
            splits = [(halves[0], halves[1])] if len(halves) == 2 else []
        merges += [
            (byte_level.to_image(left), byte_level.to_image(right)) for left, right in splits
        ]
    return merges


def by_score(vocab: Mapping[str, int], scores: Mapping[str, float]) -> list[Merge]:
    """Every split of every piece into two pieces, best score first.

    Among equal scores the longer left part, then the longer right part goes first; then the
    order of `scores` (transformers' `generate_merges`). SentencePiece itself merges the pair
    whose product scores best.
    """
    merges: list[tuple[float, int, int, Merge]] = []
    for piece, score in scores.items():
        splits = _splits(piece, vocab)
        splits.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        merges += [(score, len(left), len(right), (left, right)) for left, right in splits]
    merges.sort(key=lambda entry: entry[:3], reverse=True)
    return [merge for _, _, _, merge in merges]


def _splits(token: _Text, vocab: Mapping[_Text, int]) -> list[tuple[_Text, _Text]]:
    return [
        (token[:cut], token[cut:])
        for cut in range(1, len(token))
        if token[:cut] in vocab and token[cut:] in vocab
    ]


def _parts_below(token: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """The parts that BPE leaves of a token when only lower ranks may merge."""
    parts = [token[index : index + 1] for index in range(len(token))]
    limit = ranks[token]
    while len(parts) > 2:
        rank, at = min(_ranked_pairs(parts, ranks, limit), default=(limit, 0))
        if rank >= limit:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _ranked_pairs(
    parts: list[bytes], ranks: Mapping[bytes, int], limit: int
) -> Iterator[tuple[int, int]]:
    for at in range(len(parts) - 1):
        yield ranks.get(parts[at] + parts[at + 1], limit), at
