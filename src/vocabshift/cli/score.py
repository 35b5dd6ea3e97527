"""`vocabshift score`: bits per byte of causal language models on text, compared by document."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_errors, add_models, defaults_of, loading, text_of
from vocabshift.cli.options import add_many, add_verb, positive
from vocabshift.workflows.measure_models import score_to_file

if TYPE_CHECKING:
    from rich.console import Console

_DESCRIPTION = """\
What causal language models pay for text, in bits per byte, per language and over all, with 95 %
bootstrap intervals over documents. A document (a line of a .txt) is scored by itself, after the
model's BOS where its config has one; no EOS is added; its bytes are those of the raw text without
the line's ending. So models of different tokenizers stand on one scale. A document longer than
--context is scored in windows: each repeats --overlap tokens of the one before, unscored.
Several models are compared by document: difference, interval and p value (exchange within
documents), corrected over the pairs of a language (Holm)."""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "score",
        "bits per byte of language models on text, per language",
        _DESCRIPTION,
        "  vocabshift score adapted --text hi=hindi.txt en=english.txt\n"
        "  vocabshift score base control adapted --text hi=hi.txt ta=ta.txt --dtype bfloat16 "
        "--output bits.jsonl --json\n",
    )
    add_models(parser)
    add_many(
        parser, "--text", metavar="SPEC", help="[lang=]PATH|DIR|GLOB|hf:DATASET", required=True
    )
    parser.add_argument("--documents", choices=("line", "file"), help="a .txt is one per line/file")
    add_errors(parser)
    parser.add_argument(
        "--context",
        metavar="N",
        type=positive,
        help="tokens that a model sees at once (default: its positions, at most 4096)",
    )
    parser.add_argument(
        "--overlap",
        metavar="N",
        type=positive,
        help="tokens of a window that repeat the one before (default: half the context)",
    )
    parser.add_argument(
        "--batch-tokens",
        metavar="N",
        type=positive,
        default=defaults_of(score_to_file)["batch_tokens"],
        help="tokens run at once, padding included (default: %(default)s)",
    )
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Score, compare, and write the rows if requested."""
    from vocabshift.cli.console import progress_bar

    corpus = text_of(args.text, args, documents=args.documents)
    with progress_bar(unit="tokens") as progress:
        args.scored = score_to_file(
            args.models,
            corpus,
            context=args.context,
            overlap=args.overlap,
            batch_tokens=args.batch_tokens,
            output=args.output,
            force=args.force,
            progress=progress,
            **loading(args),
        )
    return {
        "results": args.scored.results.to_dicts(),
        "comparisons": [pair.to_dict() for pair in args.scored.comparisons],
    }


def show(args: argparse.Namespace, _result: dict[str, Any], console: Console) -> None:
    """Print bits per byte as a table, then the pairs of models."""
    from vocabshift.workflows.measure_models import score_tables

    for table in score_tables(args.scored):
        console.print(table)
    if args.output:
        console.print(f"written: {args.output}", markup=False, soft_wrap=True)
