"""Mean fertility and spread of token totals, over all languages and over those of India.

    vocabshift evaluate … --parallel --metrics fertility tokens_per_line --output results.jsonl
    python recipes/indic_study/front.py results.jsonl

The spread is that of tokens per line, which over parallel text is that of the totals.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from vocabshift.evaluation.metrics.distribution import coefficient_of_variation, gini
from vocabshift.results import Results, read_results
from vocabshift.text.languages import find_language


def row(results: Results, subject: str, languages: Sequence[str]) -> list[str]:
    """Mean fertility, Gini, coefficient of variation."""
    fertility = mean(results.value(subject, label, "fertility") for label in languages)
    totals = [results.value(subject, label, "tokens_per_line") for label in languages]
    spread = (float(gini(totals)), float(coefficient_of_variation(totals)))
    return [f"{fertility:.4f}", *(f"{value:.4f}" for value in spread)]


def is_indian(label: str) -> bool:
    """Whether a label is of a language of the Eighth Schedule."""
    language = find_language(label)
    return language is not None and language.is_scheduled


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", metavar="RESULTS.jsonl", type=Path)
    results = read_results([parser.parse_args().results])
    languages = results.where(metric="fertility").distinct("language")
    indian = [label for label in languages if is_indian(label)]
    others = [label for label in languages if label not in indian]
    head = ["fertility", "Gini", "CV", "Indian: fertility", "Gini", "CV", *others]
    print(f"### {len(languages)} languages, {len(indian)} of them Indian\n")
    print("|  | " + " | ".join(head) + " |\n| --- |" + " ---: |" * len(head))
    for subject in results.distinct("subject"):
        cells = [*row(results, subject, languages), *row(results, subject, indian)]
        cells += [f"{results.value(subject, label, 'fertility'):.2f}" for label in others]
        print(f"| {subject} | " + " | ".join(cells) + " |")
    print()


if __name__ == "__main__":
    main()
