"""`vocabshift check`: can every token be produced, and is no text lost?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_verb
from vocabshift.cli.tokenizers import add_pattern, load_all

if TYPE_CHECKING:
    from rich.console import Console

COUNTS = (
    "vocab_size",
    "unreachable",
    "unreachable_by_pipeline",
    "byte_pieces",
    "partial_utf8",
    "superwords",
    "terminal_spanning",
    "round_trip_failures",
)

_FAULTS = ("unreachable", "unreachable_by_pipeline", "terminal_spanning", "round_trip_failures")
_SHOWN = 20  # tokens of each kind that people see; --json has all of them


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "check",
        "find tokens that can never be produced, and text that is lost",
        "Check a tokenizer: does every token come back from its own bytes through the merges\n"
        "(self-tokenization test) and through the whole pipeline, and does decoding what was\n"
        "encoded give the text back?",
        "  vocabshift check ist --strict\n"
        "  vocabshift check ist gpt2 --text hi=hindi.txt --details --json\n",
    )
    parser.add_argument(
        "tokenizers", metavar="TOKENIZER", nargs="+", help="folder, file or Hub name"
    )
    add_many(parser, "--text", metavar="SPEC", help="text to encode and decode as well")
    add_pattern(parser)
    parser.add_argument("--strict", action="store_true", help="exit with 2 if anything is amiss")
    parser.add_argument("--details", action="store_true", help="list the tokens themselves")
    parser.set_defaults(run=run, show=show, status=status)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Check each tokenizer."""
    from vocabshift.bpe.check import check
    from vocabshift.text.corpus import Corpus

    corpus = Corpus.from_specs(args.text) if args.text else None
    entries = []
    loaded = load_all(args.tokenizers, args.pattern)
    for source, tokenizer in zip(args.tokenizers, loaded, strict=True):
        report = check(tokenizer, corpus)
        entry = {"tokenizer": source, **{key: _count(getattr(report, key)) for key in COUNTS}}
        entry["ok"] = bool(report.ok)
        if args.details:
            entry["details"] = {
                key: list(getattr(report, key)) for key in COUNTS if not _is_int(report, key)
            }
        entries.append(entry)
    return {"tokenizers": entries}


def status(args: argparse.Namespace, result: dict[str, Any]) -> int:
    """2 with --strict where anything is amiss, else 0."""
    return 2 if args.strict and not all(entry["ok"] for entry in result["tokenizers"]) else 0


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """One column for each tokenizer; the tokens below with --details."""
    from rich.table import Table
    from rich.text import Text

    entries = result["tokenizers"]
    table = Table(title=Text("check", style="bold"), title_justify="left")
    table.add_column("")
    for entry in entries:
        table.add_column(Text(entry["tokenizer"]), justify="right")
    for key in COUNTS:
        cells = []
        for entry in entries:
            is_fault = key in _FAULTS and entry[key] > 0 and not entry["ok"]
            cells.append(Text(f"{entry[key]:,}", style="red" if is_fault else ""))
        table.add_row(key, *cells)
    table.add_row("ok", *(_verdict(entry["ok"]) for entry in entries))
    console.print(table)
    for entry in entries:
        for key, tokens in entry.get("details", {}).items():
            if tokens:
                listed = " ".join(map(repr, tokens[:_SHOWN]))
                more = f" and {len(tokens) - _SHOWN:,} more" if len(tokens) > _SHOWN else ""
                line = f"{entry['tokenizer']}: {key}: {listed}{more}"
                console.print(line, markup=False, soft_wrap=True)
    if not args.details and not all(entry["ok"] for entry in entries):
        console.print("next: the same with --details lists the tokens", markup=False)


def _verdict(ok: bool) -> Any:
    from rich.text import Text

    return Text("yes", style="green") if ok else Text("no", style="bold red")


def _count(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def _is_int(report: Any, key: str) -> bool:
    return isinstance(getattr(report, key), int)
