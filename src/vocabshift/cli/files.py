"""RESULTS arguments: files that `vocabshift evaluate --output` wrote, read as one table.

Owns how a bad row is told (file and line) and what happens to rows that are there twice: once is
enough where they agree, and an error where they do not. Knows nothing of metrics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabshift.results import Results

_FIELDS = ("subject", "language", "metric", "value", "n", "ci_low", "ci_high")


def read_results(files: Iterable[str | Path]) -> Results:
    """The rows of all files, in order; ValueError names the line of what is no row."""
    from vocabshift.results import Result, Results

    rows: dict[tuple[str, str, str], Result] = {}
    for file in files:
        try:
            lines = Path(file).read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is not UTF-8: {error}") from None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{file}, line {number}"
            row = Result(**_checked(line, where))
            key = (row.subject, row.language, row.metric)
            if rows.setdefault(key, row) != row:
                raise ValueError(
                    f"{where}: {row.metric} of {row.subject} on {row.language} is there already "
                    "with another value; give the files of one evaluation"
                )
    return Results(rows.values())


def _checked(line: str, where: str) -> dict[str, Any]:
    """The fields of a row, each of its type."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    is_row = (
        isinstance(row, dict)
        and all(isinstance(row.get(name), str) for name in _FIELDS[:3])
        and all(_is_number(row.get(name)) for name in ("value", "n"))
        and all(row.get(name) is None or _is_number(row[name]) for name in _FIELDS[5:])
    )
    if not is_row:
        raise ValueError(
            f"{where} is no row of results; `vocabshift evaluate --output` writes such files"
        )
    return {name: row.get(name) for name in _FIELDS}


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]
