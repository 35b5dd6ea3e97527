"""`tokenizer.json`: the one file that knows its layout, in both directions.

Owns: JSON text <-> Tokenizer, and the ways from a Tokenizer into `tokenizers` and transformers.
Truncation and padding are left behind: they belong to a call, and would cut or lengthen texts.
Folders are `pretrained_folder`'s; other file formats `load` tells apart.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.components import check_normalizer
from vocabshift.tokenizer.model import BpeModel, Merge, Strings
from vocabshift.tokenizer.parsed_json import DAMAGED, Parsed, no_collection, one_line, parse
from vocabshift.tokenizer.tokenizer import (
    AddedToken,
    Spec,
    Tokenizer,
    check_added,
    ids_at_load,
    vocab_with,
)

if TYPE_CHECKING:
    import tokenizers

_COMPONENTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_FLAGS = ("special", "normalized", "single_word", "lstrip", "rstrip")
_PIPELINE_KEYS = (
    *("add_bos_token", "add_eos_token", "add_prefix_space", "legacy", "from_slow", "use_fast"),
    *("auto_map", "added_tokens_decoder", "chat_template", "backend", "post_processor"),
    *("tokenizer_file", "vocab_file", "merges_file", "name_or_path", "tokenizer_class"),
    *("tokenizer_truncation", "tokenizer_padding", "processor_class", "special_tokens_map_file"),
)


def from_json(source: str | bytes | Mapping[str, Any], *, name: str = "tokenizer") -> Tokenizer:
    """The Tokenizer of a `tokenizer.json`, given as its text or its parsed object.

    InvalidTokenizerError for anything that is not a sound BPE tokenizer. Keys that do not change
    what a text is encoded to are dropped.
    """
    data = source if isinstance(source, Mapping) else parse(source)
    with no_collection():
        model = _model(data.get("model"), data.strings if isinstance(data, Parsed) else None)
    added = read_added_tokens(data.get("added_tokens"))
    check_added(added, model)
    components = {key: _component(data, key) for key in _COMPONENTS}
    _check_components(components)
    for token, given in zip(added, ids_at_load(added, model.vocab), strict=True):
        if token.id != given:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} states id {token.id}, but `tokenizers` gives "
                f"it {given} at load; correct the id, or write the token into model.vocab"
            )
    parts: dict[str, Any] = {**components, "added_tokens": added, "name": name}
    return Tokenizer(model, **parts)


def to_json(tokenizer: Tokenizer) -> str:
    """The text of `tokenizer.json`: ids as stated, vocabulary by id, merges as pairs.

    Added tokens stay outside `model.vocab` where `tokenizers` then gives them the ids stated
    here; where it would not (holes, tokens appended behind them) all are written into it.
    """
    model = tokenizer.model
    added = sorted(tokenizer.added_tokens, key=lambda token: token.id)
    check_added(added, model)
    vocab = dict(sorted(model.vocab.items(), key=lambda entry: entry[1]))
    if ids_at_load(added, vocab) != [token.id for token in added]:
        vocab = vocab_with(vocab, added)
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": write_added_tokens(added),
        **{key: getattr(tokenizer, key) for key in _COMPONENTS},
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
            "merges": model.merges,
        },
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def write_added_tokens(added: Iterable[AddedToken]) -> list[dict[str, Any]]:
    """Added tokens as `tokenizer.json` lists them."""
    return [
        {"id": token.id, "content": token.content, **{f: getattr(token, f) for f in _FLAGS}}
        for token in added
    ]


def to_backend(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """The same tokenizer in the `tokenizers` library; every added token keeps its id."""
    backend = backend_of(to_json(tokenizer))
    for token in tokenizer.added_tokens:
        got = backend.token_to_id(token.content)
        if got != token.id:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} has id {token.id}, but `tokenizers` gives it "
                f"{got}; give it an id that no token of the vocabulary has"
            )
    return backend


def to_hf(tokenizer: Tokenizer) -> Any:
    """A transformers PreTrainedTokenizerFast with roles, lengths and template of the config."""
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise ImportError(
            "to_hf() needs transformers; install it with: pip install 'vocabshift[hf]'"
        ) from error
    options = neutral_config(tokenizer.config)
    # Subtle: a copy, for transformers adds tokens and templates to the backend that it is given.
    backend = backend_of(to_json(tokenizer))
    build: Any = PreTrainedTokenizerFast
    fast = build(tokenizer_object=backend, **options)
    if tokenizer.chat_template is not None:
        fast.chat_template = tokenizer.chat_template
    return fast


def open_auto(folder: str | Path) -> Any:
    """What transformers' AutoTokenizer makes of a folder, offline and without running its code."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=False
    )


def neutral_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A tokenizer config without the keys by which transformers changes the pipeline it loads.

    `tokenizer.json` holds the whole pipeline: with these keys transformers would rebuild its
    template, its prefix space or its added tokens, or look for files that are not there.
    """
    kept = {key: value for key, value in config.items() if key not in _PIPELINE_KEYS}
    return kept | {"clean_up_tokenization_spaces": False}


def _model(data: Any, strings: Strings | None) -> BpeModel:
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
    vocab = data.get("vocab")
    if not isinstance(vocab, Mapping) or not vocab:
        raise InvalidTokenizerError(f"model.vocab is no object with tokens; {DAMAGED}")
    if strings is None and set(map(type, vocab.values())) != {int}:
        token = next(token for token, token_id in vocab.items() if type(token_id) is not int)
        raise InvalidTokenizerError(f"the id of {token!r} in model.vocab is not a whole number")
    flags = ("ignore_merges", "byte_fallback", "fuse_unk")
    texts = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    options: dict[str, Any] = {key: data.get(key) or False for key in flags}
    options |= {key: data.get(key) for key in texts}
    for key, value in options.items():
        if not isinstance(value, bool if key in flags else str | None):
            raise InvalidTokenizerError(f"model.{key} is {value!r}; {DAMAGED}")
    merges = data["merges"] if strings is not None else _merges(data.get("merges"))
    return BpeModel(vocab, merges, strings=strings, **options)


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


def _component(data: Mapping[str, Any], key: str) -> Spec | None:
    value = data.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidTokenizerError(f"{key} is neither an object nor null; {DAMAGED}")
    return value


def _check_components(components: Mapping[str, Spec | None]) -> None:
    """Let `tokenizers` read them around an empty model, which is cheap."""
    check_normalizer(components["normalizer"])
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


# A name for what a tokenizer does to text, by which its ids are known again.
#
# Owns which parts count: all that decides the ids of a text. Templates, decoder, roles and the
# tokenizer's own name do not.


def fingerprint(tokenizer: Tokenizer) -> str:
    """Sixteen hex digits; equal for tokenizers that give text the same ids in the same way."""
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


def _bare(tokenizer: Tokenizer) -> Tokenizer:
    """It without vocabulary and merges, and without what does not change the ids of a text."""
    model = tokenizer.model.unchecked(vocab={}, merges=())
    return replace(tokenizer, model=model, post_processor=None, decoder=None)
