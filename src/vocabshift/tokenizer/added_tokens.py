"""Added tokens: strings that are matched in a text before the model sees it, their ids, and their
roles in chat models.

Trap: `tokenizers` ignores the id that `tokenizer.json` states for an added token; a token outside
`model.vocab` is numbered anew at load. Found with 0.22 and 0.23; held by a property test.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.components import DAMAGED
from vocabshift.tokenizer.model import MAX_ID, BpeModel

_FLAGS = ("special", "normalized", "single_word", "lstrip", "rstrip")

_CHAT_NAMES = {
    "turn start": (
        *("<|start_header_id|>", "<|header_start|>", "<|im_start|>", "<start_of_turn>"),
        *("<|START_OF_TURN_TOKEN|>", "<|start_of_role|>", "<|start|>"),
    ),
    "header end": ("<|end_header_id|>", "<|header_end|>", "<|end_of_role|>", "<|message|>"),
    "turn end": (
        *("<|eot_id|>", "<|eot|>", "<|im_end|>", "<end_of_turn>", "<|END_OF_TURN_TOKEN|>"),
        "<|end|>",
    ),
    "tool call": (
        "<|python_tag|>",
        "<|python_start|>",
        "<tool_call>",
        "[TOOL_CALLS]",
        "<|tool_call|>",
    ),
    "tool call end": ("<|python_end|>", "</tool_call>", "<|/tool_call|>"),
    "tool result": ("<tool_response>", "[TOOL_RESULTS]", "<|tool_response|>"),
    "tool result end": ("</tool_response>", "[/TOOL_RESULTS]"),
    "tools": ("<tools>", "[AVAILABLE_TOOLS]"),
    "tools end": ("</tools>", "[/AVAILABLE_TOOLS]"),
    "thought": ("<think>", "<|thinking_start|>", "[THINK]"),
    "thought end": ("</think>", "<|thinking_end|>", "[/THINK]"),
}
_USES = {name: use for use, names in _CHAT_NAMES.items() for name in names}

_RESERVED = re.compile(
    r"<\|?(?:reserved(?:_special)?_token|reserved|unused|SPECIAL|extra|dummy)_?-?\d+\|?>|"
    r"\[unused\d+\]"
)
DESCRIPTIONS = "special_token_descriptions"
"""Key of `tokenizer_config.json`: {special token: what it stands for, in words}. A model's row for
a token that it did not have is made from these."""

GIVEN_ROLES = "special_token_roles"
"""Key of `tokenizer_config.json`: {role: special token}, for roles that were given to other tokens
than the model's own. A model's config follows."""

RESERVED = "reserved"
"""The use of tokens that a family keeps for later."""


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is cut out of the text before the model sees it."""

    content: str
    id: int
    special: bool = True
    normalized: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


def role_text(config: Mapping[str, Any], role: str) -> str | None:
    """The text of a role's token in a `tokenizer_config.json`, which may spell it as an object."""
    value = config.get(f"{role}_token")
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else None


def read_added_tokens(data: Any) -> tuple[AddedToken, ...]:
    """The added tokens of a `tokenizer.json`, as listed; InvalidTokenizerError if damaged."""
    if data is None:
        return ()
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InvalidTokenizerError(f"added_tokens is no list; {DAMAGED}")
    tokens = []
    for entry in data:
        if not isinstance(entry, Mapping):
            raise InvalidTokenizerError(f"an added token is no object; {DAMAGED}")
        content, token_id = entry.get("content"), entry.get("id")
        if not isinstance(content, str) or not content or type(token_id) is not int:
            raise InvalidTokenizerError(f"an added token lacks its content or id; {DAMAGED}")
        # As `tokenizers` reads them: every flag must be there.
        flags = {key: entry.get(key) for key in _FLAGS}
        if not all(isinstance(value, bool) for value in flags.values()):
            raise InvalidTokenizerError(f"the added token {content!r} lacks a flag; {DAMAGED}")
        tokens.append(AddedToken(content, token_id, **flags))  # type: ignore[arg-type]
    return tuple(tokens)


def write_added_tokens(added: Iterable[AddedToken]) -> list[dict[str, Any]]:
    """Added tokens as `tokenizer.json` lists them."""
    return [
        {"id": token.id, "content": token.content, **{f: getattr(token, f) for f in _FLAGS}}
        for token in added
    ]


def ids_at_load(added: Iterable[AddedToken], vocab: Mapping[str, int] | BpeModel) -> list[int]:
    """Return the id that `tokenizers` assigns to each added token, read in this order.

    A token of the vocabulary has its id there; the others are numbered from the vocabulary's
    count (not its highest id) on, whatever id the file states.
    """
    if isinstance(vocab, BpeModel):
        free = itertools.count(vocab.n_tokens)
        ids = [vocab.token_id(token.content) for token in added]
    else:
        free = itertools.count(len(vocab))
        ids = [vocab.get(token.content) for token in added]
    return [next(free) if known is None else known for known in ids]


def vocab_with(vocab: dict[str, int], added: Iterable[AddedToken]) -> dict[str, int]:
    """The vocabulary with every added token written into it, by id."""
    whole = {**vocab, **{token.content: token.id for token in added}}
    return dict(sorted(whole.items(), key=lambda entry: entry[1]))


def check_added(added: Iterable[AddedToken], model: BpeModel) -> None:
    """InvalidTokenizerError where two tokens would share a text or an id."""
    contents: set[str] = set()
    owners: dict[int, str] = {}
    for token in added:
        if token.content in contents or token.id in owners:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} (id {token.id}) shares its text or its id "
                "with another added token"
            )
        contents.add(token.content)
        owners[token.id] = token.content
        found = model.token_id(token.content)
        known = token.id if found is None else found
        # The table of all tokens by id takes its time: most added tokens need no look at it.
        is_free = token.id >= model.size or found == token.id
        owner = token.content if is_free else model.tokens.get(token.id, token.content)
        if owner != token.content or known != token.id or not 0 <= token.id <= MAX_ID:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} cannot have id {token.id}: "
                + (
                    f"that is {owner!r}"
                    if owner != token.content
                    else f"the vocabulary says {known}"
                )
            )


def check_special_tokens(tokens: Iterable[str]) -> None:
    """Raise ValueError for a content that is empty, repeated or a single byte."""
    seen = set()
    for content in tokens:
        if not content:
            raise ValueError("a special token is empty; give it a content such as <|endoftext|>")
        if len(content.encode()) == 1:
            raise ValueError(
                f"the special token {content!r} is one byte, which ordinary text holds; give it a "
                "content such as <|endoftext|>"
            )
        if content in byte_level.ALPHABET:
            raise ValueError(
                f"the special token {content!r} is how a vocabulary spells one of the 256 bytes; "
                "give it a content such as <|endoftext|>"
            )
        if content in seen:
            raise ValueError(f"the special token {content!r} is given twice")
        seen.add(content)


def given_by_name(config: Mapping[str, Any], key: str) -> dict[str, str]:
    """The texts under DESCRIPTIONS or GIVEN_ROLES in a config; what is no text is left out."""
    found = config.get(key)
    if not isinstance(found, Mapping):
        return {}
    return {name: text for name, text in found.items() if text and isinstance(text, str)}


def use_of(token: str) -> str | None:
    """What a special token is for: a name shared by families, "reserved", or None."""
    if _RESERVED.fullmatch(token):
        return RESERVED
    return _USES.get(token)
