"""Terminal output: one JSON object or tables on stdout, everything else on stderr.

Owns the two streams, progress bars and the wording of errors. Knows nothing of any verb. Imports
rich on first use, so that `--help` stays fast.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vocabshift.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, where rich would assume 80 and cut."""

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
def progress_bar(*, in_bytes: bool = False) -> Iterator[Progress]:
    """Show a progress bar on stderr for each phase; silent if stderr is not a terminal.

    `in_bytes`: progress is reported in bytes, so show MB and MB/s.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bars

    console = Console(file=sys.stderr)
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()),
        *((DownloadColumn(), TransferSpeedColumn()) if in_bytes else ()),
    )
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def report(phase: str, done: int, total: int | None = None) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total)
            bars.update(tasks[phase], completed=done, total=total)

        yield report


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
