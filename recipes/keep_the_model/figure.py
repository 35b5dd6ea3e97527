"""What each arm gains in the new language and loses at home, and the finalists' curves.

python recipes/keep_the_model/figure.py [results.jsonl -o gains.svg]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
from names import HERE, arm_of
from record import Row, read

HOME = ("en", "eng")
COLORS = {"base": "C7", "extension": "C0", "superwords": "C2", "trimmed": "C3", "swap": "C1"}
MARKERS = {"none": "x", "all": "o"}  # by what is trained; squares: a part of the model


def draw(rows: list[Row], file: Path) -> None:
    """Write the picture, of the new language that most rows are of."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    new = Counter(row["new"] for row in rows).most_common(1)[0][0]
    home = next(name for name in HOME if any(row.get("language") == name for row in rows))
    with rc_context({"svg.hashsalt": "vocabshift", "svg.fonttype": "none"}):
        figure = Figure(figsize=(10, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        found = {
            (row["arm"], row["n_bytes"], row["language"]): row["value"]
            for row in rows
            if row["what"] == "difference"
            and (row["against"], row["on"], row["new"]) == ("base", "some", new)
        }
        for name, n_bytes in dict.fromkeys(key[:2] for key in found):
            at = found[name, n_bytes, home], found[name, n_bytes, new]
            arm = arm_of(name)
            if arm.init == "random":  # far outside
                continue
            marker = MARKERS.get(arm.phase, "s")
            left.plot(*at, marker, color=COLORS[arm.tokenizer], markersize=5)
            if arm.trained == "none":
                left.annotate(arm.init, at, fontsize=7, xytext=(4, 3), textcoords="offset points")
        for tokenizer, color in COLORS.items():
            left.plot([], [], "o", color=color, label=tokenizer)
        for what, marker in (*MARKERS.items(), ("a part", "s")):
            left.plot([], [], marker, color="black", label=f"trained: {what}")
        left.legend(fontsize=7, frameon=False)
        left.axhline(0, color="grey", linewidth=0.6)
        left.axvline(0, color="grey", linewidth=0.6)
        left.set_xlabel(f"{home}: bits per byte more than the old model's")
        left.set_ylabel(f"{new}: bits per byte more than the old model's")
        curves = [row for row in rows if row["what"] == "curve" and row["new"] == new]
        sizes = Counter(n_bytes for _, n_bytes in {(row["arm"], row["n_bytes"]) for row in curves})
        if curves:  # of as much text as most arms read
            usual = sizes.most_common(1)[0][0]
            curves = [row for row in curves if row["n_bytes"] == usual]
        for name in dict.fromkeys(row["arm"] for row in curves):
            for language, style in ((new, "-"), (home, "--")):
                points = sorted(
                    (row["at_bytes"] / 1000, row["value"])
                    for row in curves
                    if (row["arm"], row["language"]) == (name, language)
                )
                label = name if language == new else None
                arm = arm_of(name)
                marker = "v" if arm.is_matching else "." if arm.phase == "all" else "s"
                color = COLORS[arm.tokenizer]
                right.plot(
                    *zip(*points, strict=True),
                    style,
                    color=color,
                    marker=marker,
                    markersize=5,
                    label=label,
                )
        right.set_xlabel("kB of text")
        right.set_ylabel(f"bits per byte; line: {new}, dashed: {home}")
        if curves:
            right.legend(fontsize=7, frameon=False, loc="upper right", bbox_to_anchor=(1, 0.89))
        figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Draw the picture of the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", type=Path, default=HERE / "results.jsonl")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "gains.svg")
    args = parser.parse_args()
    draw(read(args.results), args.out)


if __name__ == "__main__":
    main()
