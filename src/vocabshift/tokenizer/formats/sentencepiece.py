"""SentencePiece models (`tokenizer.model`): BPE into a Tokenizer, Unigram into a `tokenizer.json`.

Owns the schema (sentencepiece_model.proto) and the equivalent `tokenizers` models. BPE: merges from
scores, byte fallback, the space as "▁"; GGUF files of this kind use `from_pieces` too. The
conversion is that of transformers' LlamaConverter, with legacy behaviour.

Unigram: pieces with their scores, the precompiled character map, spaces as "▁". Ids differ from
SentencePiece's if two segmentations have the same score up to rounding (1 line in 800). They differ
for both kinds, with user-defined pieces, for a text that begins with one or a space, or ends with a
space (BPE that keeps all spaces, as Mistral v3: for any with such a piece); and, with a character
map, for stacked marks, decomposed Hangul and "\\r\\n", each mapped as one character.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import components
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import SPACE, SentencePieceRules, check_charsmap
from vocabshift.tokenizer.formats import sentencepiece_proto as protobuf
from vocabshift.tokenizer.formats import tiktoken
from vocabshift.tokenizer.model import BpeModel, Merge
from vocabshift.tokenizer.tokenizer import Tokenizer

_MODEL_TYPES = {1: "Unigram", 2: "BPE", 3: "Word", 4: "Char"}  # TrainerSpec.ModelType
_ROLES = {40: "unk", 41: "bos", 42: "eos", 43: "pad"}  # field of TrainerSpec -> role
_DEFAULT_IDS = {"unk": 0, "bos": 1, "eos": 2, "pad": -1}


class PieceType(IntEnum):
    """ModelProto.SentencePiece.Type; GGUF's token_type uses the same numbers."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_CUT_OUT = {PieceType.UNKNOWN, PieceType.CONTROL, PieceType.USER_DEFINED}


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry of the vocabulary; its id is its place in the list."""

    text: str
    score: float
    type: int = PieceType.NORMAL


@dataclass(frozen=True)
class Settings:
    """What a SentencePiece model says about normalization and roles."""

    roles: Mapping[str, int]  # "bos" -> id; roles without a token are left out
    byte_fallback: bool = False
    add_dummy_prefix: bool = True
    prefix_once: bool = False  # not after a user-defined piece again, as llama.cpp adds it
    remove_extra_whitespaces: bool = True
    charsmap: bytes = b""  # precompiled normalization; empty for identity
    add_bos: bool = True  # the model does not say; Llama and its kin do
    add_eos: bool = False
    rules: SentencePieceRules | None = None  # that its pieces were trained by, where it says so


@dataclass(frozen=True)
class Contents:
    """A model file, read."""

    kind: str  # "Unigram", "BPE", "Word" or "Char"
    pieces: tuple[Piece, ...]
    settings: Settings


def read_model(data: bytes) -> Contents:
    """What a SentencePiece model file of any type holds; InvalidTokenizerError for another file."""
    pieces: list[Piece] = []
    trainer: dict[int, protobuf.Value] = {}
    normalizer: dict[int, protobuf.Value] = {}
    try:
        for number, value in protobuf.fields(data):
            if number == 1:
                pieces.append(_piece(_message(value)))
            elif number == 2:
                trainer.update(_message(value))
            elif number == 3:
                normalizer.update(_message(value))
        model_type = protobuf.int32(trainer.get(3, 1))
        settings = _settings(trainer, normalizer)
    except protobuf.WireError as error:
        raise InvalidTokenizerError(
            f"this is not a SentencePiece model, or a damaged one: {error}"
        ) from None
    if not pieces:
        raise InvalidTokenizerError("this is not a SentencePiece model: it has no pieces")
    if settings.rules is not None and settings.rules.whitespace_as_suffix:
        raise InvalidTokenizerError(
            'the SentencePiece model has "▁" at the ends of words (treat_whitespace_as_suffix), '
            "which no part of a tokenizer.json does; train it without"
        )
    kind = _MODEL_TYPES.get(model_type, str(model_type))
    return Contents(kind, tuple(pieces), settings)


def from_model(data: bytes, *, name: str = "tokenizer") -> Tokenizer:
    """The Tokenizer of a SentencePiece BPE model file."""
    found = read_model(data)
    if found.kind != "BPE":
        raise InvalidTokenizerError(
            f"the SentencePiece model is of type {found.kind}, not BPE; only BPE is read here"
        )
    return from_pieces(found.pieces, found.settings, name=name)


def read_rules(data: bytes) -> SentencePieceRules:
    """The rules that the pieces of a SentencePiece model file, of any type, were trained by.

    InvalidTokenizerError for any other file.
    """
    found: SentencePieceRules | None = None
    has_pieces = False
    try:
        for number, value in protobuf.fields(data):
            has_pieces = has_pieces or number == 1
            if number == 2:
                found = protobuf.from_trainer_spec(_message(value))
    except protobuf.WireError as error:
        raise InvalidTokenizerError(
            f"this is not a SentencePiece model, or a damaged one: {error}"
        ) from None
    if found is None or not has_pieces:
        raise InvalidTokenizerError(
            "this is not a SentencePiece model: it has no "
            + ("trainer_spec" if has_pieces else "pieces")
        )
    return found


def from_pieces(
    pieces: Sequence[Piece],
    settings: Settings,
    *,
    merges: Sequence[Merge] | None = None,
    chat_template: str | None = None,
    name: str = "tokenizer",
) -> Tokenizer:
    """The Tokenizer of a piece list; without `merges` they follow from the scores."""
    vocab = {piece.text: token_id for token_id, piece in enumerate(pieces)}
    if len(vocab) != len(pieces):
        raise InvalidTokenizerError(
            f"{len(pieces) - len(vocab)} of the {len(pieces)} pieces are repeated"
        )
    check_charsmap(settings.charsmap)
    if merges is None:
        if any(math.isnan(piece.score) for piece in pieces):
            raise InvalidTokenizerError("a piece has a score that is not a number")
        merges = tiktoken.by_score(vocab, {piece.text: piece.score for piece in pieces})
    outside = {role for role, token_id in settings.roles.items() if token_id >= len(pieces)}
    if outside:
        raise InvalidTokenizerError(f"the ids of {sorted(outside)} lie outside the vocabulary")
    roles = {role: pieces[token_id].text for role, token_id in settings.roles.items()}
    # Where spaces are kept, no prefix can stand before one at the beginning of the text alone.
    is_cut = settings.prefix_once and settings.remove_extra_whitespaces and _has_cuts(pieces)
    is_once = is_cut and settings.add_dummy_prefix
    bos = roles.get("bos") if settings.add_bos else None
    eos = roles.get("eos") if settings.add_eos else None
    return Tokenizer(
        BpeModel(
            vocab,
            tuple(merges),
            byte_fallback=settings.byte_fallback,
            unk_token=roles.get("unk"),
            fuse_unk=True,
        ),
        normalizer=components.space_to_metaspace(
            add_prefix=settings.add_dummy_prefix and not is_once,
            before=_normalizers(settings, strips=not is_cut),
        ),
        pre_tokenizer=_metaspace(settings, is_cut=True, split=False) if is_once else None,
        post_processor=components.template(
            (bos, vocab[bos]) if bos else None, (eos, vocab[eos]) if eos else None
        )
        if bos or eos
        else None,
        decoder=components.metaspace_decoder(strip_prefix=settings.add_dummy_prefix),
        added_tokens=_added_tokens(pieces),
        config={f"{role}_token": text for role, text in roles.items()},
        chat_template=chat_template,
        name=name,
        piece_rules=settings.rules,
    )


def _added_tokens(pieces: Sequence[Piece]) -> tuple[AddedToken, ...]:
    """Unknown and control pieces are special, user-defined ones only cut out of the text."""
    return tuple(
        AddedToken(piece.text, token_id, special=piece.type != PieceType.USER_DEFINED)
        for token_id, piece in enumerate(pieces)
        if piece.type in _CUT_OUT
    )


def _message(value: protobuf.Value) -> dict[int, protobuf.Value]:
    if not isinstance(value, bytes):
        raise protobuf.WireError("a message is a number")
    return dict(protobuf.fields(value))


def _piece(fields: Mapping[int, protobuf.Value]) -> Piece:
    if 1 not in fields:
        raise protobuf.WireError("a piece has no text")
    text = protobuf.text(fields[1])
    if not text:
        raise protobuf.WireError("a piece has an empty text")
    score = protobuf.float32(fields[2]) if 2 in fields else 0.0
    return Piece(text, score, protobuf.int32(fields.get(3, PieceType.NORMAL)))


def _settings(
    trainer: Mapping[int, protobuf.Value], normalizer: Mapping[int, protobuf.Value]
) -> Settings:
    ids = {role: protobuf.int32(trainer.get(f, _DEFAULT_IDS[role])) for f, role in _ROLES.items()}
    charsmap: Any = normalizer.get(2, b"")
    if not isinstance(charsmap, bytes):
        raise protobuf.WireError("the character map is a number")
    return Settings(
        roles={role: token_id for role, token_id in ids.items() if token_id >= 0},
        byte_fallback=bool(trainer.get(35, False)),
        add_dummy_prefix=bool(normalizer.get(3, True)),
        prefix_once=True,
        remove_extra_whitespaces=bool(normalizer.get(4, True)),
        charsmap=charsmap,
        rules=protobuf.from_trainer_spec(trainer) if trainer else None,
    )


def to_document(pieces: Sequence[Piece], settings: Settings) -> Mapping[str, Any]:
    """The `tokenizer.json`, parsed; ids are the places of the pieces."""
    unknown = settings.roles.get("unk")
    if unknown is None or unknown >= len(pieces):
        raise InvalidTokenizerError("the SentencePiece Unigram model has no unknown piece")
    check_charsmap(settings.charsmap)
    is_cut = _has_cuts(pieces)
    steps = _normalizers(settings, strips=not is_cut)
    metaspace = _metaspace(settings, is_cut=is_cut, split=True)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [asdict(token) for token in _added_tokens(pieces)],
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
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


def _has_cuts(pieces: Sequence[Piece]) -> bool:
    """Whether pieces cut the text; what follows one is no beginning: no prefix, no stripping."""
    return any(piece.type == PieceType.USER_DEFINED for piece in pieces)


def _metaspace(settings: Settings, *, is_cut: bool, split: bool) -> dict[str, Any]:
    prefixed = "first" if is_cut else "always"
    scheme = prefixed if settings.add_dummy_prefix else "never"
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}


def _normalizers(settings: Settings, *, strips: bool) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if settings.charsmap:
        charsmap = base64.b64encode(settings.charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if settings.remove_extra_whitespaces:
        if strips:  # a Strip would also take newlines and tabs
            steps.append({"type": "Replace", "pattern": {"Regex": r"\A +| +\z"}, "content": ""})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return steps


def _decoder(settings: Settings, metaspace: dict[str, Any]) -> dict[str, Any]:
    if not settings.byte_fallback:
        return metaspace
    steps = [{"type": "ByteFallback"}, {"type": "Fuse"}, metaspace]
    return {"type": "Sequence", "decoders": steps}
