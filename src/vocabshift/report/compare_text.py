"""A comparison of two tokenizers for the terminal, with colours and without.

With colours, tokens alternate between two backgrounds. Without them (`plain`), separators divide
tokens, spaces within a token are shown, and text that several tokens share is in brackets with
their number. Superwords are bold, cut syllables and characters underlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vocabshift.evaluation.compare import (
    ChangedSpan,
    ComparedLine,
    LanguageTotals,
    TokenizerComparison,
    total,
)
from vocabshift.evaluation.lines.views import TokenizedLine
from vocabshift.report.tables import INVALID, NOTE
from vocabshift.report.tokenized_line import Segment, segments

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

_BACKGROUNDS = ("black on bright_cyan", "black on bright_yellow")
_CUT, _SUPERWORD, _UNKNOWN = "underline", "bold", "reverse"


@dataclass(frozen=True, slots=True)
class Marks:
    """Signs for terminals without colours."""

    separator: str = "│"
    space: str = "␣"
    shared: tuple[str, str] = ("⟨", "⟩")
    invalid: str = INVALID
    is_ascii: bool = False


ASCII = Marks("|", "_", ("<", ">"), "!", is_ascii=True)
UNICODE = Marks()


def to_rich(
    comparison: TokenizerComparison, *, plain: bool = False, marks: Marks = UNICODE
) -> list[RenderableType]:
    """What the terminal shows: totals, what became shorter and longer, lines side by side."""
    from rich.text import Text

    parts: list[RenderableType] = [_totals(comparison, marks)]
    if any(row.lost_a or row.lost_b for row in comparison.languages):
        parts.append(Text(NOTE.replace(INVALID, marks.invalid)))
    for title, changes in (("shorter", comparison.shorter), ("longer", comparison.longer)):
        if changes:
            parts.append(_changes(comparison, f"what became {title}", changes, marks))
    if comparison.lines:
        parts.append(Text("lines that changed most", style="bold"))
        parts.append(_key(plain=plain, marks=marks))
    for line in comparison.lines:
        parts += [*_pair(comparison, line, plain=plain, marks=marks), Text("")]
    return parts


def tokens_text(line: TokenizedLine, *, plain: bool = False, marks: Marks = UNICODE) -> Text:
    """One line with its tokens marked; control and direction characters are spelled out."""
    from rich.text import Text

    data = line.text.encode()
    text = Text()
    last = -1
    for segment in segments(line):
        shown = visible(data[segment.start : segment.end].decode())
        new = bool(segment.tokens) and segment.tokens[0] != last
        if plain:
            if new and len(text):
                text.append(marks.separator)
            text.append(_plain(line, segment, shown, marks))
        else:
            text.append(shown, style=_style(line, segment))
        last = segment.tokens[-1] if segment.tokens else last
    return text


def visible(text: str) -> str:
    """Control and direction characters spelled out; joiners stay, they shape the text."""
    return "".join(c if c.isprintable() or c in "\u200c\u200d" else repr(c)[1:-1] for c in text)


def _style(line: TokenizedLine, segment: Segment) -> str:
    if not segment.tokens:
        return "dim"
    tokens = [line.tokens[i] for i in segment.tokens]
    styles = [_BACKGROUNDS[segment.tokens[0] % 2]]
    if len(tokens) > 1:
        styles.append(_CUT)
    if any(token.superword for token in tokens):
        styles.append(_SUPERWORD)
    if any(token.unknown for token in tokens):
        styles.append(_UNKNOWN)
    return " ".join(styles)


def _plain(line: TokenizedLine, segment: Segment, shown: str, marks: Marks) -> str:
    inner = shown
    if any(line.tokens[i].superword for i in segment.tokens):
        inner = shown.replace(" ", marks.space)
    if len(segment.tokens) > 1:
        opening, closing = marks.shared
        return f"{opening}{inner}{closing}{len(segment.tokens)}"
    return inner


def _key(*, plain: bool, marks: Marks) -> Text:
    """What the marks mean."""
    from rich.text import Text

    if plain:
        opening, closing = marks.shared
        return Text(
            f"{marks.separator} between tokens; {opening}x{closing}3: three tokens share this "
            f"syllable or character; a{marks.space}b: superword"
        )
    return Text.assemble(
        ("a token", _BACKGROUNDS[0]),
        ("and the next", _BACKGROUNDS[1]),
        "  ",
        ("shared syllable or character", _CUT),
        "  ",
        ("superword", _SUPERWORD),
    )


def _totals(comparison: TokenizerComparison, marks: Marks) -> Table:
    from rich.text import Text

    table = _table("tokens", marks)
    table.add_column("language")
    a, b = visible(comparison.a), visible(comparison.b)
    for name in ("lines", a, b, "change", f"bytes per token, {a}", b):
        table.add_column(Text(name), justify="right")
    for row in comparison.languages:
        table.add_row(Text(visible(row.language)), *_numbers(row, marks))
    if len(comparison.languages) > 1:
        table.add_section()
        table.add_row("all", *_numbers(total(comparison.languages), marks), style="bold")
    return table


def _table(title: str, marks: Marks) -> Table:
    from rich.box import ASCII2, HEAVY_HEAD
    from rich.table import Table
    from rich.text import Text

    box = ASCII2 if marks.is_ascii else HEAVY_HEAD
    return Table(title=Text(title, style="bold"), title_justify="left", box=box)


def _numbers(row: LanguageTotals, marks: Marks) -> list[str]:
    of_a, of_b = (marks.invalid if lost else "" for lost in (row.lost_a, row.lost_b))
    return [
        f"{row.n_lines:,}",
        f"{row.tokens_a:,}",
        f"{row.tokens_b:,}",
        f"{row.change:+.1%}{of_a or of_b}",
        f"{row.n_bytes / max(row.tokens_a, 1):.3f}{of_a}",
        f"{row.n_bytes / max(row.tokens_b, 1):.3f}{of_b}",
    ]


def _changes(
    comparison: TokenizerComparison, title: str, changes: Sequence[ChangedSpan], marks: Marks
) -> Table:
    from rich.text import Text

    table = _table(title, marks)
    table.add_column("text")
    for name in ("places", visible(comparison.a), visible(comparison.b), "change"):
        table.add_column(Text(name), justify="right")
    for change in changes:
        shown = visible(change.text).replace(" ", marks.space)
        numbers = (f"{change.count:,}", f"{change.tokens_a:,}", f"{change.tokens_b:,}")
        table.add_row(Text(shown), *numbers, f"{change.change:+,}")
    return table


def _pair(
    comparison: TokenizerComparison, line: ComparedLine, *, plain: bool, marks: Marks
) -> list[Text]:
    from rich.text import Text

    head = f"{visible(line.language)}, line {line.number:,}: {line.change:+,} tokens"
    parts = [Text(head, style="bold")]
    for name, tokenized in ((comparison.a, line.a), (comparison.b, line.b)):
        parts.append(Text(f"{visible(name)}, {len(tokenized.tokens):,} tokens", style="dim"))
        parts.append(tokens_text(tokenized, plain=plain, marks=marks))
    return parts
