"""Small tokenizers of both spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.bpe import byte_level
from vocabshift.bpe.components import metaspace_decoder, space_to_metaspace
from vocabshift.bpe.model import BpeModel, Merge
from vocabshift.bpe.tokenizer import AddedToken, Tokenizer

BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}
MakeTokenizer = Callable[..., Tokenizer]


def left_to_right(token: str) -> list[Merge]:
    """The merges that build a token character by character."""
    return [(token[:end], token[end]) for end in range(1, len(token))]


@pytest.fixture
def make_byte_level() -> MakeTokenizer:
    """From tokens: the 256 bytes, all their beginnings and they, then special tokens."""

    def make(*texts: str | bytes, specials: tuple[str, ...] = (), **changes: Any) -> Tokenizer:
        data = [text.encode() if isinstance(text, str) else text for text in texts]
        pairs = [pair for token in map(byte_level.to_image, data) for pair in left_to_right(token)]
        pairs = list(dict.fromkeys(pairs))
        tokens = [*byte_level.ALPHABET, *dict.fromkeys("".join(pair) for pair in pairs)]
        vocab = {token: token_id for token_id, token in enumerate(tokens)}
        added = tuple(AddedToken(text, len(vocab) + i) for i, text in enumerate(specials))
        parts = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL, "added_tokens": added}
        return Tokenizer(BpeModel(vocab, tuple(pairs)), **(parts | changes))

    return make


@pytest.fixture
def make_metaspace() -> MakeTokenizer:
    """From tokens over "▁abcA": <unk> <s> </s>, 256 byte pieces, characters, tokens."""

    def make(*texts: str, **changes: Any) -> Tokenizer:
        pairs = list(dict.fromkeys(pair for token in texts for pair in left_to_right(token)))
        roles = ["<unk>", "<s>", "</s>"]
        lone = [f"<0x{byte:02X}>" for byte in range(256)]
        tokens = [*roles, *lone, *"▁abcA", *dict.fromkeys("".join(pair) for pair in pairs)]
        model = BpeModel(
            {token: token_id for token_id, token in enumerate(tokens)},
            tuple(pairs),
            byte_fallback=True,
            unk_token="<unk>",
            fuse_unk=True,
        )
        parts = {
            "normalizer": space_to_metaspace(add_prefix=True),
            "decoder": metaspace_decoder(strip_prefix=True),
            "added_tokens": tuple(AddedToken(text, i) for i, text in enumerate(roles)),
            "config": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
        }
        return Tokenizer(model, **(parts | changes))

    return make
