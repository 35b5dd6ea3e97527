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
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TextIO

from vocabshift.errors import VocabshiftWarning, printable
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
    return _console(sys.stdout, None if sys.stdout.isatty() else PIPE_WIDTH)


def stderr() -> Console:
    """The console for bars."""
    return _console(sys.stderr, None)


def _console(file: TextIO, width: int | None) -> Console:
    """A console that shows names and tokens, which may come from anybody, as they are: nothing in
    them is markup, and control characters are spelled out (a table may cut such a name)."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Plain(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text), style, control)

    return Plain(file=file, width=width, highlight=False, markup=False, emoji=False)


def visible(text: str) -> str:
    """`text` with control characters spelled out, so that a terminal obeys none of them; tabs and
    ends of lines stay. Half characters are spelled out too: no stream takes them."""
    if text.isprintable():
        return text
    hidden = {c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs")}
    return text.translate({ord(c): repr(c)[1:-1] for c in hidden})


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
    sys.stderr.write(f"vocabshift: {visible(message)}\n")


def print_text(text: str) -> None:
    """Print lines to be pasted on stderr."""
    sys.stderr.write(f"{visible(text)}\n\n" if text else "")


@contextmanager
def progress_bar(*, in_bytes: bool = False, unit: str = "") -> Iterator[Progress]:
    """Show progress on stderr, with its rate and the time left: a bar for each phase on a terminal.

    Elsewhere (a log file, a pipe) a plain line every LINE_SECONDS. `in_bytes`: progress is reported
    in bytes, so show MB and MB/s. `unit`: what is counted otherwise, such as "tokens".
    """
    console = stderr()
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

    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False), BarColumn()]
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
    # Of each phase: when it began and what was done by then; what is done, of how much.
    phases: dict[str, tuple[float, int, int, int | None]] = {}
    last_line = time.monotonic()

    def report(phase: str, done: int, total: int | None = None) -> None:
        nonlocal last_line
        now = time.monotonic()
        began, first, before, whole = phases.get(phase, (now, done, done, total))
        if done < before or total != whole:  # other work under the same name
            began, first = now, done
        phases[phase] = began, first, done, total
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


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Let a warning of vocabshift be a line of text on stderr, once, without its place in the code.

    Python's way of printing is one for all threads: call it in the main one.
    """
    as_python = warnings.formatwarning
    told: set[str] = set()

    def formatted(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        if not issubclass(category, VocabshiftWarning):
            return as_python(message, category, filename, lineno, line)
        text = f"vocabshift: warning: {visible(str(message))}\n"
        is_new = text not in told
        told.add(text)
        return text if is_new else ""

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = as_python


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
    return printable(" ".join("; ".join([message, *notes]).split()))


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
