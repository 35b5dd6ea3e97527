"""Components: the parts of a pipeline around a model, as `tokenizer.json` spells them.

Owns the components of byte-level and SentencePiece models whose file (rank file, tekken, .model,
GGUF) names none: the values are those that transformers' converters write for the same files. Owns
also where a post-processor holds ids, and which components are refused though `tokenizers` takes
them, such as a damaged character map.

And the rules for strings that may be pieces of a SentencePiece vocabulary: fields of a model's
TrainerSpec, and the characters with a role of their own. How the rules are applied is the core's
(`PieceRule`). Sources: sentencepiece_model.proto and trainer_interface.cc of sentencepiece;
docs/algorithms/continued.md.
"""

from __future__ import annotations

import base64
import functools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vocabshift.errors import InvalidTokenizerError

NEVER_IN_PIECES = "\x00\t\n \u2585"
"""No new piece holds one of these. SentencePiece keeps NUL and the tab (its boundary mark) out,
spells the space "▁", uses U+2585 for unknown text while it trains, and reads its text by lines."""


@functools.cache
def decimal_digits() -> str:
    """Return the digits of every script, single pieces under `split_digits`.

    Subtle: sentencepiece itself knows only ASCII and full-width digits (Gemma 4 has Bengali years
    as pieces); the toolkit of "Teaching Old Tokenizers New Words" splits all that Python calls
    digits.
    """
    return "".join(character for character in map(chr, range(0x20000)) if character.isdecimal())


@dataclass(frozen=True, slots=True)
class SentencePieceRules:
    """Rules of one model; by default those of Llama 2 and Mistral, which the paper's toolkit
    takes for every model.

    ValueError for a length below 1.
    """

    max_length: int = 16  # of a piece, in characters
    split_by_script: bool = True  # no piece of two scripts; kana go with Han
    split_by_number: bool = True  # otherwise digits go with every script
    split_digits: bool = True  # each decimal digit is a piece by itself
    split_by_whitespace: bool = True  # otherwise "▁" may stand inside a piece
    whitespace_as_suffix: bool = False  # "▁" ends a piece instead of beginning it
    whitespace_only: bool = True  # pieces of nothing but "▁"

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise ValueError(f"max_length is {self.max_length}; a piece has at least 1 character")


Spec = Mapping[str, Any]
"""A component as `tokenizer.json` spells it, for example {"type": "NFC"}."""

DAMAGED = "the file is damaged, or not a tokenizer.json"
"""The end of a message on a `tokenizer.json` that lacks what each one has."""

SPACE = "\u2581"
"""SentencePiece's visible space."""

BYTE_LEVEL_DECODER: dict[str, Any] = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": True,
    "use_regex": True,
}


def byte_level_processor(
    bos: tuple[str, int] | None, eos: tuple[str, int] | None = None
) -> dict[str, Any]:
    """Post-processor of a byte-level tokenizer; `bos` and `eos` (string, id) around texts."""
    if bos is None and eos is None:
        return {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": False,
            "use_regex": False,
        }
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": True,
        "trim_offsets": False,
        "use_regex": True,
    }
    return {"type": "Sequence", "processors": [byte_level, template(bos, eos)]}


def bos_template(bos: str, bos_id: int, eos: tuple[str, int] | None = None) -> dict[str, Any]:
    """The template that puts `bos` before (and `eos` after) each text."""
    return template((bos, bos_id), eos)


def template(bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> dict[str, Any]:
    """The template that puts a token (string, id), where given, before and after each text."""

    def part(sequence: str, type_id: int) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = [{"Sequence": {"id": sequence, "type_id": type_id}}]
        if bos is not None:
            steps.insert(0, {"SpecialToken": {"id": bos[0], "type_id": type_id}})
        if eos is not None:
            steps.append({"SpecialToken": {"id": eos[0], "type_id": type_id}})
        return steps

    named = [token for token in (bos, eos) if token is not None]
    return {
        "type": "TemplateProcessing",
        "single": part("A", 0),
        "pair": [*part("A", 0), *part("B", 1)],
        "special_tokens": {
            token: {"id": token, "ids": [token_id], "tokens": [token]} for token, token_id in named
        },
    }


def space_to_metaspace(*, add_prefix: bool, before: Sequence[dict[str, Any]] = ()) -> Any:
    """Normalizer of a SentencePiece model: the steps `before`, the prefix, " " to "▁".

    Subtle: this stands in the normalizer and not in a Metaspace pre-tokenizer, which adds no prefix
    to text that begins with a space.
    """
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    steps = list(before)
    if add_prefix:
        steps.append({"type": "Prepend", "prepend": SPACE})
    return {"type": "Sequence", "normalizers": [*steps, replace]} if steps else replace


def metaspace_decoder(*, strip_prefix: bool) -> dict[str, Any]:
    """Decoder of a SentencePiece model: "▁" to " ", byte pieces to bytes, the prefix away."""
    steps: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if strip_prefix:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": steps}


# The ids in a post-processor: TemplateProcessing, BertProcessing, RobertaProcessing, and Sequences
# of these.

_PAIRS = {"BertProcessing": ("sep", "cls"), "RobertaProcessing": ("sep", "cls")}


def ids_of(spec: Spec | None) -> set[int]:
    """Every id that the post-processor puts into a text."""
    found: set[int] = set()

    def see(token_id: int) -> int:
        found.add(token_id)
        return token_id

    _map_ids(spec, see)
    return found


def with_ids(spec: Spec | None, old_to_new: Mapping[int, int]) -> Spec | None:
    """The same post-processor with every id replaced.

    InvalidTokenizerError for an id that names no token.
    """

    def new_id(token_id: int) -> int:
        if token_id not in old_to_new:
            raise InvalidTokenizerError(
                f"the post-processor puts the id {token_id} into every text, and no token has it; "
                "correct the post_processor of tokenizer.json"
            )
        return old_to_new[token_id]

    mapped: Spec | None = _map_ids(spec, new_id)
    return mapped


def _map_ids(spec: Spec | None, new_id: Any) -> Any:
    if spec is None:
        return None
    kind = spec.get("type")
    if kind == "Sequence":
        return {**spec, "processors": [_map_ids(step, new_id) for step in spec["processors"]]}
    if kind in _PAIRS:
        return {**spec, **{key: [spec[key][0], new_id(spec[key][1])] for key in _PAIRS[kind]}}
    if kind == "TemplateProcessing":
        tokens = {
            name: {**entry, "ids": [new_id(token_id) for token_id in entry["ids"]]}
            for name, entry in _entries(spec["special_tokens"])
        }
        return {**spec, "special_tokens": tokens}
    return spec


def _entries(tokens: Any) -> list[tuple[str, Any]]:
    """The special tokens of a template, by name; written as an object or as a list."""
    if isinstance(tokens, Mapping):
        return list(tokens.items())
    return [(entry["id"], entry) for entry in tokens]


# SentencePiece's precompiled character map: a double-array trie, then the replacement texts, each
# ended by a zero byte. `tokenizers` does not check its bounds: a damaged map makes it panic while
# it encodes.

_LEAF = 1 << 31  # this unit is a value: an offset into the replacement texts
_HAS_LEAF = 1 << 8  # the unit at this unit's offset is a value
_BLOCK = 0xFF  # the next byte of the text is xor-ed into the lowest eight bits of a position


def check_charsmap(data: bytes) -> None:
    """InvalidTokenizerError where a step through the map could leave it; empty is identity."""
    if not data:
        return
    if not _is_sound(data):
        raise InvalidTokenizerError(
            "the precompiled character map of the normalizer is damaged; restore the file"
        )


STEPS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
"""By component of a `tokenizer.json`, the key of its sequence's steps."""


def check_components(document: Mapping[str, Any]) -> None:
    """InvalidTokenizerError for components that `tokenizers` takes and that are not read here.

    Each step names its type (`tokenizers` guesses one from the other keys), a precompiled map is
    sound, and a template has the text once.
    """
    steps = [(key, document[key]) for key in STEPS if document.get(key) is not None]
    while steps:  # a sequence may hold sequences
        key, step = steps.pop()
        if not isinstance(step, Mapping) or not isinstance(step.get("type"), str):
            raise InvalidTokenizerError(f"a step of {key} is no object with a type; {DAMAGED}")
        if step["type"] == "Sequence":
            inner = step.get(STEPS[key])
            steps += [(key, each) for each in inner] if isinstance(inner, list) else []
        elif step["type"] == "Precompiled":
            try:
                charsmap = base64.b64decode(step["precompiled_charsmap"], validate=True)
            except (KeyError, TypeError, ValueError):
                raise InvalidTokenizerError("the precompiled_charsmap is not base64") from None
            check_charsmap(charsmap)
        elif step["type"] == "TemplateProcessing":
            single = step.get("single")
            parts = single if isinstance(single, list) else []
            times = sum(isinstance(part, Mapping) and "Sequence" in part for part in parts)
            if times != 1:
                raise InvalidTokenizerError(
                    f"the template of the post-processor has the text {times} times, not once; "
                    "correct `single` in it"
                )


def _is_sound(data: bytes) -> bool:
    if len(data) < 8:
        return False
    (trie_size,) = struct.unpack_from("<I", data)
    if trie_size % 4 or not 4 <= trie_size <= len(data) - 4:
        return False
    units = struct.unpack_from(f"<{trie_size // 4}I", data, 4)
    texts = data[4 + trie_size :]
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError:
        return False
    for position, unit in enumerate(units):
        if unit & _LEAF and position:  # the first unit is followed whatever it is
            continue
        base = position ^ ((unit >> 10) << ((unit & (1 << 9)) >> 6))
        if base | _BLOCK >= len(units):
            return False
        if unit & _HAS_LEAF:
            start = units[base] & ~_LEAF
            # Inside the texts, and not inside a character.
            if start >= len(texts) or texts[start] & 0xC0 == 0x80:
                return False
    return True
