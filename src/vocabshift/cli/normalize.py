"""`vocabshift normalize`: measure what a normalizer would change in text, before training."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_verb
from vocabshift.cli.source import add_errors, text_of
from vocabshift.workflows.evaluate import NORMALIZER_HELP, NORMALIZERS, normalizer_effect

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "normalize",
        "the share of words that a normalizer changes",
        "Tell the share of words, and of different words, that a normalizer changes, by language.\n"
        "What `train --normalizer` gets by the same name travels inside the tokenizer.\n\nsteps:\n"
        + "\n".join(f"  {name:13} {what}" for name, what in NORMALIZERS.items()),
        "  vocabshift normalize hi=hindi.txt te=telugu.txt --normalizer fifth-case\n"
        "  vocabshift normalize eval/*.txt --normalizer joiners+nfc+nukta+vowel-signs --json\n",
    )
    parser.add_argument("text", metavar="SPEC", nargs="+", help="[lang=]PATH|DIR|GLOB|hf:DATASET")
    parser.add_argument("--normalizer", metavar="STEP[+STEP…]", required=True, help=NORMALIZER_HELP)
    add_errors(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure."""
    return normalizer_effect(text_of(args.text, args), args.normalizer)


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print table 15 of the Indic study."""
    from rich.table import Table
    from rich.text import Text

    from vocabshift.results import Result, Results

    results = Results(Result(**row) for row in result["results"])
    table = Table(title=Text(result["normalizer"], style="bold"), title_justify="left")
    table.add_column("language")
    for column in ("words", "changed", "different words", "changed"):
        table.add_column(column, justify="right")
    totals = {metric: [0, 0.0] for metric in results.distinct("metric")}  # words, different ones
    languages = results.distinct("language")
    for language in languages:
        cells = []
        for metric, total in totals.items():
            (row,) = results.where(language=language, metric=metric)
            cells += [f"{row.n:,}", f"{row.value:.2%}"]
            total[0] += row.n
            total[1] += row.n * row.value
        table.add_row(Text(language), *cells)
    if len(languages) > 1:
        table.add_section()
        sums = [cell for n, hit in totals.values() for cell in (f"{n:,}", f"{hit / n:.2%}")]
        table.add_row("all", *sums, style="bold")
    console.print(table)
    if result["inverse"]:
        console.print(f"inverse: {result['inverse']}", markup=False)
