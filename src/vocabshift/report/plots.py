"""Plots with matplotlib: curves, those of a plan among them, and fonts and positions of labels.

A plot of curves is a value against a number of tokens, one line for each series. The format is SVG,
PNG or PDF, by the file's suffix; nothing is drawn to a screen. Of the system's fonts, Noto's come
first, and are looked up on the disk where matplotlib's list, made once, lacks them. Needs the extra
[plots].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

SUFFIXES = (".svg", ".png", ".pdf")


@dataclass(frozen=True)
class Curve:
    """One line of a picture."""

    label: str
    points: Sequence[tuple[int, float]]  # (tokens, value), ascending
    mark: tuple[int, float] | None = None  # a point that is marked
    ceiling: float | None = None  # drawn as a dotted line of the same colour
    is_dashed: bool = False


def check_picture(file: str | Path) -> Path:
    """The path, if a picture can be written there; ValueError, or ImportError without [plots]."""
    path = Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{file} is no picture; give a name that ends in {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder of {file} does not exist")
    import matplotlib  # noqa: F401  heavy, and an extra of its own

    return path


def draw(
    panels: Mapping[str, Sequence[Curve]], file: str | Path, *, value: str, title: str = ""
) -> Path:
    """Write a picture with one panel for each entry of `panels`; `value` names the vertical axis.

    The same curves yield the same bytes.
    """
    path = check_picture(file)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    with rc_context({"svg.hashsalt": "vocabshift", "svg.fonttype": "none"}):
        figure = Figure(figsize=(4.6 * columns, 3.4 * rows), layout="constrained")
        for i, (name, curves) in enumerate(panels.items()):
            axes = figure.add_subplot(rows, columns, i + 1)
            axes.set_title(name, fontsize=10)
            for number, curve in enumerate(curves):
                _draw_curve(axes, curve, f"C{number}")
            axes.set_xlabel("tokens added (negative: removed)", fontsize=8)
            axes.set_ylabel(value, fontsize=8)
            axes.tick_params(labelsize=8)
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.25)
            axes.legend(fontsize=7, frameon=False)
        if title:
            figure.suptitle(title, fontsize=11)
        # No date in the file: equal runs write equal bytes.
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        figure.savefig(path, dpi=150, metadata=metadata.get(path.suffix.lower()))
    return path


def _draw_curve(axes: object, curve: Curve, color: str) -> None:
    xs = [x for x, _ in curve.points]
    ys = [y for _, y in curve.points]
    style = "--" if curve.is_dashed else "-"
    axes.plot(xs, ys, style, color=color, marker=".", markersize=4, label=curve.label)  # type: ignore[attr-defined]
    if curve.ceiling is not None:
        axes.axhline(curve.ceiling, color=color, linestyle=":", linewidth=1)  # type: ignore[attr-defined]
    if curve.mark is not None:
        axes.plot(*curve.mark, marker="o", markersize=8, fillstyle="none", color=color)  # type: ignore[attr-defined]


_OWN_FONT = "DejaVu Sans"  # comes with matplotlib
_LAST_RESORT = "Last Resort"  # it draws boxes for everything
_INSTALL = "install the Noto fonts (Debian: fonts-noto-core; others: fonts.google.com/noto)"


def draw_plan(found: Mapping[str, Any], file: str | Path) -> Path:
    """Draw bytes per token against new tokens: one panel per language, with both pre-tokenizers.

    found: `Plan.to_dict()`. The ceiling is dotted and the knee circled. Returns the file.
    """
    panels: dict[str, list[Curve]] = {}
    for label in found["rows"][0]["by_language"]:
        curves = []
        for name, ceilings in found["ceilings"].items():
            rows = [row for row in found["rows"] if row["pre_tokenizer"] == name]
            rows.sort(key=itemgetter("n_tokens"))
            points = [(row["n_tokens"], row["by_language"][label]) for row in rows]
            knees = [at for at, row in zip(points, rows, strict=True) if row["is_knee"]]
            mark = knees[0] if knees else None
            title = f"pre-tokenizer {name}"
            curves.append(Curve(title, points, mark=mark, ceiling=ceilings.get(label)))
        panels[label] = curves
    title = f"{found['tokenizer']}: dotted the ceiling, circled the knee"
    return draw(panels, file, value="bytes per token", title=title)


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
