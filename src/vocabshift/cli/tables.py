"""`vocabshift tables`: results as tables in the papers' layouts."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_verb
from vocabshift.cli.subjects import defaults_of
from vocabshift.workflows.publish import FORMATS, SHAPES, write_tables

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "tables",
        "write results as tables: Markdown, LaTeX or CSV",
        "Write what `vocabshift evaluate --output` measured as tables: Markdown, LaTeX (booktabs)\n"
        "or CSV, wide or one value a line. Shapes: languages (down), subjects (down), families\n"
        "(means over the languages of a family), each a table for every metric; and those of the\n"
        "papers' tables: ist-3, ist-4, ist-6, ist-7, ist-22, matra-2, matra-3, matra-4. What a\n"
        "paper's table has and the results lack is left out, and a note under the table says so.",
        "  vocabshift tables results.jsonl --shape ist-3\n"
        "  vocabshift tables results.jsonl --shape matra-2 --format latex -o matra-2.tex\n",
    )
    parser.add_argument("results", metavar="RESULTS", nargs="+", help="what evaluate wrote")
    defaults = defaults_of(write_tables)
    for flag, choices in (("shape", SHAPES), ("format", FORMATS)):
        parser.add_argument(
            f"--{flag}", choices=choices, default=defaults[flag], help="default: %(default)s"
        )
    add_many(parser, "--subjects", metavar="S", help="only these tokenizers, in this order")
    parser.add_argument(
        "--intervals", action="store_true", help="half the 95 %% interval after each value"
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="default: standard output")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Build the tables, and write them if requested."""
    return write_tables(
        args.results,
        args.out,
        shape=args.shape,
        format=args.format,
        subjects=args.subjects or (),
        intervals=args.intervals,
        force=args.force,
    )


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the tables, or the path they were written to."""
    if args.out:
        console.print(f"written: {args.out}", markup=False, soft_wrap=True)
    else:
        sys.stdout.write(result["text"])
