"""The verbs that measure on text: `vocabshift evaluate` and `vocabshift normalize`.

`evaluate` computes every metric, for any tokenizers; `normalize` measures what a normalizer would
change in text, before training.
"""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_errors, add_pattern, defaults_of, text_of
from vocabshift.cli.options import UsageError, add_many, add_threads, add_verb, threads
from vocabshift.workflows.evaluate import (
    NORMALIZER_HELP,
    NORMALIZERS,
    evaluate_to_files,
    metric_groups,
    normalizer_effect,
)

if TYPE_CHECKING:
    from rich.console import Console


def add_normalize(subparsers: Any) -> None:
    """Add the verb `normalize`."""
    parser = add_verb(
        subparsers,
        "normalize",
        "the share of words that a normalizer changes",
        "Tell the share of words, and of different words, that a normalizer changes, by language.\n"
        "What `train --normalizer` gets by the same name travels inside the tokenizer.\n\nsteps:\n"
        + "\n".join(f"  {name:14} {what}" for name, what in NORMALIZERS.items()),
        "  vocabshift normalize hi=hindi.txt te=telugu.txt --normalizer fifth-case\n"
        "  vocabshift normalize eval/*.txt --normalizer joiners+nfc+nukta+vowel-signs --json\n",
    )
    parser.add_argument("text", metavar="SPEC", nargs="+", help="[lang=]PATH|DIR|GLOB|hf:DATASET")
    parser.add_argument("--normalizer", metavar="STEP[+STEP…]", required=True, help=NORMALIZER_HELP)
    add_errors(parser)
    parser.set_defaults(run=run_normalize, show=show_normalize, status=lambda *_: 0)


def run_normalize(args: argparse.Namespace) -> dict[str, Any]:
    """Measure."""
    return normalizer_effect(text_of(args.text, args), args.normalizer)


def show_normalize(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
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


_WIDTH, _INDENT = 100, 17  # width in characters of the list of metrics


def _description() -> str:
    """List the metrics by group."""
    lines = [
        "Measure tokenizers on text, per language, with 95 % bootstrap intervals over lines.",
        "",
        'metrics (names for --metrics; "all" for every one that the input allows):',
    ]
    for group, names, about in metric_groups():
        lines += textwrap.wrap(
            ", ".join(names) + (f": {about}" if about else ""),
            width=_WIDTH,
            initial_indent=f"  {group:<{_INDENT - 2}}",
            subsequent_indent=" " * _INDENT,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def add_evaluate(subparsers: Any) -> None:
    """Add the verb `evaluate`."""
    parser = add_verb(
        subparsers,
        "evaluate",
        "measure tokenizers on text, per language",
        "",
        "  vocabshift evaluate ist meta-llama/Llama-3.2-1B --text hi=hindi.txt ta=tamil.txt\n"
        "  vocabshift evaluate ist tiktoken:o200k_base --base gpt2 --text en=en.txt hi=hi.txt "
        "--metrics all --parallel --json\n",
    )
    parser.about = _description
    parser.add_argument(
        "tokenizers",
        metavar="TOKENIZER",
        nargs="+",
        help="folder, file, Hub name or tiktoken:NAME; BPE, Unigram or WordPiece",
    )
    add_many(
        parser,
        "--text",
        metavar="SPEC",
        help="[lang=]PATH|DIR|GLOB|hf:DATASET; not needed with --morphemes",
    )
    parser.add_argument("--base", metavar="TOKENIZER", help="what lengths and cuts compare with")
    add_many(
        parser,
        "--metrics",
        metavar="M",
        help="default: fertility bytes_per_token, and normalized_sequence_length with --base",
    )
    parser.add_argument(
        "--parallel", action="store_true", help="the texts are parallel: refuse other lengths"
    )
    parser.add_argument(
        "--reference", metavar="LANG", help="language that premium compares with (default: English)"
    )
    add_many(
        parser, "--frequencies", metavar="SPEC", help="corpus that ranks words for fertility_bin_…"
    )
    parser.add_argument(
        "--renyi-alpha",
        metavar="A",
        type=_order,
        default=defaults_of(evaluate_to_files)["renyi_alpha"],
        help="order of Rényi's entropy (default: %(default)s)",
    )
    parser.add_argument(
        "--compare-subjects",
        action="store_true",
        help="test all pairs of tokenizers over languages (Wilcoxon, Holm); --json has it always "
        "where there are 5 languages (with more than 50, it needs scipy)",
    )
    add_many(
        parser,
        "--morphemes",
        metavar="[lang=]CSV",
        help="words with their parts (columns full_word, pt1 and rest; or word and segments)",
    )
    parser.add_argument(
        "--leading-space", action="store_true", help="encode these words behind a space"
    )
    add_many(
        parser,
        "--code-switch",
        metavar="PAIR",
        help="mix parallel texts of two languages, like hi+en, and measure that too",
    )
    add_pattern(parser)
    _add_files(parser)
    add_threads(parser)
    add_errors(parser)
    parser.set_defaults(run=run_evaluate, show=show_evaluate, status=lambda *_: 0)


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Add the flags for output files."""
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--html", metavar="FILE", help="also write a report as one HTML file")
    parser.add_argument(
        "--figures", metavar="DIR", help="also write figures as SVG and PNG (needs [plots])"
    )
    parser.add_argument("--force", action="store_true", help="replace what exists already")


def run_evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Measure, and write the requested files."""
    from vocabshift.cli.console import print_line, progress_bar

    if not args.text and not args.morphemes:
        raise UsageError(
            "nothing to measure on: give --text, or --morphemes (see: vocabshift evaluate --help)"
        )
    if args.leading_space and not args.morphemes:
        raise UsageError("--leading-space is about the words of --morphemes; leave it out")
    corpus = text_of(args.text, args) if args.text else None
    frequencies = text_of(args.frequencies, args) if args.frequencies else None
    with progress_bar() as progress:
        args.evaluation = evaluate_to_files(
            args.tokenizers,
            corpus,
            args.metrics,
            base=args.base,
            pattern=args.pattern,
            reference=args.reference,
            frequencies=frequencies,
            renyi_alpha=args.renyi_alpha,
            parallel=args.parallel,
            code_switch=args.code_switch or (),
            morphemes=args.morphemes or (),
            leading_space=args.leading_space,
            compare_subjects=args.compare_subjects,
            output=args.output,
            html=args.html,
            figures=args.figures,
            force=args.force,
            threads=threads(args),
            progress=progress,
            note=lambda text: print_line(f"note: {text}"),
        )
    result: dict[str, Any] = args.evaluation.to_dict()
    return result


def _order(text: str) -> float:
    """Parse a number above 0, as argparse's `type`."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def show_evaluate(args: argparse.Namespace, _result: dict[str, Any], console: Console) -> None:
    """Print one table per metric, then the requested comparisons."""
    from vocabshift.workflows.evaluate import evaluation_tables

    for part in evaluation_tables(args.evaluation, comparisons=args.compare_subjects):
        console.print(part)
    for path in args.evaluation.written.values():
        console.print(f"written: {path}", markup=False, soft_wrap=True)
