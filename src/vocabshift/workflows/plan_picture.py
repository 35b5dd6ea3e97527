"""The curves of a plan as a picture: one panel per language, with both pre-tokenizers."""

from __future__ import annotations

from pathlib import Path

from vocabshift.report.plots import Curve, check_picture, draw
from vocabshift.workflows.plan import Plan

__all__ = ["check_picture", "draw_plan"]


def draw_plan(found: Plan, file: str | Path) -> Path:
    """Draw bytes per token against new tokens into an .svg, .png or .pdf; needs matplotlib.

    The ceiling is dotted and the knee circled. Returns the file.
    """
    panels: dict[str, list[Curve]] = {}
    for label in found.rows[0].by_language:
        curves = []
        for name, ceilings in found.ceilings.items():
            rows = sorted(
                (row for row in found.rows if row.pre_tokenizer == name),
                key=lambda row: row.n_tokens,
            )
            points = [(row.n_tokens, row.by_language[label]) for row in rows]
            knee = next(
                ((row.n_tokens, row.by_language[label]) for row in rows if row.is_knee), None
            )
            title = f"pre-tokenizer {name}"
            curves.append(Curve(title, points, mark=knee, ceiling=ceilings.get(label)))
        panels[label] = curves
    title = f"{found.tokenizer}: dotted the ceiling, circled the knee"
    return Path(draw(panels, file, value="bytes per token", title=title))
