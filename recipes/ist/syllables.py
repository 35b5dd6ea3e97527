"""What `--grapheme-safe` changes: the rows of `syllables.sh`, and their table.

    python recipes/ist/syllables.py runs/ist-syllables --sizes 64000 200000 --size "…"

Bits per byte are those of small decoders on the test sentences of SIB-200, means over languages.
Their difference has two intervals, 95 % both: over seeds and over sentences (see
`recipes/indic_study/extrinsic_tables.py`). That of fertility is over languages. Sizes without
decoders have none of these.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers", "indic_study")]
import beside
from record import Row, markdown
from rows import made, put

TABLE, WORDS = "syllables", "borders inside a syllable"
OWN = "syllables, recipe vocabshift"
NAMES = {"free": "free", "safe": "grapheme-safe"}
COMMAND = "recipes/ist/syllables.sh"


def rows_of(out: Path, sizes: Sequence[str]) -> list[Row]:
    """By tokenizer and metric the values by language, and the differences in bits per byte."""
    from extrinsic_tables import PRICE, load, over_seeds, over_sentences

    rows: list[Row] = []
    for name in ("fertility", "morphemes", "own"):
        file = out / f"{name}.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        found: dict[tuple[str, str], dict[str, float]] = {}
        for row in map(json.loads, lines):
            if row["language"] != "all" or row["metric"] == "gini":
                values = found.setdefault((row["subject"], row["metric"]), {})
                values[row["language"]] = row["value"]
        table = OWN if name == "own" else TABLE
        rows += [_row(*key, values, table=table) for key, values in found.items()]
    for size in sizes:
        runs = [out / "runs" / f"{name}-{size}-decoder-0.json" for name in NAMES]
        if not all(file.exists() for file in runs):
            continue
        free, safe = (load(out / "runs", f"{name}-{size}", "decoder", PRICE) for name in NAMES)
        for name, runs in (("free", free), ("safe", safe)):
            values = dict(zip(runs.languages, runs.by_language.tolist(), strict=True))
            rows.append(_row(f"{name}-{size}", PRICE, values))
        change = {"": float(safe.by_seed.mean() - free.by_seed.mean())}
        for over, (low, high) in (
            ("seeds", over_seeds(free, safe)),
            ("sentences", over_sentences(free, safe)),
        ):
            if not math.isnan(low):
                change |= {f"{over}, low": low, f"{over}, high": high}
        rows.append(_row(f"safe-{size}", "difference", change))
    return rows


def inside_syllables(specs: Iterable[str]) -> Row:
    """By language the share of MorphScore's borders before a vowel sign or other mark."""
    from vocabshift.evaluation.metrics.morph_score import read_morpheme_specs

    values = {}
    for language, words in read_morpheme_specs(specs).items():
        starts = [part[0] for word in words if word.spells_the_word for part in word.parts[1:]]
        values[language] = fmean(unicodedata.category(start)[0] == "M" for start in starts)
    return {"table": TABLE, "row": WORDS, "values": values}


def _row(subject: str, metric: str, values: Mapping[str, float], *, table: str = TABLE) -> Row:
    return {"table": table, "row": f"{subject}, {metric}", "values": dict(values)}


def table(rows: Sequence[Row]) -> str:
    """Markdown; "" where there are no rows."""
    known = {row["row"]: row["values"] for row in rows if row["table"] == TABLE}
    if not known:
        return ""
    inside_a_syllable = known.pop(WORDS, None)
    [how] = [row for row in rows if (row["table"], row["row"]) == ("made", TABLE)]
    sizes = sorted({int(name.partition(",")[0].partition("-")[2]) for name in known})
    words = next((own for name, own in known.items() if name.endswith("morph_score")), {})
    head = ["tokens", "", "fertility", *(f"MorphScore, {label}" for label in words)]
    head += [f"precision, {label}" for label in words] + ["bits per byte"]
    cells = []
    for size in sizes:
        free = known[f"free-{size}, fertility"]
        for name, title in NAMES.items():
            of = {metric: known.get(f"{name}-{size}, {metric}", {}) for metric in METRICS}
            line = [f"{size:,}", title, f"{fmean(of['fertility'].values()):.3f}"]
            for metric in ("morph_score", "morph_border_precision"):
                line += [f"{of[metric][label]:.3f}" for label in words]
            price = of["bits per byte"]
            cells.append([*line, f"{fmean(price.values()):.4f}" if price else "–"])
        change = known.get(f"safe-{size}, difference")
        fertility = beside.difference(known[f"safe-{size}, fertility"], free, list(free))
        found = _difference(change) if change else "–"
        cells.append(["", "difference", fertility, *[""] * 2 * len(words), found])
    by_language = []
    for metric, digits in (("fertility", 2), ("bits per byte", 3)):
        names = (f"{name}-{size}" for size in sizes for name in NAMES)
        columns = {
            name: known[f"{name}, {metric}"] for name in names if f"{name}, {metric}" in known
        }
        if not columns:
            continue
        lines = [
            [label, *(f"{own[label]:.{digits}f}" for own in columns.values())]
            for label in next(iter(columns.values()))
        ]
        by_language.append(markdown((metric, *columns), lines))
    parts = [
        "#### Syllables kept whole",
        markdown(head, cells, left=2),
        *([_shares(inside_a_syllable)] if inside_a_syllable else []),
        _of_own(rows, sizes[-1]),
        "<details><summary>By language</summary>",
        *by_language,
        "</details>",
        f"*{beside.how(how)}.*",
    ]
    return "\n\n".join(parts)


def _of_own(rows: Sequence[Row], size: int) -> str:
    """The recipe `vocabshift`: means over languages, and the change in fertility."""
    known = {row["row"]: row["values"] for row in rows if row["table"] == OWN}
    cells = []
    for name, title in NAMES.items():
        fertility, gini, cut = (
            known[f"own-{name}, {metric}"] for metric in ("fertility", "gini", "grapheme_cut_rate")
        )
        means = f"{fmean(fertility.values()):.3f}", f"{fmean(cut.values()):.1%}"
        cells.append([title, means[0], f"{gini['all']:.3f}", means[1]])
    free, safe = (known[f"own-{name}, fertility"] for name in NAMES)
    cells.append(["difference", beside.difference(safe, free, list(free)), "", ""])
    head = (f"`vocabshift`, {size:,} tokens", "fertility", "Gini", "tokens that cut a grapheme")
    return markdown(head, cells)


def _shares(of: Mapping[str, float]) -> str:
    shares = ", ".join(f"{language} {share:.1%}" for language, share in of.items())
    before = "before a vowel sign or other mark, inside a syllable"
    return f"Borders of MorphScore's words {before}: {shares}."


def _difference(change: Mapping[str, float]) -> str:
    ranges = "; ".join(
        f"{over} {change[f'{over}, low']:+.4f} to {change[f'{over}, high']:+.4f}"
        for over in ("seeds", "sentences")
        if f"{over}, low" in change
    )
    return f"{change['']:+.4f} ({ranges})"


METRICS = ("fertility", "morph_score", "morph_border_precision", "bits per byte")


def main() -> None:
    """Print the table, and write its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", nargs="+", required=True)
    parser.add_argument("--morphemes", nargs="+", help="[LANG=]FILE.csv of words with their parts")
    parser.add_argument("--size", required=True, help="as the table names it")
    parser.add_argument("--results", type=Path, help="a file that takes the rows")
    args = parser.parse_args()
    rows = rows_of(args.out, args.sizes)
    if args.morphemes:
        rows.append(inside_syllables(args.morphemes))
    lines = (args.out / "fertility.jsonl").read_text(encoding="utf-8").splitlines()
    rows.append(made(TABLE, COMMAND, args.size, None, map(json.loads, lines)))
    (args.out / "rows.jsonl").write_text(
        "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8"
    )
    print(table(rows))
    if args.results:
        put(args.results, rows)


if __name__ == "__main__":
    main()
