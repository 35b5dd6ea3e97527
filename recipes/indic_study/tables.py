"""The tables of the Indic study, by the paper's numbers, from what run.sh measured.

    python recipes/indic_study/tables.py runs/indic-study --sizes 32000 64000 --one 64000 \
        --clusters 5 6 7 8

Prints the tables, the paper's figures next to ours, and writes their rows to OUT/tables.jsonl. In
`results.jsonl` here are the same and those of the other scripts: `tables` makes all tables of the
README of them (`recipes/data/record.py` calls it). NN: no normalization; N: fifth-case
normalization, inside the tokenizer; words are counted in the text as it stands. All means are over
languages.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from vocabshift.checks.vocabulary_report import PARTIAL, classes_of
from vocabshift.results import Results
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import open_tokenizer

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
sys.path.append(str(Path(__file__).parent))
import beside
import extrinsic_tables
import front
from record import Row
from rows import made, put, shown

NAMES = {"bpe": "BPE", "unigram": "Unigram"}
_MORPH_SCORES = {"morph_segment_score": "segments", "morph_score": "borders"}
"""The study's MorphScore is the share of segments; the other is Arnett & Bergen's."""
SCRIPTS = (
    *("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya"),
    *("Tamil", "Telugu", "Kannada", "Malayalam", "Other"),
)
Columns = dict[str, dict[str, Any]]
"""Of one table: the name of a column, then the values of its lines."""


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name: of run.sh and iso.sh, of extrinsic.sh, of front.sh."""
    papers = beside.tables("indic_study", rows)
    return papers | extrinsic_tables.tables(rows) | front.tables(rows)


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
        self.names = {size: f"{size // 1000}k" for size in sizes}
        self.of_size = [
            (f"{name} {self.names[size]}", f"{recipe}-{size}")
            for recipe, name in NAMES.items()
            for size in sizes
        ]

    def _read(self, name: str) -> Results:
        return Results.from_jsonl((self.out / name).read_text(encoding="utf-8"))

    def values(self, subject: str, metric: str = "fertility") -> list[float]:
        """By language, in the order of all tables."""
        return [self.results.value(subject, language, metric) for language in self.languages]

    def by_language(self, subject: str, metric: str = "fertility") -> dict[str, float]:
        """The same with their labels."""
        return dict(zip(self.languages, self.values(subject, metric), strict=True))

    def mean(self, subject: str, metric: str = "fertility") -> float:
        """Over the languages."""
        return mean(self.values(subject, metric))

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

    def table_1(self) -> Columns:
        """Mean fertility."""
        return {
            f"{name} {kind}": {NAMES[r]: self.mean(f"{r}-{size}{end}") for r in NAMES}
            for size, name in self.names.items()
            for kind, end in (("NN", ""), ("N", "-n"))
        }

    def table_2(self) -> Columns:
        """What normalization changes."""
        pairs = {name: (self.mean(of), self.mean(f"{of}-n")) for name, of in self.of_size}
        return {
            "NN": {name: nn for name, (nn, _) in pairs.items()},
            "N": {name: n for name, (_, n) in pairs.items()},
            "Δ": {name: nn - n for name, (nn, n) in pairs.items()},
            "%": {name: 100 * (nn - n) / nn for name, (nn, n) in pairs.items()},
        }

    def table_3(self) -> Columns:
        """Whether it is chance."""
        columns: Columns = {"p": {}, "lower": {}, "higher": {}}
        for name, of in self.of_size:
            nn, n = self.values(of), self.values(f"{of}-n")
            columns["p"][name] = wilcoxon(nn, n)
            columns["lower"][name] = sum(b < a for a, b in zip(nn, n, strict=True))
            columns["higher"][name] = sum(b > a for a, b in zip(nn, n, strict=True))
        return columns

    def table_4(self) -> Columns:
        """Fairness, with normalization."""
        return {
            title: {name: self.spread(f"{of}-n", metric) for name, of in self.of_size}
            for title, metric in (
                ("Gini", "gini"),
                ("coefficient of variation", "coefficient_of_variation"),
            )
        }

    def table_5(self) -> Columns:
        """Joint and cluster."""
        names = {"joint": f"unigram-{self.one}-n", **{name: name for name in self.clusters}}
        return {name: self.by_language(subject) for name, subject in names.items()}

    def table_13(self) -> Columns:
        """Which languages k-means put together."""
        found = {}
        for name in self.clusters:
            report = json.loads((self.out / f"{name}.json").read_text(encoding="utf-8"))
            groups = [", ".join(part["languages"]) for part in report["clusters"]]
            found[name] = " · ".join(groups)
        return {"languages": found}

    def table_7(self) -> Columns:
        """The study's MorphScore and Arnett & Bergen's, where there are words with morphemes."""
        if not (self.out / "morphemes.jsonl").exists():
            return {}
        rows = self._read("morphemes.jsonl")
        subjects = [f"{of}-n" for _, of in self.of_size] + self.clusters
        return {
            f"{name}, {label}": {s: rows.value(s, label, metric) for s in subjects}
            for metric, name in _MORPH_SCORES.items()
            for label in rows.where(metric="morph_score").distinct("language")
        }

    def table_8(self) -> Columns:
        """BPE and OBPE in one script."""
        rows = self._read("devanagari.jsonl").where(metric="fertility")
        return {
            name: {label: rows.value(s, label, "fertility") for label in rows.distinct("language")}
            for s, name in (("bpe-devanagari", "BPE"), ("overlap-devanagari", "OBPE"))
        }

    def table_15(self) -> Columns:
        """What fifth-case normalization changes in the evaluated text."""
        rows = json.loads((self.out / "normalized.json").read_text(encoding="utf-8"))["results"]
        found = {(row["language"], row["metric"]): row for row in rows}
        columns: Columns = {}
        for metric, name in (("words_changed", "words"), ("unique_words_changed", "unique words")):
            own = {label: found[label, metric] for label in self.languages}
            n = {label: row["n"] for label, row in own.items()}
            changed = {label: 100 * row["value"] for label, row in own.items()}
            total = sum(n.values())
            both = sum(n[label] * changed[label] for label in own) / total
            columns[name] = {**n, "total": total}
            columns[f"{name} changed, %"] = {**changed, "total": both}
        return columns

    def table_16(self) -> Columns:
        """Fertility by language, size and algorithm."""
        return {
            f"{of}{end}": self.by_language(f"{of}{end}")
            for _, of in self.of_size
            for end in ("", "-n")
        }

    def table_17(self) -> Columns:
        """Fertility, characters per token and fragmented words, normalized."""
        metrics = {"F": "fertility", "CPT": "characters_per_token"}
        columns: Columns = {
            title: {name: self.mean(f"{of}-n", metric) for name, of in self.of_size}
            for title, metric in metrics.items()
        }
        wfr = "word_fragmentation_rate"
        columns["WFR, %"] = {name: 100 * self.mean(f"{of}-n", wfr) for name, of in self.of_size}
        return columns

    def table_18(self) -> Columns:
        """Overlaps of vocabularies."""
        pairs: dict[str, Callable[[int], tuple[str, str]]] = {
            "Unigram (NN), BPE (NN)": lambda s: (f"unigram-{s}", f"bpe-{s}"),
            "Unigram (N), BPE (N)": lambda s: (f"unigram-{s}-n", f"bpe-{s}-n"),
            "BPE (N), BPE (NN)": lambda s: (f"bpe-{s}-n", f"bpe-{s}"),
            "Unigram (N), Unigram (NN)": lambda s: (f"unigram-{s}-n", f"unigram-{s}"),
        }
        return {
            column: {name: self.overlap(*of(size)) for name, of in pairs.items()}
            for size, column in self.names.items()
        }

    def table_figure_1(self) -> Columns:
        """Overlaps of BPE and Unigram by script, of tokens that are whole characters."""
        return {
            column: _overlaps(self.out / f"unigram-{size}", self.out / f"bpe-{size}")
            for size, column in self.names.items()
        }

    def table_19(self) -> Columns:
        """BPE and PickyBPE."""
        return {
            f"{name}, {title}": self.by_language(f"{recipe}-{self.one}-n", metric)
            for title, metric in (("F", "fertility"), ("CPT", "characters_per_token"))
            for recipe, name in (("bpe", "BPE"), ("picky", "PickyBPE"))
        }

    def rows(self) -> list[Row]:
        """Of all tables."""
        return [
            {"table": f"indic_study-{number}", "row": column, "values": values}
            for number in NUMBERS
            for column, values in getattr(self, f"table_{number}".replace("-", "_"))().items()
        ]


NUMBERS = (1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 18, "figure-1", 19)


def _overlaps(one: Path, other: Path) -> dict[str, float]:
    """By script, per cent of the tokens of the vocabulary that has fewer of them."""
    both = [_tokens_by_script(open_tokenizer(folder)) for folder in (one, other)]
    return {
        script: 100 * len(both[0][script] & both[1][script]) / min(len(of[script]) for of in both)
        for script in SCRIPTS
        if all(of[script] for of in both)
    }


def _tokens_by_script(tokenizer: AnyTokenizer) -> dict[str, set[bytes]]:
    spelled = tokenizer.token_bytes
    names, numbers = classes_of(spelled, max(spelled) + 1)
    found: dict[str, set[bytes]] = {script: set() for script in SCRIPTS}
    for token_id, data in spelled.items():
        name = names[numbers[token_id]]
        if name != PARTIAL:
            found[name if name in SCRIPTS else "Other"].add(data)
    return found


def main() -> None:
    """Print the tables, and write their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--one", type=int, required=True, help="of clusters and PickyBPE")
    parser.add_argument("--clusters", type=int, nargs="*", default=[])
    parser.add_argument("--size", default="2 MB of each language", help="as the tables name it")
    parser.add_argument("--results", type=Path, help="a file that takes the rows too")
    args = parser.parse_args()
    if args.one not in args.sizes:
        parser.error(f"--one {args.one} is none of --sizes: the joint vocabulary is missing")
    study = Study(args.out, args.sizes, args.one, args.clusters)
    rows = study.rows()
    command = "recipes/indic_study/run.sh"
    measured = study.results.where(metric="fertility").to_dicts()
    for name in dict.fromkeys(row["table"] for row in rows):
        rows.append(made(name, command, args.size, None, measured))
    text = "".join(shown(row) + "\n" for row in rows)
    (args.out / "tables.jsonl").write_text(text, encoding="utf-8")
    print("\n\n".join(tables(rows).values()))
    if args.results:
        put(args.results, rows)


if __name__ == "__main__":
    main()
