"""`vocabshift count`: count the words of a corpus once, for all verbs that take counts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import (
    Parser,
    add_many,
    add_output,
    add_threads,
    add_verb,
    size,
    threads,
)
from vocabshift.cli.source import CORPUS, add_choices, corpus_of

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "count",
        "count the words of a corpus",
        "Count the pre-tokens of a corpus, by language, and write them as sorted Parquet files.\n"
        "The text is read once; what is written does not depend on threads or memory.",
        "  vocabshift count hi=hindi.txt en=english.jsonl.gz --pattern o200k -o counts\n"
        "  vocabshift count ta=hf:wikimedia/wikipedia:20231101.ta --memory 8GB -o counts-ta\n",
    )
    parser.later(_add_options)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def _add_options(parser: Parser) -> None:
    from vocabshift.workflows.count import NORMALIZER_HELP

    parser.add_argument("corpus", metavar="SPEC", nargs="+", help=CORPUS)
    parser.add_argument(
        "--pattern", metavar="NAME|REGEX", default="o200k", help="pre-tokenizer (default: o200k)"
    )
    parser.add_argument("--normalizer", metavar="STEP[+STEP…]", help=NORMALIZER_HELP)
    add_many(parser, "--special-tokens", metavar="T", help="texts that no word may reach into")
    add_choices(parser)
    parser.add_argument(
        "--memory", metavar="SIZE", type=size, help="budget such as 8GB (default: no limit)"
    )
    add_output(parser, what="folder to write")
    add_threads(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Count, and write the output folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.count import count_to_folder

    corpus = corpus_of(args.corpus, args)
    with progress_bar() as progress:
        return count_to_folder(
            corpus,
            args.out,
            pattern=args.pattern,
            normalizer=None if args.normalizer == "none" else args.normalizer,
            special_tokens=args.special_tokens or (),
            memory_bytes=args.memory or 0,
            threads=threads(args),
            force=args.force,
            progress=progress,
        )


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.console import show_summary

    facts = {
        "written to": result["out"],
        "groups": result["groups"],
        "documents": result["documents"],
        "bytes": result["bytes"],
        "words": result["words"],
        "corpus fingerprint": result["corpus_fingerprint"],
    }
    show_summary(console, "count", facts, f"vocabshift train --counts {result['out']} ...")
