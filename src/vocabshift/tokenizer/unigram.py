"""A Unigram tokenizer.json made of pieces with scores; and new entries for one that exists.

Characters without a piece become bytes, a space becomes "▁", and one "▁" precedes every text
(SentencePiece's dummy prefix, which decoding removes). Text round-trips byte for byte, except "▁"
itself, which decodes to a space. Knows nothing of how pieces are learned.

Owns also how a vocabulary whose tokens are made of no others grows, and the score of a new Unigram
token. WordPiece takes the longest token that begins a word, so a word in the vocabulary is one
token. Unigram takes the segmentation with the highest sum of scores: a new token gets a little more
than the best one of its text has now. No score of another token changes. The score is never below
the lowest in the vocabulary: `tokenizers` gives unknown characters that lowest score minus 10, so a
lower one would change how text with such characters is segmented.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vocabshift.text.normalize import normalizer_spec
from vocabshift.tokenizer.added_tokens import (
    AddedToken,
    ids_at_load,
    vocab_with,
    write_added_tokens,
)
from vocabshift.tokenizer.components import SPACE
from vocabshift.tokenizer.token_bytes import BYTE_PIECE
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

UNKNOWN = "<unk>"
FIXED_PIECES = 257  # that every model has: the bytes and the unknown piece

MARGIN = 1e-3
"""By how much a new token beats the segmentation of its text, in natural logarithms: far more than
the rounding of 32-bit sums, in which some programs compute, and hardly a preference."""

_UNKNOWN = 10.0  # `tokenizers`: below the lowest score, for each unknown character


@dataclass(frozen=True, slots=True)
class Scored:
    """Pieces of a Unigram model, by id; bytes and the unknown piece included."""

    pieces: tuple[str, ...]
    scores: tuple[float, ...]  # natural logarithms of probabilities

    @property
    def learned(self) -> dict[str, float]:
        """Scores of the pieces for text: neither bytes nor the unknown piece."""
        pairs = zip(self.pieces, self.scores, strict=True)
        return {piece: score for piece, score in pairs if not is_fixed(piece)}


def is_fixed(piece: str) -> bool:
    """Whether a piece is one that every model has: a byte, or the unknown piece."""
    return piece == UNKNOWN or BYTE_PIECE.fullmatch(piece) is not None


def unigram_tokenizer(
    scored: Scored, *, normalizer: str | None, name: str
) -> UnigramOrWordPieceTokenizer:
    """The tokenizer of these pieces.

    Text is cut before each "▁", which changes nothing (no piece holds one but in front) and lets
    `tokenizers` remember words.
    """
    spaces: list[Mapping[str, Any]] = [
        {"type": "Prepend", "prepend": SPACE},
        {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
    ]
    first = normalizer_spec(normalizer)
    steps = spaces if first is None else [first, *spaces]
    return UnigramOrWordPieceTokenizer.from_json(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": steps},
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": SPACE},
                "behavior": "MergedWithNext",
                "invert": False,
            },
            "post_processor": None,
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                ],
            },
            "model": {
                "type": "Unigram",
                "unk_id": scored.pieces.index(UNKNOWN),
                "vocab": [[*pair] for pair in zip(scored.pieces, scored.scores, strict=True)],
                "byte_fallback": True,
            },
        },
        name=name,
    )


def grown(
    tokenizer: UnigramOrWordPieceTokenizer,
    entries: Mapping[str, float] = {},
    added: Sequence[AddedToken] = (),
) -> UnigramOrWordPieceTokenizer:
    """The tokenizer with new entries (with their scores), and with `added` after its added tokens.

    Entries get the ids from `row_count` on. Added tokens outside the vocabulary are written into it
    where they would be numbered anew otherwise. ValueError for ids with holes in a Unigram model.
    """
    model: dict[str, Any] = dict(tokenizer.document["model"])
    outside = [token for token in tokenizer.added_tokens if token.content not in tokenizer.vocab]
    if tokenizer.kind == "Unigram":
        vocab = [list(entry) for entry in model["vocab"]]
        lowest = min(score for _, score in vocab)
        if entries:
            places = range(len(vocab), tokenizer.row_count)
            if [token.id for token in outside] != list(places):
                raise ValueError(
                    f"the ids of {tokenizer.name} have holes, and those of a Unigram model are "
                    "places in a list: no token can be added after them"
                )
            vocab += [[token.content, lowest] for token in outside]
            vocab += [[token, score] for token, score in entries.items()]
        model["vocab"] = vocab
    else:
        ids = dict(zip(entries, itertools.count(tokenizer.row_count), strict=False))
        model["vocab"] = {**tokenizer.vocab, **ids}
        tokens = (*tokenizer.added_tokens, *added)
        if ids_at_load(tokens, model["vocab"]) != [token.id for token in tokens]:
            model["vocab"] = vocab_with(model["vocab"], tokens)
    document = {
        **tokenizer.document,
        "model": model,
        "added_tokens": write_added_tokens((*tokenizer.added_tokens, *added)),
    }
    made = UnigramOrWordPieceTokenizer.from_json(document, name=tokenizer.name)
    return replace(made, config=tokenizer.config, chat_template=tokenizer.chat_template)


def with_parts(tokenizer: UnigramOrWordPieceTokenizer, **parts: Any) -> UnigramOrWordPieceTokenizer:
    """The tokenizer with other parts of its `tokenizer.json`."""
    document = {**tokenizer.document, **parts}
    made = UnigramOrWordPieceTokenizer.from_json(document, name=tokenizer.name)
    return replace(made, config=tokenizer.config, chat_template=tokenizer.chat_template)


def scored(tokenizer: UnigramOrWordPieceTokenizer, strings: Iterable[str]) -> dict[str, float]:
    """New strings with scores under which each is one token, in the order given; 0 for WordPiece.

    Shorter strings are scored first: a longer one then also beats segmentations that use them.
    """
    given = list(dict.fromkeys(strings))
    if tokenizer.kind != "Unigram":
        return dict.fromkeys(given, 0.0)
    scores = {token: tokenizer.scores[token_id] for token, token_id in tokenizer.vocab.items()}
    lowest = min(scores.values())
    longest = max(map(len, (*scores, *given)), default=1)
    for string in sorted(given, key=lambda each: (len(each), each)):
        best = _best_score(string, scores, lowest - _UNKNOWN, longest)
        scores[string] = max(best + MARGIN, lowest)
    return {string: scores[string] for string in given}


def _best_score(string: str, scores: Mapping[str, float], unknown: float, longest: int) -> float:
    """The score of the best segmentation of a string."""
    best = [0.0, *itertools.repeat(float("-inf"), len(string))]
    for start in range(len(string)):
        here = best[start]
        for end in range(start + 1, min(len(string), start + longest) + 1):
            score = scores.get(string[start:end])
            if score is None and end == start + 1:
                score = unknown
            if score is not None:
                best[end] = max(best[end], here + score)
    return best[-1]


def longest_word(tokenizer: UnigramOrWordPieceTokenizer) -> int | None:
    """The characters that a word may have: WordPiece makes longer ones unknown. None: any."""
    if tokenizer.kind != "WordPiece":
        return None
    return int(tokenizer.document["model"].get("max_input_chars_per_word", 100))
