"""hf_tokenizer: a fast transformers tokenizer whose ids come from vocabshift's core.

Owns the subclass that is made of a transformers class, and when its compiled tokenizer is out of
date. What follows after the ids (truncation, template, padding) is `batch_encoding`'s. It is among
the formats because it takes whatever `load` can open.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import os
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from vocabshift.errors import InvalidTokenizerError
from vocabshift.progress import cores
from vocabshift.storage.hub import is_there
from vocabshift.tokenizer.batch_encoding import (
    LazyEncodings,
    batch_encoding,
    settings_of_call,
    template_of,
    texts_of,
)
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer, encoding_name
from vocabshift.tokenizer.pipeline import Pipeline
from vocabshift.tokenizer.rows import Encoded, Template, rows_of
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


SHORT = 100
"""Characters; for a shorter text in a call of its own `tokenizers` takes less than our 33 µs."""


def hf_tokenizer(source: TokenizerLike) -> PreTrainedTokenizerFast:
    """A transformers tokenizer for training and evaluation code, with vocabshift's speed.

    It is the tokenizer that `AutoTokenizer.from_pretrained(source)` gives, of a subclass of its
    class with the same name. Every call takes the same arguments and returns the same result;
    `save_pretrained` writes the same files.

    Fast are `tok(...)`, `encode` and `apply_chat_template` of texts, batches, pairs and pre-split
    words, with any padding, truncation, stride, masks and tensors. The library itself encodes, at
    its own speed: for `return_offsets_mapping`, `return_assistant_tokens_mask`, `tokenize`, and
    what is asked of the BatchEncoding itself (`word_ids`, `char_to_token`, `encodings`); for
    overflowing tokens of pairs; for one text of less than 100 characters; and for a tokenizer
    that is not BPE, or whose `Encoder.engine` is "tokenizers". Changes by transformers'
    methods, of the template, the normalizer and the pre-tokenizer are seen at the next call; those
    of tokens that are made in `backend_tokenizer` itself, and do not change their number, are not.
    Threads are as of `tokenizers`, for a batch: see TOKENIZERS_PARALLELISM and RAYON_NUM_THREADS.

    `source`: a folder or Hub name; or what `load_tokenizer` and `Encoder` take besides (a file, a
    `Tokenizer`), of which a PreTrainedTokenizerFast is made; or a fast tokenizer of transformers,
    which is copied. Errors are those of `AutoTokenizer.from_pretrained` and `load_tokenizer`, and
    ValueError for a folder whose tokenizer is not fast. Code in the folder is not run: load such a
    tokenizer with transformers and give it to this function.
    """
    plain: PreTrainedTokenizerFast = _plain(source)
    if not plain.is_fast:
        raise ValueError(
            f"{source} gives a {type(plain).__name__}, which is no fast tokenizer of transformers; "
            "write a folder with vs.load_tokenizer(...).save_pretrained(FOLDER) and give that"
        )
    base: Any = type(plain)
    plain.__class__ = with_core(base)
    _compiled(plain)
    return plain


def _plain(source: Any) -> Any:
    """The tokenizer as transformers knows it, for us to change."""
    if hasattr(source, "backend_tokenizer"):
        return copy.deepcopy(source)
    is_path = isinstance(source, str | Path)
    if not is_path or encoding_name(source) or (is_there(source) and Path(source).is_file()):
        return as_tokenizer(source).to_hf()
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ImportError(
            "hf_tokenizer() needs transformers; install it with: pip install 'vocabshift[hf]'"
        ) from error
    return AutoTokenizer.from_pretrained(str(source), trust_remote_code=False)


@functools.cache
def with_core(base: Any) -> Any:
    """The subclass of a class of fast tokenizers that encodes in the core; of such a class,
    itself."""
    from transformers import PreTrainedTokenizerFast

    if issubclass(base, _CoreEncoding):
        return base
    members = {"__doc__": base.__doc__, "_plain": base}
    if base is not PreTrainedTokenizerFast and "__init__" in vars(base):
        members["__init__"] = base.__init__  # by which transformers decides how to load a class
    return type(base.__name__, (_CoreEncoding, base), members)  # the name is saved in the folder


def _unpickled(base: Any) -> Any:
    made = with_core(base)
    return made.__new__(made)


class _CoreEncoding:
    """What is put before a class of transformers.

    Versions 4 and 5 differ in which methods `__call__` goes through: `_batch_encode_plus` is of 4,
    where `_encode_plus` takes one text or pair only.
    """

    _plain: Any  # that class

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By the class of transformers: that of this object is in no module."""
        return (_unpickled, (self._plain,), *super().__reduce_ex__(protocol)[2:])

    def _add_tokens(self, *args: Any, **kwargs: Any) -> Any:
        _COMPILED.pop(self, None)  # also what a token is may change, not only how many there are
        parent: Any = super()
        return parent._add_tokens(*args, **kwargs)

    def _encode_plus(self, text: Any, text_pair: Any = None, **options: Any) -> Any:
        parent: Any = super()
        if isinstance(text, str) and text_pair is None and len(text) < SHORT:
            return parent._encode_plus(text, **options)
        is_batch = isinstance(text, list | tuple) and not hasattr(parent, "_batch_encode_plus")
        if is_batch and options.get("is_split_into_words"):
            is_batch = bool(text) and isinstance(text[0], list | tuple)
        batch: Any = text
        if not is_batch:
            batch = [(text, text_pair)] if text_pair else [text]
        elif text_pair is not None:
            fits = isinstance(text_pair, list | tuple) and len(text_pair) == len(text)
            batch = list(zip(text, text_pair, strict=True)) if fits else ()
        encoded = _encoded(self, batch, options, is_batch=is_batch)
        if encoded is not None:
            return encoded
        return parent._encode_plus(text, text_pair=text_pair, **options)

    def _batch_encode_plus(self, batch_text_or_text_pairs: Any, **options: Any) -> Any:
        encoded = _encoded(self, batch_text_or_text_pairs, options, is_batch=True)
        if encoded is not None:
            return encoded
        parent: Any = super()
        return parent._batch_encode_plus(batch_text_or_text_pairs, **options)


_OPTIONS = {
    *("add_special_tokens", "is_split_into_words", "split_special_tokens", "verbose"),
    *("padding_strategy", "pad_to_multiple_of", "padding_side"),
    *("truncation_strategy", "max_length", "stride"),
    *("return_tensors", "return_token_type_ids", "return_attention_mask", "return_length"),
    *("return_overflowing_tokens", "return_special_tokens_mask", "return_offsets_mapping"),
    "sanitize_control_tokens",
}


def _encoded(hf: Any, batch: Any, options: dict[str, Any], *, is_batch: bool) -> Any:
    """The BatchEncoding of a call; None where transformers must encode it."""
    compiled = _compiled(hf)
    in_words = bool(options.get("is_split_into_words"))
    add_special_tokens = options.get("add_special_tokens", True)
    by_library = (  # what a version does not know it refuses, or not
        options.keys() - _OPTIONS
        or options.get("return_offsets_mapping")
        or options.get("sanitize_control_tokens")
    )
    texts = None
    if compiled.pipeline is not None and not by_library and isinstance(batch, list | tuple):
        texts = texts_of(batch, in_words=in_words)
    if texts is None:
        return None
    backend, is_pair = hf._tokenizer, len(texts) == 2
    template = compiled.template(backend, is_pair, add_special_tokens)
    if template is None:
        return None
    settings = settings_of_call(hf, options)
    pipeline = compiled.pipeline_for(parse_special=not settings[2])
    sides = []
    for some, counts in texts:
        try:
            ids, offsets = pipeline.encode_batch(some, _threads() if len(some) > 1 else 1)
        except UnicodeEncodeError:  # a lone surrogate: transformers says so in its way
            return None
        bounds = offsets if counts is None else offsets[np.cumsum([0, *counts])]
        sides.append(Encoded(ids, bounds.tolist()))
    overflow = bool(options.get("return_overflowing_tokens"))
    rows = rows_of(sides, template, *settings[:2], overflow=overflow)
    if rows is None:
        return None
    arguments = {"add_special_tokens": add_special_tokens, "is_pretokenized": in_words}
    encodings = LazyEncodings(backend, batch, settings, rows, **arguments)
    return batch_encoding(hf, rows, encodings, options, is_batch=is_batch, is_pair=is_pair)


@dataclass
class _Compiled:
    """The tokenizer of a backend as it was when it looked like `state`."""

    state: tuple[Any, ...]
    pipeline: Pipeline | None  # None: transformers encodes everything
    as_text: Pipeline | None = None  # for special tokens that are only text
    post_processor: bytes | None = None  # of the templates
    templates: dict[tuple[bool, bool], Template | None] = field(default_factory=dict)

    def pipeline_for(self, *, parse_special: bool) -> Pipeline:
        assert self.pipeline is not None
        if parse_special:
            return self.pipeline
        if self.as_text is None:
            self.as_text = self.pipeline.without_special()
        return self.as_text

    def template(self, backend: Any, is_pair: bool, add_special_tokens: bool) -> Template | None:
        post_processor = _state_of(backend.post_processor)
        if post_processor != self.post_processor:
            self.post_processor, self.templates = post_processor, {}
        key = is_pair, add_special_tokens
        if key not in self.templates:
            self.templates[key] = template_of(
                backend, is_pair=is_pair, add_special_tokens=add_special_tokens
            )
        return self.templates[key]


_BPE_SETTINGS = attrgetter("dropout", "unk_token", "fuse_unk", "byte_fallback", "ignore_merges")

# Not an attribute: what is in `__dict__` is pickled, and hashed by `datasets`.
_COMPILED: WeakKeyDictionary[Any, _Compiled] = WeakKeyDictionary()
_IMPORTED_BY = os.getpid()
_BY_DIGEST: WeakValueDictionary[bytes, Pipeline] = WeakValueDictionary()
"""For copies, those in forked processes too: compiling takes a second for a large vocabulary."""


def _compiled(hf: Any) -> _Compiled:
    backend = hf._tokenizer
    state = (  # what can be seen in a few microseconds
        id(backend),
        backend.get_vocab_size(with_added_tokens=True),
        _state_of(backend.normalizer),
        _state_of(backend.pre_tokenizer),
        _settings_of_model(backend.model),
    )
    found = _COMPILED.get(hf)
    if found is None or found.state != state:
        found = _Compiled(state, _compile(hf))
        _COMPILED[hf] = found
    return found


def _settings_of_model(model: Any) -> Any:
    try:
        return _BPE_SETTINGS(model)
    except AttributeError:
        return type(model)


def _state_of(part: Any) -> bytes | None:
    return None if part is None else part.__getstate__()


def _compile(hf: Any) -> Pipeline | None:
    from transformers import PreTrainedTokenizerFast

    for name in ("_encode_plus", "_batch_encode_plus", "_convert_encoding"):
        usual = getattr(PreTrainedTokenizerFast, name, None)
        if getattr(hf._plain, name, None) is not usual:
            return None  # a class with arguments or results of its own
    text = hf._tokenizer.to_str()
    # What stands before are the last call's truncation and padding.
    digest = hashlib.sha256(text.partition('"added_tokens":')[2].encode()).digest()
    pipeline = _BY_DIGEST.get(digest)
    if pipeline is None:
        try:
            pipeline = Pipeline(Tokenizer.from_json(text), parse_special=True)
        except InvalidTokenizerError:  # Unigram and WordPiece too
            return None
        _BY_DIGEST[digest] = pipeline
    return None if pipeline.engine == "tokenizers" else pipeline


def _threads() -> int:
    """As many as `tokenizers` would use: one in a process that was forked."""
    wanted = os.environ.get("TOKENIZERS_PARALLELISM")
    if wanted is None and os.getpid() != _IMPORTED_BY:
        return 1
    if wanted is not None and wanted.lower() in ("", "off", "false", "f", "no", "n", "0"):
        return 1
    return int(os.environ.get("RAYON_NUM_THREADS") or 0) or cores()
