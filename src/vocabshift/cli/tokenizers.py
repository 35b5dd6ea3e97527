"""The verbs that look into tokenizers: `vocabshift check`, `compare` and `serve`.

Can every token be produced, and does every text round-trip? What changes in real text between two
of them? And the playground, a local page that shows how they split text.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_errors, add_pattern, defaults_of, text_of
from vocabshift.cli.options import UsageError, add_many, add_threads, add_verb, positive, threads
from vocabshift.workflows.compare import compare_to_file
from vocabshift.workflows.tokenizers import (
    CHECKED,
    FAULTS,
    advice,
    check_tokenizers,
    load_named,
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
    parser.set_defaults(run=run_check, show=show_check, status=status_check)


def run_check(args: argparse.Namespace) -> dict[str, Any]:
    """Check each tokenizer."""

    entries = check_tokenizers(
        args.tokenizers,
        text_of(args.text, args) if args.text else None,
        pattern=args.pattern,
        details=args.details,
        threads=threads(args),
    )
    return {"tokenizers": entries}


def status_check(args: argparse.Namespace, result: dict[str, Any]) -> int:
    """2 if --strict is set and a check failed, else 0."""
    return 2 if args.strict and not all(entry["ok"] for entry in result["tokenizers"]) else 0


def show_check(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
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


MOST_TOKENIZERS = 12
SAMPLE_LINES = 3
SEVERAL_SCRIPTS = ("hin", "tam", "mal", "urd", "sat", "eng")


def add_serve(subparsers: Any) -> None:
    """Add the verb `serve`."""
    parser = add_verb(
        subparsers,
        "serve",
        "a local page: type, and see the tokens of several tokenizers",
        "Open a page in the browser where you type and see how several tokenizers cut the text:\n"
        "coloured tokens, counts, ids, bytes, and how BPE built a token, merge by merge. Nothing\n"
        "leaves this machine: the page is served on 127.0.0.1 alone. Ctrl-C ends it. Needs the\n"
        "[serve] extra. With --json the address and the process id are printed as one object,\n"
        "and no browser is opened.",
        "  vocabshift serve ist meta-llama/Llama-3.2-1B\n"
        "  vocabshift serve ist qwen/tokenizer.json --port 8017 --no-browser\n",
    )
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+", help="folder, file, Hub name")
    parser.add_argument(
        "--port", metavar="N", type=_port, default=0, help="port (default: 0, any that is free)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_pattern(parser)
    parser.set_defaults(run=run_serve, show=show_serve, status=status_serve)


def run_serve(args: argparse.Namespace) -> dict[str, Any]:
    """Load the tokenizers and bind the address; `status` serves once the address is printed."""
    from vocabshift import open_playground
    from vocabshift.demo.story import beginnings

    if len(args.tokenizers) > MOST_TOKENIZERS:
        raise UsageError(f"the page has room for {MOST_TOKENIZERS} tokenizers; name fewer")
    tokenizers = load_named(args.tokenizers, pattern=args.pattern)
    texts = beginnings(SAMPLE_LINES)
    several = "\n".join(texts[language][0] for language in SEVERAL_SCRIPTS)
    args.server = open_playground(tokenizers, texts, several=several, port=args.port)
    return {"url": args.server.url, "pid": os.getpid(), "tokenizers": list(tokenizers)}


def show_serve(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the address of the page."""
    from rich.text import Text

    console.print(Text(result["url"], style="bold"), soft_wrap=True)
    console.print(Text(f"{', '.join(result['tokenizers'])}; Ctrl-C ends it"), soft_wrap=True)


def status_serve(args: argparse.Namespace, _result: dict[str, Any]) -> int:
    """Serve until interrupted, which is the normal way to stop: returns 0."""
    sys.stdout.flush()  # the caller is waiting for the address
    args.server.run(open_browser=not (args.no_browser or args.json) and _has_display())
    return 0


def _has_display() -> bool:
    """Whether there is a display; without one Python may start a browser in the terminal."""
    if sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _port(text: str) -> int:
    """Parse a port number, as argparse's `type`."""
    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)
