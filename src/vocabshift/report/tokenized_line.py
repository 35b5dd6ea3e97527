"""One tokenized line as HTML: the text as a browser shapes it, tokens as background colours.

If a conjunct of Devanagari or a ligature of Malayalam is divided between two elements, not every
browser shapes it as one sign. So elements begin and end only at borders of orthographic syllables:
they are the segments of the line, which the terminal colours too. A syllable that several tokens
share is one element, whose background has a stripe of each token's colour. Owns this markup, its
style sheet (`token_view.css`) and its script (`token_view.js`), which shows ids and bytes under the
pointer and under the keyboard. The playground draws the same. Knows nothing of pages or tokenizers.

Markup: `<p class="tl">` holds `<i>` elements. `data-i` has the ids of the tokens that have a part
in the element, `data-b` their bytes in hex (left out where they are the element's own text).
Classes: `k0`-`k5` colour of one token; `x2-3` three tokens, the first in colour 2; `on` the token
began in an element before; `sw` superword; `cs`, `cc` cuts a syllable, a character; `sp` special;
`un` unknown; `z` token without text here; `no` text without a token, `ns` a space without one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import pairwise
from unicodedata import category

from vocabshift.errors import printable
from vocabshift.evaluation.lines.views import LineToken, TokenizedLine


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a line that becomes one element: bytes [start, end) and who has a part in it."""

    start: int
    end: int
    tokens: tuple[int, ...]  # indices into the line's tokens; empty: text without a token


def segments(line: TokenizedLine) -> Iterator[Segment]:
    """Cut a line where tokens begin and end, but never inside a sign that is drawn as one."""
    n_bytes = line.n_bytes
    borders = line.borders if line.borders is not None else _character_borders(line.text)
    borders = sorted({0, *borders, n_bytes})
    points = {0, n_bytes}
    for token in line.tokens:
        for edge in (token.start, token.end):
            points |= set(_around(borders, edge))
    edges = sorted(points)
    # Zero-width tokens stand in front of the element that begins where they are.
    empty = [i for i, token in enumerate(line.tokens) if token.start == token.end]
    empty_at = {i: line.tokens[i].start for i in empty}
    next_empty, first = 0, 0
    for start, end in pairwise(edges):
        while next_empty < len(empty) and empty_at[empty[next_empty]] <= start:
            yield Segment(start, start, (empty[next_empty],))
            next_empty += 1
        while first < len(line.tokens) and line.tokens[first].end <= start:
            first += 1
        inside = []
        for i in range(first, len(line.tokens)):
            if line.tokens[i].start >= end:
                break
            if line.tokens[i].end > start:
                inside.append(i)
        while next_empty < len(empty) and empty_at[empty[next_empty]] < end:
            inside.append(empty[next_empty])
            next_empty += 1
        yield Segment(start, end, tuple(sorted(set(inside))))
    for i in empty[next_empty:]:
        yield Segment(n_bytes, n_bytes, (i,))


def _around(borders: Sequence[int], edge: int) -> tuple[int, int]:
    """The borders at both sides of `edge`; twice itself where it is one."""
    return (borders[bisect_right(borders, edge) - 1], borders[bisect_left(borders, edge)])


def _character_borders(text: str) -> list[int]:
    borders, at = [0], 0
    for character in text:
        at += len(character.encode())
        borders.append(at)
    return borders


N_COLOURS = 6
"""Colours of tokens, in turn; neighbours always differ."""

MOST_STRIPES = 12
"""A syllable with more tokens shows the first of them."""

_KEPT_FORMATS = "\u200c\u200d"  # ZWNJ and ZWJ belong to the shaping
_SHOWN = {"\n": "↵", "\t": "⇥", "\u2028": "↵", "\u2029": "¶", "\x7f": "␡"}
_LABEL = re.compile(r"([A-Za-z]{2,3})(?:[-_]([A-Za-z]{4}))?")


_BYTES_PER_ELEMENT = 20  # of a line that is shown in part


def token_line_html(
    line: TokenizedLine, *, language: str | None = None, most: int | None = None
) -> str:
    """The line as one `<p class="tl">` element, safe for any text and any token.

    `language` is a label such as "hi" or "ks_Arab"; it becomes the `lang` attribute, by which
    browsers choose a font, if it looks like a language at all. Control and direction characters
    are shown by name and do nothing. The direction of writing is the text's own. `most` elements
    are shown at most, and of what follows how much it is.
    """
    data = line.text.encode()
    shown = 0
    elements: list[str] = []
    most_bytes = len(data) if most is None else most * _BYTES_PER_ELEMENT
    for segment in segments(line):
        if len(elements) == most or segment.end > most_bytes:
            elements.append(f'<b class="ct">… {len(data) - shown:,} more bytes</b>')
            break
        elements.append(_element(line, data, segment))
        shown = segment.end
    body = "".join(elements)
    lang = language_tag(language)
    attribute = f' lang="{lang}"' if lang else ""
    return f'<p class="tl" dir="auto"{attribute}>{body}</p>'


def language_tag(label: str | None) -> str | None:
    """BCP 47's tag for a corpus label ("ks_Arab": "ks-Arab"); None where it is no such thing."""
    match = _LABEL.fullmatch(label or "")
    return None if match is None else "-".join(part for part in match.groups() if part)


def _element(line: TokenizedLine, data: bytes, segment: Segment) -> str:
    text = data[segment.start : segment.end].decode()
    tokens = [line.tokens[i] for i in segment.tokens]
    shown = visible_html(text or (tokens[0].token if tokens else ""))
    if not tokens:
        return f'<i class="{"no" if text.strip() else "ns"}">{shown}</i>'
    ids = " ".join(str(token.id) for token in tokens)
    spelled = [data[token.start : token.end].hex() for token in tokens]
    # The script reads the bytes of most tokens from the element's own text.
    own = shown == escape(text, quote=False) and spelled == [text.encode().hex()]
    attribute = "" if own else f' data-b="{" ".join(spelled)}"'
    names = " ".join(_classes(segment, tokens, data))
    return f'<i class="{names}" data-i="{ids}"{attribute}>{shown}</i>'


def _classes(segment: Segment, tokens: Sequence[LineToken], data: bytes) -> Iterator[str]:
    colour = segment.tokens[0] % N_COLOURS
    one = len(tokens) == 1
    yield f"k{colour}" if one else f"x{colour}-{min(len(tokens), MOST_STRIPES)}"
    if tokens[0].start < segment.start:
        yield "on"
    if segment.start == segment.end:
        yield "z"
    if any(token.superword for token in tokens):
        yield "sw"
    if not one:  # alone in an element, a token cuts nothing of it
        yield "cc" if any(_is_inside(data, token.start) for token in tokens[1:]) else "cs"
    if any(token.special for token in tokens):
        yield "sp"
    if any(token.unknown for token in tokens):
        yield "un"


def _is_inside(data: bytes, at: int) -> bool:
    """Whether a place in UTF-8 is inside of a character."""
    return at < len(data) and data[at] & 0xC0 == 0x80


def visible_html(text: str) -> str:
    """`text` escaped for HTML; control and direction characters as small visible names."""
    return "".join(_shown(character) for character in text)


def plain_html(text: str) -> str:
    """The same without elements, for attributes and for SVG: such characters as Python has them."""
    return escape(printable(text))


def _shown(character: str) -> str:
    if character in _SHOWN:
        return f'<b class="ct">{_SHOWN[character]}</b>'
    if character < " ":
        return f'<b class="ct">{chr(0x2400 + ord(character))}</b>'
    if category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs") and character not in _KEPT_FORMATS:
        return f'<b class="ct">U+{ord(character):04X}</b>'
    return escape(character, quote=False)


def token_css() -> str:
    """The style sheet of token views, stripes included."""
    stripes = "".join(
        f".x{first}-{count}{{--s:{_stripes(first, count)}}}\n"
        for count in range(2, MOST_STRIPES + 1)
        for first in range(N_COLOURS)
    )
    return files(__package__).joinpath("token_view.css").read_text(encoding="utf-8") + stripes


def _stripes(first: int, count: int) -> str:
    stops = []
    for i in range(count):
        colour = f"var(--k{(first + i) % N_COLOURS})"
        begin, end = round(100 * i / count), round(100 * (i + 1) / count)
        stops.append(f"{colour} {begin}% {end}%")
    return ",".join(stops)


def token_js() -> str:
    """The script of token views: defines `showTokens(root)`."""
    return files(__package__).joinpath("token_view.js").read_text(encoding="utf-8")
