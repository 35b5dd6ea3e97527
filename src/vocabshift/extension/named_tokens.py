"""Words and special tokens that are added by name: the request, and the special tokens themselves.

Owns the options of both, the list of words, special tokens with their roles and descriptions, and
what follows a role: the config, the post-processor, the chat template. `words` adds words.

A description is kept in the tokenizer's config (`tokenizer.added_tokens.DESCRIPTIONS`): `transfer`
makes the row of the token from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from typing import Annotated, Any

from vocabshift.extension.options import check_known
from vocabshift.tokenizer.added_tokens import (
    DESCRIPTIONS,
    GIVEN_ROLES,
    AddedToken,
    check_special_tokens,
    given_by_name,
    write_added_tokens,
)
from vocabshift.tokenizer.pretrained_folder import ROLES
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram import grown, with_parts
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

AnyKind = Tokenizer | UnigramOrWordPieceTokenizer

WORD_FORMS: Mapping[str, str] = {
    "both": "after a space, and without one before it",
    "spaced": "after a space alone",
    "bare": "without a space before it alone",
}
"""Where a given word is to be one token -> the same, in one line."""

WORDS_AS: Mapping[str, str] = {
    "tokens": "tokens of the vocabulary; an added token where that is impossible",
    "added-tokens": "added tokens, cut out of the text before anything else",
}
"""What a given word becomes -> the same, in one line."""


@dataclass(frozen=True, kw_only=True)
class NamedTokens:
    """Words and special tokens to add by name; `vocabshift.json` records it."""

    words: tuple[str, ...] = ()
    """Each becomes one token."""
    word_forms: Annotated[str, WORD_FORMS] = "both"
    """Where a word is to be one token."""
    words_as: Annotated[str, WORDS_AS] = "tokens"
    """What a word becomes."""
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    """Special token -> what it stands for; "" where nothing is said."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role (bos, eos, pad, …) -> the special token that plays it from now on."""

    def __post_init__(self) -> None:
        check_known("word_forms", self.word_forms, WORD_FORMS)
        check_known("words_as", self.words_as, WORDS_AS)
        check_special_tokens(self.special_tokens)
        for role, token in self.roles.items():
            if role not in ROLES or role == "unk":
                known = ", ".join(each for each in ROLES if each != "unk")
                raise ValueError(f"{role!r} is no role that a token can be given; give {known}")
            if not token:
                raise ValueError(f"the role {role} is given no token")

    def __bool__(self) -> bool:
        return bool(self.words or self.special_tokens or self.roles)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; words, which may be many, by their hash."""
        lines = "".join(f"{word}\n" for word in self.words).encode("utf-8", "surrogatepass")
        words = {
            "words": len(self.words),
            "words_sha256": hashlib.sha256(lines).hexdigest(),
            "word_forms": self.word_forms,
            "words_as": self.words_as,
        }
        return {
            **(words if self.words else {}),
            **({"special_tokens": dict(self.special_tokens)} if self.special_tokens else {}),
            **({"roles": dict(self.roles)} if self.roles else {}),
        }


NOTHING = NamedTokens()


def read_words(source: Iterable[str] | str | Path) -> tuple[str, ...]:
    """The words of a list, or of a file with one a line: each once, in order.

    Spaces around a word and empty lines do not count. ValueError for a list without a word, or a
    file that is not UTF-8; OSError for one that cannot be read.
    """
    name = "the list of words"
    lines: Iterable[str]
    if isinstance(source, str | Path):
        name = str(source)
        try:
            lines = Path(source).read_bytes().decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name} is not UTF-8 (byte {error.start}); save it as UTF-8, one word a line"
            ) from None
    else:
        lines = source
    words = tuple(dict.fromkeys(word for line in lines if (word := line.strip())))
    if not words:
        raise ValueError(f"{name} holds no word; give one a line")
    return words


def described(tokens: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    """Special tokens with what they stand for, "" where nothing is said; from tokens alone too."""
    if isinstance(tokens, str):
        raise TypeError("special_tokens is a str; give a list of str, or {token: description}")
    return dict(tokens) if isinstance(tokens, Mapping) else dict.fromkeys(tokens, "")


@dataclass(frozen=True)
class SpecialRow:
    """One special token of the request."""

    token: str
    id: int
    how: str  # "added"; "promoted": it was an ordinary token; "present"
    description: str
    role: str  # "" for none


def with_special_tokens(
    tokenizer: AnyKind, named: NamedTokens, *, free_ids: Iterable[int] = ()
) -> tuple[AnyKind, tuple[SpecialRow, ...]]:
    """Add the special tokens of `named`, and give the roles; ids that there are keep their places.

    A token that is special already stays as it is. An ordinary token of the same text becomes a
    special one and keeps its id. New ids come after all others, or are `free_ids` (BPE alone).

    With a role for bos, eos, sep or cls, the token takes the place of the one that had it in the
    post-processor and the chat template too, unless that one has another role.
    ValueError for a role whose token is no special one, or for a text that the vocabulary spells
    another token with.
    """
    own = {token.content: token for token in tokenizer.added_tokens}
    ids = chain(free_ids, count_from(tokenizer.row_count))
    made: dict[str, AddedToken] = {}
    how: dict[str, str] = {}
    for content in named.special_tokens:
        known = tokenizer.vocab.get(content)
        if content in own:
            how[content] = "present" if own[content].special else "promoted"
            made[content] = replace(own[content], special=True)
            continue
        if known is not None and tokenizer.token_bytes.get(known) != content.encode():
            raise ValueError(
                f"the vocabulary of {tokenizer.name} spells another text as {content!r}; give the "
                "special token another name"
            )
        how[content] = "added" if known is None else "promoted"
        made[content] = AddedToken(content, next(ids) if known is None else known)
    longer = _with_added_tokens(tokenizer, made)
    contents = {token.content: token for token in longer.added_tokens}
    for role, content in named.roles.items():
        if content not in contents or not contents[content].special:
            raise ValueError(
                f"the role {role} is given to {content!r}, which is no special token of "
                f"{tokenizer.name}; add it with --special"
            )
    described = {text: about for text, about in named.special_tokens.items() if about}
    longer = _with_roles(longer, named.roles)
    longer = replace(longer, config=_config(longer.config, described, named.roles))
    roles = {content: role for role, content in named.roles.items()}
    rows = tuple(
        SpecialRow(content, contents[content].id, how[content], about, roles.get(content, ""))
        for content, about in named.special_tokens.items()
    )
    return longer, rows


def _with_added_tokens(tokenizer: AnyKind, made: Mapping[str, AddedToken]) -> AnyKind:
    """The tokenizer with these added tokens, in the place of those with the same text."""
    old = tuple(made.get(token.content, token) for token in tokenizer.added_tokens)
    known = {token.content for token in old}
    new = tuple(token for content, token in made.items() if content not in known)
    if isinstance(tokenizer, Tokenizer):
        return replace(tokenizer, added_tokens=(*old, *new))
    if old != tokenizer.added_tokens:
        tokenizer = with_parts(tokenizer, added_tokens=write_added_tokens(old))
    return grown(tokenizer, added=new) if new else tokenizer


def _config(
    config: Mapping[str, Any], described: Mapping[str, str], roles: Mapping[str, str]
) -> dict[str, Any]:
    """The config with roles and descriptions; those of earlier steps stay."""
    changed = {**config, **{f"{role}_token": content for role, content in roles.items()}}
    for key, new in ((DESCRIPTIONS, described), (GIVEN_ROLES, roles)):
        if new:
            changed[key] = {**given_by_name(config, key), **new}
    return changed


def _with_roles(tokenizer: AnyKind, roles: Mapping[str, str]) -> AnyKind:
    """Post-processor and chat template with the tokens that have the roles from now on."""
    ids = {token.content: token.id for token in tokenizer.added_tokens}
    template, processor = tokenizer.chat_template, tokenizer.post_processor
    had = {role: tokenizer.config.get(f"{role}_token") for role in ROLES}
    moves: dict[str, str] = {}
    for role, content in roles.items():
        old = had[role]
        others = [each for each, text in had.items() if text == old and each not in roles]
        if role in _PLACED and isinstance(old, str) and old != content and not others:
            moves[old] = content
    # By way of texts that no token has, so that two tokens can change places.
    aside = {old: f"\0{number}\0" for number, old in enumerate(moves)}
    for old, held in aside.items():
        processor = _processor_with(processor, old, held, -1)
        template = None if template is None else template.replace(old, held)
    for old, content in moves.items():
        processor = _processor_with(processor, aside[old], content, ids[content])
        template = None if template is None else template.replace(aside[old], content)
    if isinstance(tokenizer, Tokenizer):
        return replace(tokenizer, post_processor=processor, chat_template=template)
    if processor != tokenizer.post_processor:
        tokenizer = with_parts(tokenizer, post_processor=processor)
    return replace(tokenizer, chat_template=template)


_PLACED = ("bos", "eos", "sep", "cls")
"""Roles whose tokens post-processors and chat templates place."""


def _processor_with(spec: Any, old: str, new: str, new_id: int) -> Any:
    """A post-processor that puts the token `new` where it put `old`."""
    kind = (spec or {}).get("type")
    if kind == "Sequence":
        inner = [_processor_with(step, old, new, new_id) for step in spec["processors"]]
        return {**spec, "processors": inner}
    if kind in ("BertProcessing", "RobertaProcessing"):
        sides = {side: [new, new_id] for side in ("sep", "cls") if spec[side][0] == old}
        return {**spec, **sides}
    if kind != "TemplateProcessing" or old not in spec["special_tokens"]:
        return spec
    tokens = {name: entry for name, entry in spec["special_tokens"].items() if name != old}
    tokens[new] = {"id": new, "ids": [new_id], "tokens": [new]}

    def moved(step: Mapping[str, Any]) -> Mapping[str, Any]:
        place = step.get("SpecialToken")
        return {"SpecialToken": {**place, "id": new}} if place and place["id"] == old else step

    steps = {side: [moved(step) for step in spec[side]] for side in ("single", "pair")}
    return {**spec, **steps, "special_tokens": tokens}
