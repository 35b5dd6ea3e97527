"""Reading and writing `tokenizer.json`.

Owns the layout of the file for a BPE tokenizer (`TokenizerParts`). Truncation and padding are
dropped: they belong to a call, and would cut or lengthen texts. `pretrained_folder` handles
folders; `formats.load` detects other file formats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.added_tokens import (
    AddedToken,
    check_added,
    ids_at_load,
    read_added_tokens,
    vocab_with,
    write_added_tokens,
)
from vocabshift.tokenizer.components import DAMAGED, STEPS, Spec, check_components
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.parsed_json import one_line, parse, read_bpe_model

if TYPE_CHECKING:
    import tokenizers


@dataclass(frozen=True, eq=False)
class TokenizerParts:
    """A BPE model and the components around it: all that `tokenizer.json` holds."""

    model: BpeModel  # vocabulary and merges
    normalizer: Spec | None = None  # what changes the text first
    pre_tokenizer: Spec | None = None  # what cuts it into pre-tokens
    post_processor: Spec | None = None  # what puts special tokens around a text
    decoder: Spec | None = None  # from tokens back to text
    added_tokens: tuple[AddedToken, ...] = ()  # cut out of the text before the model sees it

    @cached_property
    def backend(self) -> tokenizers.Tokenizer:
        """The same tokenizer in the `tokenizers` library; every added token keeps its id."""
        backend = backend_of(to_json(self))
        for token in self.added_tokens:
            got = backend.token_to_id(token.content)
            if got != token.id:
                raise InvalidTokenizerError(
                    f"the added token {token.content!r} has id {token.id}, but `tokenizers` gives "
                    f"it {got}; give it an id that no token of the vocabulary has"
                )
        return backend

    def __getstate__(self) -> dict[str, Any]:
        """For other processes and for caches: the fields, without what was computed from them, so
        that the bytes are the same whatever was done before."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def read(source: str | bytes | Mapping[str, Any]) -> TokenizerParts:
    """What a `tokenizer.json` holds, given as its text or its parsed object.

    InvalidTokenizerError for anything that is not a sound BPE tokenizer. Keys that do not change
    what a text is encoded to are dropped.
    """
    data = source if isinstance(source, Mapping) else parse(source)
    model = read_bpe_model(data)
    added = read_added_tokens(data.get("added_tokens"))
    check_added(added, model)
    components = {key: _component(data, key) for key in STEPS}
    _check_components(components)
    for token, given in zip(added, ids_at_load(added, model), strict=True):
        if token.id != given:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} states id {token.id}, but `tokenizers` gives "
                f"it {given} at load; correct the id, or write the token into model.vocab"
            )
    return TokenizerParts(model, **components, added_tokens=added)


def to_json(tokenizer: TokenizerParts) -> str:
    """The text of `tokenizer.json`: ids as stated, vocabulary by id, merges as pairs.

    Added tokens stay outside `model.vocab` where `tokenizers` then gives them the ids stated
    here; where it would not (holes, tokens appended after them) all are written into it.
    """
    model = tokenizer.model
    added = sorted(tokenizer.added_tokens, key=lambda token: token.id)
    check_added(added, model)
    vocab, merges = None, None
    is_apart = ids_at_load(added, model) == [token.id for token in added]
    is_in_core = is_apart and "_strings" in vars(model)
    if not is_in_core:
        vocab, merges = dict(sorted(model.vocab.items(), key=lambda entry: entry[1])), model.merges
        vocab = vocab if is_apart else vocab_with(vocab, added)
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": write_added_tokens(added),
        **{key: getattr(tokenizer, key) for key in STEPS},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": model.unk_token,
            "continuing_subword_prefix": model.continuing_subword_prefix,
            "end_of_word_suffix": model.end_of_word_suffix,
            "fuse_unk": model.fuse_unk,
            "byte_fallback": model.byte_fallback,
            "ignore_merges": model.ignore_merges,
            "vocab": vocab,
            "merges": merges,
        },
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    if not is_in_core:
        return text
    head = text.removesuffix('"vocab":null,"merges":null}}')
    strings = model.strings
    return f'{head}"vocab":{strings.vocab_json()},"merges":{strings.merges_json()}}}}}'


def _component(data: Mapping[str, Any], key: str) -> Spec | None:
    value = data.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidTokenizerError(f"{key} is neither an object nor null; {DAMAGED}")
    return value


def _check_components(components: Mapping[str, Spec | None]) -> None:
    """Let `tokenizers` read them around an empty model, which is cheap."""
    check_components(components)
    model = {"type": "BPE", "vocab": {}, "merges": []}
    document: dict[str, Any] = {"version": "1.0", "added_tokens": [], **components, "model": model}
    backend_of(json.dumps(document, ensure_ascii=False))


def backend_of(text: str) -> tokenizers.Tokenizer:
    """What `tokenizers` makes of the text of a `tokenizer.json`, or InvalidTokenizerError."""
    from tokenizers import Tokenizer as Backend

    try:
        return Backend.from_str(text)
    except BaseException as error:
        # A Rust panic is a BaseException; its class cannot be imported.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise InvalidTokenizerError(
                f"`tokenizers` does not accept it: {one_line(error)}"
            ) from None
        raise


def fingerprint(tokenizer: TokenizerParts) -> str:
    """Sixteen hex digits; equal for tokenizers that give text the same ids in the same way.

    All counts that decides the ids of a text. Templates, decoder, roles and the tokenizer's own
    name do not.
    """
    # Whether added tokens stand in the vocabulary too is a matter of writing.
    vocab = vocab_with(dict(tokenizer.model.vocab), tokenizer.added_tokens)
    merges = chain.from_iterable(tokenizer.model.merges)
    digest = hashlib.sha256()
    for part in (
        to_json(_bare(tokenizer)),
        # Long lists, flat: nested ones take twice the time.
        json.dumps(list(vocab), ensure_ascii=False),
        json.dumps(list(vocab.values())),
        json.dumps(list(merges), ensure_ascii=False),
    ):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()[:16]


def _bare(tokenizer: TokenizerParts) -> TokenizerParts:
    """It without vocabulary and merges, and without what does not change the ids of a text."""
    model = tokenizer.model.unchecked(vocab={}, merges=())
    return TokenizerParts(
        model,
        tokenizer.normalizer,
        tokenizer.pre_tokenizer,
        added_tokens=tokenizer.added_tokens,
    )
