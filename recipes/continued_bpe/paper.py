"""The rows of the paper's Tables 1, 3, 4 and 6 to 8, from what curves.py and prune_extend.py made.

    python recipes/continued_bpe/paper.py runs/continued_bpe > results.jsonl

Shares are in percent. As in tables.py, a mean is over the languages in which both methods found as
many tokens as asked for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
from rows import Row, made, shown
from tables import Figures, by_tokenizer, complete, load

WAYS = {
    "ID (L*)": ("prune-extend", "leaf-id"),
    "Freq (L*)": ("prune-extend", "leaf-frequency"),
    "Merge": ("prune-extend", "merge"),
    "naive, Freq (L*)": ("prune-regen", "leaf-frequency"),
    "extend first, Freq (L*)": ("extend-prune", "leaf-frequency"),
}
"""The paper's names, and ours."""
CURVES: dict[str, dict[str, Callable[[Figures, int], float]]] = {
    "continued_bpe-1": {
        "gain, %": lambda row, _: 100 * (gain(row) - 1),
        "won, %": lambda row, _: 100.0 * (gain(row) > 1),
        "unreachable: continued, %": lambda row, n: 100 * row["ours"]["unreachable"] / n,
        "unreachable: naive, %": lambda row, n: 100 * row["regen"]["unreachable"] / n,
    },
    "continued_bpe-3": {
        "unused: continued, %": lambda row, n: 100 * row["ours"]["unused_held_out"] / n,
        "unused: naive, %": lambda row, n: 100 * row["regen"]["unused_held_out"] / n,
        "unused in training text: continued, %": (
            lambda row, n: 100 * row["ours"]["unused_train"] / n
        ),
        "unused in training text: naive, %": (
            lambda row, n: 100 * row["regen"]["unused_train"] / n
        ),
    },
}


SIDE_EFFECTS: dict[str, Callable[[Figures], float]] = {
    "distance": lambda own: own["english_distance"],
    "same lines, %": lambda own: 100 * own["english_same"],
    "change, %": lambda own: 100 * (own["without_skipping"] / own["bytes_per_token"] - 1),
}
METHODS = {"continued": "ours", "naive": "regen"}


def gain(row: Figures) -> float:
    """Bytes per token of ours over those of the naive extension."""
    return float(row["ours"]["bytes_per_token"] / row["regen"]["bytes_per_token"])


def of_curves(curves: list[Figures]) -> list[Row]:
    """Tables 1 and 3: the bases whose pre-tokenizer is kept."""
    columns: dict[tuple[str, str], dict[str, Any]] = {}
    for (base, pre_tokenizer), own in by_tokenizer(curves).items():
        for n in [row["n_tokens"] for row in own[0]["rows"]] if pre_tokenizer == "kept" else []:
            rows = [row for row in complete(own, n) if row["regen"]]
            if not rows:
                continue
            for table, of_table in CURVES.items():
                columns.setdefault((table, "languages"), {})[f"{base} +{n}"] = len(rows)
                for name, value in of_table.items():
                    mean = fmean(value(row, n) for row in rows)
                    columns.setdefault((table, name), {})[f"{base} +{n}"] = mean
    return [{"table": t, "row": name, "values": own} for (t, name), own in columns.items()]


def of_side_effects(curves: list[Figures]) -> list[Row]:
    """Tables 6 and 7: English after an extension; bytes per token without merge skipping."""
    columns: dict[tuple[str, str], dict[str, Any]] = {}
    for (base, pre_tokenizer), own in by_tokenizer(curves).items():
        for n in [row["n_tokens"] for row in own[0]["rows"]] if pre_tokenizer == "kept" else []:
            rows = [row for row in complete(own, n) if row["regen"]]
            for name, value in SIDE_EFFECTS.items():
                table = f"continued_bpe-{7 if name == 'change, %' else 6}"
                needed = "without_skipping" if table.endswith("7") else "english_same"
                if not rows or needed not in rows[0]["ours"]:
                    continue
                columns.setdefault((table, "languages"), {})[f"{base} +{n}"] = len(rows)
                for method, key in METHODS.items():
                    mean = fmean(value(row[key]) for row in rows)
                    columns.setdefault((table, f"{name}: {method}"), {})[f"{base} +{n}"] = mean
    return [{"table": t, "row": name, "values": own} for (t, name), own in columns.items()]


def of_pruning(results: list[Figures]) -> list[Row]:
    """Tables 4 and 8: out and in again, bytes per token of both languages, unreachable tokens."""
    columns: dict[str, dict[str, Any]] = {}
    for result in results:
        for name, way in WAYS.items():
            if (result["way"], result["order"]) == way:
                own = columns.setdefault(name, {})
                for label, value in result["bytes_per_token"].items():
                    own[f"{label} {result['n_tokens']}"] = value
                own[f"unreachable {result['n_tokens']}"] = result["unreachable"]
    return [{"table": "continued_bpe-4", "row": name, "values": columns[name]} for name in columns]


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    curves = load(out / "curves")
    rows = of_curves(curves) + of_side_effects(curves) + of_pruning(load(out / "prune"))
    command, size = "recipes/continued_bpe/run.sh", "2.5 to 18 MB of each language"
    rows += [made(name, command, size, None) for name in {row["table"]: 0 for row in rows}]
    for row in rows:
        print(shown(row))


if __name__ == "__main__":
    main()
