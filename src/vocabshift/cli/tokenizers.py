"""The verbs that look into tokenizers: `vocabshift check` and `compare`.

Can every token be produced, does every text round-trip, and which runtimes give the same ids? What
changes in real text between two of them?
"""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_errors, add_pattern, defaults_of, text_of
from vocabshift.cli.options import UsageError, add_many, add_threads, add_verb, positive, threads
from vocabshift.workflows.compare import compare_to_file, runtime_matrix, runtime_notes
from vocabshift.workflows.tokenizers import (
    CHECKED,
    FAULTS,
    RUNTIME_NAMES,
    advice,
    check_tokenizers,
)

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 20  # tokens of each kind in the printed list; --json has all


def add_check(subparsers: Any) -> None:
    """Add the verb `check`."""
    parser = add_verb(
        subparsers,
        "check",
        "find tokens that can never be produced, and text that is lost",
        "Check a tokenizer: does every token come back from its own bytes through the merges\n"
        "(self-tokenization test) and through the whole pipeline, and does decoding what was\n"
        "encoded give the text back? With --text also: how near is each language to its ceiling,\n"
        "the bytes per pre-token that no extension can beat? With --runtimes: does every library\n"
        "that is to serve the tokenizer give our ids? Each runs in a process of its own, on texts\n"
        f"of ours in all scripts and on --text. Known are:\n{_known_runtimes()}",
        "  vocabshift check ist gpt2 --strict --text hi=hindi.txt --details --json\n"
        "  vocabshift check ist matra --runtimes kitoken,pytorch-tokenizers --markdown\n",
    )
    parser.add_argument(
        "tokenizers", metavar="TOKENIZER", nargs="+", help="folder, file or Hub name"
    )
    add_many(parser, "--text", metavar="SPEC", help="text to encode and decode as well")
    add_errors(parser)
    add_pattern(parser)
    parser.add_argument(
        "--runtimes",
        metavar="all|NAME[,NAME...]",
        help="compare the ids that these libraries give with ours; all: those that are installed",
    )
    parser.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=positive,
        help="for one runtime to open the tokenizer and encode all texts (default: "
        f"{defaults_of(check_tokenizers)['time_limit']:g})",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print the runtimes as a Markdown table, no more"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 2 if anything is amiss")
    parser.add_argument("--details", action="store_true", help="list the tokens themselves")
    add_threads(parser)
    parser.set_defaults(run=run_check, show=show_check, status=status_check)


def run_check(args: argparse.Namespace) -> dict[str, Any]:
    """Check each tokenizer."""
    for flag in ("markdown", "time_limit"):
        if getattr(args, flag) and not args.runtimes:
            raise UsageError(f"--{flag.replace('_', '-')} is about runtimes; give --runtimes too")
    if args.markdown and args.json:
        raise UsageError("--markdown and --json are two forms of the result; give one")
    limit = {} if args.time_limit is None else {"time_limit": args.time_limit}
    entries = check_tokenizers(
        args.tokenizers,
        text_of(args.text, args) if args.text else None,
        pattern=args.pattern,
        details=args.details,
        runtimes=args.runtimes,
        threads=threads(args),
        **limit,
    )
    return {"tokenizers": entries}


def status_check(args: argparse.Namespace, result: dict[str, Any]) -> int:
    """2 if --strict is set and a check failed, else 0."""
    return 2 if args.strict and not all(entry["ok"] for entry in result["tokenizers"]) else 0


def show_check(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print one column per tokenizer, then its text by language; tokens with --details."""
    entries = result["tokenizers"]
    if args.markdown:
        console.print(runtime_matrix(entries), markup=False, soft_wrap=True)
        return
    console.print(_counts_table(entries))
    for entry in entries:
        if entry["languages"]:
            console.print(_language_table(entry))
        if "runtimes" in entry:
            console.print(_runtime_table(entry))
            for line in runtime_notes(entry["runtimes"]):
                console.print(line, markup=False, soft_wrap=True)
        for line in advice(entry):
            console.print(line, markup=False, soft_wrap=True)
        for key, tokens in entry.get("details", {}).items():
            if tokens and key != "lost_lines":
                _show_list(console, f"{entry['tokenizer']}: {key}", tokens)
        for language, lines in entry.get("details", {}).get("lost_lines", {}).items():
            _show_list(console, f"{entry['tokenizer']}: lines lost, {language}", lines)
    has_faults = any(entry[key] for entry in entries for key in FAULTS)
    if has_faults and not args.details and not all(entry["ok"] for entry in entries):
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


def _known_runtimes() -> str:
    return textwrap.fill(", ".join(RUNTIME_NAMES), 84, break_on_hyphens=False) + "."


def _runtime_table(entry: dict[str, Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    title = Text(f"runtimes that open {entry['tokenizer']}", style="bold")
    table = Table("runtime", "version", "verdict", title=title, title_justify="left")
    for column in ("texts", "other ids", "lost"):
        table.add_column(column, justify="right")
    for row in entry["runtimes"]:
        style = "red" if row["is_fault"] else "green" if row["status"] == "ok" else "dim"
        counts = [f"{row[key]:,}" if row["texts"] else "–" for key in _RUNTIME_COUNTS]
        verdict = Text(row["status"], style)
        table.add_row(Text(row["label"]), Text(row["version"] or "–"), verdict, *counts)
    return table


_RUNTIME_COUNTS = ("texts", "differing", "lost")


def add_compare(subparsers: Any) -> None:
    """Add the verb `compare`."""
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
    parser.set_defaults(run=run_compare, show=show_compare, status=lambda *_: 0)


def run_compare(args: argparse.Namespace) -> dict[str, Any]:
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


def show_compare(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the tables, and lines with token boundaries marked by colours or, without, by signs."""
    from vocabshift.workflows.compare import comparison_tables

    plain = console.no_color or console.color_system is None
    for part in comparison_tables(args.comparison, plain=plain, ascii_only=args.ascii):
        console.print(part)
    if result["html"]:
        console.print(f"written: {result['html']}", markup=False, soft_wrap=True)
