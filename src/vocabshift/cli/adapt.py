"""`vocabshift adapt`: new words for those that nobody needs, at constant size.

Owns the verb's flags and its summary.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.extend import language_table
from vocabshift.cli.options import (
    UsageError,
    add_many,
    add_output,
    add_threads,
    add_verb,
    positive,
    share,
    threads,
)
from vocabshift.cli.source import add_source, require_source, source_of
from vocabshift.cli.tokenizers import add_pattern, load_all

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "adapt",
        "new words for those that nobody needs, at constant size",
        "Take tokens out of a tokenizer that the text does not need, learn as many new ones, and\n"
        "give these the ids that became free: no other id moves, special tokens keep theirs, and\n"
        "a model keeps its number of rows. The corpus must hold text of every language that is\n"
        "to stay good.",
        "  vocabshift adapt meta-llama/Llama-3.2-1B --corpus hi=hindi.txt en=english.txt "
        "code=code.jsonl --n-tokens 16000 --pre-tokenizer repaired -o llama3-hi\n"
        "  vocabshift adapt qwen --corpus et=estonian.txt en=english.txt --n-tokens 8000 "
        "--keep script:Cyrl --json -o qwen-et\n",
    )
    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, file or Hub name")
    add_source(parser)
    parser.add_argument(
        "--n-tokens",
        metavar="N",
        type=positive,
        help="tokens to exchange (default: the knee of the curve, see plan)",
    )
    parser.add_argument(
        "--first", choices=("prune", "extend"), default="prune", help="default: prune"
    )
    parser.add_argument("--order", default="leaf-frequency", help="of pruning (leaf-frequency)")
    add_many(parser, "--keep", metavar="WHAT", help="never take out, as in prune")
    parser.add_argument(
        "--pre-tokenizer",
        choices=("kept", "repaired"),
        help="repaired: marks and joiners may follow the letters of a word (default: kept)",
    )
    parser.add_argument("--min-frequency", metavar="N", type=positive, default=1)
    parser.add_argument(
        "--sampling-alpha",
        metavar="A",
        type=share,
        help="languages count in proportion to bytes ** A: 1 as they are, 0.3 nearly alike",
    )
    add_pattern(parser)
    add_output(parser, what="folder to write")
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Adapt and write the folder."""
    from pathlib import Path

    from vocabshift.cli.console import progress_bar
    from vocabshift.output_folder import check_free
    from vocabshift.text.corpus import Corpus

    require_source(args, f"(see: {args.parser.prog} --help)")
    inputs = [args.tokenizer] if Path(args.tokenizer).exists() else []
    check_free(args.out, force=args.force, inputs=inputs)
    corpus = source_of(args)
    if not isinstance(corpus, Corpus):
        raise UsageError("adapt encodes the text itself, before and after; give --corpus")
    tokenizer = args.tokenizer
    if args.pattern:
        [tokenizer] = load_all([args.tokenizer], args.pattern)
    from vocabshift.adaptation import adapt_to_folder  # heavy: after what is cheap

    with progress_bar() as progress:
        n_tokens, pre_tokenizer = args.n_tokens, args.pre_tokenizer or "kept"
        if n_tokens is None:
            from vocabshift.planning import plan

            n_tokens = plan(
                tokenizer,
                corpus,
                sampling_alpha=args.sampling_alpha,
                threads=threads(args),
                progress=progress,
            ).knee_of(pre_tokenizer)
        return adapt_to_folder(
            tokenizer,
            corpus,
            args.out,
            force=args.force,
            n_tokens=n_tokens,
            first=args.first,
            order=args.order,
            keep=tuple(args.keep or ()),
            pre_tokenizer=pre_tokenizer,
            min_frequency=args.min_frequency,
            sampling_alpha=args.sampling_alpha,
            threads=threads(args),
            progress=progress,
        )


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """What was exchanged and what it brought."""
    from vocabshift.cli.console import show_summary

    extension, pruning = result["extension"], result["pruning"]
    console.print(language_table(extension))
    for warning in pruning["warnings"]:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    facts = {
        "written to": result["out"],
        "tokens taken out": result["n_removed"],
        "of them decided by ties": pruning["n_decided_by_ties"],
        "new tokens": result["n_added"],
        "vocabulary": result["vocab_size"],
        "rows of a model": result["rows"],
    }
    out = result["out"]
    then = f"vocabshift check {out}    or    vocabshift transfer MODEL {out}"
    show_summary(console, "adapt", facts, then)
