"""Figures: drawn for what Results hold, the same bytes again, fonts for every script or a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.results import Result, Results

pytest.importorskip("matplotlib")

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
