"""The rows of the tables in the README, from what the other programs made.

    python recipes/continued_bpe/paper.py runs/continued_bpe --size "18 MB" > results.jsonl

`continued_bpe-N` are the paper's tables and figures, the others our own. Shares are in percent. A
mean is over the languages in which both methods found as many tokens as asked for. The last steps
of run.sh may be missing: without them there are no rows of theirs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from curve_rows import METHODS, Put, of_curves
from multilingual import together

sys.path.append(str(Path(__file__).parents[1] / "data"))
from rows import Row, by_label, made, shown, sources_of

from vocabshift.text.corpus import Corpus
from vocabshift.workflows.tokenizers import load_named

COMMAND = "recipes/continued_bpe/run.sh"
Figures = dict[str, Any]
WAYS = {
    "ID": ("prune-extend", "last-n"),
    "ID (L*)": ("prune-extend", "leaf-id"),
    "Freq": ("prune-extend", "least-frequent"),
    "Freq (L*)": ("prune-extend", "leaf-frequency"),
    "Merge": ("prune-extend", "merge"),
    "naive, ID": ("prune-regen", "last-n"),
    "naive, ID (L*)": ("prune-regen", "leaf-id"),
    "naive, Freq": ("prune-regen", "least-frequent"),
    "naive, Freq (L*)": ("prune-regen", "leaf-frequency"),
    "naive, Merge": ("prune-regen", "merge"),
}
"""The paper's names of Table 4, and ours."""
ORDERS = {order: name for name, (way, order) in WAYS.items() if way == "prune-extend"}


class Tables:
    """Columns of tables: values by line."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], dict[str, Any]] = {}

    def put(self, table: str, column: str, line: str, value: Any) -> None:
        """One cell; a number, or words."""
        self.values.setdefault((table, column), {})[line] = value

    def rows(self) -> list[Row]:
        """As results.jsonl has them."""
        return [{"table": t, "row": name, "values": own} for (t, name), own in self.values.items()]


def of_pruning(put: Put, results: list[Figures]) -> None:
    """Tables 4, 8 and 9, and pruning by every order; English is the second language."""
    names = {way: name for name, way in WAYS.items()}
    [n_of_table_8] = {r["n_new"] for r in results if r["way"] == "extend-prune"}
    for result in sorted(results, key=lambda r: (r["n_tokens"], r["way"])):
        n, values = result["n_tokens"], result["bytes_per_token"]
        way, order, unreachable = (result[key] for key in ("way", "order", "unreachable"))
        if way == "prune":
            columns = ("n_decided_by_ties", *values, "unreachable", "newly_unreachable", "lossy")
            for name, value in (result | values).items():
                if name in columns:
                    column = name.removeprefix("n_").replace("_", " ")
                    put("orders", column, f"{order} -{n}", value)
        if way == "prune" or result["n_added"] < result["n_new"]:
            continue
        both = list(values.items())[:2]
        if (way, order) in names and result["n_new"] == n:
            for label, value in [*both, ("unreachable", unreachable)]:
                put("continued_bpe-4", names[way, order], f"{label} {n}", value)
        if order == "leaf-frequency" and result["n_new"] == n_of_table_8:
            if way != "prune-regen":
                for label, value in both:
                    put("continued_bpe-8", f"{label}: {way}", f"{n}", value)
            if way != "extend-prune" and n == n_of_table_8:
                before = result["bytes_per_token_before"]
                of_tokenizer(put, "default", result["unreachable_before"], before)
                line = "prune+ext" if way == "prune-extend" else "prune+ext, naive"
                of_tokenizer(put, line, unreachable, values)


def of_tokenizer(put: Put, line: str, unreachable: int, values: dict[str, float]) -> None:
    """A line of Table 9."""
    put("continued_bpe-9", "unreachable", line, unreachable)
    for label in list(values)[:2]:
        put("continued_bpe-9", label, line, values[label])


def of_languages(put: Put, folder: Path) -> None:
    """Figures 12 and 13: pruning for one language and English."""
    for language in sorted(path for path in folder.glob("*") if path.is_dir()):
        for result in load(language):
            name, line = ORDERS[result["order"]], f"{language.name} -{result['n_tokens']}"
            own, english = list(result["bytes_per_token"].values())[:2]
            put("continued_bpe-figure-12", name, line, own)
            put("continued_bpe-figure-12", f"English: {name}", line, english)
            put("continued_bpe-figure-13", name, line, result["unreachable"])


def of_estonian(put: Put, figures: Figures) -> None:
    """Figures 6, 7 and 9."""
    for row in figures["6"]:
        for name in ("continued", "naive", "added: continued", "added: naive"):
            line = f"{row['megabytes']:.2f} MB"
            put("continued_bpe-figure-6", name, line, row[name])
    for i, line in enumerate(figures["7"]["classes"]):
        for name in METHODS:
            put("continued_bpe-figure-7", name, line, figures["7"][name][i])
    for row in figures["9"]:
        line = f"{row['way']} +{row['n_tokens']}"
        for name in ("bytes_per_token", "english", "unreachable", "lossy"):
            put("continued_bpe-figure-9", name.replace("_", " "), line, row[name])


def load(folder: Path) -> list[Figures]:
    """All figures of a folder, by name."""
    files = sorted(folder.glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", required=True, help="words for the text")
    parser.add_argument("--texts", metavar="SPEC", nargs="+", required=True, help="measured text")
    parser.add_argument("--tokenizers", nargs="+", required=True, help="that were extended")
    args = parser.parse_args()
    out, tables, curves = args.out, Tables(), load(args.out / "curves")
    of_curves(tables.put, curves)
    of_pruning(tables.put, load(out / "prune"))
    of_languages(tables.put, out / "languages")
    of_estonian(tables.put, json.loads((out / "estonian.json").read_text(encoding="utf-8")))
    if (unchanged := out / "unchanged.json").exists():
        for row in json.loads(unchanged.read_text(encoding="utf-8")):
            line = f"{row.pop('tokenizer')} {row.pop('text')}"
            for name, value in row.items():
                tables.put("unchanged", name, line, value)
    if (results := out / "results.jsonl").exists():
        for name, values in together(out, results, curves).items():
            for label, value in values.items():
                tables.put("together", name, label, value)
    rows = tables.rows()
    names = dict.fromkeys(row["table"] for row in rows)
    texts = by_label(Corpus.from_specs(args.texts).texts())
    sources = sources_of(texts, load_named(args.tokenizers))
    rows += [made(name, COMMAND, args.size, None) | sources for name in names]
    for row in rows:
        print(shown(row))


if __name__ == "__main__":
    main()
