"""Special tokens across a change of tokenizer: their matching, and the ids in the configs.

Owns the matching of special tokens (same text first, then same role), the enlarged new tokenizer
that holds every special token of the old one, and the ids in `config.json` and
`generation_config.json`. The new tokenizer is never renumbered: missing tokens are appended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import special_texts
from vocabshift.tokenizer.added_tokens import (
    GIVEN_ROLES,
    AddedToken,
    given_by_name,
    role_text,
    use_of,
)
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer

ROLES = ("eos", "bos", "pad", "unk", "sep", "cls", "mask")
"""In the order in which they choose: a new token with several roles takes the row of the first."""


@dataclass(frozen=True)
class SpecialTokens:
    """The enlarged new tokenizer, and how its special tokens match the old ones."""

    tokenizer: Tokenizer
    new_to_old: Mapping[int, int]  # ids of matched and of appended tokens
    old_to_new: Mapping[int, int]  # of all old special tokens
    by_role: Mapping[str, tuple[int, int]]  # role -> (old id, new id), where both have the role
    given: Mapping[str, int] = field(default_factory=dict)
    """Role -> new id, of roles that were given to other tokens on purpose (`extend --role`)."""


def match_specials(
    old: Tokenizer,
    new: Tokenizer,
    model_ids: Mapping[str, int] | None = None,
    same: Mapping[int, int] | None = None,
) -> SpecialTokens:
    """Match the special tokens of two tokenizers and append to `new` those it lacks.

    `model_ids`: role -> old id as the model's config says it, for roles that the old tokenizer
    leaves open. `same`: new id -> old id of tokens that the user says to be one: of a special
    token of the old tokenizer it then is the new name.
    """
    kept = [token for token in old.added_tokens if _is_kept(token, old)]
    old_roles = _old_roles(old, model_ids or {})
    new_roles = _roles(new)
    ids = _ids(new)
    pairs = {token.content: ids[token.content] for token in kept if token.content in ids}
    taken = set(pairs.values())
    renamed: dict[str, str] = {}  # old text -> new text, of tokens matched by role alone
    contents = {token.content for token in kept}
    _rename(old, new, contents, same or {}, pairs=pairs, renamed=renamed)
    taken = set(pairs.values())
    for role in ROLES:
        old_text, new_text = old_roles.get(role), new_roles.get(role)
        if old_text not in contents or new_text not in ids or old_text in pairs:
            continue
        assert old_text is not None and new_text is not None
        if ids[new_text] not in taken and new_text not in contents:
            pairs[old_text] = ids[new_text]
            taken.add(ids[new_text])
            renamed[old_text] = new_text
    appended = _append(new, [token for token in kept if token.content not in pairs])
    pairs |= {token.content: token.id for token in appended}
    enlarged = replace(new, added_tokens=_added_tokens(new, kept, appended))
    old_to_new = {token.id: pairs[token.content] for token in kept}
    old_ids, ids = _ids(old), _ids(enlarged)
    shared = _same_row(old_roles, new_roles, old_ids, ids, old_to_new)
    shared = _same_use(kept, enlarged, {*old_to_new.values(), *shared}) | shared
    by_role: dict[str, tuple[int, int]] = {}
    for role, text in old_roles.items():
        own = ids.get(new_roles.get(role, ""), -1)
        if text in pairs:
            # The new tokenizer's own token for it, where several share the row of one old token.
            shares = text in renamed and shared.get(own) == old_ids[text]
            by_role[role] = (old_ids[text], own if shares else pairs[text])
    given = given_roles(enlarged)
    by_role |= {
        role: (by_role[role][0], new_id) for role, new_id in given.items() if role in by_role
    }
    texts = {token_id: text for text, token_id in ids.items()}
    said = {role: texts[new_id] for role, (_, new_id) in by_role.items() if role in _roles(old)}
    return SpecialTokens(
        tokenizer=special_texts.follow(enlarged, old, renamed, said),
        new_to_old={new_id: old_id for old_id, new_id in old_to_new.items()} | shared,
        old_to_new=old_to_new,
        by_role=by_role,
        given=given,
    )


def _rename(
    old: Tokenizer,
    new: Tokenizer,
    contents: set[str],
    same: Mapping[int, int],
    *,
    pairs: dict[str, int],
    renamed: dict[str, str],
) -> None:
    """Rename special tokens of the old tokenizer to the new ones that `same` gives for them."""
    old_texts = {token_id: text for text, token_id in _ids(old).items()}
    new_texts = {token_id: text for text, token_id in _ids(new).items()}
    for new_id, old_id in same.items():
        old_text, new_text = old_texts[old_id], new_texts[new_id]
        if old_text not in contents or pairs.get(old_text) == new_id:
            continue
        if old_text in pairs or new_text in contents:
            raise VocabMismatchError(
                f"overrides make {new_text!r} of {old_text!r}, and both tokenizers have a special "
                f"token {(old_text if old_text in pairs else new_text)!r}, which keeps its row"
            )
        pairs[old_text] = new_id
        renamed[old_text] = new_text


def _same_use(kept: list[AddedToken], enlarged: Tokenizer, matched: set[int]) -> dict[int, int]:
    """New id -> old id for new special tokens that have the use of an old one under another name.

    They begin with its row; the old token stays too. Reserved ones are all alike.
    """
    old_ids: dict[str, int] = {}
    for token in kept:
        use = use_of(token.content)
        if use is not None:
            old_ids.setdefault(use, token.id)
    found: dict[int, int] = {}
    for token in enlarged.added_tokens:
        use = use_of(token.content) if token.special else None
        if use in old_ids and token.id not in matched:
            found[token.id] = old_ids[use]
    return found


def _same_row(
    old_roles: Mapping[str, str],
    new_roles: Mapping[str, str],
    old_ids: Mapping[str, int],
    new_ids: Mapping[str, int],
    old_to_new: Mapping[int, int],
) -> dict[int, int]:
    """New id -> old id for new tokens that share the role of an old one and match no other.

    GPT-2 has one token for bos, eos and pad: a new "<s>" and a new "</s>" both copy its row.
    """
    matched = set(old_to_new.values())
    same: dict[int, int] = {}
    for role in ROLES:
        old_id = old_ids.get(old_roles.get(role, ""))
        new_id = new_ids.get(new_roles.get(role, ""))
        if old_id is not None and new_id is not None and new_id not in matched:
            same.setdefault(new_id, old_id)
    return same


def given_roles(tokenizer: AnyTokenizer) -> dict[str, int]:
    """Role -> id of its token, for roles that the tokenizer was given on purpose."""
    ids = {token.content: token.id for token in tokenizer.added_tokens}
    roles = given_by_name(tokenizer.config, GIVEN_ROLES)
    return {role: ids[text] for role, text in roles.items() if role in ROLES and text in ids}


def _is_kept(token: AddedToken, old: Tokenizer) -> bool:
    """Whether the new tokenizer needs it: special, or spoken of in the chat template.

    Others, such as GPT-NeoX's runs of spaces, are part of how the old one cuts text.
    """
    template = old.chat_template or ""
    return token.special or (bool(token.content.strip()) and token.content in template)


def _append(new: Tokenizer, tokens: list[AddedToken]) -> list[AddedToken]:
    first = new.row_count
    return [replace(token, id=first + place) for place, token in enumerate(tokens)]


def _added_tokens(
    new: Tokenizer, kept: list[AddedToken], appended: list[AddedToken]
) -> tuple[AddedToken, ...]:
    """The new tokenizer's own, old ones that its vocabulary spells as plain tokens, and the rest.

    Subtle: "<s>" may be learnt as an ordinary token; it keeps its id and becomes special.
    """
    own = {token.content for token in new.added_tokens}
    promoted = [
        replace(token, id=new.model.vocab[token.content])
        for token in kept
        if token.content in new.model.vocab and token.content not in own
    ]
    return (*new.added_tokens, *promoted, *appended)


def _ids(tokenizer: Tokenizer) -> dict[str, int]:
    return {**tokenizer.model.vocab, **{t.content: t.id for t in tokenizer.added_tokens}}


def _roles(tokenizer: Tokenizer) -> dict[str, str]:
    """Role -> text of the token, as the tokenizer's own config says it."""
    found = {role: role_text(tokenizer.config, role) for role in ROLES}
    if found["unk"] is None:
        found["unk"] = tokenizer.model.unk_token
    return {role: text for role, text in found.items() if text is not None}


def _old_roles(old: Tokenizer, model_ids: Mapping[str, int]) -> dict[str, str]:
    texts = {token_id: text for text, token_id in _ids(old).items()}
    named = {role: texts[token_id] for role, token_id in model_ids.items() if token_id in texts}
    return named | _roles(old)


def roles_of_config(config: Any) -> dict[str, int]:
    """Role -> id from a model's config; of a list its first id."""
    found = {}
    for role in ROLES:
        value = getattr(config, f"{role}_token_id", None)
        first = value[0] if isinstance(value, list | tuple) and value else value
        if isinstance(first, int):
            found[role] = first
    return found
