r"""Extended grapheme clusters: what readers take for one character (UAX 29), by `regex`'s \X.

Owns where they end. `regex` follows rule GB9c, so that a conjunct of Devanagari is one cluster;
which scripts have it depends on its Unicode tables. Syllables are syllables.py's.
"""

from __future__ import annotations

import functools

import regex


def grapheme_borders(text: str) -> list[int]:
    """Where the clusters of `text` end, as character offsets: ascending, up to len(text)."""
    if text.isascii() and "\r" not in text:  # "\r\n" is the only cluster of ASCII
        return list(range(1, len(text) + 1))
    return [match.end() for match in _cluster().finditer(text)]


@functools.cache
def _cluster() -> regex.Pattern[str]:
    return regex.compile(r"\X")
