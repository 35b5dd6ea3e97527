"""Bits per byte of a model on whole texts, into the results of this recipe.

    python recipes/smollm2/bits.py MODEL --text en=FILE de=FILE code=FILE -o results.jsonl

A line is a document; of code, twelve lines are, and the first hundred of these are taken.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import vocabshift as vs
from vocabshift.cli.console import progress_bar

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import add

LINES_OF_CODE, DOCUMENTS_OF_CODE = 12, 100


def documents(label: str, path: str) -> list[str]:
    """The documents of a file that are not blank."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    if label == "code":
        starts = range(0, len(lines), LINES_OF_CODE)
        lines = ["\n".join(lines[start : start + LINES_OF_CODE]) for start in starts]
    found = [line for line in lines if line.strip()]
    return found[:DOCUMENTS_OF_CODE] if label == "code" else found


def main() -> None:
    """Score, and keep a row for each text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", nargs="+", required=True, metavar="LABEL=FILE")
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    for label, path in (spec.split("=", 1) for spec in args.text):
        with progress_bar() as progress:
            found = vs.score_models(
                [args.model], {label: documents(label, path)}, progress=progress
            )
        for row in found.results:
            kept = {
                "what": "bits",
                "row": label,
                "value": round(row.value, 5),
                "low": None if row.ci_low is None else round(row.ci_low, 5),
                "high": None if row.ci_high is None else round(row.ci_high, 5),
                "documents": row.n,
            }
            if row.metric == "bits_per_byte":
                print(kept, flush=True)
                add(args.out, [kept], key=("what", "row"))


if __name__ == "__main__":
    main()
