"""Special tokens in the parts around a model: post-processor, roles, descriptions, chat template.

Owns how the enlarged tokenizer takes these from the old one, with the new ids and texts.
`special_ids` matches the tokens. Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.tokenizer.added_tokens import DESCRIPTIONS, given_by_name, role_text
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.components import Spec
from vocabshift.tokenizer.tokenizer import Tokenizer

_FROM_OLD = ("model_max_length", "padding_side", "truncation_side", "model_input_names")
"""Facts about the model, not about the tokenizer: they stay with the model."""

_KINDS = {
    "model_max_length": ((int, float, type(None)), "a number"),
    "model_input_names": ((list, tuple), "a list"),
}
"""Those of them that transformers uses without looking at them."""

_NAMED = ("extra_special_tokens", "model_specific_special_tokens")
"""Tokens by name, for code that asks for them: a processor asks for `image_token`."""

_NO_LIMIT = 10**9


def follow(
    tokenizer: Tokenizer, old: Tokenizer, renamed: Mapping[str, str], roles: Mapping[str, str]
) -> Tokenizer:
    """`tokenizer` with the roles of `roles`, and the old one's templates where it has none.

    `renamed`: old text -> new text of tokens that play the same role under another name;
    `roles`: role -> text of the token in `tokenizer`.
    """
    return replace(
        tokenizer,
        post_processor=_post_processor(tokenizer, old, renamed),
        config=_config(tokenizer, old, renamed, roles),
        chat_template=_chat_template(tokenizer, old, renamed),
    )


def described_tokens(old: AnyTokenizer, new: AnyTokenizer) -> dict[int, tuple[int, ...]]:
    """New id -> old ids of the description, of special tokens that only `new` has.

    The old tokenizer encodes the description as running text. A description of which it knows no
    character is left out.
    """
    about = given_by_name(new.config, DESCRIPTIONS)
    known = old.vocab.keys() | {token.content for token in old.added_tokens}
    described = [t for t in new.added_tokens if t.content in about and t.content not in known]
    ids, offsets = old.encode_batch([about[t.content] for t in described], parse_special=False)
    spans = zip(described, pairwise(offsets.tolist()), strict=True)
    rows = {token.id: tuple(ids[start:end].tolist()) for token, (start, end) in spans}
    return {token_id: row for token_id, row in rows.items() if row}


def _config(
    tokenizer: Tokenizer, old: Tokenizer, renamed: Mapping[str, str], roles: Mapping[str, str]
) -> dict[str, Any]:
    config = dict(tokenizer.config)
    config |= {f"{role}_token": text for role, text in roles.items()}
    known = {token.content for token in tokenizer.added_tokens}
    for key, value in old.config.items():
        own = value if key in _NAMED and isinstance(value, Mapping) else {}
        own = {name: text for name, text in own.items() if isinstance(text, str)}
        texts = {name: renamed.get(text, text) for name, text in own.items()}
        if texts := {name: text for name, text in texts.items() if text in known}:
            config.setdefault(key, texts)
        text = role_text(old.config, key.removesuffix("_token")) if key.endswith("_token") else None
        if text is not None and renamed.get(text, text) in known:
            config.setdefault(key, renamed.get(text, text))
    for key in _FROM_OLD:
        if key in old.config and (key not in config or _is_unlimited(config[key])):
            config[key] = old.config[key]
    for key, (kinds, needed) in _KINDS.items():
        if key in config and type(config[key]) not in kinds:
            raise InvalidTokenizerError(
                f"{key} is {config[key]!r:.40} in tokenizer_config.json; write {needed} there"
            )
    return config


def _is_unlimited(value: Any) -> bool:
    return isinstance(value, int | float) and value > _NO_LIMIT


def _chat_template(tokenizer: Tokenizer, old: Tokenizer, renamed: Mapping[str, str]) -> str | None:
    template = tokenizer.chat_template or old.chat_template
    if template is None or tokenizer.chat_template is not None:
        return template
    for text in sorted(renamed, key=len, reverse=True):
        template = template.replace(text, renamed[text])
    return template


def _post_processor(
    tokenizer: Tokenizer, old: Tokenizer, renamed: Mapping[str, str]
) -> Spec | None:
    """The new one's own; where it adds no special token, followed by the old one's template."""
    own = tokenizer.post_processor
    if _templates(own):
        return own
    steps = [_moved(spec, tokenizer, renamed) for spec in _templates(old.post_processor)]
    if not steps:
        return own
    if own is None:
        return steps[0] if len(steps) == 1 else {"type": "Sequence", "processors": steps}
    mine = list(own["processors"]) if own.get("type") == "Sequence" else [own]
    return {"type": "Sequence", "processors": [*mine, *steps]}


def _templates(spec: Spec | None) -> list[Spec]:
    """The parts of a post-processor that add special tokens."""
    if spec is None or spec.get("type") == "ByteLevel":
        return []
    if spec.get("type") == "Sequence":
        return [found for part in spec.get("processors", ()) for found in _templates(part)]
    return [spec]


def _moved(spec: Spec, tokenizer: Tokenizer, renamed: Mapping[str, str]) -> Spec:
    """A TemplateProcessing of the old tokenizer with the texts and ids of the new one."""
    if spec.get("type") != "TemplateProcessing":
        raise VocabMismatchError(
            f"the old tokenizer adds special tokens through {spec.get('type')}, which cannot be "
            "moved; give the new tokenizer a TemplateProcessing post-processor of its own"
        )
    ids = {**tokenizer.model.vocab, **{t.content: t.id for t in tokenizer.added_tokens}}
    named = {}
    for name, entry in spec["special_tokens"].items():
        texts = [renamed.get(text, text) for text in entry["tokens"]]
        lacking = [text for text in texts if text not in ids]
        if lacking:
            raise VocabMismatchError(
                f"the old tokenizer's template adds {lacking[0]!r}, which is no special token of "
                "it; mark it as one in added_tokens"
            )
        new_name = renamed.get(name, name)
        named[new_name] = {"id": new_name, "ids": [ids[text] for text in texts], "tokens": texts}
    return {
        "type": "TemplateProcessing",
        "single": _steps(spec["single"], renamed),
        "pair": _steps(spec["pair"], renamed),
        "special_tokens": named,
    }


def _steps(steps: list[Mapping[str, Any]], renamed: Mapping[str, str]) -> list[dict[str, Any]]:
    moved = []
    for step in steps:
        copy: dict[str, Any] = {kind: dict(value) for kind, value in step.items()}
        if "SpecialToken" in copy:
            name = copy["SpecialToken"]["id"]
            copy["SpecialToken"]["id"] = renamed.get(name, name)
        moved.append(copy)
    return moved
