"""Figures: drawn for what Results hold, the same bytes again, fonts for every script or a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vocabshift.results import Result, Results

pytest.importorskip("matplotlib")

from vocabshift.report import labels
from vocabshift.report.figures import write_figures

INDIC = "हिन्दीதமிழ்"
ROWS = Results(
    Result(subject, language, metric, value, 4, value * 0.9, value * 1.1)
    for metric, scale in (("fertility", 1.0), ("bytes_per_token", 2.0), ("renyi_efficiency", 0.1))
    for i, subject in enumerate(("a", "b$c$"))
    for j, language in enumerate(("hi", "ta"))
    for value in [scale * (1 + i + 2 * j)]
)


def test_every_figure_is_written_as_svg_and_png(tmp_path: Path) -> None:
    written = write_figures(ROWS, tmp_path)
    assert [path.name for path in written] == [
        *("bars.svg", "bars.png", "heatmap.svg", "heatmap.png", "renyi.svg", "renyi.png")
    ]
    for path in written:
        head = {".svg": b"<?xml", ".png": b"\x89PNG"}[path.suffix]
        assert path.read_bytes().startswith(head)
        assert path.suffix == ".png" or b"<svg" in path.read_bytes()
    fertility = write_figures(ROWS.where(metric="fertility"), tmp_path)
    assert {"bars", "heatmap"} == {path.stem for path in fertility}


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first = {path.name: path.read_bytes() for path in write_figures(ROWS, tmp_path)}
    assert first == {path.name: path.read_bytes() for path in write_figures(ROWS, tmp_path)}


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no results"):
        write_figures(Results(), tmp_path)
    with pytest.raises(ValueError, match="no metric 'gini'"):
        write_figures(ROWS, tmp_path, metric="gini")
    assert [] == list(tmp_path.iterdir())


def test_long_names_leave_room(tmp_path: Path) -> None:
    """matplotlib warns where labels leave nothing to draw in, and warnings are errors here."""
    rows = [Result("s" * 300, "x" * 300, "fertility", 1.5, 9), Result("b", "hi", "fertility", 2, 9)]
    assert write_figures(Results(rows), tmp_path)


def test_lossy_values_are_not_drawn_as_compression(tmp_path: Path) -> None:
    lost = Results([Result("a", "hi", "loss_rate", 0.5, 4)])
    clean = {path.name: path.read_bytes() for path in write_figures(ROWS, tmp_path)}
    marked = {path.name: path.read_bytes() for path in write_figures(ROWS + lost, tmp_path)}
    assert all(clean[name] != marked[name] for name in clean)


def test_a_character_without_a_font_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_fonts", lambda: {"DejaVu Sans": _own_font()})
    monkeypatch.setattr(labels, "_register_noto", lambda: None)
    assert ["DejaVu Sans"] == labels.families("abc é")
    with pytest.raises(ValueError, match=r"no font on this system can draw தம.*: install the Noto"):
        labels.families("abc தம")


def test_a_noto_font_that_came_after_matplotlib_made_its_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The font is made here: no font of the machine has these characters for the test."""
    from matplotlib import font_manager

    monkeypatch.setattr(font_manager.fontManager, "ttflist", _own_fonts())
    new = _write_font(tmp_path / "NotoSansTest-Regular.ttf", "Noto Sans Test", INDIC)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(new)])
    assert ["DejaVu Sans", "Noto Sans Test"] == labels.families(f"abc {INDIC}")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", _own_fonts())
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    with pytest.raises(ValueError, match="no font on this system"):
        labels.families(INDIC)


def test_fonts_of_the_system_are_found_where_they_are() -> None:
    """Looked for without the code under test: in the character maps of all files of fonts."""
    from matplotlib import font_manager

    files = [path for path in font_manager.findSystemFonts() if "Noto" in Path(path).name]
    there = frozenset[str]().union(*(labels._characters(path) for path in files))
    if not set(INDIC) <= there:
        pytest.skip("no Noto font for Devanagari and Tamil is installed (fonts-noto-core)")
    found = labels.families(INDIC)
    assert "DejaVu Sans" == found[0]
    covered = frozenset[str]().union(*(labels._characters(labels._fonts()[name]) for name in found))
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
