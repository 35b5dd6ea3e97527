"""Lines as a tokenizer sees them, ready to be drawn: pieces with what a reader should notice.

Owns the way from tokens to `report.pieces`, which are what is drawn. What is noticed is
`token_marks`'. Knows nothing of colours or pages.
"""

from __future__ import annotations

from collections.abc import Sequence

from vocabshift.evaluation.engine import Engine
from vocabshift.evaluation.token_marks import (
    CUTS_CHARACTER,
    CUTS_SYLLABLE,
    SPECIAL,
    SUPERWORD,
    UNKNOWN,
    text_borders,
    token_marks,
)
from vocabshift.evaluation.token_spans import LineSpans, iter_token_spans
from vocabshift.report.pieces import Piece, TokenizedLine


def tokenized_lines(
    engine: Engine, lines: Sequence[str], *, threads: int = 1
) -> list[TokenizedLine]:
    """The pieces of each line, in order; no BOS or EOS."""
    found = iter_token_spans(engine, lines, threads=threads)
    return [_line(engine, line, spans) for line, spans in zip(lines, found, strict=True)]


def _line(engine: Engine, line: str, spans: LineSpans) -> TokenizedLine:
    borders = text_borders(line)
    marks = token_marks(engine, borders, spans)
    columns = (spans.ids.tolist(), spans.starts.tolist(), spans.ends.tolist(), marks.tolist())
    pieces = tuple(
        Piece(
            token_id,
            engine.tokens.get(token_id, ""),
            start,
            end,
            superword=bool(mark & SUPERWORD),
            cuts_character=bool(mark & CUTS_CHARACTER),
            cuts_syllable=bool(mark & CUTS_SYLLABLE),
            special=bool(mark & SPECIAL),
            unknown=bool(mark & UNKNOWN),
        )
        for token_id, start, end, mark in zip(*columns, strict=True)
    )
    syllables = tuple(borders.syllables.nonzero()[0].tolist())
    return TokenizedLine(line, pieces, spans.exact, syllables)
