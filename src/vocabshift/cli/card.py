"""`vocabshift card`: a model card for a tokenizer, from its results and provenance."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_verb
from vocabshift.workflows.publish import write_card

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "card",
        "write the model card of a tokenizer",
        "Write a model card of a tokenizer that vocabshift made: what it is, its training text by\n"
        "source and class of licence, figures with intervals, limits, and what rebuilds it to the\n"
        "byte. Figures come from files of `vocabshift evaluate --output`, the rest from the\n"
        "folder's vocabshift.json and tables of sources (tabs; columns source, bytes, class,\n"
        "licence; hi.sources.tsv is of the language hi).",
        "  vocabshift card ist --results results.jsonl -o ist/README.md\n"
        "  vocabshift card ist --results results.jsonl --sources train/*.sources.tsv "
        '--evaluated-on FLORES --license other --rebuild "recipes/ist/run.sh" -o ist.md\n',
    )
    parser.add_argument("tokenizer", metavar="DIR", help="a folder that vocabshift wrote")
    add_many(parser, "--results", metavar="FILE", required=True, help="what evaluate wrote")
    parser.add_argument("--subject", metavar="S", help="its name there (default: that of DIR)")
    parser.add_argument(
        "--name", metavar="NAME", help="its name on the card (default: that of DIR)"
    )
    add_many(parser, "--sources", metavar="TSV", help="tables of the training text's sources")
    parser.add_argument(
        "--evaluated-on", metavar="TEXT", default="", help="what the results rest on"
    )
    parser.add_argument(
        "--license", metavar="ID", help="license of the tokenizer, as the Hub has it"
    )
    parser.add_argument(
        "--rebuild", metavar="COMMAND", default="", help="what makes the same again"
    )
    add_many(parser, "--limit", metavar="TEXT", help="a further sentence under Limits")
    parser.add_argument("-o", "--out", metavar="FILE", required=True, help="such as DIR/README.md")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Write the card; the returned object holds everything it was rendered from."""
    return write_card(
        args.tokenizer,
        args.results,
        args.out,
        subject=args.subject,
        name=args.name,
        sources=args.sources or (),
        evaluated_on=args.evaluated_on,
        license=args.license,
        rebuild=args.rebuild,
        limits=args.limit or (),
        force=args.force,
    )


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the path of the card."""
    what = f"written: {args.out} ({result['facts']['name']})"
    console.print(what, markup=False, soft_wrap=True)
