"""A picture of bits per byte over bytes of continued training, a panel for each language.

    python recipes/adaptation_study/figure.py runs/adaptation -o runs/adaptation/curves.svg

Lines are means over seeds, bands go from the lowest to the highest seed; dashed: random rows. The
first point, before any training, is left out where it is so high that nothing else could be seen.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from arms import ARMS, BASE, TOKENIZERS
from measured import Runs, languages_of, load


def draw(runs: Runs, file: Path) -> None:
    """Write the picture."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    languages = languages_of(runs)
    with rc_context({"svg.hashsalt": "vocabshift", "svg.fonttype": "none"}):
        figure = Figure(figsize=(4.2 * 2, 3.2 * -(-len(languages) // 2)), layout="constrained")
        for number, language in enumerate(languages):
            axes = figure.add_subplot(-(-len(languages) // 2), 2, number + 1)
            draw_language(axes, runs, language)
            if number == 0:
                axes.legend(fontsize=7, frameon=False, ncols=2)
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, dpi=150, metadata=metadata)


def draw_language(axes: Any, runs: Runs, language: str) -> None:
    """One panel."""
    colors = {name: f"C{number}" for number, name in enumerate((BASE, *TOKENIZERS))}
    highest = 0.0
    for arm in ARMS:
        own = runs[arm.key]
        points = [
            [run["curve"][at]["bits_per_byte"][language] for run in own]
            for at in range(len(own[0]["curve"]))
        ]
        places = [statistics.mean(each) for each in zip(*map(n_bytes, own), strict=True)]
        xs = [place / 1e3 for place in places]
        ys = [statistics.mean(values) for values in points]
        style = "--" if arm.init == "random" else "-"
        color = colors[arm.tokenizer]
        label = None if arm.init == "random" else arm.name.removesuffix(", fvt")
        axes.plot(xs, ys, style, color=color, marker=".", markersize=4, label=label)
        low, high = ([pick(values) for values in points] for pick in (min, max))
        axes.fill_between(xs, low, high, color=color, alpha=0.12, linewidth=0)
        if arm.tokenizer != BASE:
            highest = max(highest, *ys)
    axes.set_ylim(top=1.05 * highest)
    axes.set_title(language, fontsize=10)
    axes.set_xlabel("kB of continued training", fontsize=8)
    axes.set_ylabel("bits per byte", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)


def n_bytes(run: dict[str, Any]) -> list[int]:
    """Where the points of a curve stand."""
    return [point["n_bytes"] for point in run["curve"]]


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True, help=".svg, .png or .pdf")
    args = parser.parse_args()
    draw(load(args.out), args.output)


if __name__ == "__main__":
    main()
