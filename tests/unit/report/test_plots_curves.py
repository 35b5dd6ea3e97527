"""Pictures of curves: written, equal for equal input, refused early."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.report.plots import Curve, check_picture, draw

pytest.importorskip("matplotlib")

PANELS = {
    "hi": [
        Curve("kept", [(0, 4.9), (1000, 5.1)], mark=(1000, 5.1), ceiling=5.2),
        Curve("repaired", [(0, 4.8), (1000, 7.0)], is_dashed=True),
    ],
    "en": [Curve("kept", [(0, 4.7), (1000, 4.7)])],
}


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_equal_curves_give_equal_bytes(tmp_path: Path, suffix: str) -> None:
    """No date and no random id stands in the file."""
    one = draw(PANELS, tmp_path / f"one{suffix}", value="bytes per token", title="t")
    two = draw(PANELS, tmp_path / f"two{suffix}", value="bytes per token", title="t")
    assert one.read_bytes() == two.read_bytes()
    assert len(one.read_bytes()) > 1000


def test_the_labels_are_text(tmp_path: Path) -> None:
    """An SVG keeps its words, for search and for screen readers."""
    text = draw(PANELS, tmp_path / "p.svg", value="bytes per token").read_text()
    for word in ("repaired", "bytes per token", "hi", "en"):
        assert word in text


def test_bad_names_are_refused_before_any_work(tmp_path: Path) -> None:
    """A suffix that is no picture, a folder that is not there."""
    with pytest.raises(ValueError, match=r"\.svg, \.png, \.pdf"):
        check_picture(tmp_path / "p.jpeg")
    with pytest.raises(FileNotFoundError, match="folder"):
        check_picture(tmp_path / "none" / "p.svg")
