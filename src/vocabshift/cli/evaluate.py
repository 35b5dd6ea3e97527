"""`vocabshift evaluate`: fertility and its kin, for any tokenizers on any text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_threads, add_verb, threads
from vocabshift.cli.tokenizers import add_pattern, load_all

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 4
"""Up to this many subjects, a table has room for intervals."""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "evaluate",
        "measure tokenizers on text, per language",
        "Measure tokenizers on text, per language, with 95 % bootstrap intervals over lines.\n"
        "Metrics: fertility, bytes_per_token, characters_per_token, tokens_per_character,\n"
        "sequence_reduction, single_character_rate, normalized_sequence_length (needs --base).",
        "  vocabshift evaluate ist meta-llama/Llama-3.2-1B --text hi=hindi.txt ta=tamil.txt\n"
        "  vocabshift evaluate ist --base gpt2 --text eval/*.txt --metrics fertility "
        "normalized_sequence_length --json\n",
    )
    parser.add_argument(
        "tokenizers", metavar="TOKENIZER", nargs="+", help="folder, file or Hub name"
    )
    add_many(
        parser, "--text", metavar="SPEC", required=True, help="[lang=]PATH|DIR|GLOB|hf:DATASET"
    )
    parser.add_argument("--base", metavar="TOKENIZER", help="what normalized lengths compare with")
    add_many(
        parser,
        "--metrics",
        metavar="M",
        help="default: fertility bytes_per_token, and normalized_sequence_length with --base",
    )
    add_pattern(parser)
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure, and write the rows where that is asked for."""
    from pathlib import Path

    from vocabshift.evaluation.evaluate import evaluate
    from vocabshift.evaluation.subject import subject_names
    from vocabshift.text.corpus import Corpus

    output = Path(args.output) if args.output else None
    if output is not None and output.exists() and not args.force:
        raise FileExistsError(f"{output} exists already; name another output or pass --force")
    sources = [*args.tokenizers, *([args.base] if args.base else [])]
    loaded = load_all(sources, args.pattern)
    base = loaded.pop() if args.base else None
    results = evaluate(
        dict(zip(subject_names(args.tokenizers), loaded, strict=True)),
        Corpus.from_specs(args.text),
        args.metrics,
        base=base,
        threads=threads(args),
    )
    if output is not None:
        aside = output.with_name(output.name + ".partial")
        results.save(aside)
        aside.replace(output)
    return {"results": results.to_dicts()}


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """One table for each metric."""
    from vocabshift.report.tables import to_rich
    from vocabshift.results import Result, Results

    results = Results(Result(**row) for row in result["results"])
    has_room = len(results.distinct("subject")) <= _WIDE
    for metric in results.distinct("metric"):
        console.print(to_rich(results, metric, intervals=has_room))
    if args.output:
        console.print(f"written: {args.output}", markup=False, soft_wrap=True)
