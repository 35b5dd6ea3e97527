"""The tables of continued BPE beside regen, and of pruning, as Markdown.

    python recipes/continued_bpe/tables.py --curves runs/continued_bpe/curves > curves.md
    python recipes/continued_bpe/tables.py --prune runs/continued_bpe/prune > prune.md

Reads the files that curves.py and prune_extend.py write, and nothing else. A mean is over the
languages in which both methods found as many tokens as asked for; how many these are is told.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
import beside

Figures = dict[str, Any]
Cells = list[str]


def tables(rows: list[Figures]) -> dict[str, str]:
    """Those compared with the paper's (`recipes/data/record.py`), from the rows of paper.py."""
    return beside.tables("continued_bpe", rows)


def load(folder: Path) -> list[Figures]:
    """All figures of a folder, by name."""
    files = sorted(folder.glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def markdown(title: str, head: Cells, body: Iterable[Cells]) -> str:
    """A table; columns with words in them stand at the left, numbers at the right."""
    rows = list(body)
    columns = zip(*rows, strict=True) if rows else ((),) * len(head)
    is_words = [any(cell[:1].isalpha() for cell in column) for column in columns]
    lines = [head, ["---" if words else "---:" for words in is_words], *rows]
    return f"### {title}\n\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines)


def mean(values: Iterable[float], show: str) -> str:
    """The mean of some values, an en dash of none."""
    known = list(values)
    return format(sum(known) / len(known), show) if known else "–"


def won_lost(gains: list[float]) -> str:
    """In which shares of the languages ours is better, and worse."""
    return f"{mean((g > 0 for g in gains), '.0%')} / {mean((g < 0 for g in gains), '.0%')}"


def by_tokenizer(curves: list[Figures]) -> dict[tuple[str, str], list[Figures]]:
    """Languages by tokenizer and pre-tokenizer."""
    groups: dict[tuple[str, str], list[Figures]] = {}
    for curve in curves:
        groups.setdefault((curve["tokenizer"], curve["pre_tokenizer"]), []).append(curve)
    return groups


def complete(curves: list[Figures], n: int) -> list[Figures]:
    """The rows of one size in which no method ran out of tokens."""
    rows = [row for curve in curves for row in curve["rows"] if row["n_tokens"] == n]
    return [
        row
        for row in rows
        if all(row[key] is None or row[key]["n_added"] == n for key in ("ours", "regen"))
    ]


def summary(title: str, head: Cells, curves: list[Figures], cells: Callable[..., Cells]) -> str:
    """A table of means with a row for each tokenizer and size."""
    body = []
    for (tokenizer, pre_tokenizer), of_one in by_tokenizer(curves).items():
        for n in [row["n_tokens"] for row in of_one[0]["rows"]]:
            rows = complete(of_one, n)
            count = f"{len(rows)} of {len(of_one)}"
            name = f"{tokenizer}, {pre_tokenizer}"
            body.append([name, f"+{n:,}", count, *cells(rows, n)])
    return markdown(title, ["tokenizer, pre-tokenizer", "", "languages", *head], body)


def compression(rows: list[Figures], n: int) -> Cells:
    """The paper's Table 1."""
    both = [row for row in rows if row["regen"]]
    gains = [r["ours"]["bytes_per_token"] / r["regen"]["bytes_per_token"] - 1 for r in both]
    return [
        mean((row["ours"]["bytes_per_token"] for row in rows), ".3f"),
        mean((row["regen"]["bytes_per_token"] for row in both), ".3f"),
        mean(gains, "+.1%"),
        won_lost(gains),
        mean((row["ours"]["unreachable"] for row in rows), ".1f"),
        mean((row["regen"]["unreachable"] for row in both), ".1f"),
        mean((row["regen"]["unreachable"] / n for row in both), ".1%"),
    ]


def unused(rows: list[Figures], n: int) -> Cells:
    """The paper's Table 3: shares of the added tokens, and how often ours are fewer."""
    both = [row for row in rows if row["regen"]]
    found = []
    for key in ("unused_train", "unused_held_out"):
        found.append(mean((row["ours"][key] / n for row in rows), ".2%"))
        found.append(mean((row["regen"][key] / n for row in both), ".2%"))
        found.append(won_lost([row["regen"][key] - row["ours"][key] for row in both]))
    return found


def repair(curves: list[Figures]) -> str:
    """What the repaired pre-tokenizer brings: means over the languages that have both.

    Where the text runs out of pairs before so many tokens, its last figure counts: there is no
    more to gain.
    """
    groups = by_tokenizer(curves)
    body = []
    for (tokenizer, pre_tokenizer), lifted in groups.items():
        if pre_tokenizer != "repaired" or (tokenizer, "kept") not in groups:
            continue
        labels = {curve["language"] for curve in lifted}
        kept = [curve for curve in groups[tokenizer, "kept"] if curve["language"] in labels]
        for i, row in enumerate(lifted[0]["rows"]):
            n = row["n_tokens"]
            ran_out = sum(curve["rows"][i]["ours"]["n_added"] < n for curve in kept)
            cells = [
                mean((curve["rows"][i][method]["bytes_per_token"] for curve in some), ".3f")
                for some in (kept, lifted)
                for method in ("ours", "regen")
            ]
            ends = [
                mean((curve["ceiling_bytes_per_token"] for curve in some), ".3f")
                for some in (kept, lifted)
            ]
            body.append([tokenizer, f"+{n:,}", f"{len(kept)}", f"{ran_out}", *cells, *ends])
    if not body:
        return ""
    head = ["tokenizer", "", "languages", "kept: run out", "kept: ours", "kept: regen"]
    head += ["repaired: ours", "repaired: regen", "kept: ceiling", "repaired: ceiling"]
    return markdown("what the repaired pre-tokenizer brings (bytes per token, means)", head, body)


def by_language(curves: list[Figures], n: int) -> str:
    """One size: every language with every tokenizer, the repaired pre-tokenizer beside."""
    groups = by_tokenizer(curves)
    body = []
    for (tokenizer, pre_tokenizer), of_one in groups.items():
        if pre_tokenizer != "kept":
            continue
        lifted = {c["language"]: c for c in groups.get((tokenizer, "repaired"), [])}
        for curve in of_one:
            label = curve["language"]
            cells = [tokenizer, label, *one_language(curve, n)]
            body.append(
                [*cells, *(one_language(lifted[label], n) if label in lifted else ["–"] * 5)]
            )
    own = ["before", "ceiling", "ours", "regen", "ours over regen"]
    head = ["tokenizer", "language", *own, *(f"repaired: {name}" for name in own)]
    return markdown(f"bytes per token by language, +{n:,}", head, body)


def one_language(curve: Figures, n: int) -> Cells:
    """Five cells; fewer tokens than asked for are told in brackets."""
    [row] = [row for row in curve["rows"] if row["n_tokens"] == n]
    ours, theirs = row["ours"], row["regen"]

    def value(figures: Figures | None) -> str:
        if figures is None:
            return "–"
        short = "" if figures["n_added"] == n else f" ({figures['n_added']:,})"
        return f"{figures['bytes_per_token']:.3f}{short}"

    gain = "–"
    if theirs is not None and ours["n_added"] == theirs["n_added"]:
        gain = f"{ours['bytes_per_token'] / theirs['bytes_per_token'] - 1:+.1%}"
    before, ceiling = curve["bytes_per_token"], curve["ceiling_bytes_per_token"]
    return [f"{before:.3f}", f"{ceiling:.3f}", value(ours), value(theirs), gain]


def curves_tables(curves: list[Figures]) -> str:
    """All tables of curves.py."""
    sizes = [row["n_tokens"] for row in curves[0]["rows"]]
    own = ["ours", "regen"]
    columns = (*own, "won / lost")
    dead = ["unreachable: ours", "regen", "regen, share"]
    parts = [
        summary(
            "bytes per token on held-out text, and unreachable added tokens (means)",
            [*own, "ours over regen", "won / lost", *dead],
            curves,
            compression,
        ),
        summary(
            "unused added tokens (means)",
            [f"{text}: {name}" for text in ("training text", "held out") for name in columns],
            curves,
            unused,
        ),
        repair(curves),
        *(by_language(curves, n) for n in sizes),
    ]
    return "\n".join(parts)


def prune_tables(results: list[Figures]) -> str:
    """Pruning by order and size; then every way to a tokenizer of the old size."""
    results = sorted(
        results, key=lambda figures: (figures["way"], figures["order"], figures["n_tokens"])
    )
    languages = list(results[0]["bytes_per_token"])
    tail = ["unreachable", "lossy lines"]
    pruned, exchanged = [], []
    for row in results:
        values = [f"{row['bytes_per_token'][label]:.4f}" for label in languages]
        end = [f"{row['unreachable']:,}", f"{row['lossy']:,} of {row['lines']:,}"]
        if row["way"] == "prune":
            ties = f"{row['n_decided_by_ties']:,}"
            pruned.append([row["order"], f"-{row['n_tokens']:,}", ties, *values, *end])
        else:
            short = "" if row["n_added"] == row["n_tokens"] else f" ({row['n_added']:,})"
            size = f"{row['n_tokens']:,}{short}"
            exchanged.append([row["way"], row["order"], size, f"{row['rows']:,}", *values, *end])
    return "\n".join(
        [
            markdown("pruning", ["order", "", "decided by ties", *languages, *tail], pruned),
            markdown(
                "pruning and extending at constant size",
                ["way", "order", "tokens", "rows", *languages, *tail],
                exchanged,
            ),
        ]
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--curves", metavar="DIR", type=Path)
    parser.add_argument("--prune", metavar="DIR", type=Path)
    args = parser.parse_args()
    if args.curves is None and args.prune is None:
        parser.error("there is nothing to show; give --curves or --prune")
    for folder, tables in ((args.curves, curves_tables), (args.prune, prune_tables)):
        if folder is not None:
            results = load(folder)
            if not results:
                parser.error(f"{folder} holds no .json; run curves.py or prune_extend.py first")
            print(tables(results))


if __name__ == "__main__":
    main()
