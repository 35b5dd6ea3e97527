"""MorphScore and its kin word by word, on lists of pieces: slow, and obvious."""

from __future__ import annotations

from collections.abc import Sequence

Word = tuple[str, Sequence[str], Sequence[bytes]]
"""A word, its morphemes, and the bytes of its tokens, which joined are the word."""


def scores(words: Sequence[Word]) -> dict[str, float]:
    """Every metric that has something to say, by name."""
    spelled = [word for word in words if "".join(word[1]) == word[0]]
    scored = [word for word in spelled if len(word[1]) > 1 and len(word[2]) > 1]
    found = [
        (_borders(pieces), _borders([part.encode() for part in parts]))
        for _, parts, pieces in spelled
    ]
    hits = sum(len([at for at in cuts if at in gold]) for cuts, gold in found)
    cuts = sum(len(cuts) for cuts, _ in found)
    gold = sum(len(gold) for _, gold in found)
    several = [word for word in words if len(word[2]) > 1]
    values = {
        "morph_score": _mean([_has_all(word) for word in scored]),
        "morph_segment_score": _mean([_segments(word) for word in scored]),
        "morph_border_precision": hits / cuts if cuts else None,
        "morph_border_recall": hits / gold if gold else None,
        "morph_border_f1": 2 * hits / (cuts + gold) if cuts + gold else None,
        "morph_single_token_rate": _mean([len(pieces) == 1 for _, _, pieces in spelled]),
        "morph_score_as_published": _mean([_published(word) for word in several])
        if all(len(parts) <= 2 for _, parts, _ in words)
        else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _borders(pieces: Sequence[bytes]) -> list[int]:
    return [len(b"".join(pieces[:number])) for number in range(1, len(pieces))]


def _has_all(word: Word) -> bool:
    """Every morpheme border is a token border."""
    _, parts, pieces = word
    heads = [b"".join(pieces[:number]) for number in range(1, len(pieces))]
    return all("".join(parts[:number]).encode() in heads for number in range(1, len(parts)))


def _segments(word: Word) -> float:
    """Share of the morphemes that are one token, at their place."""
    _, parts, pieces = word
    places = [(len(b"".join(pieces[:n])), piece) for n, piece in enumerate(pieces)]
    right = [
        (len("".join(parts[:n]).encode()), part.encode()) in places for n, part in enumerate(parts)
    ]
    return sum(right) / len(right)


def _published(word: Word) -> bool:
    """What the program of Arnett & Bergen does: strings of tokens, joined, against two parts."""
    _, parts, pieces = word
    texts = [piece.decode("utf-8", errors="replace") for piece in pieces]
    points = 0
    for number in range(1, len(texts)):
        points += ["".join(texts[:number]), "".join(texts[number:])] == list(parts)
    return points == 1


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
