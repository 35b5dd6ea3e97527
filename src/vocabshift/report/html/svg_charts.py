"""Charts as SVG inside a page: bars with intervals, points with labels, stacked bars.

Colours and fonts are the style sheet's (`b0`-`b7` for tokenizers, `v0`-`v15` for parts), so that
charts follow light and dark. Owns geometry only; knows nothing of metrics or tokenizers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vocabshift.report.plots import apart
from vocabshift.report.tokenized_line import plain_html

N_SERIES = 8
"""Colours of tokenizers; charts name what they show beside the colour."""

N_PARTS = 16
"""Colours of the parts of a stacked bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar."""

    name: str
    value: float
    shown: str  # the value as it is printed
    series: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a scatter chart; without a name it is small and pale."""

    x: float
    y: float
    series: int
    name: str = ""
    hint: str = ""  # shown under the pointer


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from the first tick to the last, laid from `begin` to `end` in the picture."""

    ticks: Sequence[float]
    begin: int
    end: int

    def place(self, value: float) -> float:
        """Where a value is drawn."""
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return round(self.begin + share * (self.end - self.begin), 1)


def bars(items: Sequence[Bar], label: str) -> str:
    """Horizontal bars from zero, each with its name, its value and its interval."""
    left, width, row, right = 112, 150, 21, 48
    most = max((max(item.value, item.high or item.value) for item in items), default=0.0) or 1.0
    parts = []
    for i, item in enumerate(items):
        middle = i * row + row / 2
        length = _length(item.value, most, width)
        parts.append(
            f'<text class="name" x="{left - 6}" y="{middle + 4:g}">{_short(item.name, 17)}'
            f"<title>{plain_html(item.name)}</title></text>"
            f'<rect class="b{item.series % N_SERIES}" x="{left}" y="{i * row + 4}" '
            f'width="{length:g}" height="{row - 8}" rx="2"/>'
        )
        end = length
        if item.low is not None and item.high is not None:
            low, high = _length(item.low, most, width), _length(item.high, most, width)
            end = max(length, high)
            parts.append(
                f'<path class="whisker" d="M{left + low:g} {middle:g}H{left + high:g}'
                f"M{left + low:g} {middle - 4:g}v8M{left + high:g} {middle - 4:g}v8"
                '"/>'
            )
        parts.append(
            f'<text class="value" x="{left + end + 5:g}" y="{middle + 4:g}">{item.shown}</text>'
        )
    box = f"0 0 {left + width + right} {len(items) * row}"
    return f'<svg class="bars" viewBox="{box}" role="img" aria-label="{plain_html(label)}">' + (
        "".join(parts) + "</svg>"
    )


def scatter(points: Sequence[Point], x_name: str, y_name: str) -> str:
    """Points with names, on axes that fit them."""
    width, height, left, bottom, top, right = 720, 430, 62, 50, 14, 96
    x_axis = Axis(ticks([point.x for point in points]), left, width - right)
    y_axis = Axis(ticks([point.y for point in points]), height - bottom, top)
    x_of, y_of = x_axis.place, y_axis.place
    parts = [
        *_grid(x_axis, y_axis),
        f'<text class="title" x="{(left + width - right) / 2:g}" y="{height - 8}">'
        f"{plain_html(x_name)}</text>",
        f'<text class="title" transform="translate(15 {(top + height - bottom) / 2:g}) '
        'rotate(-90)">'
        f"{plain_html(y_name)}</text>",
    ]
    for point in sorted(points, key=lambda point: bool(point.name)):
        kind, radius = ("dot", 7) if point.name else ("dot pale", 3)
        hint = f"<title>{plain_html(point.hint)}</title>" if point.hint else ""
        parts.append(
            f'<circle class="{kind} b{point.series % N_SERIES}" cx="{x_of(point.x)}" '
            f'cy="{y_of(point.y)}" r="{radius}">{hint}</circle>'
        )
    named = [point for point in points if point.name]
    spots = apart([(x_of(p.x) + 11, y_of(p.y) + 4) for p in named])
    for point, (x, y) in zip(named, spots, strict=True):
        if y - y_of(point.y) > 16:
            parts.append(
                f'<path class="leader" d="M{x_of(point.x)} {y_of(point.y)}L{x - 2:g} {y - 4:g}"/>'
            )
        parts.append(f'<text class="mark" x="{x:g}" y="{y:g}">{_short(point.name, 18)}</text>')
    label = f"{y_name} against {x_name}"
    return (
        f'<svg class="scatter" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{plain_html(label)}">{"".join(parts)}</svg>'
    )


def stacked(parts: Sequence[tuple[str, float, int]], label: str) -> str:
    """One bar of the whole width, (name, amount, colour) from left to right."""
    width, height = 800, 30
    total = sum(amount for _, amount, _ in parts) or 1.0
    drawn, x = [], 0.0
    for name, amount, colour in parts:
        length = width * amount / total
        title = f"<title>{plain_html(name)}: {amount:,.0f} ({amount / total:.1%})</title>"
        drawn.append(
            f'<rect class="v{colour % N_PARTS}" x="{x:.1f}" y="0" width="{length:.1f}" '
            f'height="{height}">{title}</rect>'
        )
        x += length
    return (
        f'<svg class="stacked" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img"'
        f' aria-label="{plain_html(label)}">{"".join(drawn)}</svg>'
    )


def ticks(values: Sequence[float]) -> list[float]:
    """Round numbers, ascending, that hold all values between them; two at least."""
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= min((m for m in (1, 2, 5, 10) if span / (m * step) <= 6), default=10)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [i * step for i in range(first, last + 1)]


def _grid(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Lines and numbers at the ticks."""
    left, base, end, top = x_axis.begin, y_axis.begin, x_axis.end, y_axis.end
    for tick in x_axis.ticks:
        x = x_axis.place(tick)
        yield f'<path class="grid" d="M{x} {base}V{top}"/>'
        yield f'<text class="x" x="{x}" y="{base + 18}">{_tick(tick)}</text>'
    for tick in y_axis.ticks:
        y = y_axis.place(tick)
        yield f'<path class="grid" d="M{left} {y}H{end}"/>'
        yield f'<text class="y" x="{left - 8}" y="{y + 4:g}">{_tick(tick)}</text>'
    yield f'<path class="axis" d="M{left} {top}V{base}H{end}"/>'


def _tick(value: float) -> str:
    return f"{round(value, 10):g}"


def _length(value: float, most: float, width: int) -> float:
    return round(width * min(max(value, 0.0), most) / most, 1) if math.isfinite(value) else 0.0


def _short(name: str, most: int) -> str:
    return plain_html(name if len(name) <= most else name[: most - 1] + "…")
