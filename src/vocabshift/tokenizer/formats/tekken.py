"""Mistral's tekken files: JSON with byte tokens in base64, their pattern and special tokens.

Owns the format (versions v3 to v11 and later: older files list no special tokens).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.tiktoken import byte_level_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer

_NAMES = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"),
    *("<pad>", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"),
)
"""Special tokens of files that list none, as Mistral-Nemo's published tokenizer names them."""

_ROLES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def is_tekken(data: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a tekken file."""
    return isinstance(data.get("vocab"), list) and isinstance(data.get("config"), Mapping)


def from_tekken(data: Mapping[str, Any], *, name: str = "tokenizer") -> Tokenizer:
    """The Tokenizer of a tekken file; special tokens first, then the ranks that it admits."""
    config = data["config"]
    n_special = _count(config, "default_num_special_tokens")
    n_vocab = _count(config, "default_vocab_size")
    pattern = config.get("pattern")
    if not isinstance(pattern, str):
        raise InvalidTokenizerError("the tekken file names no pattern in its config")
    n_listed = len(data["vocab"])
    if n_special > n_listed or not n_special <= n_vocab <= n_special + n_listed:
        raise InvalidTokenizerError(
            f"the tekken file lists {n_listed} tokens and wants {n_vocab}, "
            f"{n_special} of them special"
        )
    ranks = _ranks(data["vocab"][: n_vocab - n_special], n_special)
    specials = _special_tokens(data.get("special_tokens"), n_special)
    contents = {token.content for token in specials}
    return byte_level_tokenizer(
        ranks,
        pattern=pattern,
        added_tokens=specials,
        vocab_before={token.content: token.id for token in specials},
        config={role: token for role, token in _ROLES.items() if token in contents},
        name=name,
    )


def _count(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if type(value) is not int or value < 0:
        raise InvalidTokenizerError(f"{key} of the tekken file is {value!r}, not a count")
    return value


def _ranks(entries: list[Any], first_id: int) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(entries):
        try:
            token = base64.b64decode(entry["token_bytes"], validate=True)
            stated = entry["rank"]
        except (TypeError, KeyError, ValueError, binascii.Error):
            raise InvalidTokenizerError(f"token {rank} of the tekken file is damaged") from None
        if stated != rank or not token or token in ranks:
            raise InvalidTokenizerError(
                f"token {rank} of the tekken file is empty, repeated or out of order"
            )
        ranks[token] = first_id + rank
    return ranks


def _special_tokens(listed: Any, count: int) -> tuple[AddedToken, ...]:
    """The listed special tokens, the ids that are left filled as Mistral does."""
    if listed is not None and not isinstance(listed, list):
        raise InvalidTokenizerError("the special tokens of the tekken file are no list")
    named = dict(enumerate(_NAMES[:count])) if not listed else {}
    for entry in listed or ():
        try:
            rank, content = entry["rank"], entry["token_str"]
        except (TypeError, KeyError):
            raise InvalidTokenizerError("a special token of the tekken file is damaged") from None
        if type(rank) is not int or not 0 <= rank < count or not isinstance(content, str):
            raise InvalidTokenizerError(
                f"the special token {content!r} of the tekken file has no rank below {count}"
            )
        named[rank] = content
    return tuple(AddedToken(named.get(rank, f"<SPECIAL_{rank}>"), rank) for rank in range(count))
