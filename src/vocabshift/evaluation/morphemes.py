"""Words with their morphemes, read from CSV files as they are published.

Owns the columns and what is wrong with a row. Knows nothing of tokenizers or scores.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from vocabshift.errors import CorpusError
from vocabshift.text.spec import Local, parse_spec

WORD_COLUMNS = ("full_word", "word", "wordform")
PART_COLUMNS = ("pt1", "rest")
SEGMENTS_COLUMN = "segments"


@dataclass(frozen=True, slots=True)
class Morphemes:
    """A word and the parts that it is said to be made of."""

    word: str
    parts: tuple[str, ...]  # none of them empty; a word of one morpheme has one

    @property
    def spells_the_word(self) -> bool:
        """Whether the parts in their order are the word; a row where they are not is damaged."""
        return "".join(self.parts) == self.word

    @property
    def borders(self) -> frozenset[int]:
        """Where one part ends and the next begins, in bytes of the word's UTF-8."""
        ends = accumulate(len(part.encode()) for part in self.parts)
        return frozenset(ends) - {len(self.word.encode())}


def read_morphemes(path: str | Path) -> list[Morphemes]:
    """Rows of a CSV file (UTF-8) with a header, in order.

    The word stands in a column `full_word`, `word` or `wordform`; its parts in `pt1` and `rest`
    (MorphScore's two parts; an empty one is none), or in `segments`, with spaces between any
    number of them. Other columns are passed over. Parts are read as they are: whether they spell
    their word is `Morphemes.spells_the_word`. Raises CorpusError with the file, and the line where
    it is one, for a file that cannot be read, lacks a column, or has no row; for a row without a
    word or without parts.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(_rows(csv.DictReader(stream, strict=True), path))
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}: not UTF-8 at byte offset {error.start}") from error
    except csv.Error as error:
        raise CorpusError(f"{path}: no CSV file ({error})") from error
    if not rows:
        raise CorpusError(f"{path}: no row with a word; a header and at least one row are needed")
    return rows


def read_morpheme_specs(specs: Iterable[str]) -> dict[str, list[Morphemes]]:
    """{language: rows} of `[lang=]FILE.csv` specs; without a language, the name of the file.

    Files of one language are put together. Errors are those of `read_morphemes`, and ValueError
    for a spec that names no file.
    """
    words: dict[str, list[Morphemes]] = {}
    for text in specs:
        spec = parse_spec(text)
        if not isinstance(spec.place, Local) or spec.place.column is not None or spec.weight != 1:
            raise ValueError(f"{text!r} is no [lang=]FILE.csv of words with their morphemes")
        path = Path(spec.place.place)
        words.setdefault(spec.language or path.stem, []).extend(read_morphemes(path))
    return words


def _rows(reader: csv.DictReader[str], path: Path) -> Iterator[Morphemes]:
    columns = reader.fieldnames or ()
    word_column = next((name for name in WORD_COLUMNS if name in columns), None)
    has_parts = all(name in columns for name in PART_COLUMNS)
    if word_column is None or not (has_parts or SEGMENTS_COLUMN in columns):
        raise CorpusError(
            f"{path}: has the columns {', '.join(map(repr, columns)) or 'none'}; a column of words "
            f"({', '.join(WORD_COLUMNS)}) is needed, and pt1 and rest, or segments"
        )
    for row in reader:
        word = (row[word_column] or "").strip()
        if has_parts:
            cells = [(row[name] or "").strip() for name in PART_COLUMNS]
        else:
            cells = (row[SEGMENTS_COLUMN] or "").split()
        parts = [cell for cell in cells if cell]
        if not word or not parts:
            raise CorpusError(f"{path}: line {reader.line_num} has no word, or no parts of it")
        yield Morphemes(word, tuple(parts))
