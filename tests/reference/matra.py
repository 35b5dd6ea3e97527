"""Matra written plainly: every pair is counted again before every merge, each where it stands.

Source: docs/algorithms/matra.md, with Matra's section 3. Weights are exact: counts of words and
sentences in units of 1/4096, rounded half up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reference import bpe
from reference.bpe import Merge
from reference.superword import encode
from vocabshift import _core

UNIT = 4096
BLOCKS = (
    *(range(0x0900, 0x0980), range(0x0980, 0x0A00), range(0x0A00, 0x0A80), range(0x0A80, 0x0B00)),
    *(range(0x0B00, 0x0B80), range(0x0B80, 0x0C00), range(0x0C00, 0x0C80), range(0x0C80, 0x0D00)),
    *(range(0x0D00, 0x0D80), range(0x0D80, 0x0E00), range(0xAAE0, 0xAB00), range(0x1C50, 0x1C80)),
    *(range(0x0600, 0x0700), range(0xFB50, 0xFE00), range(0x0700, 0x0750), range(0xABC0, 0xAC00)),
)
"""Table 1, and the everyday letters of Meetei Mayek."""


def is_target(word: str) -> bool:
    """Whether a word has a character of the target scripts."""
    return any(ord(character) in block for character in word for block in BLOCKS)


def sentences(document: str, terminals: str) -> list[str]:
    """The parts of a document, each up to and including a terminal, or its end."""
    found = [""]
    for character in document:
        found[-1] += character
        if character in terminals:
            found.append("")
    return [sentence for sentence in found if sentence]


def sentence_weight(sentence: str, target: int) -> int:
    """UNIT without target words, `target` with nothing else, a blend by their share between."""
    spaced = "".join(" " if _core.char_class(ord(c)) & 32 else c for c in sentence)
    words = [word for word in spaced.split(" ") if word]
    if not words:
        return UNIT
    share = Fraction(sum(map(is_target, words)), len(words))
    return math.floor(share * target + (1 - share) * UNIT + Fraction(1, 2))


def smoothed(words: Mapping[str, int], alpha: float) -> dict[str, int]:
    """The counts of target words to the power of alpha, rescaled to their old sum."""
    powers = {w: _half_up(float(count) ** alpha * 4096) for w, count in words.items()}
    before = sum(count for word, count in words.items() if is_target(word))
    after = sum(power for word, power in powers.items() if is_target(word))
    return {
        word: max(1, _half_up(powers[word] * (before / after))) if is_target(word) else count
        for word, count in words.items()
    }


def _half_up(value: float) -> int:
    whole = math.floor(value)
    return whole + (value - whole >= 0.5)


@dataclass
class Piece:
    """A piece with the places of its tokens, and a weight for each byte."""

    ids: list[int]
    begins: list[int]  # of the tokens, in bytes
    weights: list[int]  # of the sentence that each byte is in


def pieces_of(
    document: str,
    cut: Callable[[str], list[str]],
    terminals: str,
    weigh: Callable[[str], int],
    segment: Callable[[bytes], Sequence[int]],
    tokens: Sequence[bytes],
) -> list[Piece]:
    """The pieces of a document as stage 1 segments them."""
    by_byte: list[int] = []
    for sentence in sentences(document, terminals):
        by_byte += [weigh(sentence)] * len(sentence.encode())
    pieces, at = [], 0
    for text in cut(document):
        ids = list(segment(text.encode()))
        begins = [0]
        for token_id in ids:
            begins.append(begins[-1] + len(tokens[token_id]))
        pieces.append(Piece(ids, begins[:-1], by_byte[at : at + begins[-1]]))
        at += begins[-1]
    assert at == len(by_byte)
    return pieces


def learn_superwords(
    pieces: Iterable[Piece],
    tokens: list[bytes],
    vocab_size: int,
    min_count: int,
    allowed: Callable[[bytes], bool],
) -> list[Merge]:
    """Merge until `tokens`, to which products are added, are `vocab_size`."""
    pieces = list(pieces)
    merges: list[Merge] = []
    while len(tokens) < vocab_size:
        counts: Counter[tuple[int, int]] = Counter()
        for piece in pieces:
            for i in range(len(piece.ids) - 1):
                counts[piece.ids[i], piece.ids[i + 1]] += piece.weights[piece.begins[i]]
        candidates = [
            (-count, pair)
            for pair, count in counts.items()
            if count >= max(min_count, 1) and allowed(tokens[pair[0]] + tokens[pair[1]])
        ]
        if not candidates:
            break
        negative, (left, right) = min(candidates)
        tokens.append(tokens[left] + tokens[right])
        merges.append((left, right, len(tokens) - 1, -negative))
        for piece in pieces:
            i = 0
            while i + 1 < len(piece.ids):
                if (piece.ids[i], piece.ids[i + 1]) == (left, right):
                    piece.ids[i : i + 2] = [len(tokens) - 1]
                    del piece.begins[i + 1]
                i += 1
    return merges


@dataclass(frozen=True)
class Settings:
    """What a run of Matra depends on."""

    vocab_size: int
    stage1_size: int
    cut_words: Callable[[str], list[str]]
    cut_pieces: Callable[[str], list[str]]
    terminals: str  # that end a sentence, and that no product of stage 2 may hold
    alpha: float = 1.0
    word_weight: str = "constant"
    min_frequency: int = 1
    max_token_bytes: int | None = None
    max_words: int | None = None


def train(
    parts: Iterable[tuple[Iterable[str], int]], settings: Settings, group_unit: int
) -> tuple[list[bytes], list[Merge], list[Merge], int]:
    """Tokens, merges of both stages and the tokens of the text, for documents with weights.

    `group_unit` is what a document of weight 1 counts in these weights.
    """
    parts = [(list(texts), weight) for texts, weight in parts]
    target = round(UNIT / settings.alpha)
    is_constant = settings.word_weight == "constant" and settings.alpha < 1
    is_smoothed = settings.word_weight == "smoothed" and settings.alpha < 1
    words: Counter[str] = Counter()
    for texts, weight in parts:
        for text in texts:
            for word in settings.cut_words(text):
                factor = target if is_constant and is_target(word) else UNIT
                words[word] += weight * (factor if is_constant or is_smoothed else 1)
    counts = smoothed(words, settings.alpha) if is_smoothed else words
    min_count = settings.min_frequency * group_unit
    tokens, merges = bpe.train(
        {word.encode(): count for word, count in counts.items()},
        settings.stage1_size,
        min_frequency=min_count * (UNIT if is_constant or is_smoothed else 1),
        max_token_bytes=settings.max_token_bytes,
    )

    def weigh(sentence: str) -> int:
        return sentence_weight(sentence, target) if is_constant else 1

    def allowed(product: bytes) -> bool:
        if product in tokens:
            return False
        if settings.max_token_bytes is not None and len(product) > settings.max_token_bytes:
            return False
        n_words = len([word for word in product.split(b" ") if word])
        if settings.max_words is not None and n_words > settings.max_words:
            return False
        if any(terminal.encode() in product for terminal in settings.terminals):
            return False
        try:
            product.decode()
        except UnicodeDecodeError:
            return not is_constant
        return True

    pieces = []
    for texts, weight in parts:
        for text in texts:
            pieces += pieces_of(
                text,
                settings.cut_pieces,
                settings.terminals,
                lambda sentence, weight=weight: weight * weigh(sentence),  # type: ignore[misc]
                lambda piece: encode(piece, tokens, merges),
                tokens,
            )
    more = learn_superwords(
        pieces, tokens, settings.vocab_size, min_count * (UNIT if is_constant else 1), allowed
    )
    return tokens, merges, more, sum(len(piece.ids) for piece in pieces)
