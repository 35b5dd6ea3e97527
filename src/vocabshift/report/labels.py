"""Labels of figures: the system fonts that draw them, and their positions.

Noto's fonts come first, and are looked up on the disk where matplotlib's list, made once, lacks
them; that needs the extra [plots]. Knows nothing of figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

_OWN_FONT = "DejaVu Sans"  # comes with matplotlib
_LAST_RESORT = "Last Resort"  # it draws boxes for everything
_INSTALL = "install the Noto fonts (Debian: fonts-noto-core; others: fonts.google.com/noto)"


def families(text: str) -> list[str]:
    """Font families that together have every character of `text`, matplotlib's own first.

    ValueError with the characters that no font of the system has.
    """
    needed = {c for c in text if c.isprintable() and c != " "}
    found, missing = _cover(needed)
    if missing:
        _register_noto()
        found, missing = _cover(needed)
    if missing:
        shown = "".join(sorted(missing)[:20])
        raise ValueError(f"no font on this system can draw {shown}: {_INSTALL}")
    return found if _OWN_FONT in found else [_OWN_FONT, *found]


def _cover(needed: set[str]) -> tuple[list[str], set[str]]:
    """Return families that have the needed characters, and the characters that none has."""
    found, missing = [], set(needed)
    for family, path in _fonts().items():
        if not missing:
            break
        if covered := missing & _characters(path):
            found.append(family)
            missing -= covered
    return found, missing


def _register_noto() -> None:
    """Tell matplotlib of Noto's fonts that came to the system after it made its list."""
    from matplotlib import font_manager

    known = {str(entry.fname) for entry in font_manager.fontManager.ttflist}
    for path in sorted(font_manager.findSystemFonts()):
        if Path(path).name.startswith("Noto") and "Regular" in path and path not in known:
            font_manager.fontManager.addfont(path)


def _fonts() -> dict[str, str]:
    """Upright regular fonts by family: matplotlib's own, Noto's for text, Noto's others, others."""
    from matplotlib import font_manager

    entries = [
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.style == "normal" and entry.weight in (400, "normal", "regular")
    ]
    starts = (_OWN_FONT, "Noto Sans", "Noto")

    def order(name: str) -> tuple[int, str]:
        return next((i for i, start in enumerate(starts) if name.startswith(start)), 3), name

    by_name: dict[str, str] = {}
    for entry in entries:  # matplotlib's own fonts come first
        if _LAST_RESORT not in entry.name:
            by_name.setdefault(entry.name, str(entry.fname))
    return {name: by_name[name] for name in sorted(by_name, key=order)}


@cache
def _characters(path: str) -> frozenset[str]:
    """What a font can draw."""
    from matplotlib.ft2font import FT2Font

    return frozenset(map(chr, FT2Font(path).get_charmap()))


def apart(spots: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same places for labels, moved down where two would overlap; in the given order."""
    placed: list[tuple[float, float]] = []
    moved: dict[int, tuple[float, float]] = {}
    for i in sorted(range(len(spots)), key=lambda i: spots[i][1]):
        x, y = spots[i]
        while any(abs(x - other_x) < 120 and abs(y - other_y) < 15 for other_x, other_y in placed):
            y += 3
        placed.append((x, y))
        moved[i] = (x, y)
    return [moved[i] for i in range(len(spots))]
