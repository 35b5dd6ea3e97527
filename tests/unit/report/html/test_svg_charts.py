"""Charts: where things stand."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.report.html.svg_charts import Bar, Point, bars, scatter, stacked, ticks

VALUES = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(st.lists(VALUES, min_size=1, max_size=20))
def test_ticks_are_even_and_hold_all_values(values: list[float]) -> None:
    found = ticks(values)
    assert 2 <= len(found) <= 9
    slack = 1e-9 * max(1.0, *map(abs, found))
    assert found[0] <= min(values) + slack
    assert max(values) <= found[-1] + slack
    steps = [b - a for a, b in pairwise(found)]
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-6)


def test_bars_are_as_long_as_their_values() -> None:
    svg = bars([Bar("a", 4.0, "4", 0, 3.0, 5.0), Bar("b", 1.0, "1", 9)], "x")
    assert re.findall(r'<rect class="(b\d)" .*? width="([\d.]+)"', svg) == [
        *(("b0", "120"), ("b1", "30"))  # the interval's end, 5, is the whole width of 150
    ]
    assert 1 == svg.count('class="whisker"')
    assert "NaN" not in bars([Bar("a", float("nan"), "–", 0), Bar("b", 0.0, "0", 1)], "x")


def test_points_stand_in_order() -> None:
    svg = scatter(
        [Point(1.0, 5.0, 0, "low"), Point(2.0, 6.0, 1, "high"), Point(1.5, 5, 2)], "x", "y"
    )
    found = re.findall(r'<circle class="dot(?: pale)? b\d" cx="([\d.]+)" cy="([\d.]+)"', svg)
    pale, low, high = [(float(x), float(y)) for x, y in found]
    assert low[0] < pale[0] < high[0]
    assert low[1] == pale[1] > high[1]


def test_names_are_escaped() -> None:
    name = '<a title="hey">\x00\u202e'
    for svg in (
        bars([Bar(name, 1, "1", 0)], name),
        scatter([Point(1, 1, 0, name, name)], name, name),
        stacked([(name, 1, 0)], name),
    ):
        assert "<a" not in svg
        assert not {"\x00", "\u202e"} & set(svg)
        assert '"hey' not in svg
