"""Static figures of Results for papers and cards: bars with intervals, heat map, Rényi efficiency.

Owns how they look and which fonts they need. Labels in scripts that matplotlib's own font lacks are
drawn with fonts of the system, Noto's first, shaped by libraqm (matplotlib 3.11). Needs the extra
[plots]; nothing is drawn to a screen. Knows nothing of how a value was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from vocabshift.errors import printable
from vocabshift.evaluation.metrics.registry import describe
from vocabshift.report.plots import apart, families
from vocabshift.report.tables import INVALID, decimals, invalid_rows, mean_over, number
from vocabshift.results import WHOLE, Result, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#6a3fb0", "#3b3f4a")
"""Of tokenizers, in turn: Okabe and Ito's, which colour-blind readers tell apart, and two more."""

SUFFIXES = (".svg", ".png")
_RENYI = "renyi_efficiency"
_LENGTHS = ("bytes_per_token", "characters_per_token", "fertility")
_PER_ROW = 8  # languages in a row of the bars
_LONGEST = 40  # characters of a name


def write_figures(
    results: Results,
    folder: str | Path,
    *,
    names: Mapping[str, str] | None = None,
    metric: str | None = None,
) -> list[Path]:
    """Write every figure that `results` allow into an existing folder, as SVG and as PNG.

    `bars` and `heatmap` show `metric` (default: fertility, or the first metric there is), `renyi`
    Rényi efficiency against compression where both were measured. `names`: languages' names for
    people, by label. The same results give the same bytes. ValueError where there is nothing to
    draw, or where no font of the system has a label's characters; ImportError without [plots].
    """
    rows = Results(row for row in results if row.language != WHOLE) or results
    rows = Results(row for row in rows if math.isfinite(row.value))
    if not rows:
        raise ValueError("there are no results to draw")
    measured = rows.distinct("metric")
    chosen = metric or ("fertility" if "fertility" in measured else measured[0])
    if chosen not in measured:
        raise ValueError(f"the results hold no metric {chosen!r}; they hold {', '.join(measured)}")
    shown = dict(names or {})
    labels = [*rows.distinct("subject"), *rows.distinct("language"), *shown.values()]
    drawings: dict[str, Callable[[Figure], None]] = {
        "bars": lambda figure: _bars(figure, rows, chosen, shown),
        "heatmap": lambda figure: _heat_map(figure, rows, chosen, shown),
    }
    if _RENYI in measured and any(length in measured for length in _LENGTHS):
        drawings["renyi"] = lambda figure: _renyi(figure, rows)
    written = []
    for name, draw in drawings.items():
        written += _save(draw, Path(folder) / name, families("".join(labels)))
    return written


def check_drawing() -> None:
    """ImportError without [plots]."""
    import matplotlib  # noqa: F401  heavy, and an extra of its own


def _save(draw: Callable[[Figure], None], stem: Path, fonts: Sequence[str]) -> list[Path]:
    """Draw once, write every suffix."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(
        {
            "font.family": list(fonts),
            "font.size": 9,
            "svg.hashsalt": "vocabshift",
            "svg.fonttype": "path",  # shaped here, so that it looks the same everywhere
            "text.parse_math": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    ):
        figure = Figure(layout="constrained")
        draw(figure)
        paths = []
        for suffix in SUFFIXES:
            path = stem.with_suffix(suffix)
            # No date in the file: equal results write equal bytes.
            metadata = {"Date": None} if suffix == ".svg" else {"Software": "vocabshift"}
            figure.savefig(path, dpi=200, metadata=metadata)
            paths.append(path)
    return paths


def _label(text: str) -> str:
    """Control and direction characters spelled out; long names cut: there must be room to draw."""
    shown = printable(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _axis_name(metric: str) -> str:
    note = describe(metric)
    return f"{note.label} ({note.note})" if note.note else note.label


def _bars(figure: Figure, results: Results, metric: str, names: Mapping[str, str]) -> None:
    """Groups of bars with intervals, a group for each language."""
    from matplotlib.patches import Patch

    rows = results.where(metric=metric)
    subjects, languages = rows.distinct("subject"), rows.distinct("language")
    cell = {(row.subject, row.language): row for row in rows}
    invalid = invalid_rows(results, metric)
    n_rows = -(-len(languages) // _PER_ROW)
    width = max(4.0, 0.9 + min(len(languages), _PER_ROW) * (0.45 + 0.11 * len(subjects)))
    figure.set_size_inches(width, 2.1 * n_rows + 0.5)
    bar = 0.84 / len(subjects)
    most = max(row.value if row.ci_high is None else row.ci_high for row in rows)
    least = min(row.value for row in rows)
    for i in range(n_rows):
        axes = figure.add_subplot(n_rows, 1, i + 1)
        shown = languages[i * _PER_ROW : (i + 1) * _PER_ROW]
        for j, subject in enumerate(subjects):
            place = (j - (len(subjects) - 1) / 2) * bar
            of_subject = [cell.get((subject, name)) for name in shown]
            colour = COLOURS[j % len(COLOURS)]
            _draw_bars(axes, of_subject, place, bar, colour=colour, invalid=invalid)
        axes.set_xticks(range(len(shown)), [_label(names.get(name, name)) for name in shown])
        axes.set_xlim(-0.6, min(len(languages), _PER_ROW) - 0.4)
        axes.tick_params(axis="x", length=0)
        axes.grid(axis="y", alpha=0.3, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_ylim(min(0.0, least), most * 1.04 or 1.0)
        axes.set_ylabel(describe(metric).label)
    keys = [Patch(color=COLOURS[j % len(COLOURS)]) for j in range(len(subjects))]
    figure.legend(
        keys,
        list(map(_label, subjects)),
        loc="outside upper center",
        ncols=min(len(subjects), 5),
        frameon=False,
        fontsize=8,
    )


def _draw_bars(
    axes: Axes,
    rows: Sequence[Result | None],
    place: float,
    width: float,
    *,
    colour: str,
    invalid: AbstractSet[tuple[str, str]],
) -> None:
    """One tokenizer's bars; a dagger stands where text was lost, as no compression is there."""
    for x, row in enumerate(rows):
        if row is None:
            continue
        if (row.subject, row.language) in invalid:
            axes.text(x + place, 0, INVALID, ha="center", va="bottom", color=colour, fontsize=8)
            continue
        low = row.value if row.ci_low is None else row.ci_low
        high = row.value if row.ci_high is None else row.ci_high
        axes.bar(
            x + place,
            row.value,
            width * 0.92,
            yerr=[[max(0.0, row.value - low)], [max(0.0, high - row.value)]],
            color=colour,
            error_kw={"elinewidth": 0.8, "capsize": 1.2},
        )


def _heat_map(figure: Figure, results: Results, metric: str, names: Mapping[str, str]) -> None:
    """Languages down, tokenizers across, every value printed."""
    import numpy as np
    from matplotlib.colors import LogNorm, Normalize

    rows = results.where(metric=metric)
    subjects, languages = rows.distinct("subject"), rows.distinct("language")
    invalid = invalid_rows(results, metric)
    values = np.full((len(languages), len(subjects)), np.nan)
    for row in rows:
        values[languages.index(row.language), subjects.index(row.subject)] = row.value
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    norm = LogNorm(low, high) if low > 0 and high > 3 * low else Normalize(low, high)
    figure.set_size_inches(2.6 + 0.6 * len(subjects), 1.7 + 0.235 * len(languages))
    axes = figure.add_subplot()
    axes.imshow(values, cmap="YlGnBu", norm=norm, aspect="auto")
    axes.set_xticks(range(len(subjects)), [_label(s) for s in subjects], rotation=35, ha="right")
    axes.set_yticks(range(len(languages)), [_label(names.get(name, name)) for name in languages])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    digits = decimals(rows)
    for i, language in enumerate(languages):
        for j, subject in enumerate(subjects):
            if math.isfinite(values[i, j]):
                mark = INVALID if (subject, language) in invalid else ""
                ink = "white" if norm(values[i, j]) > 0.55 else "black"
                text = number(float(values[i, j]), digits) + mark
                axes.text(j, i, text, ha="center", va="center", color=ink, fontsize=7)
    figure.suptitle(_axis_name(metric), fontsize=9)


def _renyi(figure: Figure, results: Results) -> None:
    """Rényi efficiency against compression: languages pale, means over them with names."""
    length = next(metric for metric in _LENGTHS if results.where(metric=metric))
    invalid = invalid_rows(results, _RENYI)
    subjects = results.distinct("subject")
    figure.set_size_inches(6.4, 4.2)
    axes = figure.add_subplot()
    below = {(row.subject, row.language): row.value for row in results.where(metric=length)}
    means = []
    for i, subject in enumerate(subjects):
        rows = results.where(subject=subject, metric=_RENYI)
        keys = [(row.subject, row.language) for row in rows]
        kept = [
            (below[k], r.value)
            for k, r in zip(keys, rows, strict=True)
            if k in below and k not in invalid
        ]
        colour = COLOURS[i % len(COLOURS)]
        axes.scatter(
            [x for x, _ in kept], [y for _, y in kept], s=9, color=colour, alpha=0.35, lw=0
        )
        x, y = (_mean(results.where(metric=m), subject, invalid) for m in (length, _RENYI))
        if x is not None and y is not None:
            axes.scatter([x], [y], s=60, color=colour, edgecolors="white", zorder=3)
            means.append((subject, x, y))
    axes.set_xlabel(describe(length).label)
    axes.set_ylabel(describe(_RENYI).label)
    axes.grid(alpha=0.3, linewidth=0.6)
    figure.draw_without_rendering()
    points = [axes.transData.transform((x, y)) * 72 / figure.dpi for _, x, y in means]
    spots = apart([(1.5 * x, -1.5 * y) for x, y in points])  # names are smaller than a page's
    for (subject, x, y), point, spot in zip(means, points, spots, strict=True):
        axes.annotate(
            _label(subject),
            (x, y),
            xytext=(7, -spot[1] / 1.5 - point[1] - 3),
            textcoords="offset points",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "0.6"},
        )


def _mean(rows: Results, subject: str, invalid: AbstractSet[tuple[str, str]]) -> float | None:
    return mean_over(rows.where(subject=subject), rows.distinct("language"), invalid)
