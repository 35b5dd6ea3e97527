"""The `model` object of a Unigram or WordPiece tokenizer.json: its kind, and if it is sound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.model import MAX_ID


def kind_of(data: Mapping[str, Any]) -> str:
    """The type of the model that a parsed `tokenizer.json` holds."""
    model = data.get("model")
    if not isinstance(model, Mapping):
        raise InvalidTokenizerError("there is no `model` object; this is no tokenizer.json")
    if "type" in model:
        return str(model["type"])
    if "merges" in model:
        return "BPE"
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    return "WordPiece" if "max_input_chars_per_word" in model else "unknown"


def check_model(model: Mapping[str, Any], kind: str) -> None:
    """InvalidTokenizerError for a vocabulary that is not one, or an unknown token that is none."""
    vocab = model.get("vocab")
    if kind == "Unigram":
        if not isinstance(vocab, list) or not vocab or not all(map(_is_scored, vocab)):
            raise InvalidTokenizerError("model.vocab is no list of tokens with scores")
        if len({entry[0] for entry in vocab}) != len(vocab):
            raise InvalidTokenizerError("model.vocab lists a token twice")
        unk_id = model.get("unk_id")
        if unk_id is not None and (type(unk_id) is not int or not 0 <= unk_id < len(vocab)):
            raise InvalidTokenizerError(f"model.unk_id is {unk_id!r}, which is no token")
        return
    if not isinstance(vocab, Mapping) or not vocab or set(map(type, vocab.values())) != {int}:
        raise InvalidTokenizerError("model.vocab is no object of tokens and ids")
    ids = set(vocab.values())
    if len(ids) != len(vocab) or min(ids) < 0 or max(ids) > MAX_ID:
        raise InvalidTokenizerError("model.vocab gives two tokens one id, or an id out of range")
    if not isinstance(model.get("unk_token"), str) or model["unk_token"] not in vocab:
        raise InvalidTokenizerError(f"model.unk_token {model.get('unk_token')!r} is no token")
    if not isinstance(model.get("continuing_subword_prefix", "##"), str):
        raise InvalidTokenizerError("model.continuing_subword_prefix is no text")


def _is_scored(entry: Any) -> bool:
    return (
        isinstance(entry, list | tuple)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and type(entry[1]) in (int, float)
        and math.isfinite(entry[1])
    )
