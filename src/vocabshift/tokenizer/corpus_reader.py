"""A corpus through a tokenizer's own pipeline: added tokens removed, normalized, pre-tokenized.

Owns the way from any tokenizer's components to the input of the core: the core's scanner if it has
one for the pattern, `tokenizers` otherwise. `text.counting` counts and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from vocabshift import _core
from vocabshift.errors import CorpusError, InvalidTokenizerError, regex_bound
from vocabshift.text import patterns
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.counting import CorpusReader, CountReader
from vocabshift.text.documents import Documents
from vocabshift.text.normalize import NAMES, name_of, spec_function
from vocabshift.text.patterns import Pattern
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.model import compile_merges
from vocabshift.tokenizer.token_bytes import is_byte_level

if TYPE_CHECKING:
    from vocabshift.tokenizer.added_tokens import AddedToken
    from vocabshift.tokenizer.tokenizer import Tokenizer


@dataclass
class TokenizerReader(CorpusReader):
    """Reads a corpus for one tokenizer; added tokens take the space beside them along, as there."""

    added: _core.TextEncoder | None = field(default=None, kw_only=True)
    """Cuts added tokens out."""
    keeps: dict[str | None, bool] = field(default_factory=dict, kw_only=True)
    """By language that was not blank: whether anything is left when it is normalized."""

    @classmethod
    def of(
        cls,
        tokenizer: Tokenizer,
        corpus: Corpus,
        *,
        pattern: Pattern | None = None,
        normalizer: str | None = None,
        sampling_alpha: float | None = None,
        by_language: bool = False,
    ) -> TokenizerReader:
        """The reader of `corpus` for `tokenizer`.

        `pattern` replaces the tokenizer's own pre-tokenizer; `normalizer` (a name) runs before
        its own.
        """
        own = patterns.from_spec(tokenizer.pre_tokenizer)
        reader = cls(
            corpus,
            own or () if pattern is None else pattern,
            normalizer,
            (),  # `added` knows them
            sampling_alpha,
            by_language,
            added=added_splitter(tokenizer.added_tokens),
        )
        if tokenizer.normalizer is not None:
            reader.normalize = _in_turn(reader.normalize, _normalizer(tokenizer))
        if pattern is None and own is None and tokenizer.pre_tokenizer is not None:
            reader.split = _splitter(tokenizer)
        return reader

    def _has_special(self, data: bytes | memoryview) -> bool:
        return self.added is not None and self.added.has_added(data)

    def _pre_tokens(self, documents: Documents) -> Iterator[bytes]:
        assert self.added is not None
        label = documents.language
        for text in documents.texts():
            for part, token_id in self.added.split_added(text, True):
                if token_id is not None:
                    self.n_special += 1
                    continue
                normalized = part if self.normalize is None else self.normalize(part)
                if not self.keeps.get(label) and not part.isspace():
                    self.keeps[label] = bool(normalized) and not normalized.isspace()
                if self.split is None:
                    yield normalized.encode()
                else:
                    yield from map(str.encode, self.split(normalized))

    def require_kept_text(self, name: str) -> None:
        """CorpusError where the normalizer of the tokenizer `name` removed all text of a language.

        To be asked once the corpus has been read.
        """
        lost = [label for label, kept in self.keeps.items() if not kept]
        if lost:
            labels = ", ".join("the text" if label is None else repr(label) for label in lost)
            raise CorpusError(
                f"the normalizer of {name} leaves nothing of {labels}: no token can be learned "
                "from it; give text that the tokenizer keeps, or a tokenizer without that "
                "normalizer"
            )


def reader_of(
    tokenizer: Tokenizer,
    source: Corpus | CountFolder,
    *,
    normalizer: str | None = None,
    sampling_alpha: float | None = None,
) -> TokenizerReader | CountReader:
    """The reader of a corpus, by language, or of a folder of counts in place of one.

    CorpusError where the folder was not counted with the tokenizer's own pre-tokenizer, normalizer
    and added tokens; ValueError where the tokenizer's own cannot be said in a folder at all.
    """
    if isinstance(source, Corpus):
        return TokenizerReader.of(
            tokenizer,
            source,
            normalizer=normalizer,
            sampling_alpha=sampling_alpha,
            by_language=True,
        )
    pattern = patterns.from_spec(tokenizer.pre_tokenizer)
    if pattern is None or normalizer is not None:
        raise ValueError(
            f"a folder of counts cannot replace the text of {tokenizer.name} here: "
            + (
                "its words are not the matches of a pattern"
                if pattern is None
                else "the text is to be normalized first"
            )
            + "; give the corpus itself"
        )
    added = tuple(sorted(token.content for token in tokenizer.added_tokens))
    source.require(pattern, normalizer_name(tokenizer), added)
    return CountReader(source, (), sampling_alpha)


def normalizer_name(tokenizer: Tokenizer) -> str | None:
    """The name of a tokenizer's normalizer, as folders of counts have it; None for none.

    ValueError for one that has no name (see `text.normalize`).
    """
    name = name_of(tokenizer.normalizer)
    if name is None:
        kinds = " + ".join(str(step["type"]) for step in _flat(tokenizer.normalizer))
        raise ValueError(
            f"{tokenizer.name} has the normalizer {kinds}; known by name are "
            f"{', '.join(NAMES)} and what is joined of them"
        )
    return None if name == "none" else name


def added_splitter(added_tokens: Sequence[AddedToken]) -> _core.TextEncoder:
    """Cuts these added tokens out of text, as their tokenizer does."""
    single = [bytes([byte]) for byte in range(256)]
    model = compile_merges(single, np.zeros((0, 3), np.uint32))
    raw, normalized = (
        [
            _core.AddedToken(token.content, token.id, token.lstrip, token.rstrip)
            for token in added_tokens
            if token.normalized == is_normalized
        ]
        for is_normalized in (False, True)
    )
    return _core.TextEncoder(model, raw_tokens=raw, normalized_tokens=normalized)


def _in_turn(
    first: Callable[[str], str] | None, second: Callable[[str], str]
) -> Callable[[str], str]:
    return second if first is None else lambda text: second(first(text))


def _normalizer(tokenizer: Tokenizer) -> Callable[[str], str]:
    known = spec_function(tokenizer.normalizer)
    if known is not None:
        return known
    normalizer = tokenizer.backend.normalizer

    def normalize(text: str) -> str:
        with regex_bound():
            return str(normalizer.normalize_str(text))

    return normalize


def _splitter(tokenizer: Tokenizer) -> Callable[[str], list[str]]:
    """Any pre-tokenizer, run by `tokenizers`; pieces in the byte-level image become text again."""
    pre_tokenizer = tokenizer.backend.pre_tokenizer
    is_image = is_byte_level(tokenizer)

    def split(text: str) -> list[str]:
        with regex_bound():
            pieces = [piece for piece, _ in pre_tokenizer.pre_tokenize_str(text)]
        try:
            return [byte_level.to_bytes(piece).decode() for piece in pieces] if is_image else pieces
        except (KeyError, UnicodeDecodeError):
            raise InvalidTokenizerError(
                f"{tokenizer.name} has byte-level tokens, and its pre-tokenizer gives them text; "
                "give it the step ByteLevel"
            ) from None

    return split


def _flat(spec: object) -> list[dict[str, object]]:
    if not isinstance(spec, dict):
        return []
    if spec.get("type") != "Sequence":
        return [spec]
    return [step for part in spec["normalizers"] for step in _flat(part)]
