"""Facts that the tables of `ablate.sh` need and no verb of the command line prints.

    python recipes/ist/facts.py budget runs/ablation/stacked Bengali    tokens of a script, stacked
    python recipes/ist/facts.py megabytes runs/ablation/paper           text that was learned from
    python recipes/ist/facts.py rows runs/ablation/paper --text hi=hi.txt code=a.py

`rows` prints the rows of IST's Tables 2 (what the evaluation text is) and 10 (shares of text and
vocabulary by script) for `results.jsonl`, and how they were made.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from vocabshift.text.corpus import Corpus
from vocabshift.workflows.tokenizers import load_named

sys.path.append(str(Path(__file__).parents[1] / "data"))
from rows import by_label, made, put, shown, sources_of

COMMAND = "recipes/ist/ablate.sh"
N_BYTES = 256


def figures(folder: Path) -> dict[str, Any]:
    """What training reported."""
    provenance = json.loads((folder / "vocabshift.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = provenance["figures"]
    return found


def budget(folder: Path, script: str) -> int:
    """Tokens that a stacked vocabulary gave to a script, the bytes included."""
    [part] = [part for part in figures(folder)["scripts"] if part["script"] == script]
    return N_BYTES + int(part["budget"])


def of_text(lines: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Table 2: size, lines and words per line, by language."""
    sizes = {k: sum(len(line.encode()) for line in own) / 1e6 for k, own in lines.items()}
    counts = {k: len(own) / 1000 for k, own in lines.items()}
    words = {k: sum(len(line.split()) for line in own) / len(own) for k, own in lines.items()}
    named = {"Size (MB)": sizes, "# Lines (K)": counts, "Avg W/Line": words}
    return [{"table": "ist-2", "row": name, "values": own} for name, own in named.items()]


def of_vocabulary(folder: Path) -> list[dict[str, Any]]:
    """Table 10: shares of text and vocabulary, in percent, by script."""
    rows = figures(folder)["vocabulary"]
    text = {row["name"]: 100 * (row["training_share"] or 0) for row in rows}
    tokens = {row["name"]: 100 * row["share"] for row in rows}
    named = {"Percentage": text, "Vocab perc dist": tokens}
    return [{"table": "ist-10", "row": name, "values": own} for name, own in named.items()]


def how_made(folder: Path) -> list[dict[str, Any]]:
    """What stands under both tables. Neither has a time: one trains nothing, one shares its run."""
    facts = figures(folder)
    size = f"{facts['vocab_size']:,} tokens, {facts['training_bytes'] / 1e6:.3g} MB"
    return [
        made("ist-2", COMMAND, "The evaluation text", None),
        made("ist-10", COMMAND, size, None),
    ]


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("budget", "megabytes", "rows"))
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("script", nargs="?")
    parser.add_argument("--text", metavar="SPEC", nargs="+", default=[])
    parser.add_argument("--results", type=Path, help="a file that takes the rows too")
    args = parser.parse_args()
    if args.what == "budget":
        print(budget(args.tokenizer, args.script))
    elif args.what == "megabytes":
        print(f"{figures(args.tokenizer)['training_bytes'] / 1e6:.3g} MB")
    else:
        lines = by_label(Corpus.from_specs(args.text).texts())
        text, vocabulary = how_made(args.tokenizer)
        text |= sources_of(lines, {})
        vocabulary |= sources_of({}, load_named([args.tokenizer]))
        rows = [*of_text(lines), *of_vocabulary(args.tokenizer), text, vocabulary]
        for row in rows:
            print(shown(row))
        if args.results:
            put(args.results, rows)


if __name__ == "__main__":
    main()
