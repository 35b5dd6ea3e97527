"""Quality against size: bits per byte of English over the vocabulary, a line for each order.

    python recipes/trim/figure.py [results.jsonl -o quality.svg]

The y axis ends where the model has lost a bit per byte: beyond, lines say nothing of use.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, read

HERE = Path(__file__).parent
MOST = 1.0


def draw(rows: list[Row], file: Path) -> None:
    """Write the picture."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    english = [row for row in rows if row["what"] == "bits" and row["text"] == "en"]
    [whole] = [row for row in english if row["variant"] == "all"]
    steps = [row for row in english if row["variant"] == "en" and not row.get("order")]
    english += [row | {"order": "leaf-frequency"} for row in steps]
    with rc_context({"svg.hashsalt": "vocabshift", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for order in dict.fromkeys(row["order"] for row in english if row.get("order")):
            own = [row for row in english if row.get("order") == order]
            points = sorted(
                [(whole["size"], whole["value"])] + [(r["size"], r["value"]) for r in own]
            )
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=order)
        axes.set_ylim(whole["value"] - 0.03, whole["value"] + MOST)
        axes.axhline(whole["value"], color="grey", linewidth=0.8, linestyle=":")
        axes.set_xlabel("tokens in the vocabulary")
        axes.set_ylabel("bits per byte, English, nothing trained")
        axes.legend(frameon=False, title="order of removal")
        figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Draw the picture of the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", type=Path, default=HERE / "results.jsonl")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "quality.svg")
    args = parser.parse_args()
    draw(read(args.results), args.out)


if __name__ == "__main__":
    main()
