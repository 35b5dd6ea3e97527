"""The composition of a vocabulary: tokens, superwords and bytes by script (IST, Fig. 2, Table 10).

Owns the class of a token, and the figures. A token belongs to the script of its letters and marks.
Characters of the scripts "Common" and "Inherited" (joiners, shared signs) count only if the token
has no others. The caller says how much text of each language the vocabulary was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.text.languages import find_language
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.token_bytes import is_superword

MIXED = "letters of several scripts"
DIGITS = "digits"
PUNCTUATION = "punctuation and symbols"
WHITESPACE = "whitespace"
PARTIAL = "parts of characters"
SPECIAL = "special tokens"
CLASSES = (MIXED, DIGITS, PUNCTUATION, WHITESPACE, PARTIAL, SPECIAL)
"""Classes of tokens that belong to no one script, in the order of the table."""

_LETTER, _NUMBER, _SPACE = 1 | 2 | 4 | 8, 16, 32  # bits of _core.char_class; marks are letters
_NO_SCRIPT = ("Unknown", "Common", "Inherited")


@dataclass(frozen=True, slots=True)
class VocabularyRow:
    """The tokens of one script or class."""

    name: str  # Unicode's name of the script ("Devanagari"), or one of CLASSES
    tokens: int
    share: float  # of all tokens, 0-1
    superwords: int  # tokens with text on both sides of a space
    mean_bytes: float  # UTF-8 bytes of a token; 0 where there is none
    training_share: float | None = None  # of the bytes of training text, where these are known


@dataclass(frozen=True, slots=True)
class VocabularyReport:
    """A vocabulary by script; scripts by size, then the classes. Rows add up to the vocabulary."""

    tokenizer: str  # its name
    vocab_size: int
    superwords: int
    rows: tuple[VocabularyRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "rows": [asdict(row) for row in self.rows]}

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], tokenizer: str = "") -> VocabularyReport:
        """The report whose rows were plain JSON values."""
        parsed = tuple(VocabularyRow(**row) for row in rows)
        return cls(
            tokenizer,
            sum(row.tokens for row in parsed),
            sum(row.superwords for row in parsed),
            parsed,
        )


def vocabulary_report(
    tokenizer: Any, *, language_bytes: Mapping[str | None, int] | None = None
) -> VocabularyReport:
    """Tokens, superwords and mean length by script of a tokenizer of any kind.

    `language_bytes` holds the bytes of training text by label of the corpus; a label counts for
    the usual script of its language ("hi" and "hin": Devanagari; "ks_Arab": Arabic), and one
    that means no language known to us gets a row of its own. Lone bytes that are not ASCII count
    as parts of characters.
    """
    value = open_tokenizer(tokenizer)
    in_model = set(value.vocab.values())
    spelled = [data for token_id, data in value.token_bytes.items() if token_id in in_model]
    texts = [_text_or_none(data) for data in spelled]
    names, numbers = _classes([text for text in texts if text is not None])
    class_of = np.full(len(spelled), names.index(PARTIAL))
    class_of[[text is not None for text in texts]] = numbers

    n_bytes = np.fromiter(map(len, spelled), np.int64, len(spelled))
    are_superwords = np.fromiter(map(is_superword, spelled), bool, len(spelled))
    tokens = np.bincount(class_of, minlength=len(names))
    tokens[names.index(SPECIAL)] = len(in_model) - len(spelled)
    superwords = np.bincount(class_of[are_superwords], minlength=len(names))
    lengths = np.bincount(class_of, weights=n_bytes, minlength=len(names))

    shares = {} if language_bytes is None else _training_shares(language_bytes)
    counted = {
        name: VocabularyRow(
            name,
            int(tokens[i]),
            int(tokens[i]) / max(len(in_model), 1),
            int(superwords[i]),
            float(lengths[i]) / max(int(tokens[i]), 1),
            shares.get(name),
        )
        for i, name in enumerate(names)
        if tokens[i] or name in shares
    }
    for name in shares:
        counted.setdefault(name, VocabularyRow(name, 0, 0.0, 0, 0.0, shares[name]))
    rows = sorted(counted.values(), key=_order)
    return VocabularyReport(value.name, len(in_model), int(superwords.sum()), tuple(rows))


def classes_of(tokens: Mapping[int, bytes], rows: int) -> tuple[list[str], NDArray[np.int64]]:
    """Names of scripts and classes, and (rows,) for each id the index of its name, -1 for none.

    `tokens`: bytes by id, as `token_bytes` gives them.
    """
    texts = {token_id: _text_or_none(data) for token_id, data in tokens.items()}
    whole = {token_id: text for token_id, text in texts.items() if text is not None}
    names, numbers = _classes(list(whole.values()))
    classes = np.full(rows, -1, dtype=np.int64)
    classes[list(texts)] = names.index(PARTIAL)
    classes[list(whole)] = numbers
    return names, classes


def _order(row: VocabularyRow) -> tuple[int, int, str]:
    """Scripts first, the largest on top; then the classes as they are listed."""
    place = CLASSES.index(row.name) + 1 if row.name in CLASSES else 0
    return place, -row.tokens, row.name


def _text_or_none(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _classes(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Names of scripts and classes, and for each text the index of its name."""
    joined = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    found = np.flatnonzero(np.bincount(joined)).tolist()
    script_of = {c: _core.script(c) for c in found}
    # Letters and marks without a script of their own come first, so that any other outranks them.
    names = [*dict.fromkeys((*_NO_SCRIPT, *script_of.values())), *CLASSES]
    number = {name: i for i, name in enumerate(names)}

    # Tables by code point: class bits; the letter's script, -1 where it is none, and once more
    # with what has no script of its own last.
    bits = np.zeros(max(found, default=0) + 1, dtype=np.uint8)
    script = np.full(len(bits), -1, dtype=np.int16)
    bits[found] = [_core.char_class(c) for c in found]
    script[found] = [number[script_of[c]] for c in found]
    script[(bits & _LETTER) == 0] = -1
    own = np.where(script >= len(_NO_SCRIPT), script, len(names)).astype(np.int16)

    highest = _per_text(np.maximum, script[joined], lengths, empty=-1)
    lowest = _per_text(np.minimum, own[joined], lengths, empty=len(names))
    any_bits = _per_text(np.bitwise_or, bits[joined], lengths, empty=0)
    all_bits = _per_text(np.bitwise_and, bits[joined], lengths, empty=0)

    classes = np.select(
        [
            (highest >= len(_NO_SCRIPT)) & (highest != lowest),
            highest >= 0,
            (all_bits & _SPACE) > 0,
            (any_bits & _NUMBER) > 0,
        ],
        [np.full(len(texts), number[MIXED]), highest, number[WHITESPACE], number[DIGITS]],
        default=number[PUNCTUATION],
    )
    return names, classes.astype(np.int64)


def _per_text(
    function: np.ufunc, values: NDArray[Any], lengths: NDArray[np.int64], *, empty: int
) -> NDArray[Any]:
    """`function` over the characters of each text; `empty` for a text without any."""
    reduced = np.full(len(lengths), empty, dtype=values.dtype)
    has_text = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[has_text]
    if len(starts):
        reduced[has_text] = function.reduceat(values, starts)
    return reduced


def _training_shares(language_bytes: Mapping[str | None, int]) -> dict[str, float]:
    """Share of the bytes by the script of their language, or by label where it is not known."""
    total = sum(language_bytes.values())
    shares: dict[str, float] = {}
    for label, n_bytes in language_bytes.items():
        language = find_language(label)
        name = language.scripts[0] if language else label or "no language"
        shares[name] = shares.get(name, 0.0) + (n_bytes / total if total else 0.0)
    return shares
