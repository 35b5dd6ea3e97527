"""The bytes of a token, and the tokens of bytes: the common form of two spellings.

A byte-level vocabulary spells a token in GPT-2's byte images, a SentencePiece one in text with "▁"
for the space and "<0xNN>" for a single byte. Both are compared by the bytes that they represent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.components import SPACE

if TYPE_CHECKING:
    from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
    from vocabshift.tokenizer.tokenizer_json import TokenizerParts

BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The tokens that SentencePiece vocabularies have for bytes, by byte."""

BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
ANY_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # some vocabularies spell them in lower case

FindPieces = Callable[[bytes], list[int]]
"""From bytes to the ids that a BPE model gives for them as one piece."""


def is_byte_level(tokenizer: TokenizerParts) -> bool:
    """Whether token strings are byte images, which the pipeline shows, not the vocabulary.

    Subtle: a large SentencePiece vocabulary may hold all 256 images as ordinary characters.
    """
    parts = (tokenizer.pre_tokenizer, tokenizer.normalizer, tokenizer.decoder)
    if any(_holds(part, lambda spec: spec.get("type") == "ByteLevel") for part in parts):
        return True
    bare = all(part is None for part in parts)
    return bare and tokenizer.model.is_byte_level and not tokenizer.model.byte_fallback


def is_metaspace(tokenizer: TokenizerParts) -> bool:
    """Whether "▁" represents the space in token strings."""
    parts = (tokenizer.pre_tokenizer, tokenizer.normalizer, tokenizer.decoder)
    return not is_byte_level(tokenizer) and any(_holds(part, _names_metaspace) for part in parts)


def token_bytes(tokenizer: TokenizerParts) -> dict[int, bytes]:
    """Bytes of every token that is not special, by id; lone-byte pieces come first.

    Added tokens are spelled as in text, whatever the model's spelling.
    """
    lone_bytes, spelt, added = {}, {}, {}
    outside = {token.id: token for token in tokenizer.added_tokens}
    for token, token_id in tokenizer.model.vocab.items():
        if token_id in outside:
            continue
        if tokenizer.model.byte_fallback and (lone := ANY_BYTE_PIECE.fullmatch(token)):
            lone_bytes[token_id] = bytes([int(lone[1], 16)])
        else:
            spelt[token] = token_id
    for token_id, entry in outside.items():
        if not entry.special:
            added[token_id] = entry.content.encode()
    to_bytes = _images_bytes if is_byte_level(tokenizer) else _texts_bytes(tokenizer)
    texts = dict(zip(spelt.values(), to_bytes(list(spelt)), strict=True))
    # The order is a promise: where several tokens have the same bytes the last one is preferred.
    return {**lone_bytes, **added, **texts}


def is_superword(data: bytes) -> bool:
    """Whether there is text on both sides of a space."""
    return b" " in data.strip()


def byte_pieces(tokenizer: TokenizerParts) -> tuple[str, ...]:
    """Tokens that represent one byte: images, or "<0xNN>"."""
    vocab = tokenizer.model.vocab
    if is_byte_level(tokenizer):
        return tuple(token for token in vocab if len(token) == 1 and byte_level.is_image(token))
    return tuple(token for token in vocab if BYTE_PIECE.fullmatch(token))


def missing_byte_pieces(tokenizer: TokenizerParts) -> tuple[str, ...]:
    """Pieces of single bytes that a model needs to express any text, and lacks.

    Without them bytes are dropped, or become the unknown token, and do not come back. Empty for a
    model that falls back on no bytes: its unknown token is meant.
    """
    model = tokenizer.model
    if is_byte_level(tokenizer):
        return tuple(image for image in byte_level.ALPHABET if image not in model.vocab)
    if not model.byte_fallback:
        return ()
    return tuple(piece for piece in BYTE_PIECES if piece not in model.vocab)


def text_pieces(document: Mapping[str, Any]) -> Callable[[str], bytes]:
    """How a Unigram or WordPiece `tokenizer.json` (parsed) spells bytes of text in a token.

    Subtle: such a vocabulary may be spelled in byte images too (a Unigram model after ByteLevel).
    """
    parts = [document.get(part) for part in ("pre_tokenizer", "normalizer", "decoder")]
    if _holds(parts, lambda spec: spec.get("type") == "ByteLevel"):
        return plain_or_image
    falls_back = bool(document["model"].get("byte_fallback"))
    marks_space = _holds(parts, _names_metaspace)

    def spell(token: str) -> bytes:
        if falls_back and (lone := ANY_BYTE_PIECE.fullmatch(token)):
            return bytes([int(lone[1], 16)])
        return (token.replace(SPACE, " ") if marks_space else token).encode()

    return spell


def texts_of_tokens(tokenizer: AnyTokenizer) -> dict[int, str]:
    """Text of every token whose bytes are whole UTF-8, special tokens left out, by id."""
    texts = {}
    for token_id, spelled in tokenizer.token_bytes.items():
        try:
            texts[token_id] = spelled.decode()
        except UnicodeDecodeError:
            continue
    return texts


def piece_finder(tokenizer: TokenizerParts) -> FindPieces:
    """The tokenizer's BPE model as a function of bytes: no normalizer, no pre-tokenizer.

    Bytes that the model cannot express are left out; a piece without any yields an empty list.
    """
    model = tokenizer.backend.model  # one wrapper for all calls: each access makes a new one
    if is_byte_level(tokenizer):
        return lambda data: [piece.id for piece in model.tokenize(byte_level.to_image(data))]
    vocab, unknown = tokenizer.model.vocab, tokenizer.model.unk_token
    space = SPACE if is_metaspace(tokenizer) else " "

    def find(data: bytes) -> list[int]:
        ids: list[int] = []
        for run in _runs(data):
            if isinstance(run, str):
                ids += [piece.id for piece in model.tokenize(run.replace(" ", space))]
                continue
            for byte in run:
                token_id = vocab.get(f"<0x{byte:02X}>", vocab.get(unknown or ""))
                if token_id is not None:
                    ids.append(token_id)
        return ids

    return find


def plain_or_image(token: str) -> bytes:
    """The bytes of a byte-level token; those of its text where that is no image of bytes."""
    try:
        return byte_level.to_bytes(token)
    except KeyError:  # a token that vendors keep beside the byte-level ones, in plain text
        return token.encode()


def _images_bytes(tokens: Sequence[str]) -> list[bytes]:
    try:
        return byte_level.all_to_bytes(tokens)
    except KeyError:
        return list(map(plain_or_image, tokens))


def _texts_bytes(tokenizer: TokenizerParts) -> Callable[[Sequence[str]], list[bytes]]:
    space = SPACE if is_metaspace(tokenizer) else " "
    return lambda tokens: [token.replace(space, " ").encode() for token in tokens]


def _runs(data: bytes) -> Iterator[str | bytes]:
    """`data` as text where it is UTF-8 and as bytes where it is not."""
    while data:
        try:
            yield data.decode()
            return
        except UnicodeDecodeError as error:
            if error.start:
                yield data[: error.start].decode()
            yield data[error.start : error.end]
            data = data[error.end :]


def _names_metaspace(spec: Mapping[str, Any]) -> bool:
    if spec.get("type") == "Metaspace":
        return True
    return spec.get("type") == "Replace" and SPACE in str(
        [spec.get("content"), spec.get("pattern")]
    )


def _holds(spec: Any, test: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether a component, or one nested in it, passes the test."""
    if isinstance(spec, Mapping):
        return test(spec) or any(_holds(value, test) for value in spec.values())
    if isinstance(spec, list | tuple):
        return any(_holds(value, test) for value in spec)
    return False
