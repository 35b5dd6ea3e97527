"""`vocabshift decide`: which way to give a model new languages?

Owns the verb's flags and what it prints.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.fields import add_fields, given
from vocabshift.cli.options import (
    Parser,
    add_many,
    add_output,
    add_threads,
    add_verb,
    positive,
    size,
    threads,
)

if TYPE_CHECKING:
    from rich.console import Console

_FIELDS = (
    *("swap_recipe", "trained", "minutes", "finalists", "share_of_new", "home_weight"),
    *("learning_rate", "sequence_length", "step_bytes", "seed"),
)
_LISTS = ("ways", "extend_tokens", "superwords", "swap_tokens", "inits")
_SIZES = ("n_bytes", "score_bytes")


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "decide",
        "extend or swap, how many tokens, which rows: short pilots on your model and text",
        "Try several ways to give a model new languages, on a small budget, and recommend one.\n"
        "Every candidate is scored without training; the best of each way are then trained on\n"
        "equal bytes of text (--bytes), or for equal time (--minutes), as is the model with its\n"
        "old tokenizer. Compared by held-out bits per byte: gained in the new languages, lost at\n"
        "home, with intervals paired by document. It says when the pilots cannot tell.",
        "  vocabshift decide HuggingFaceTB/SmolLM2-135M --new hi=hindi.txt --home en=english.txt "
        "code=code.jsonl --minutes 60 -o decision\n"
        "  vocabshift decide models/llama --new ta=tamil.txt --home en=english.txt --bytes 500KB "
        "--extend-tokens 4000 8000 --ways extend --init fvt focus --dry-run\n",
    )
    parser.later(_add_options)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def _add_options(parser: Parser) -> None:
    from vocabshift.workflows.decide_options import DecideOptions as Options
    from vocabshift.workflows.transfer import INITIALIZERS

    parser.add_argument("model", metavar="MODEL", help="folder or Hub name")
    for side, what in (("new", "languages to gain"), ("home", "languages to keep")):
        add_many(
            parser,
            f"--{side}",
            metavar="LANG=SPEC",
            required=True,
            help=f"text of the {what}: lang=PATH|DIR|GLOB|hf:DATASET",
        )
    add_many(
        parser,
        "--held-out",
        metavar="LANG=SPEC",
        help="text of all of them to compare on (default: every 20th document)",
    )
    parser.add_argument(
        "--bytes",
        dest="n_bytes",
        metavar="SIZE",
        type=size,
        help="text that each trained pilot reads (default: what --minutes allow)",
    )
    parser.add_argument(
        "--score-bytes",
        metavar="SIZE",
        type=size,
        help="held-out text of each language, a twentieth of it from one document at most "
        f"(default: {Options.score_bytes // 1000}KB)",
    )
    parser.add_argument(
        "--ways", nargs="+", choices=Options.ways, help="of changing the tokenizer (default: all)"
    )
    for flag, what, usual in (
        ("extend-tokens", "new words", "the knee of plan's curve, and twice as many"),
        ("superwords", "superwords on top of new words", "half as many as these"),
        ("swap-tokens", "tokens of another tokenizer", "as the old one has, 32000 at most"),
    ):
        parser.add_argument(
            f"--{flag}",
            nargs="+",
            type=positive,
            metavar="N",
            help=f"numbers of {what} to try (default: {usual})",
        )
    parser.add_argument(
        "--init",
        dest="inits",
        nargs="+",
        choices=tuple(INITIALIZERS),
        help=f"rows of new tokens to try (default: {' '.join(Options.inits)})",
    )
    add_fields(parser, Options, _FIELDS)
    parser.add_argument("--donor", metavar="MODEL", help="for omp: a model with the new tokens")
    parser.add_argument("--device", default="auto", help="cuda, cpu, ... (default: auto)")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the pilots with their time; write nothing"
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh after a run that was stopped"
    )
    add_output(parser, what="folder to write", required=False)
    add_threads(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the pilots and write the folder."""
    import vocabshift as vs
    from vocabshift.cli.console import progress_bar
    from vocabshift.cli.options import UsageError

    if args.out is None and not args.dry_run:
        raise UsageError("name the folder to write: -o DIR (or --dry-run)")
    values = given(args, (*_FIELDS, *_LISTS, *_SIZES))
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    options = vs.DecideOptions(**values)
    with progress_bar() as progress:
        return vs.decide(
            args.model,
            vs.Corpus.from_specs(args.new),
            vs.Corpus.from_specs(args.home),
            args.out or "decision",
            options,
            held_out=vs.Corpus.from_specs(args.held_out) if args.held_out else None,
            donor=args.donor,
            device=args.device,
            force=args.force,
            resume=not args.no_resume,
            dry_run=args.dry_run,
            threads=threads(args),
            progress=progress,
        )


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the table that it was decided from, the verdict, and the next command."""
    from rich.table import Table
    from rich.text import Text

    from vocabshift.cli.summary import show_summary

    title = "decide: pilots"
    table = Table(title=Text(title, style="bold"), title_justify="left")
    if result.get("dry_run"):
        for name in ("pilot", "stage", "seconds"):
            table.add_column(name, justify="right" if name == "seconds" else "left")
        for row in result["pilots"]:
            table.add_row(row["pilot"], row["stage"], f"{row['seconds']:,.0f}")
        console.print(table)
        console.print(f"in all: {result['seconds'] / 60:,.1f} minutes on this machine")
        return
    languages = [*result["new"], *result["home"]]
    table.add_column("pilot")
    table.add_column("stage")
    heads = (*languages, "gained in new", "lost at home", "kB", "CPU s")
    for name in heads:
        table.add_column(Text(name), justify="right")
    for row in result["pilots"]:
        is_chosen = row["stage"] == "train" and row["pilot"] == result["recommended"]
        table.add_row(
            row["pilot"],
            row["stage"],
            *(f"{row['bits_per_byte'][name]['value']:.3f}" for name in languages),
            f"{row['gained_in_new']:+.3f}",
            f"{row['lost_at_home']:+.3f}",
            f"{row['n_bytes'] / 1000:,.0f}",
            f"{row['cpu_seconds']:,.0f}",
            style="bold" if is_chosen else None,
        )
    console.print(table)
    facts = {"written to": result["out"], "verdict": result["kind"], "because": result["why"]}
    facts |= {f"left out: {name}": why for name, why in result["left_out"].items()}
    then = result["commands"][0] if result["commands"] else "vocabshift decide with more time"
    show_summary(console, "decide", facts, then)
