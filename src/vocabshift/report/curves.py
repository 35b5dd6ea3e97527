"""A plot of curves: a value against a number of tokens, one line for each series.

The format is SVG, PNG or PDF, by the file's suffix. Needs the extra [plots]; nothing is drawn to a
screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
