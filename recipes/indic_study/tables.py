"""The tables of the Indic study, by the paper's numbers, from what run.sh measured.

    python recipes/indic_study/tables.py runs/indic-study --sizes 32000 64000 --one 64000 \
        --clusters 5 6 7 8

Writes OUT/table-N.md. NN: no normalization; N: fifth-case normalization, inside the tokenizer;
words are counted in the text as it stands. All means are over languages.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean

from vocabshift.results import Results

NAMES = {"bpe": "BPE", "unigram": "Unigram"}
_MORPH_SCORES = {"morph_segment_score": "segments", "morph_score": "borders"}
"""The study's MorphScore is the share of segments; the other is Arnett & Bergen's."""
Cells = Sequence[str | float]


def table(title: str, head: Cells, rows: Iterable[Cells], decimals: int = 3) -> str:
    """Markdown, numbers with so many decimals."""

    def line(cells: Cells) -> str:
        shown = (f"{c:.{decimals}f}" if isinstance(c, float) else str(c) for c in cells)
        return "| " + " | ".join(shown) + " |\n"

    rule = "| --- |" + " ---: |" * (len(head) - 1) + "\n"
    return f"### {title}\n\n{line(head)}{rule}{''.join(map(line, rows))}"


def wilcoxon(one: Sequence[float], other: Sequence[float]) -> float:
    """Two-sided p value over languages that differ; 1 where none does."""
    from scipy.stats import wilcoxon as test

    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    return float(test(*zip(*pairs, strict=True)).pvalue) if pairs else 1.0


class Study:
    """What was measured, by the names that run.sh gave."""

    def __init__(self, out: Path, sizes: Sequence[int], one: int, clusters: Sequence[int]) -> None:
        self.out, self.sizes, self.one = out, sizes, one
        self.clusters = [*(f"cluster-{k}" for k in clusters), "cluster-family"]
        self.results = self._read("results.jsonl")
        self.languages = self.results.where(metric="fertility").distinct("language")
        self.columns = [f"{size // 1000}k" for size in sizes]

    def _read(self, name: str) -> Results:
        return Results.from_jsonl((self.out / name).read_text(encoding="utf-8"))

    def values(self, subject: str, metric: str = "fertility") -> list[float]:
        """By language, in the order of all tables."""
        return [self.results.value(subject, language, metric) for language in self.languages]

    def spread(self, subject: str, metric: str) -> float:
        """A figure over all languages."""
        (row,) = self.results.where(subject=subject, metric=metric)
        return row.value

    def overlap(self, one: str, other: str) -> float:
        """Percent of the tokens of two vocabularies that both have."""
        rows = [
            row.value
            for row in self.results.where(metric="pairwise_overlap")
            if {row.subject, row.language} == {one, other}
        ]
        return 100 * rows[0]

    def table_1(self) -> str:
        """Mean fertility."""
        head = ["", *(f"{c} {kind}" for c in self.columns for kind in ("NN", "N"))]
        rows = [
            [name, *(mean(self.values(f"{r}-{s}{n}")) for s in self.sizes for n in ("", "-n"))]
            for r, name in NAMES.items()
        ]
        return table("Mean fertility, not normalized and normalized (Table 1)", head, rows)

    def table_2(self) -> str:
        """What normalization changes."""
        rows: list[Cells] = []
        for recipe, name in NAMES.items():
            for size, column in zip(self.sizes, self.columns, strict=True):
                nn, n = (mean(self.values(f"{recipe}-{size}{end}")) for end in ("", "-n"))
                rows.append([f"{name} {column}", nn, n, nn - n, f"{100 * (nn - n) / nn:.2f}"])
        return table("What normalization changes (Table 2)", ["", "NN", "N", "Δ", "%"], rows)

    def table_3(self) -> str:
        """Whether it is chance."""
        rows: list[Cells] = []
        for recipe, name in NAMES.items():
            cells: list[str | float] = [name]
            for size in self.sizes:
                nn, n = (self.values(f"{recipe}-{size}{end}") for end in ("", "-n"))
                lower = sum(b < a for a, b in zip(nn, n, strict=True))
                higher = sum(b > a for a, b in zip(nn, n, strict=True))
                cells.append(f"{wilcoxon(nn, n):.4f} ({lower} lower, {higher} higher)")
            rows.append(cells)
        title = f"Wilcoxon p, NN against N, {len(self.languages)} languages (Table 3)"
        return table(title, ["", *self.columns], rows)

    def table_4(self) -> str:
        """Fairness, with normalization."""
        rows = [
            [
                f"{name} {column}",
                *(
                    self.spread(f"{recipe}-{size}-n", metric)
                    for metric in ("gini", "coefficient_of_variation")
                ),
            ]
            for recipe, name in NAMES.items()
            for size, column in zip(self.sizes, self.columns, strict=True)
        ]
        title = "Token totals over languages (Table 4, whose second column is this one)"
        return table(title, ["", "Gini", "coefficient of variation"], rows)

    def _by_language(self, title: str, head: Cells, columns: Sequence[Sequence[float]]) -> str:
        rows = [[name, *cells] for name, *cells in zip(self.languages, *columns, strict=True)]
        return table(title, head, [*rows, ["mean", *map(mean, columns)]])

    def table_5(self) -> str:
        """Joint and cluster."""
        subjects = [f"unigram-{self.one}-n", *self.clusters]
        return self._by_language(
            f"Fertility, joint and cluster, {self.one:,} tokens (Table 5)",
            ["", "joint", *self.clusters],
            [self.values(subject) for subject in subjects],
        )

    def table_13(self) -> str:
        """Which languages k-means put together."""
        rows: list[Cells] = []
        for name in self.clusters:
            report = json.loads((self.out / f"{name}.json").read_text(encoding="utf-8"))
            groups = [", ".join(part["languages"]) for part in report["clusters"]]
            rows.append([name, " · ".join(groups)])
        return table("Clusters (Table 13)", ["", "languages"], rows)

    def table_7(self) -> str | None:
        """The study's MorphScore and Arnett & Bergen's, where there are words with morphemes."""
        if not (self.out / "morphemes.jsonl").exists():
            return None
        rows = self._read("morphemes.jsonl")
        languages = rows.where(metric="morph_score").distinct("language")
        columns = [(metric, label) for metric in _MORPH_SCORES for label in languages]
        subjects = [f"{r}-{s}-n" for r in NAMES for s in self.sizes] + self.clusters
        cells = [
            [s, *(rows.value(s, label, metric) for metric, label in columns)] for s in subjects
        ]
        title = "MorphScore of words split in two (Table 7 and Figure 2)"
        return table(title, ["", *(f"{_MORPH_SCORES[m]}, {label}" for m, label in columns)], cells)

    def table_8(self) -> str:
        """BPE and OBPE in one script."""
        rows = self._read("devanagari.jsonl").where(metric="fertility")
        languages = rows.distinct("language")
        cells: list[Cells] = []
        for subject, name in (("bpe-devanagari", "BPE"), ("overlap-devanagari", "OBPE")):
            values = [rows.value(subject, language, "fertility") for language in languages]
            cells.append([name, *values, mean(values)])
        return table("BPE and OBPE, Devanagari (Table 8)", ["", *languages, "mean"], cells)

    def table_15(self) -> str:
        """What fifth-case normalization changes in the evaluated text."""
        rows = json.loads((self.out / "normalized.json").read_text(encoding="utf-8"))["results"]
        found = {(row["language"], row["metric"]): row for row in rows}
        cells: list[Cells] = []
        for label in self.languages:
            cells.append([label, *self._changed([found[label, m] for m in _CHANGED])])
        total = [[found[label, metric] for label in self.languages] for metric in _CHANGED]
        summed = [
            {
                "n": sum(r["n"] for r in of),
                "value": sum(r["n"] * r["value"] for r in of) / sum(r["n"] for r in of),
            }
            for of in total
        ]
        cells.append(["total", *self._changed(summed)])
        head = ["", "words", "changed, %", "different words", "changed, %"]
        return table("Fifth-case normalization on the evaluated text (Table 15)", head, cells, 2)

    @staticmethod
    def _changed(rows: Sequence[dict[str, float]]) -> list[str | float]:
        return [cell for r in rows for cell in (f"{r['n']:,}", 100 * r["value"])]

    def table_16(self) -> str:
        """Fertility by language, size and algorithm."""
        subjects = [f"{r}-{s}{n}" for r in NAMES for s in self.sizes for n in ("", "-n")]
        return self._by_language(
            "Fertility by language (Table 16; -n: normalized)",
            ["", *subjects],
            [self.values(subject) for subject in subjects],
        )

    def table_17(self) -> str:
        """Fertility, characters per token and fragmented words, normalized."""
        metrics = ("fertility", "characters_per_token", "word_fragmentation_rate")
        rows = []
        for recipe, name in NAMES.items():
            for size, column in zip(self.sizes, self.columns, strict=True):
                f, cpt, wfr = (mean(self.values(f"{recipe}-{size}-n", m)) for m in metrics)
                rows.append([f"{name} {column}", f, cpt, 100 * wfr])
        head = ["", "fertility", "characters per token", "fragmented words, %"]
        return table("Fertility, CPT, WFR (Table 17)", head, rows)

    def table_18(self) -> str:
        """Overlaps of vocabularies."""
        pairs: list[tuple[str, Callable[[int], tuple[str, str]]]] = [
            ("Unigram (NN), BPE (NN)", lambda s: (f"unigram-{s}", f"bpe-{s}")),
            ("Unigram (N), BPE (N)", lambda s: (f"unigram-{s}-n", f"bpe-{s}-n")),
            ("BPE (N), BPE (NN)", lambda s: (f"bpe-{s}-n", f"bpe-{s}")),
            ("Unigram (N), Unigram (NN)", lambda s: (f"unigram-{s}-n", f"unigram-{s}")),
        ]
        rows = [[name, *(self.overlap(*of(size)) for size in self.sizes)] for name, of in pairs]
        return table(
            "Tokens that two vocabularies share, % (Table 18)", ["", *self.columns], rows, 2
        )

    def table_19(self) -> str:
        """BPE and PickyBPE."""
        subjects = [f"{name}-{self.one}-n" for name in ("bpe", "picky")]
        columns = [
            self.values(subject, metric)
            for metric in ("fertility", "characters_per_token")
            for subject in subjects
        ]
        title = f"BPE and PickyBPE as exported, {self.one:,} tokens (Table 19)"
        head = ["", "BPE, F", "Picky, F", "BPE, CPT", "Picky, CPT"]
        return self._by_language(title, head, columns)


_CHANGED = ("words_changed", "unique_words_changed")
NUMBERS = (1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 18, 19)


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--one", type=int, required=True, help="of clusters and PickyBPE")
    parser.add_argument("--clusters", type=int, nargs="*", default=[])
    args = parser.parse_args()
    if args.one not in args.sizes:
        parser.error(f"--one {args.one} is none of --sizes: the joint vocabulary is missing")
    study = Study(args.out, args.sizes, args.one, args.clusters)
    for number in NUMBERS:
        text = getattr(study, f"table_{number}")()
        path = args.out / f"table-{number:02}.md"
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
