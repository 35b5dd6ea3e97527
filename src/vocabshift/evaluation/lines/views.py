"""Tokenized lines, and vocabularies by script: what a report shows besides figures.

Owns the values that are drawn, the marks of each token (superwords, cut characters, cut syllables),
and the choice of lines: always the same ones, short enough to read, and with the same line numbers
in every language if the texts are parallel (have equally many lines). Knows nothing of colours or
pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from vocabshift.checks.vocabulary_report import SPECIAL, classes_of
from vocabshift.evaluation.lines.placing import is_lost
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.text.languages import find_language
from vocabshift.text.writing import syllable_borders
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.token_bytes import is_superword
from vocabshift.tokenizer.token_spans import LineSpans, iter_token_spans


@dataclass(frozen=True, slots=True)
class LineToken:
    """One token in a line."""

    id: int
    token: str  # as the vocabulary spells it
    start: int  # bytes into the line's UTF-8
    end: int  # exclusive; equal to `start` for a token that stands for nothing in the line
    superword: bool = False  # has text on both sides of a space
    cuts_character: bool = False  # begins or ends inside a character
    cuts_syllable: bool = False  # begins or ends between characters of one orthographic syllable
    special: bool = False
    unknown: bool = False  # the token that stands for text without a token


@dataclass(frozen=True, slots=True)
class TokenizedLine:
    """A line and its tokens, in order; spans ascend and never overlap."""

    text: str
    tokens: tuple[LineToken, ...]
    exact: bool = True  # whether the tokens cover the line byte for byte
    lost: bool = False  # whether the line does not come back, as `loss_rate` counts it
    # Bytes, ascending, at which a picture may divide the line without splitting one drawn
    # sign; None: in front of every character.
    borders: tuple[int, ...] | None = None

    @property
    def n_bytes(self) -> int:
        """Of the line's UTF-8."""
        return len(self.text.encode())


@dataclass(frozen=True, slots=True)
class LanguageView:
    """Some lines of one language, as each tokenizer cuts them."""

    label: str  # of the corpus, as in Results ("ks_Arab")
    name: str  # for people ("Kashmiri"); the label itself where nothing better is known
    lines: Mapping[str, tuple[TokenizedLine, ...]]  # by subject


@dataclass(frozen=True, slots=True)
class VocabularyPart:
    """The tokens of a vocabulary that belong to one script or class."""

    name: str  # "Devanagari", "digits"
    tokens: int
    superwords: int = 0


@dataclass(frozen=True, slots=True)
class TokenViews:
    """All that a report shows of tokens."""

    languages: tuple[LanguageView, ...] = ()
    vocabularies: Mapping[str, tuple[VocabularyPart, ...]] = field(default_factory=dict)
    text: str = ""  # what the text is, for people
    notes: tuple[str, ...] = ()  # what a reader must know, one sentence each


# The marks of tokens.

SUPERWORD = 1  # has text on both sides of a space
CUTS_CHARACTER = 2  # begins or ends inside a character
CUTS_SYLLABLE = 4  # begins or ends between characters of one orthographic syllable
SPECIAL_BIT = 8
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
    syllables[byte_at] = syllable_borders(text)
    syllables[0] = True
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
        marks[[is_superword(data) for data in engine.spelled]] |= SUPERWORD
        marks[list(engine.special_ids)] |= SPECIAL_BIT
        if engine.unknown_id is not None:
            marks[engine.unknown_id] |= UNKNOWN
        _of_ids[engine] = marks
    return _of_ids[engine]


def tokenized_lines(
    engine: Engine, lines: Sequence[str], *, threads: int = 1
) -> list[TokenizedLine]:
    """The tokens of each line, in order; no BOS or EOS."""
    found = iter_token_spans(engine, lines, threads=threads)
    return [_line(engine, line, spans) for line, spans in zip(lines, found, strict=True)]


def _line(engine: Engine, line: str, spans: LineSpans) -> TokenizedLine:
    borders = text_borders(line)
    marks = token_marks(engine, borders, spans)
    columns = (spans.ids.tolist(), spans.starts.tolist(), spans.ends.tolist(), marks.tolist())
    tokens = tuple(
        LineToken(
            token_id,
            engine.tokens.get(token_id, ""),
            start,
            end,
            superword=bool(mark & SUPERWORD),
            cuts_character=bool(mark & CUTS_CHARACTER),
            cuts_syllable=bool(mark & CUTS_SYLLABLE),
            special=bool(mark & SPECIAL_BIT),
            unknown=bool(mark & UNKNOWN),
        )
        for token_id, start, end, mark in zip(*columns, strict=True)
    )
    syllables = tuple(borders.syllables.nonzero()[0].tolist())
    return TokenizedLine(line, tokens, spans.exact, is_lost(engine, line, spans), syllables)


# The lines that are shown.

N_LINES = 2
"""Lines shown of each language."""

_LOOKED_AT = 2000  # lines of a language among which the shown ones are chosen
_FIT = range(40, 141)  # characters of a line that reads well in a view
_MOST = 400  # characters at which a line without a choice is cut


def token_views(
    tokenizers: Mapping[str, object],
    texts: Mapping[str, Sequence[str]],
    *,
    text: str | None = None,
    n_lines: int = N_LINES,
) -> TokenViews:
    """Lines and vocabularies of `tokenizers` (name -> what `engine_of` takes) for a report.

    `texts`: {language label: lines}; shown are `n_lines` of the first 2,000 of each. `text` says
    what they are (default: how many). Vocabularies are counted by script.
    """
    engines = {name: engine_of(tokenizer) for name, tokenizer in tokenizers.items()}
    heads = {
        label: [line for line in lines[:_LOOKED_AT] if line.strip()]
        for label, lines in texts.items()
    }
    shown = choose_lines(heads, n_lines)
    languages = tuple(
        LanguageView(label, language_name(label), _cut(engines, lines))
        for label, lines in shown.items()
        if lines
    )
    vocabularies = {name: _parts(engine) for name, engine in engines.items()}
    return TokenViews(languages, vocabularies, _how_many(texts) if text is None else text)


def _how_many(texts: Mapping[str, Sequence[str]]) -> str:
    counts = {len(lines) for lines in texts.values()}
    if len(counts) == 1:
        n = counts.pop()
        return f"{n:,} line{'' if n == 1 else 's'} of each language"
    return f"{sum(len(lines) for lines in texts.values()):,} lines"


def choose_lines(heads: Mapping[str, Sequence[str]], n_lines: int) -> dict[str, list[str]]:
    """The first lines that read well; with the same numbers where languages have equally many."""
    counts = {len(lines) for lines in heads.values()}
    if len(counts) == 1:
        n = counts.pop()
        fit = [i for i in range(n) if all(len(lines[i]) in _FIT for lines in heads.values())]
        fit += sorted(
            set(range(n)) - set(fit), key=lambda i: max(len(lines[i]) for lines in heads.values())
        )
        return {
            label: [lines[i][:_MOST] for i in sorted(fit[:n_lines])]
            for label, lines in heads.items()
        }
    chosen = {}
    for label, lines in heads.items():
        fit = [i for i in range(len(lines)) if len(lines[i]) in _FIT]
        fit += sorted(set(range(len(lines))) - set(fit), key=lambda i: len(lines[i]))
        chosen[label] = [lines[i][:_MOST] for i in sorted(fit[:n_lines])]
    return chosen


def _cut(engines: Mapping[str, Engine], lines: Sequence[str]) -> dict[str, tuple]:  # type: ignore[type-arg]
    return {name: tuple(tokenized_lines(engine, lines)) for name, engine in engines.items()}


def language_name(label: str) -> str:
    """ "Kashmiri (Arab)" for "ks_Arab"; the label itself where it means no language."""
    language = find_language(label)
    if language is None:
        return label
    _, separator, script = label.replace("-", "_").partition("_")
    return f"{language.name} ({script})" if separator else language.name


def _parts(engine: Engine) -> tuple[VocabularyPart, ...]:
    """Tokens and superwords of each script and class; they add up to the vocabulary."""
    names, classes = classes_of(engine.token_bytes, engine.row_count)
    tokens: Counter[str] = Counter()
    superwords: Counter[str] = Counter()
    for token_id in engine.tokens:
        data = engine.token_bytes.get(token_id)
        name = SPECIAL if data is None else names[classes[token_id]]
        tokens[name] += 1
        superwords[name] += data is not None and is_superword(data)
    return tuple(VocabularyPart(name, n, superwords[name]) for name, n in tokens.items())
