"""Special tokens of a newly trained tokenizer: given by the user, or copied from another one.

They are in `added_tokens`, not in the model, with ids after the vocabulary. Their roles (bos, eos,
pad, …), the post-processor and the chat template are copied too, so that a template written for the
other tokenizer still works.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from vocabshift.tokenizer.added_tokens import AddedToken, check_special_tokens, role_text
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.pretrained_folder import ROLES
from vocabshift.tokenizer.tokenizer import Tokenizer


def add_special_tokens(tokenizer: Tokenizer, tokens: Iterable[str]) -> Tokenizer:
    """Return the tokenizer with special tokens of these contents, ids after all others.

    A content that is already a special token is not changed.
    """
    taken = {token.content for token in tokenizer.added_tokens}
    contents = [content for content in tokens if content not in taken]
    check_special_tokens(contents)
    first = tokenizer.row_count
    added = tuple(AddedToken(content, first + i) for i, content in enumerate(contents))
    return replace(tokenizer, added_tokens=tokenizer.added_tokens + added)


def special_contents(source: Any) -> set[str]:
    """Return the contents of the special tokens of a tokenizer."""
    return {token.content for token in as_tokenizer(source).added_tokens if token.special}


def copy_special_tokens(tokenizer: Tokenizer, source: Any) -> Tokenizer:
    """Return the tokenizer with the special tokens, roles and chat template of `source`."""
    other = as_tokenizer(source)
    special = [token for token in other.added_tokens if token.special]
    first = tokenizer.row_count
    added = tuple(replace(token, id=first + i) for i, token in enumerate(special))
    ids = {token.content: token.id for token in added}
    contents = set(ids)
    roles = {
        f"{role}_token": other.config[f"{role}_token"]
        for role in ROLES
        if role_text(other.config, role) in contents
    }
    kept = {
        key: other.config[key]
        for key in ("extra_special_tokens", "additional_special_tokens", "add_bos_token")
        if key in other.config
    }
    processor = _renumbered(other.post_processor, ids)
    return replace(
        tokenizer,
        added_tokens=tokenizer.added_tokens + added,
        config={**tokenizer.config, **kept, **roles},
        chat_template=other.chat_template or tokenizer.chat_template,
        post_processor=processor or tokenizer.post_processor,
    )


def _renumbered(processor: Mapping[str, Any] | None, ids: Mapping[str, int]) -> Any:
    """Return a post-processor with the new ids of its special tokens; None without a template."""
    if processor is None:
        return None
    if processor["type"] == "Sequence":
        steps = [_renumbered(step, ids) for step in processor["processors"]]
        steps = [step for step in steps if step is not None]
        return {"type": "Sequence", "processors": steps} if steps else None
    if processor["type"] != "TemplateProcessing":
        return None
    special = {
        content: {**entry, "ids": [ids[token] for token in entry["tokens"]]}
        for content, entry in processor["special_tokens"].items()
        if all(token in ids for token in entry["tokens"])
    }
    if len(special) != len(processor["special_tokens"]):
        return None
    return {**processor, "special_tokens": special}
