"""Labels of figures: a font for every script or a word about it; places that do not overlap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.report import plots

pytest.importorskip("matplotlib")

INDIC = "हिन्दीதமிழ்"
SPOT = st.tuples(st.integers(0, 700), st.integers(0, 400))


@given(st.lists(SPOT, max_size=12))
def test_labels_never_overlap_and_never_move_up_or_sideways(spots: list[tuple[int, int]]) -> None:
    moved = plots.apart(spots)
    for (x, y), (new_x, new_y) in zip(spots, moved, strict=True):
        assert x == new_x
        assert y <= new_y
    for i, (x, y) in enumerate(moved):
        for other_x, other_y in moved[:i]:
            assert abs(x - other_x) >= 120 or abs(y - other_y) >= 15


def test_a_character_without_a_font_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "_fonts", lambda: {"DejaVu Sans": _own_font()})
    monkeypatch.setattr(plots, "_register_noto", lambda: None)
    assert ["DejaVu Sans"] == plots.families("abc é")
    with pytest.raises(ValueError, match=r"no font on this system can draw தம.*: install the Noto"):
        plots.families("abc தம")


def test_a_noto_font_that_came_after_matplotlib_made_its_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The font is made here: no font of the machine has these characters for the test."""
    from matplotlib import font_manager

    monkeypatch.setattr(font_manager.fontManager, "ttflist", _own_fonts())
    new = _write_font(tmp_path / "NotoSansTest-Regular.ttf", "Noto Sans Test", INDIC)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(new)])
    assert ["DejaVu Sans", "Noto Sans Test"] == plots.families(f"abc {INDIC}")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", _own_fonts())
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    with pytest.raises(ValueError, match="no font on this system"):
        plots.families(INDIC)


def test_fonts_of_the_system_are_found_where_they_are() -> None:
    """Looked for without the code under test: in the character maps of all files of fonts."""
    from matplotlib import font_manager

    files = [path for path in font_manager.findSystemFonts() if "Noto" in Path(path).name]
    there = frozenset[str]().union(*(plots._characters(path) for path in files))
    if not set(INDIC) <= there:
        pytest.skip("no Noto font for Devanagari and Tamil is installed (fonts-noto-core)")
    found = plots.families(INDIC)
    assert "DejaVu Sans" == found[0]
    covered = frozenset[str]().union(*(plots._characters(plots._fonts()[name]) for name in found))
    assert set(INDIC) <= covered


def _own_fonts() -> list[Any]:
    """Entries of matplotlib's list for the fonts that it brings along."""
    from matplotlib import font_manager, get_data_path

    entries = font_manager.fontManager.ttflist
    return [entry for entry in entries if str(entry.fname).startswith(get_data_path())]


def _write_font(path: Path, family: str, characters: str) -> Path:
    """A font whose glyphs are all one square."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 500), (500, 500), (500, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square = pen.glyph()
    names = {ord(character): f"u{ord(character):04X}" for character in characters}
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap(names)
    builder.setupGlyf(dict.fromkeys([".notdef", *names.values()], square))
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *names.values()], (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(usWeightClass=400)
    builder.setupPost()
    builder.save(path)
    return path


def _own_font() -> str:
    import matplotlib

    return str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf")
