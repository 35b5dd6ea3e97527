"""SentencePiece Unigram models (`tokenizer.model`) as an equivalent `tokenizer.json`.

Owns the components that `tokenizers` needs for it: pieces with their scores, the precompiled
character map, spaces as "▁". The tests compare it with SentencePiece itself. The ids differ if two
segmentations have the same score up to rounding (1 line in 800) and, if the model has user-defined
pieces, for a text that begins with one or with a space, or ends with a space. `sentencepiece` reads
BPE models and owns the schema.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.components import SPACE, check_charsmap
from vocabshift.tokenizer.formats.sentencepiece import Piece, PieceType, Settings

_OUTSIDE = {PieceType.UNKNOWN, PieceType.CONTROL, PieceType.USER_DEFINED}


def to_document(pieces: Sequence[Piece], settings: Settings) -> Mapping[str, Any]:
    """The `tokenizer.json`, parsed; ids are the places of the pieces."""
    unknown = settings.roles.get("unk")
    if unknown is None or unknown >= len(pieces):
        raise InvalidTokenizerError("the SentencePiece Unigram model has no unknown piece")
    check_charsmap(settings.charsmap)
    # A user-defined piece cuts the text, and the text after one must not be taken for its
    # beginning: no prefix, no stripping.
    has_cuts = any(piece.type == PieceType.USER_DEFINED for piece in pieces)
    prefixed = "first" if has_cuts else "always"
    scheme = prefixed if settings.add_dummy_prefix else "never"
    metaspace = {
        "type": "Metaspace",
        "replacement": SPACE,
        "prepend_scheme": scheme,
        "split": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": piece.text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": piece.type != PieceType.USER_DEFINED,
            }
            for token_id, piece in enumerate(pieces)
            if piece.type in _OUTSIDE
        ],
        "normalizer": _normalizer(settings, strips=not has_cuts),
        "pre_tokenizer": metaspace,
        "post_processor": None,
        "decoder": _decoder(settings, metaspace),
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": [[piece.text, piece.score] for piece in pieces],
            "byte_fallback": settings.byte_fallback,
        },
    }


def _normalizer(settings: Settings, *, strips: bool) -> dict[str, Any] | None:
    steps: list[dict[str, Any]] = []
    if settings.charsmap:
        charsmap = base64.b64encode(settings.charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if settings.remove_extra_whitespaces:
        if strips:
            steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _decoder(settings: Settings, metaspace: dict[str, Any]) -> dict[str, Any]:
    if not settings.byte_fallback:
        return metaspace
    steps = [{"type": "ByteFallback"}, {"type": "Fuse"}, metaspace]
    return {"type": "Sequence", "decoders": steps}
