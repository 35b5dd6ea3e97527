"""The tables of the extrinsic test: what it brought by language, and whether differences hold.

    python recipes/indic_study/extrinsic_tables.py runs/extrinsic/runs --size "16000 tokens, …"

Writes the rows of `results.jsonl` (OUT/rows.jsonl), of which `tables` makes Markdown. Each row of
differences has two intervals, 95 % both: over seeds, paired (Student's t), and over sentences,
whose translations are drawn together (bootstrap of the means over seeds). The first knows nothing
of other sentences, the second nothing of other seeds. Retrieval of a language with itself is no
row; the mean of retrieval is over the languages that the study has, all of them trained.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
from beside import compared, figures, heading, how, interval, papers
from record import Row, markdown
from rows import made, put, shown

Array = NDArray[np.float64]

PRICE, RIGHT, FOUND = "bits per byte", "topics right, %", "sentences found, %"
FOUND_BEFORE = "sentences found before training, %"
METRICS = (
    ("decoder", PRICE),
    ("encoder", RIGHT),
    ("encoder", FOUND),
    ("encoder", FOUND_BEFORE),
)
RETRIEVED = {FOUND: "retrieved", FOUND_BEFORE: "retrieved untrained"}
NAMES = ("joint", "cluster", "joint-unigram", "cluster-unigram")
PAIRS = (
    ("joint", "cluster"),
    ("joint-unigram", "cluster-unigram"),
    ("joint", "joint-unigram"),
)
TITLES = {
    "joint": "joint, BPE",
    "cluster": "cluster, BPE",
    "joint-unigram": "joint, Unigram",
    "cluster-unigram": "cluster, Unigram",
}
TABLE_6, TABLE_21 = "indic_study-6", "indic_study-21"
OTHERS = "retrieval-others"  # languages that Table 21 has not


@dataclass(frozen=True)
class Runs:
    """Sums of one vocabulary and kind: numerators (seeds, languages, sentences) over what divides.

    Sentences are those with the same number, one in each language.
    """

    above: Array
    below: Array
    languages: tuple[str, ...]

    def of(self, above: Array, below: Array) -> Array:
        """The ratio of sums over the last axis, then the mean over languages."""
        ratios: Array = (above.sum(axis=-1) / below.sum(axis=-1)).mean(axis=-1)
        return ratios

    @property
    def by_seed(self) -> Array:
        """(seeds,)."""
        return self.of(self.above, self.below)

    @property
    def by_language(self) -> Array:
        """(languages,) means over seeds."""
        ratios: Array = (self.above.sum(axis=-1) / self.below.sum(axis=-1)).mean(axis=0)
        return ratios


@cache
def _records(folder: Path, name: str, kind: str) -> list[Any]:
    """What each seed of one vocabulary wrote; ValueError where there is none."""
    files = sorted(folder.glob(f"{name}-{kind}-[0-9]*.json"))
    if not files:
        raise ValueError(f"{folder} holds no run of {name}, {kind}")
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def load(folder: Path, name: str, kind: str, metric: str) -> Runs:
    """All seeds of one vocabulary; ValueError where there is none, or sentences differ."""
    records = _records(folder, name, kind)
    if metric in RETRIEVED:
        found = [record[RETRIEVED[metric]] for record in records]
        return _retrieved([of for of in found if of])
    above, below, keys = [], [], []
    for record in records:
        rows = sorted(record["sentences"], key=lambda r: r[:2])
        keys.append([(row[0], row[1]) for row in rows])
        is_price = metric == PRICE
        above.append([row[3] / math.log(2) if is_price else 100.0 * row[4] for row in rows])
        below.append([float(row[2]) if is_price else 1.0 for row in rows])
    languages = tuple(dict.fromkeys(label for label, _ in keys[0]))
    numbers = sorted({number for _, number in keys[0]})
    if any(key != [(a, b) for a in languages for b in numbers] for key in keys):
        raise ValueError(f"{folder}: the sentences of {name} are not the same in all languages")
    shape = (len(records), len(languages), len(numbers))
    return Runs(np.reshape(above, shape), np.reshape(below, shape), languages)


def _retrieved(records: Sequence[dict[str, list[bool]]]) -> Runs:
    """Hits in percent, of the study's languages where the runs have them, else of all."""
    known = list(records[0])
    languages = [label for label in _columns() if label in known] or known
    above = np.array([[of[label] for label in languages] for of in records]) * 100.0
    return Runs(above, np.ones_like(above), tuple(languages))


def _others(
    folder: Path, name: str, kind: str, metric: str, languages: Sequence[str]
) -> dict[str, float]:
    """Hits in percent, means over seeds, of what the runs have beside these languages."""
    records = _records(folder, name, kind)
    found = [own for record in records if (own := record[RETRIEVED[metric]])]
    if any(list(record) != list(found[0]) for record in found):
        raise ValueError(f"{folder}: seeds of {name} were evaluated on different languages")
    labels = [label for label in found[0] if label not in languages]
    return {
        label: 100.0 * float(np.mean([np.mean(record[label]) for record in found]))
        for label in labels
    }


def _columns() -> list[str]:
    """The languages of the study's Table 21."""
    return list(papers()["indic_study"]["tables"]["21"]["columns"])


def over_seeds(joint: Runs, cluster: Runs) -> tuple[float, float]:
    """Interval of the difference, paired; not a number where there is one seed."""
    if len(joint.by_seed) < 2:
        return math.nan, math.nan
    found = stats.ttest_rel(cluster.by_seed, joint.by_seed).confidence_interval(0.95)
    return float(found.low), float(found.high)


def over_sentences(joint: Runs, cluster: Runs, *, n: int = 2000) -> tuple[float, float]:
    """Interval of the difference of means over seeds, sentences drawn with their translations."""
    a, b, below = joint.above.mean(axis=0), cluster.above.mean(axis=0), joint.below[0]
    generator = np.random.default_rng(0)
    found = []
    for _ in range(n):
        drawn = generator.integers(0, below.shape[1], below.shape[1])
        price = below[:, drawn]
        found.append(cluster.of(b[:, drawn], price) - joint.of(a[:, drawn], price))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def rows_of(folder: Path) -> list[Row]:
    """The rows of all tables."""
    runs = {
        (kind, metric, name): load(folder, name, kind, metric)
        for kind, metric in METRICS
        for name in NAMES
    }
    rows: list[Row] = []
    for (kind, metric, name), of in runs.items():
        values = dict(zip(of.languages, of.by_language.tolist(), strict=True))
        if metric not in RETRIEVED:
            row = f"{kind}, {metric}: {TITLES[name]}"
            rows.append({"table": "extrinsic", "row": row, "values": values})
        elif metric == FOUND or "unigram" in name:
            row = TITLES[name] if metric == FOUND else f"{TITLES[name]}, untrained"
            rows.append({"table": TABLE_21, "row": row, "values": values})
            if more := _others(folder, name, kind, metric, of.languages):
                rows.append({"table": OTHERS, "row": row, "values": more})
    for kind, metric in METRICS:
        for one, other in PAIRS:
            first, second = (runs[kind, metric, name] for name in (one, other))
            values = {"from": float(first.by_seed.mean()), "to": float(second.by_seed.mean())}
            for what, (low, high) in (
                ("seeds", over_seeds(first, second)),
                ("sentences", over_sentences(first, second)),
            ):
                if not math.isnan(low):
                    values |= {f"{what}, low": low, f"{what}, high": high}
            values |= {"seeds": len(first.by_seed), "languages": len(first.languages)}
            row = f"{kind}, {metric}: {TITLES[one]} → {TITLES[other]}"
            rows.append({"table": "extrinsic-differences", "row": row, "values": values})
    return rows


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Markdown by name, of the rows that `rows_of` makes, and of those of an earlier run."""
    found = {name: _table(rows, name) for name in ("extrinsic", "extrinsic-earlier")}
    found[TABLE_6] = _tasks(rows)
    found[OTHERS] = _other_languages(rows)
    return {name: text for name, text in found.items() if text}


def _table(rows: Sequence[Row], name: str) -> str:
    by_language = {row["row"]: row["values"] for row in rows if row["table"] == name}
    changes = {row["row"]: row["values"] for row in rows if row["table"] == f"{name}-differences"}
    own = [row for row in rows if row["table"] == "made" and row["row"] == name]
    if not by_language:
        return ""
    languages = list(next(iter(by_language.values())))
    lines = [
        [label, *(_shown(row, values[label]) for row, values in by_language.items())]
        for label in languages
    ]
    means = [_shown(row, sum(values.values()) / len(values)) for row, values in by_language.items()]
    of_languages = markdown(("", *by_language), [*lines, ["mean", *means]])
    parts = [
        "### What a vocabulary changes, means over languages",
        markdown(_CHANGES, [_change(row, values) for row, values in changes.items()]),
        f"<details><summary>By language</summary>\n\n{of_languages}\n\n</details>",
        *(f"*{how(row)}.*" for row in own),
    ]
    return "\n\n".join(parts)


def _other_languages(rows: Sequence[Row]) -> str:
    own = {row["row"]: row["values"] for row in rows if row["table"] == OTHERS}
    if not own:
        return ""
    labels = next(iter(own.values()))
    lines = [[label, *(f"{values[label]:.2f}" for values in own.values())] for label in labels]
    parts = [
        "#### Retrieval in the other languages of FLORES, % found in Hindi",
        markdown(("language", *own), lines),
        *(f"*{how(row)}.*" for row in rows if (row["table"], row["row"]) == ("made", OTHERS)),
    ]
    return "\n\n".join(parts)


def _tasks(rows: Sequence[Row]) -> str:
    """The study's Table 6, and topics that our models have right; nothing without ours."""
    entry = papers()["indic_study"]["tables"]["6"]
    pairs: dict[str, list[dict[str, float]]] = {}
    for name, values in figures(entry).items():
        pairs.setdefault(f"paper: {name.partition(':')[0]}", []).append(values)
    for table, run in (("extrinsic", ""), ("extrinsic-earlier", ", earlier run")):
        own = {row["row"]: row["values"] for row in rows if row["table"] == table}
        for kind in ("encoder", "decoder"):
            for one, other in PAIRS[:2]:
                both = [own.get(f"{kind}, {RIGHT}: {TITLES[name]}") for name in (one, other)]
                if all(both):
                    algorithm = TITLES[one].partition(", ")[2]
                    pairs[f"ours: topics, {kind}, {algorithm}{run}"] = both
    if not any(name.startswith("ours") for name in pairs):
        return ""
    body = []
    for name, (joint, cluster) in pairs.items():
        change = [cluster[label] - joint[label] for label in joint]
        low, high = interval(change)
        means = (f"{sum(own.values()) / len(own):.1f}" for own in (joint, cluster))
        cells = (f"{sum(change) / len(change):+.1f}", f"{low:+.1f} to {high:+.1f}")
        body.append([name, f"{len(change)}", *means, *cells])
    head = ("%", "languages", "joint", "cluster", "difference", "over languages")
    return f"### {heading('6', entry)}\n\n{markdown(head, body)}\n\n*{compared(entry)}*"


_CHANGES = ("", "languages", "seeds", "from", "to", "difference", "over seeds", "over sentences")


def _change(row: str, values: dict[str, float]) -> list[str]:
    change = [values["from"], values["to"], values["to"] - values["from"]]
    ranges = [
        f"{_shown(row, values[f'{what}, low'], 1)} to {_shown(row, values[f'{what}, high'], 1)}"
        if f"{what}, low" in values
        else "–"
        for what in ("seeds", "sentences")
    ]
    counts = [str(values[name]) for name in ("languages", "seeds")]
    return [row, *counts, *(_shown(row, value, 1) for value in change), *ranges]


def _shown(row: str, value: float, more: int = 0) -> str:
    """A figure of a row: three decimals for bits per byte, one for percent; `more` for means."""
    return f"{value:.{(3 if PRICE in row else 1) + more}f}"


def main() -> None:
    """Write OUT/rows.jsonl, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", required=True, help="as the tables name it")
    parser.add_argument("--results", type=Path, help="a file that takes the rows too")
    args = parser.parse_args()
    rows = rows_of(args.out)
    seconds = sum(
        sum(json.loads(file.read_text(encoding="utf-8"))["seconds"].values())
        for file in args.out.glob("*-[0-9]*.json")
    )
    command = "recipes/indic_study/extrinsic.sh"
    names = [
        name for name in ("extrinsic", TABLE_21, OTHERS) if any(r["table"] == name for r in rows)
    ]
    sources = json.loads((args.out / "sources.json").read_text(encoding="utf-8"))
    rows += [made(name, command, args.size, seconds) | sources for name in names]
    text = "".join(f"{shown(row)}\n" for row in rows)
    (args.out / "rows.jsonl").write_text(text, encoding="utf-8")
    print("\n\n".join(tables([json.loads(line) for line in text.splitlines()]).values()))
    if args.results:
        put(args.results, rows)


if __name__ == "__main__":
    main()
