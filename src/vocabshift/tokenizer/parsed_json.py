"""The text of a `tokenizer.json` as an object, and the model that the object holds.

The core reads the long values (vocabulary and merges) if they contain nothing unusual. Owns the
checks of a `model` object, for BPE, Unigram and WordPiece.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import model as models
from vocabshift.tokenizer.components import DAMAGED
from vocabshift.tokenizer.model import MAX_ID, BpeModel, Merge, Strings, no_collection


class Parsed(dict[str, Any]):
    """An object of a JSON file; `strings`: of the BPE model in it, where the core has read one.
    Then the object itself has null for its vocabulary and merges."""

    strings: Strings | None = None


def parse(source: str | bytes) -> Parsed:
    """A JSON object from text or UTF-8 bytes, or InvalidTokenizerError."""
    try:
        data = source.encode() if isinstance(source, str) else source
        with no_collection():
            parsed = _parse_model_apart(data) or _parse(data)
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidTokenizerError(f"this is not JSON in UTF-8: {one_line(error)}") from None
    if not isinstance(parsed, dict):
        raise InvalidTokenizerError(f"the JSON holds no object; {DAMAGED}")
    return parsed if isinstance(parsed, Parsed) else Parsed(parsed)


def _parse_model_apart(data: bytes) -> Parsed | None:
    """With the model read by the core; None where that, or the rest, is out of order."""
    read = models.read_json(data, MAX_ID)
    if read is None:
        return None
    try:
        parsed = Parsed(_parse(read[1]))
    except ValueError:  # the whole is reported
        return None
    if parsed["model"].get("type", "BPE") != "BPE":
        return None
    parsed.strings = read[0]
    return parsed


def _parse(data: bytes) -> Any:
    text = data.decode("utf-8-sig")
    parsed = json.loads(text)
    if "\\ud" in text or "\\uD" in text:
        json.dumps(parsed, ensure_ascii=False).encode()  # half a surrogate pair is not valid text
    return parsed


def one_line(error: BaseException) -> str:
    """What a library says, short enough for a message."""
    return " ".join(str(error).split())[:200]


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


def read_bpe_model(data: Mapping[str, Any]) -> BpeModel:
    """The BPE model of a parsed `tokenizer.json`; InvalidTokenizerError for any other."""
    strings = data.strings if isinstance(data, Parsed) else None
    with no_collection():
        return _bpe_model(data.get("model"), strings)


def _bpe_model(data: Any, strings: Strings | None) -> BpeModel:
    if not isinstance(data, Mapping):
        raise InvalidTokenizerError(f"there is no `model` object; {DAMAGED}")
    # Old files name no type; only a BPE model has merges.
    kind = data.get("type", "BPE" if "merges" in data else "unknown")
    if kind != "BPE":
        raise InvalidTokenizerError(f"the model is of type {kind!r}, not BPE; only BPE is read")
    if data.get("dropout"):
        raise InvalidTokenizerError(
            f"the model has dropout {data['dropout']!r}, which makes its ids random; set it to null"
        )
    vocab = {} if strings is not None else _vocab(data.get("vocab"))
    flags = ("ignore_merges", "byte_fallback", "fuse_unk")
    texts = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    options: dict[str, Any] = {key: data.get(key) or False for key in flags}
    options |= {key: data.get(key) for key in texts}
    for key, value in options.items():
        if not isinstance(value, bool if key in flags else str | None):
            raise InvalidTokenizerError(f"model.{key} is {value!r}; {DAMAGED}")
    if strings is not None:
        return BpeModel.of_strings(strings, **options)
    return BpeModel(vocab, _merges(data.get("merges")), **options)


def _vocab(vocab: Any) -> Mapping[str, int]:
    if not isinstance(vocab, Mapping) or not vocab:
        raise InvalidTokenizerError(f"model.vocab is no object with tokens; {DAMAGED}")
    if set(map(type, vocab.values())) != {int}:
        token = next(token for token, token_id in vocab.items() if type(token_id) is not int)
        raise InvalidTokenizerError(f"the id of {token!r} in model.vocab is not a whole number")
    return vocab


def _merges(data: Any) -> tuple[Merge, ...]:
    """Merges given as "a b" strings (the older form) or as pairs."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InvalidTokenizerError(f"model.merges is no list; {DAMAGED}")
    kinds = set(map(type, data))
    if kinds == {str}:
        merges = [tuple(line.split(" ")) for line in data if not line.startswith("#version")]
    elif kinds <= {list, tuple}:
        merges = list(map(tuple, data))
        if set(map(type, itertools.chain.from_iterable(merges))) - {str}:
            raise InvalidTokenizerError(f"a merge joins something that is no string; {DAMAGED}")
    else:
        raise InvalidTokenizerError(f"model.merges mixes strings and other values; {DAMAGED}")
    if set(map(len, merges)) - {2}:
        rank = next(rank for rank, merge in enumerate(merges) if len(merge) != 2)
        raise InvalidTokenizerError(f"merge {rank} does not join two tokens: {data[rank]!r}")
    return tuple(merges)


def check_other_model(model: Mapping[str, Any], kind: str) -> None:
    """InvalidTokenizerError for a Unigram or WordPiece model without a sound vocabulary, or with an
    unknown token that is none."""
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
        and abs(entry[1]) <= sys.float_info.max  # an int may be larger; NaN is not
    )
