"""Terminal output: one JSON object or tables on stdout, everything else on stderr.

Owns the two streams, progress bars and the wording of errors. Knows nothing of any verb. Imports
rich on first use, so that `--help` stays fast.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from vocabshift.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, where rich would assume 80 and cut."""

LINE_SECONDS = 30.0
"""Between two lines of progress where stderr is no terminal."""

_RATE_SECONDS = 300.0  # a batch of a slow model takes seconds: rate and time left need several
_REPORT = "this is a fault of vocabshift: please report it with the lines that --traceback shows"


def stdout() -> Console:
    """The console for tables and summaries."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line; escape characters that stdout cannot encode."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(value, allow_nan=False)
    sys.stdout.write(text + "\n")


def print_line(message: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(f"vocabshift: {message}\n")


@contextmanager
def progress_bar(*, in_bytes: bool = False, unit: str = "") -> Iterator[Progress]:
    """Show progress on stderr, with its rate and the time left: a bar for each phase on a terminal.

    Elsewhere (a log file, a pipe) a plain line every LINE_SECONDS. `in_bytes`: progress is reported
    in bytes, so show MB and MB/s. `unit`: what is counted otherwise, such as "tokens".
    """
    from rich.console import Console

    console = Console(file=sys.stderr)
    if console.is_terminal:
        with _bars(console, in_bytes=in_bytes, unit=unit) as report:
            yield report
    else:
        yield _lines("bytes" if in_bytes else unit)


@contextmanager
def _bars(console: Console, *, in_bytes: bool, unit: str) -> Iterator[Progress]:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            rate = task.finished_speed or task.speed
            return Text(_rate(rate, unit) if rate else "")

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
    columns += [TimeElapsedColumn(), TimeRemainingColumn()]
    columns += [DownloadColumn(), TransferSpeedColumn()] if in_bytes else []
    columns += [Rate()] if unit else []
    with Bars(*columns, console=console, speed_estimate_period=_RATE_SECONDS) as bars:
        tasks: dict[str, Any] = {}

        def report(phase: str, done: int, total: int | None = None) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total)
            bars.update(tasks[phase], completed=done, total=total)

        yield report


def _lines(unit: str) -> Progress:
    """A report that prints a line when the last one is LINE_SECONDS ago."""
    begun: dict[str, tuple[float, int]] = {}  # of each phase: the time and what was done by then
    last_line = time.monotonic()

    def report(phase: str, done: int, total: int | None = None) -> None:
        nonlocal last_line
        now = time.monotonic()
        began, first = begun.setdefault(phase, (now, done))
        if now - last_line < LINE_SECONDS:
            return
        last_line = now
        rate = (done - first) / (now - began) if now > began else 0.0
        of = "" if total is None else f" of {total:,}"
        parts = [f"{phase}: {done:,}{of}{unit and ' '}{unit}"]
        if rate:
            parts.append(_rate(rate, unit))
        if rate and total is not None:
            parts.append(f"{timedelta(seconds=round((total - done) / rate))} left")
        print_line(", ".join(parts))

    return report


def _rate(rate: float, unit: str) -> str:
    return f"{rate:,.{0 if rate >= 10 else 1}f}{unit and ' '}{unit}/s"


def show_summary(console: Console, title: str, facts: Mapping[str, Any], then: str) -> None:
    """Print a summary: the figures, the output path and the next command."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in facts.items():
        table.add_row(Text(name), Text(f"{value:,}" if isinstance(value, int) else str(value)))
    console.print(table)
    console.print(Text.assemble("next: ", (then, "bold")), soft_wrap=True)


def file_facts(result: Mapping[str, Any]) -> dict[str, str]:
    """What a summary says about the files of a model: what was done with them or why not."""
    groups: dict[str, list[str]] = {}
    for name, done in sorted(result["files"].items()):
        groups.setdefault(f"files: {done}", []).append(name)
    for name, reason in sorted(result["left_out"].items()):
        groups.setdefault(f"left out: {reason}", []).append(name)
    return {what: ", ".join(names) for what, names in groups.items()}


def show_deployable(console: Console, chosen: Mapping[str, Any]) -> None:
    """Print the patterns of llama.cpp from the highest ceiling down, the chosen one in bold."""
    from rich.table import Table
    from rich.text import Text

    title = Text("patterns of llama.cpp: ceiling in bytes per token", style="bold")
    table = Table(title=title, title_justify="left")
    rows = chosen["candidates"]
    for name in ("pattern", "all", *rows[0]["ceilings"], "ids changed", "refused because"):
        table.add_column(Text(name))
    for row in rows:
        changed = f"{row['changed_tokens']:.2%}" if row["documents"] else "-"
        table.add_row(
            row["name"],
            f"{row['ceiling_bytes_per_token']:.2f}",
            *(f"{ceiling:.2f}" for ceiling in row["ceilings"].values()),
            changed,
            row["refused"],
            style="bold" if row["name"] == chosen["llama_cpp_pre"] else None,
        )
    console.print(table)
    if chosen["nearest"] and not chosen["is_named"]:
        near = next(row for row in rows if row["name"] == chosen["nearest"])
        console.print(
            f"{near['name']} has the ceiling {near['ceiling_bytes_per_token']:.2f} but "
            f"{near['refused']}. --pre-tokenizer {near['name']} takes it all the same.",
            soft_wrap=True,
        )


def deployable_facts(result: Mapping[str, Any]) -> dict[str, str]:
    """The row of a summary that names the chosen pattern; empty where none was asked for."""
    chosen = result.get("deployable")
    return {"pattern of llama.cpp": chosen["llama_cpp_pre"]} if chosen else {}


def lost_facts(result: Mapping[str, Any]) -> dict[str, str]:
    """What a summary says about characters that a tokenizer loses; nothing where it lacks none."""
    lost = result.get("lost_characters")
    if not lost:
        return {}
    facts = {}
    if lost["bytes_added"]:
        facts["bytes added"] = " ".join(lost["bytes_added"])
    if lost["before"] or lost["after"]:
        more = ", …" if lost["after"] > len(lost["names"]) else ""
        named = f" ({', '.join(lost['names'])}{more})" if lost["names"] else ""
        facts["assigned characters lost"] = (
            f"{lost['before']:,} before, {lost['after']:,} after{named}"
        )
    return facts


_HOW = {
    "present": "already one token",
    "merges": "merges",
    "entry": "vocabulary entry",
    "added": "added token",
    "refused": "not added",
}
MOST_WORDS = 40


def show_names(console: Console, result: Mapping[str, Any]) -> dict[str, Any]:
    """Print what became of words and special tokens, and the cost; return facts for the summary.

    Words that are already one token are only counted; of more than MOST_WORDS the first are shown.
    """
    from rich.table import Table
    from rich.text import Text

    words, by_name = result["words"], result["by_name"]
    shown = [row for row in words if row["how"] != "present"]
    is_measured = any("other_tokens_changed" in row for row in shown)
    if shown:
        table = Table(title=Text("words", style="bold"), title_justify="left")
        table.add_column("word")
        table.add_column("how")
        columns = ("tokens alone", "after a space", "new tokens")
        for name in (*columns, *(("changed in other words",) if is_measured else ())):
            table.add_column(name, justify="right")
        table.add_column("why")
        for row in shown[:MOST_WORDS]:
            table.add_row(
                Text(row["word"]),
                _HOW[row["how"]],
                f"{row['alone_before']} -> {row['alone']}",
                f"{row['spaced_before']} -> {row['spaced']}",
                str(len(row["new_tokens"])),
                *((f"{row['other_tokens_changed']:,}",) if is_measured else ()),
                Text(row["reason"]),
            )
        console.print(table)
        if len(shown) > MOST_WORDS:
            console.print(f"and {len(shown) - MOST_WORDS:,} more (--json lists all)")
    facts: dict[str, Any] = {"of them by name": by_name["n_added"]}
    counts = Counter(row["how"] for row in words)
    facts |= {f"words, {_HOW[how]}": counts[how] for how in _HOW if counts[how]}
    if by_name["n_between"]:
        facts["tokens in between, for merges alone"] = by_name["n_between"]
    for row in by_name["effects"]:
        share = row["other_tokens"] / max(row["tokens"], 1)
        facts[f"changed in other words, {row['language']}"] = (
            f"{row['other_tokens']:,} of {row['tokens']:,} tokens ({share:.3%})"
        )
    for row in result["special_tokens"]:
        what = f", {row['role']}" if row["role"] else ""
        about = f": {row['description']}" if row["description"] else ""
        facts[f"special token {row['token']}"] = f"{row['how']}, id {row['id']}{what}{about}"
    return facts


def report_error(error: BaseException, *, with_traceback: bool) -> int:
    """Print the error as one line on stderr; return the exit status."""
    if with_traceback or os.environ.get("VOCABSHIFT_TRACEBACK", "0") not in ("", "0"):
        traceback.print_exception(error)
    status = exit_status(error)
    if status == 130:
        print_line("; ".join(["interrupted", *getattr(error, "__notes__", ())]))
    elif status == 2:
        print_line(f"error: {describe(error)}")
    else:
        print_line(f"error: {type(error).__name__}: {describe(error)}; {_REPORT}")
    return status


def exit_status(error: BaseException) -> int:
    """2 for bad arguments or input, 130 for Ctrl-C, 1 for an internal error."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    # OSError: missing, existing or unreadable files, full disks, unknown Hub names.
    is_expected = isinstance(error, ValueError | OSError)
    return 2 if is_expected or missing_extra(error) or _says_what_to_install(error) else 1


def _says_what_to_install(error: BaseException) -> bool:
    """Whether this is our own ImportError, which already names the extra or package."""
    return isinstance(error, ImportError) and "pip install" in str(error)


def describe(error: BaseException) -> str:
    """The message of an error on one line, without control characters."""
    extra = missing_extra(error)
    if extra and isinstance(error, ImportError) and not _says_what_to_install(error):
        return f"{error.name} is not installed; run: pip install 'vocabshift[{extra}]'"
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        message = where + error.strerror
    else:
        message = str(error) or type(error).__name__
    notes = getattr(error, "__notes__", ())  # how to resume, if checkpoints were kept
    line = " ".join("; ".join([message, *notes]).split())
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def missing_extra(error: BaseException) -> str | None:
    """The extra of vocabshift that provides the package that failed to import."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    extras = {
        "torch": "hf",
        "transformers": "hf",
        "accelerate": "hf",
        "jinja2": "hf",
        "gguf": "gguf",
        "huggingface_hub": "hf",
        "pyarrow": "data",
        "datasets": "data",
        "matplotlib": "plots",
        "starlette": "serve",
        "uvicorn": "serve",
    }
    return extras.get(package)
