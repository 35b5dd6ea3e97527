"""`vocabshift compare`: compare two tokenizers on real text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_threads, add_verb, positive, threads
from vocabshift.cli.source import add_errors, text_of
from vocabshift.cli.subjects import add_pattern, defaults_of
from vocabshift.workflows.compare import compare_to_file

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "compare",
        "see what changes in text between two tokenizers",
        "Show two tokenizers side by side on text: tokens and bytes per token of each language,\n"
        "the stretches of text that became shorter and longer, and the lines that changed most,\n"
        "with every token coloured and superwords and cut syllables marked.",
        "  vocabshift compare meta-llama/Llama-3.2-1B ist --text hi=hindi.txt ta=tamil.txt\n"
        "  vocabshift compare old.json new.json --text eval/*.txt --html compare.html --force\n",
    )
    parser.add_argument("tokenizer_a", metavar="TOKENIZER_A", help="folder, file or Hub name")
    parser.add_argument("tokenizer_b", metavar="TOKENIZER_B", help="what it is compared with")
    add_many(
        parser, "--text", metavar="SPEC", required=True, help="[lang=]PATH|DIR|GLOB|hf:DATASET"
    )
    add_errors(parser)
    defaults = defaults_of(compare_to_file)
    parser.add_argument(
        "--lines",
        metavar="N",
        type=positive,
        default=defaults["n_lines"],
        help="lines shown of each language (default: %(default)s)",
    )
    parser.add_argument(
        "--changes",
        metavar="N",
        type=positive,
        default=defaults["n_changes"],
        help="stretches shown that changed (default: %(default)s)",
    )
    parser.add_argument("--html", metavar="FILE", help="also write it as one HTML file")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.add_argument(
        "--ascii", action="store_true", help="tell tokens apart by ASCII signs, not by colours"
    )
    add_pattern(parser)
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Compare, and write the HTML page if requested."""
    from vocabshift.workflows.compare import comparison_object

    args.comparison = compare_to_file(
        args.tokenizer_a,
        args.tokenizer_b,
        text_of(args.text, args),
        pattern=args.pattern,
        n_lines=args.lines,
        n_changes=args.changes,
        html=args.html,
        force=args.force,
        threads=threads(args),
    )
    return {**comparison_object(args.comparison), "html": args.html}


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the tables, and lines with token boundaries marked by colours or, without, by signs."""
    from vocabshift.workflows.compare import comparison_tables

    plain = console.no_color or console.color_system is None
    for part in comparison_tables(args.comparison, plain=plain, ascii_only=args.ascii):
        console.print(part)
    if result["html"]:
        console.print(f"written: {result['html']}", markup=False, soft_wrap=True)
