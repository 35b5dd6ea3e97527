"""Runs a tokenizer's components so that its ids are those of `tokenizers`; repairs a pre-tokenizer.

There are three ways: entirely in the core; in the core after a normalizer of ours or a part of
`tokenizers`; or, for the few kinds of tokenizer that the core does not support, entirely in
`tokenizers`. All three give the same ids; only speed differs. With the normalizer NFC the few texts
with characters that are new to Unicode go the second way.

A repaired pre-tokenizer lets marks and joiners follow the letters of a word. Owns which of its
steps are rewritten, and with what. How a regex is rewritten is `text.regexes`'s; what the repair
changes in a tokenizer's ids is `extension`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from vocabshift import _core
from vocabshift.errors import regex_bound
from vocabshift.text import patterns
from vocabshift.text.normalize import name_of, spec_function
from vocabshift.text.regexes import GPT2, repair_regex
from vocabshift.text.scanners import compile_pattern, cuts_of
from vocabshift.text.splits import Split
from vocabshift.tokenizer.any_tokenizer import Buffer, Ids, Offsets, join
from vocabshift.tokenizer.components import Spec
from vocabshift.tokenizer.model import compile_model
from vocabshift.tokenizer.token_bytes import is_byte_level

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

    from vocabshift.tokenizer.added_tokens import AddedToken
    from vocabshift.tokenizer.tokenizer import Tokenizer
    from vocabshift.tokenizer.tokenizer_json import TokenizerParts

Engine = Literal["core", "core behind tokenizers", "tokenizers"]


class Pipeline:
    """One tokenizer, compiled; `parse_special=False` reads special-token strings as text."""

    def __init__(
        self, tokenizer: TokenizerParts, *, parse_special: bool, model: _core.Encoder | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.parse_special = parse_special
        self._normalize: Callable[[str], str] | None = None  # outside the core, part by part
        self._is_nfc = False  # whether that is NFC alone
        self._pre_tokenizer: PreTokenizer | None = None  # likewise
        self._model: _core.Encoder | None = None
        self._core: _core.TextEncoder | None = None
        self._encode: Callable[[str], Ids | None] = lambda _: None  # what needs the core alone
        if not needs_tokenizers(tokenizer):
            self._compile(model)

    @property
    def engine(self) -> Engine:
        """What runs: the core alone, the core after parts of `tokenizers`, or `tokenizers`."""
        if self._core is None:
            return "tokenizers"
        normalizes = self._normalize is not None and not self._is_nfc
        has_parts = normalizes or self._pre_tokenizer is not None
        return "core behind tokenizers" if has_parts else "core"

    @property
    def model(self) -> _core.Encoder | None:
        """The compiled model; None where `tokenizers` runs everything."""
        return self._model

    def without_special(self) -> Pipeline:
        """The same for text in which special tokens are only text; shares the compiled model."""
        return Pipeline(self.tokenizer, parse_special=False, model=self._model)

    def _compile(self, model: _core.Encoder | None) -> None:
        spec = self.tokenizer.normalizer
        simple = simple_normalizer(spec)
        cuts = cuts_of(self.tokenizer.pre_tokenizer)
        scanner = None if cuts is None else compile_pattern(cuts.splits, cuts.byte_steps)
        if scanner is None and cuts is not None and cuts.byte_steps:
            cuts = None  # what `tokenizers` cuts is images of bytes
        if cuts is None:
            self._pre_tokenizer = self.tokenizer.backend.pre_tokenizer
        elif scanner is None:
            self._pre_tokenizer = patterns.to_tokenizers(cuts.splits)
        # Subtle: the core normalizes only what it also cuts.
        if simple is None or (self._pre_tokenizer is not None and simple != ("", "")):
            known = spec_function(spec)
            self._normalize = known or self.tokenizer.backend.normalizer.normalize_str
            self._is_nfc = name_of(spec) == "nfc"
        self._model = model or compile_model(
            self.tokenizer.model, byte_level=cuts is not None and cuts.is_byte_level
        )
        added = self.tokenizer.added_tokens
        prepend, space_becomes = simple or ("", "")
        self._core = _core.TextEncoder(
            self._model,
            raw_tokens=self._core_tokens(token for token in added if not token.normalized),
            normalized_tokens=self._core_tokens(token for token in added if token.normalized),
            prepend=prepend,
            space_becomes=space_becomes,
            to_nfc=self._is_nfc,
            metaspace=_core.Metaspace(*cuts.metaspace) if cuts and cuts.metaspace else None,
            pre_tokenizer=scanner,
        )
        if self.engine == "core":
            self._encode = self._core.encode

    def _core_tokens(self, tokens: Iterable[AddedToken]) -> list[_core.AddedToken]:
        return [
            _core.AddedToken(
                t.content, t.id, t.lstrip, t.rstrip, t.special and not self.parse_special
            )
            for t in tokens
        ]

    def encode(self, text: str) -> Ids:
        """Ids of one text, shape (n_tokens,); InvalidTokenizerError if a regex gives up on it."""
        if (ids := self._encode(text)) is not None:
            return ids
        with regex_bound():
            return self._encode_by_tokenizers(text)

    def _encode_by_tokenizers(self, text: str) -> Ids:
        if self._core is None:
            backend = self.tokenizer.backend
            backend.encode_special_tokens = not self.parse_special
            return np.array(backend.encode(text, add_special_tokens=False).ids, dtype=np.int32)
        parts: list[Ids] = []
        pieces_of = None if self._pre_tokenizer is None else self._pre_tokenizer.pre_tokenize_str
        all_parts = self._core.split_added(text, self._normalize is None)
        for i, (part, token_id) in enumerate(all_parts):
            if token_id is not None:
                parts.append(np.array([token_id], dtype=np.int32))
                continue
            normalized = part if self._normalize is None else self._normalize(part)
            if pieces_of is None:
                parts.append(self._core.encode_normalized(normalized, i == 0))
            elif normalized:
                pieces = [piece for piece, _ in pieces_of(normalized)]
                parts.append(self._core.encode_pieces(pieces))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)

    def encode_batch(self, texts: list[str], threads: int) -> tuple[Ids, Offsets]:
        """Flat ids of many texts and offsets (n_texts + 1,)."""
        check_threads(threads)
        if self._core is not None and self.engine == "core":
            ids, offsets, left = self._core.encode_batch(texts, threads)
            return self._insert(ids, offsets, left, [texts[i] for i in left.tolist()])
        return join([self.encode(text) for text in texts])

    def encode_documents(
        self, data: Buffer, starts: Offsets, ends: Offsets, threads: int
    ) -> tuple[Ids, Offsets]:
        """Flat ids and offsets (n_documents + 1,) of the documents data[starts[i]:ends[i]]."""
        check_threads(threads)
        if self._core is not None and self.engine == "core":
            ids, offsets, left = self._core.encode_documents(data, starts, ends, threads)
            texts = list(_texts(memoryview(data), starts[left], ends[left])) if len(left) else []
            return self._insert(ids, offsets, left, texts)
        return join([self.encode(text) for text in _texts(memoryview(data), starts, ends)])

    def _insert(
        self, ids: Ids, offsets: Offsets, left: Offsets, texts: list[str]
    ) -> tuple[Ids, Offsets]:
        """A batch with the ids of the texts `left` that the core left out."""
        if not texts:
            return ids, offsets
        encoded = [self.encode(text) for text in texts]
        lengths = np.diff(offsets)
        lengths[left] = list(map(len, encoded))
        ids = np.insert(ids, np.repeat(offsets[left], lengths[left]), np.concatenate(encoded))
        return ids, np.concatenate((offsets[:1], np.cumsum(lengths)))


def check_threads(threads: int) -> None:
    """ValueError for a number of threads below 1."""
    if threads < 1:
        raise ValueError(f"threads is {threads}; give at least 1")


def _texts(data: memoryview, starts: Offsets, ends: Offsets) -> Iterator[str]:
    """The documents as str, with the errors of the core."""
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise ValueError("starts and ends must be two arrays of the same length")
    if ((starts < 0) | (starts > ends) | (ends > len(data))).any():
        raise ValueError("a document is outside the data")
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        try:
            yield str(data[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"document {i} is not UTF-8: byte {error.start} of it begins no character"
            ) from None


def needs_tokenizers(tokenizer: TokenizerParts) -> bool:
    """Whether something in it is beyond the core: rare kinds of models and added tokens."""
    model = tokenizer.model
    is_spelled = model.byte_fallback and "ByteLevel" in str(tokenizer.pre_tokenizer)
    is_spelled = is_spelled and not model.is_byte_level  # a byte that it lacks is <0x..>
    if model.continuing_subword_prefix or model.end_of_word_suffix or is_spelled:
        return True
    if any(token.single_word for token in tokenizer.added_tokens):
        return True
    has_normalized = any(token.normalized for token in tokenizer.added_tokens)
    if has_normalized and simple_normalizer(tokenizer.normalizer) != ("", ""):
        return True  # such tokens are matched in their normalized form
    if "Metaspace" not in str(tokenizer.pre_tokenizer):
        return False
    cuts = cuts_of(tokenizer.pre_tokenizer)
    if cuts is None or cuts.metaspace is None:
        return True
    # "first" looks at where in the text a part began, before a normalizer took away from it.
    spec = tokenizer.normalizer
    keeps_beginning = simple_normalizer(spec) is not None or name_of(spec) == "nfc"
    return cuts.metaspace[1] == "first" and not keeps_beginning


def simple_normalizer(spec: Spec | None) -> tuple[str, str] | None:
    """(prepend, what a space becomes) where the core can normalize; None where it cannot."""
    if spec is None:
        return "", ""
    steps = spec.get("normalizers", []) if spec["type"] == "Sequence" else [spec]
    prepend = space_becomes = ""
    for step in steps:
        if step["type"] == "Prepend" and not prepend and not space_becomes:
            prepend = step["prepend"]
        elif (
            step["type"] == "Replace"
            and step["pattern"] == {"String": " "}
            and not space_becomes
            and " " not in prepend
        ):
            space_becomes = step["content"]
        else:
            return None
        if not (prepend or space_becomes):
            return None  # an empty replacement would delete spaces
    return prepend, space_becomes


def repair_words(tokenizer: Tokenizer) -> Tokenizer | None:
    """The tokenizer with its words repaired; None where there is nothing to repair, or no way."""
    spec = tokenizer.pre_tokenizer
    if spec is None or not is_byte_level(tokenizer) or puts_space_and_cuts(spec):
        return None
    steps = patterns.flat(spec)
    changed = [new for step in steps for new in _repaired_step(step)]
    if changed == steps:
        return None
    exported = list(map(_exported_step, changed))
    return replace(tokenizer, pre_tokenizer={"type": "Sequence", "pretokenizers": exported})


def puts_space_and_cuts(spec: Spec) -> bool:
    """Whether ByteLevel puts a space before the text and then cuts it: one step does both, and no
    list of steps with another regex is equal to it."""
    return any(
        step["type"] == "ByteLevel" and _cuts(step) and step.get("add_prefix_space", True)
        for step in patterns.flat(spec)
    )


def _cuts(step: Spec) -> bool:
    """Whether a ByteLevel step cuts with GPT-2's regex first."""
    return bool(step.get("use_regex", True))


def _repaired_step(step: Spec) -> list[Spec]:
    """Return the replacement of one step, or the step itself if it has nothing to repair."""
    if step["type"] == "ByteLevel" and _cuts(step):
        split = {
            "type": "Split",
            "pattern": {"Regex": repair_regex(GPT2)},
            "behavior": "Isolated",
            "invert": False,
        }
        return [split, {**step, "use_regex": False}]
    own = _split_of(step)
    new = None if own is None else repair_regex(own.defined().regex)
    return [step] if new is None else [{**step, "pattern": {"Regex": new}}]


def _exported_step(step: Spec) -> Spec:
    """The step in the form that every program reads."""
    own = _split_of(step)
    if own is None:
        return step
    new = own.exported()
    return {**step, "pattern": {"Regex": new.regex}, "behavior": new.behavior}


def _split_of(step: Spec) -> Split | None:
    """The step as a Split by regex; None for another step."""
    regex = step["pattern"].get("Regex") if step["type"] == "Split" else None
    return None if regex is None else Split(regex, step["behavior"], step.get("invert", False))
