"""What a reader should notice of each token in a text: superwords, torn characters, cut syllables.

Owns what each mark means and how it is found, for many tokens at once. Knows nothing of drawing.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.engine import Engine
from vocabshift.evaluation.token_spans import LineSpans
from vocabshift.text.syllables import syllable_borders

SUPERWORD = 1  # has text on both sides of a space
CUTS_CHARACTER = 2  # begins or ends inside a character
CUTS_SYLLABLE = 4  # begins or ends between characters of one orthographic syllable
SPECIAL = 8
UNKNOWN = 16  # the token that stands for text without a token

Flags = npt.NDArray[np.bool_]
Marks = npt.NDArray[np.uint8]

_of_ids: WeakKeyDictionary[Engine, Marks] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class TextBorders:
    """Where a text may be cut, by byte of its UTF-8; each array is (n_bytes + 1,)."""

    characters: Flags  # in front of each character, and at the end
    syllables: Flags  # likewise of orthographic syllables; never inside of a character


def text_borders(text: str) -> TextBorders:
    """The borders of a text; UnicodeEncodeError for a lone surrogate."""
    data = np.frombuffer(text.encode() + b" ", dtype=np.uint8)  # the end is a border too
    characters = (data & 0xC0) != 0x80
    byte_at = np.flatnonzero(characters)
    syllables = np.zeros(len(data), dtype=bool)
    syllables[0] = True
    syllables[byte_at[syllable_borders(text)]] = True
    return TextBorders(characters, syllables)


def token_marks(engine: Engine, borders: TextBorders, spans: LineSpans) -> Marks:
    """The marks of each token of a text, added up, (n_tokens,)."""
    marks = id_marks(engine)[spans.ids]
    starts, ends = spans.starts, spans.ends
    has_text = ends > starts
    for edges in (starts, ends):
        in_character = ~borders.characters[edges]
        marks[has_text & in_character] |= CUTS_CHARACTER
        marks[has_text & ~in_character & ~borders.syllables[edges]] |= CUTS_SYLLABLE
    return marks


def id_marks(engine: Engine) -> Marks:
    """The marks that a token has in any text, by id, (row_count,); found once for an engine."""
    if engine not in _of_ids:
        marks = np.zeros(engine.row_count, dtype=np.uint8)
        marks[[b" " in data.strip() for data in engine.spelled]] |= SUPERWORD
        marks[list(engine.special_ids)] |= SPECIAL
        if engine.unknown_id is not None:
            marks[engine.unknown_id] |= UNKNOWN
        _of_ids[engine] = marks
    return _of_ids[engine]
