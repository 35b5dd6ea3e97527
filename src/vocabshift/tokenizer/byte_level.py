"""The GPT-2 printable image of bytes: how byte-level vocabularies spell their tokens.

Every byte has one printable character (space is "Ġ", newline "Ċ"), so a token that is not whole
UTF-8 is still a string. Source: GPT-2's encoder, as `tokenizers` ships it (ByteLevel).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise


def _byte_images() -> tuple[str, ...]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    images, spare = [], 0x100
    for byte in range(256):
        if byte in printable:
            images.append(chr(byte))
        else:
            images.append(chr(spare))
            spare += 1
    return tuple(images)


BYTE_IMAGES = _byte_images()
"""Printable character of each byte, by byte value."""

IMAGE_BYTES = {image: byte for byte, image in enumerate(BYTE_IMAGES)}
"""Byte of each printable character."""

ALPHABET = tuple(sorted(BYTE_IMAGES))
"""The 256 images by code point: the order in which `tokenizers`' trainer numbers them."""

_TO_BYTES = {ord(image): byte for image, byte in IMAGE_BYTES.items()}
_TO_IMAGES = dict(enumerate(BYTE_IMAGES))


def to_image(data: bytes) -> str:
    """Spell bytes in the byte-level alphabet."""
    return "".join(map(BYTE_IMAGES.__getitem__, data))


def all_to_images(tokens: Sequence[bytes]) -> list[str]:
    """`to_image` of many tokens at once, ten times as fast."""
    text = b"".join(tokens).decode("latin-1").translate(_TO_IMAGES)
    ends = accumulate(map(len, tokens), initial=0)
    return [text[begin:end] for begin, end in pairwise(ends)]


def to_bytes(token: str) -> bytes:
    """Bytes of a byte-level token; KeyError where a character is not of the alphabet."""
    return bytes(map(IMAGE_BYTES.__getitem__, token))


def all_to_bytes(tokens: Sequence[str]) -> list[bytes]:
    """`to_bytes` of many tokens at once, ten times as fast; KeyError likewise."""
    text = "".join(tokens)
    for character in set(text):
        IMAGE_BYTES[character]  # KeyError
    data = text.translate(_TO_BYTES).encode("latin-1")
    ends = list(accumulate(map(len, tokens), initial=0))
    return [data[begin:end] for begin, end in pairwise(ends)]


def is_image(token: str) -> bool:
    """Whether every character of `token` is the image of a byte."""
    return all(ord(character) in _TO_BYTES for character in token)
