"""compare: what changes in real text between two tokenizers.

Owns the totals of each language, the spans of text that became shorter or longer, and the lines
that changed most. A span reaches from one position where both tokenizers begin a token (and a
character begins) to the next, so the changes of all spans add up to the change of the text. Knows
nothing of colours, terminals or pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vocabshift.evaluation.lines.placing import is_lost
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.texts import read_lines
from vocabshift.evaluation.lines.views import TokenizedLine, language_name, tokenized_lines
from vocabshift.results import WHOLE
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.token_spans import LineSpans, iter_token_spans

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.formats.load import TokenizerLike

N_LINES = 2
"""Lines shown of each language."""

N_CHANGES = 20
"""Spans shown that became shorter, and as many that became longer."""

_BATCH = 4096  # lines whose spans are held at a time


@dataclass(frozen=True, slots=True)
class LanguageTotals:
    """All lines of one language."""

    language: str
    n_lines: int
    n_bytes: int  # of UTF-8
    tokens_a: int
    tokens_b: int
    lost_a: int = 0  # lines that do not come back from their tokens
    lost_b: int = 0

    @property
    def change(self) -> float:
        """Tokens of b over those of a, less one: -0.25 is a quarter fewer."""
        return self.tokens_b / max(self.tokens_a, 1) - 1


@dataclass(frozen=True, slots=True)
class ChangedSpan:
    """A span of text that the two cut into different numbers of tokens, over all its places."""

    text: str
    count: int  # places
    tokens_a: int  # in all places together
    tokens_b: int

    @property
    def change(self) -> int:
        """Tokens that b has more."""
        return self.tokens_b - self.tokens_a


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One line as both cut it."""

    language: str
    number: int  # among the language's lines that are not blank, from 1
    a: TokenizedLine
    b: TokenizedLine

    @property
    def change(self) -> int:
        """Tokens that b has more."""
        return len(self.b.tokens) - len(self.a.tokens)


@dataclass(frozen=True, slots=True)
class TokenizerComparison:
    """Two tokenizers on the same text."""

    a: str  # names
    b: str
    languages: tuple[LanguageTotals, ...]
    shorter: tuple[ChangedSpan, ...]  # the largest change first
    longer: tuple[ChangedSpan, ...]
    lines: tuple[ComparedLine, ...]  # by language, the largest change first
    names: Mapping[str, str] = field(default_factory=dict)  # of languages for people, by label


def total(rows: Sequence[LanguageTotals]) -> LanguageTotals:
    """All languages together."""
    return LanguageTotals(
        WHOLE,
        sum(row.n_lines for row in rows),
        sum(row.n_bytes for row in rows),
        sum(row.tokens_a for row in rows),
        sum(row.tokens_b for row in rows),
        sum(row.lost_a for row in rows),
        sum(row.lost_b for row in rows),
    )


@dataclass(slots=True)
class _Tally:
    """Of one span of text, over all its places."""

    count: int = 0
    tokens_a: int = 0
    tokens_b: int = 0


def compare(
    a: TokenizerLike,
    b: TokenizerLike,
    texts: Corpus | Mapping[str, Iterable[str]] | Sequence[str],
    *,
    names: tuple[str, str] | None = None,
    n_lines: int = N_LINES,
    n_changes: int = N_CHANGES,
    threads: int = 1,
) -> TokenizerComparison:
    """What changes in real text from tokenizer `a` to tokenizer `b`, per language.

    Documents are cut into lines, blank ones are skipped, no BOS or EOS is added.

    Parameters:
        a, b: tokenizers of any kind that `evaluate` takes.
        texts: a `Corpus`, {language: iterable of str}, or lines without a label ("all").
        names: of the two, in the result; by default their own.
        n_lines: lines shown of each language: those whose number of tokens changed most (the first
            of equals).
        n_changes: spans of text shown that became shorter, and as many that became longer: those
            with the largest total change over all their places.
        threads: changes the time, never the result.

    Returns totals of lines, bytes and tokens by language, the changed spans, and the shown lines.
    Raises CorpusError for an empty language, InvalidTokenizerError for a tokenizer of another kind.
    """
    engine_a, engine_b = engine_of(a), engine_of(b)
    tallies: dict[str, _Tally] = {}
    totals, shown = [], []
    for language, lines in read_lines(texts).items():
        changes: list[int] = []
        tokens_a = lost_a = lost_b = 0
        for spans_a, spans_b, line in _both(engine_a, engine_b, lines, threads):
            _tally(tallies, line, spans_a, spans_b)
            changes.append(len(spans_b.ids) - len(spans_a.ids))
            tokens_a += len(spans_a.ids)
            lost_a += is_lost(engine_a, line, spans_a)
            lost_b += is_lost(engine_b, line, spans_b)
        n_bytes = sum(len(line.encode()) for line in lines)
        totals.append(
            LanguageTotals(
                language, len(lines), n_bytes, tokens_a, tokens_a + sum(changes), lost_a, lost_b
            )
        )
        most = sorted(range(len(lines)), key=lambda i: -abs(changes[i]))[:n_lines]
        chosen = [lines[i] for i in most]
        views_a, views_b = tokenized_lines(engine_a, chosen), tokenized_lines(engine_b, chosen)
        shown += [
            ComparedLine(language, i + 1, of_a, of_b)
            for i, of_a, of_b in zip(most, views_a, views_b, strict=True)
        ]
    shorter, longer = _largest(tallies, n_changes)
    name_a, name_b = names or (engine_a.name, engine_b.name)
    labels = {row.language: language_name(row.language) for row in totals}
    return TokenizerComparison(name_a, name_b, tuple(totals), shorter, longer, tuple(shown), labels)


def to_dict(comparison: TokenizerComparison) -> dict[str, Any]:
    """Plain JSON values; the tokens of shown lines as ids."""
    return {
        "a": comparison.a,
        "b": comparison.b,
        "languages": [asdict(row) for row in comparison.languages],
        "shorter": [asdict(change) for change in comparison.shorter],
        "longer": [asdict(change) for change in comparison.longer],
        "lines": [
            {
                "language": line.language,
                "number": line.number,
                "text": line.a.text,
                "ids_a": [token.id for token in line.a.tokens],
                "ids_b": [token.id for token in line.b.tokens],
            }
            for line in comparison.lines
        ],
    }


def _both(
    a: Engine, b: Engine, lines: Sequence[str], threads: int
) -> Iterator[tuple[LineSpans, LineSpans, str]]:
    """Spans of both tokenizers, and the line."""
    for start in range(0, len(lines), _BATCH):
        batch = lines[start : start + _BATCH]
        of_a = iter_token_spans(a, batch, threads=threads)
        of_b = iter_token_spans(b, batch, threads=threads)
        yield from zip(of_a, of_b, batch, strict=True)


def _tally(tallies: dict[str, _Tally], line: str, a: LineSpans, b: LineSpans) -> None:
    """Count the spans of one line that the two cut into different numbers of tokens."""
    data = line.encode()
    for start, end, n_a, n_b in spans_between(data, a.starts.tolist(), b.starts.tolist()):
        if n_a != n_b:
            tally = tallies.setdefault(data[start:end].decode(), _Tally())
            tally.count += 1
            tally.tokens_a += n_a
            tally.tokens_b += n_b


def spans_between(
    data: bytes, starts_a: Sequence[int], starts_b: Sequence[int]
) -> Iterator[tuple[int, int, int, int]]:
    """(start, end, tokens of a, tokens of b) of each span of a line's UTF-8, in order.

    `starts_a`, `starts_b`: bytes at which tokens begin, ascending. Tokens count where they begin;
    those without text at the end of the line count for the last span.
    """
    shared = set(starts_a) & set(starts_b)
    edges = {at for at in shared if at < len(data) and data[at] & 0xC0 != 0x80}
    borders = sorted({0, *edges, len(data)})
    i, j = 0, 0
    for start, end in pairwise(borders):
        is_last = end == len(data)
        first_i, first_j = i, j
        while i < len(starts_a) and (is_last or starts_a[i] < end):
            i += 1
        while j < len(starts_b) and (is_last or starts_b[j] < end):
            j += 1
        yield start, end, i - first_i, j - first_j


def _largest(
    tallies: dict[str, _Tally], n_changes: int
) -> tuple[tuple[ChangedSpan, ...], tuple[ChangedSpan, ...]]:
    """Spans with the largest change, shorter and longer; equals in the order of their text."""
    changes = [
        ChangedSpan(text, tally.count, tally.tokens_a, tally.tokens_b)
        for text, tally in tallies.items()
    ]
    shorter = sorted((c for c in changes if c.change < 0), key=lambda c: (c.change, c.text))
    longer = sorted((c for c in changes if c.change > 0), key=lambda c: (-c.change, c.text))
    return tuple(shorter[:n_changes]), tuple(longer[:n_changes])
