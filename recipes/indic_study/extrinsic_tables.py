"""The tables of the extrinsic test: what it brought by language, and whether the difference holds.

    python recipes/indic_study/extrinsic_tables.py runs/extrinsic --names joint cluster

Each row of the second table has two intervals of the difference, 95 % both: over seeds, paired
(Student's t), and over sentences, whose translations are drawn together (bootstrap of the means
over seeds). The first knows nothing of other sentences, the second nothing of other seeds.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

TITLES = {
    ("decoder", "bits per byte"): "decoder, bits per byte",
    ("decoder", "accuracy"): "decoder, topics right, %",
    ("encoder", "accuracy"): "encoder, topics right, %",
}


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


def load(folder: Path, name: str, kind: str, metric: str) -> Runs:
    """All seeds of one vocabulary; ValueError where there is none, or sentences differ."""
    files = sorted(folder.glob(f"{name}-{kind}-[0-9]*.json"))
    if not files:
        raise ValueError(f"{folder} holds no run of {name}, {kind}")
    above, below, keys = [], [], []
    for file in files:
        rows = sorted(
            json.loads(file.read_text(encoding="utf-8"))["sentences"], key=lambda r: r[:2]
        )
        keys.append([(row[0], row[1]) for row in rows])
        is_price = metric == "bits per byte"
        above.append([row[3] / math.log(2) if is_price else 100.0 * row[4] for row in rows])
        below.append([float(row[2]) if is_price else 1.0 for row in rows])
    languages = tuple(dict.fromkeys(label for label, _ in keys[0]))
    numbers = sorted({number for _, number in keys[0]})
    if any(key != [(a, b) for a in languages for b in numbers] for key in keys):
        raise ValueError(f"{folder}: the sentences of {name} are not the same in all languages")
    shape = (len(files), len(languages), len(numbers))
    return Runs(np.reshape(above, shape), np.reshape(below, shape), languages)


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


def tables(folder: Path, names: Sequence[str]) -> str:
    """Both, as Markdown."""
    runs = {
        (kind, metric, name): load(folder, name, kind, metric)
        for kind, metric in TITLES
        for name in names
    }
    languages = runs["decoder", "accuracy", names[0]].languages
    head = [f"{title}: {name}" for title in TITLES.values() for name in names]
    columns = [runs[kind, metric, name].by_language for kind, metric in TITLES for name in names]
    lines = [
        f"### Small models with the {' and the '.join(names)} vocabulary, by language",
        "",
        "|  | " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * len(head),
    ]
    for i, label in enumerate(languages):
        lines.append(_row(label, [column[i] for column in columns]))
    lines.append(_row("mean", [float(column.mean()) for column in columns]))
    n_seeds = len(runs["decoder", "accuracy", names[0]].by_seed)
    lines += [
        "",
        f"### What {names[1]} changes, {n_seeds} seeds, means over {len(languages)} languages",
        "",
        "|  | " + " | ".join([*names, "difference", "over seeds", "over sentences"]) + " |",
        "| --- |" + " ---: |" * 5,
    ]
    for (kind, metric), title in TITLES.items():
        joint, cluster = (runs[kind, metric, name] for name in names)
        means = [float(each.by_seed.mean()) for each in (joint, cluster)]
        show = _decimals(metric)
        cells = [
            *map(show, means),
            show(means[1] - means[0]),
            *(
                "–" if math.isnan(low) else f"{show(low)} to {show(high)}"
                for low, high in (over_seeds(joint, cluster), over_sentences(joint, cluster))
            ),
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _decimals(metric: str) -> Callable[[float], str]:
    return lambda value: f"{value:.4f}" if metric == "bits per byte" else f"{value:.2f}"


def _row(label: str, values: Sequence[float]) -> str:
    metrics = [metric for _, metric in TITLES for _ in range(len(values) // len(TITLES))]
    cells = [
        f"{value:.3f}" if metric == "bits per byte" else f"{value:.1f}"
        for value, metric in zip(values, metrics, strict=True)
    ]
    return f"| {label} | " + " | ".join(cells) + " |"


def main() -> None:
    """Write OUT/extrinsic.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--names", nargs=2, default=["joint", "cluster"])
    args = parser.parse_args()
    text = tables(args.out, args.names)
    (args.out / "extrinsic.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
