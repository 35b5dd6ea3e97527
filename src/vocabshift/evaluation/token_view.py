"""Lines as a tokenizer sees them, ready to be drawn: pieces with what a reader should notice.

Owns what is noticed: superwords, pieces of characters, syllables that a token cuts. Knows nothing
of colours or pages; those draw `report.pieces`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from vocabshift.evaluation.engine import Engine
from vocabshift.evaluation.token_spans import LineSpans, iter_token_spans
from vocabshift.report.pieces import Piece, TokenizedLine
from vocabshift.text.syllables import syllable_borders


def tokenized_lines(
    engine: Engine, lines: Sequence[str], *, threads: int = 1
) -> list[TokenizedLine]:
    """The pieces of each line, in order; no BOS or EOS."""
    found = iter_token_spans(engine, lines, threads=threads)
    return [_line(engine, line, spans) for line, spans in zip(lines, found, strict=True)]


def _line(engine: Engine, line: str, spans: LineSpans) -> TokenizedLine:
    byte_at = [0, *accumulate(len(character.encode()) for character in line)]
    characters = set(byte_at)
    syllables = {0, *(byte_at[border] for border in syllable_borders(line))}
    pieces = []
    triples = zip(spans.ids.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True)
    for token_id, start, end in triples:
        borders = {start, end} if end > start else set()
        pieces.append(
            Piece(
                token_id,
                engine.tokens.get(token_id, ""),
                start,
                end,
                superword=b" " in engine.spelled[token_id].strip(),
                cuts_character=not borders <= characters,
                cuts_syllable=not (borders & characters) <= syllables,
                special=token_id in engine.special_ids,
                unknown=token_id == engine.unknown_id,
            )
        )
    return TokenizedLine(line, tuple(pieces), spans.exact, tuple(sorted(syllables)))
