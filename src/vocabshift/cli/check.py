"""`vocabshift check`: can every token be produced, and does every text round-trip?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_threads, add_verb, threads
from vocabshift.cli.source import add_errors, text_of
from vocabshift.cli.subjects import add_pattern
from vocabshift.workflows.tokenizers import CHECKED, FAULTS, advice, check_tokenizers

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 20  # tokens of each kind in the printed list; --json has all


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "check",
        "find tokens that can never be produced, and text that is lost",
        "Check a tokenizer: does every token come back from its own bytes through the merges\n"
        "(self-tokenization test) and through the whole pipeline, and does decoding what was\n"
        "encoded give the text back? With --text also: how near is each language to its ceiling,\n"
        "the bytes per pre-token that no extension can beat?",
        "  vocabshift check ist --strict\n"
        "  vocabshift check ist gpt2 --text hi=hindi.txt --details --json\n",
    )
    parser.add_argument(
        "tokenizers", metavar="TOKENIZER", nargs="+", help="folder, file or Hub name"
    )
    add_many(parser, "--text", metavar="SPEC", help="text to encode and decode as well")
    add_errors(parser)
    add_pattern(parser)
    parser.add_argument("--strict", action="store_true", help="exit with 2 if anything is amiss")
    parser.add_argument("--details", action="store_true", help="list the tokens themselves")
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=status)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Check each tokenizer."""
    entries = check_tokenizers(
        args.tokenizers,
        text_of(args.text, args) if args.text else None,
        pattern=args.pattern,
        details=args.details,
        threads=threads(args),
    )
    return {"tokenizers": entries}


def status(args: argparse.Namespace, result: dict[str, Any]) -> int:
    """2 if --strict is set and a check failed, else 0."""
    return 2 if args.strict and not all(entry["ok"] for entry in result["tokenizers"]) else 0


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print one column per tokenizer, then its text by language; tokens with --details."""
    entries = result["tokenizers"]
    console.print(_counts_table(entries))
    for entry in entries:
        if entry["languages"]:
            console.print(_language_table(entry))
        for line in advice(entry):
            console.print(line, markup=False, soft_wrap=True)
        for key, tokens in entry.get("details", {}).items():
            if tokens and key != "lost_lines":
                _show_list(console, f"{entry['tokenizer']}: {key}", tokens)
        for language, lines in entry.get("details", {}).get("lost_lines", {}).items():
            _show_list(console, f"{entry['tokenizer']}: lines lost, {language}", lines)
    if not args.details and not all(entry["ok"] for entry in entries):
        console.print("next: the same with --details lists the tokens", markup=False)


def _counts_table(entries: list[dict[str, Any]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("check", style="bold"), title_justify="left")
    table.add_column("")
    for entry in entries:
        table.add_column(Text(entry["tokenizer"]), justify="right")
    table.add_column("", style="dim")
    rows = dict(CHECKED)
    if any("model_rows" in entry for entry in entries):
        rows |= {"model_rows": "embedding rows of its model", "missing_rows": "rows it lacks"}
    for key, meaning in rows.items():
        cells = []
        for entry in entries:
            value = entry.get(key)
            is_fault = key in (*FAULTS, "missing_rows") and value
            shown = "–" if value is None else f"{value:,}"
            cells.append(Text(shown, style="red" if is_fault else ""))
        table.add_row(key, *cells, meaning)
    table.add_row("ok", *(_verdict(entry["ok"]) for entry in entries))
    return table


def _language_table(entry: dict[str, Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    title = Text(f"text through {entry['tokenizer']}", style="bold")
    table = Table("language", title=title, title_justify="left")
    columns = ("lines", "lost", "bytes per token", "ceiling", "reached", "repaired ceiling")
    for column in columns:
        table.add_column(column, justify="right")
    for row in entry["languages"]:
        ceiling, lifted = (row[f"{key}ceiling_bytes_per_token"] for key in ("", "repaired_"))
        lost = Text(f"{row['round_trip_failures']:,}")
        lost.stylize("red" if row["round_trip_failures"] else "")
        table.add_row(
            Text(row["language"]),
            f"{row['lines']:,}",
            lost,
            f"{row['bytes_per_token']:.3f}",
            "–" if ceiling is None else f"{ceiling:.2f}",
            "–" if ceiling is None else f"{row['bytes_per_token'] / ceiling:.0%}",
            Text("–" if lifted is None else f"{lifted:.2f}", "bold" if row["is_bound"] else ""),
        )
    return table


def _show_list(console: Console, title: str, values: list[Any]) -> None:
    listed = " ".join(map(repr, values[:_SHOWN]))
    more = f" and {len(values) - _SHOWN:,} more" if len(values) > _SHOWN else ""
    console.print(f"{title}: {listed}{more}", markup=False, soft_wrap=True)


def _verdict(ok: bool) -> Any:
    from rich.text import Text

    return Text("yes", style="green") if ok else Text("no", style="bold red")
