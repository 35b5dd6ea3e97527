"""Results: the one table of measurements from which every report is rendered.

Owns the row, its JSON-lines form, how files of it are read, the labels that stand in place of a
language, and the checksums that say which tokenizer and which text a row is about. Knows nothing of
how a value was measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

_FIELDS = ("subject", "language", "metric", "value", "n", "ci_low", "ci_high")
_SOURCES = ("tokenizer_sha256", "text_sha256")

UNLABELLED = "all"
"""The language of rows about text that has no label."""

WHOLE = "all"
"""In place of a language: the subject as a whole, or all languages together. Rows about text
without a label are spelled alike; the metric tells the two apart (`Metric.is_whole`)."""

CODE = "code"
"""The label of program text."""


@dataclass(frozen=True, slots=True)
class Result:
    """One measured value: `metric` of `subject` on `language`."""

    subject: str
    language: str
    metric: str
    value: float  # in the unit of the metric; shares are 0 to 1
    n: int  # the units that the value rests on: lines of text, unless the metric says otherwise
    ci_low: float | None = None  # 95 % confidence interval, where one was computed
    ci_high: float | None = None  # its upper end
    tokenizer_sha256: str | None = field(default=None, compare=False)
    """Of tokenizer.json as `save_pretrained` writes it, where it is known."""
    text_sha256: str | None = field(default=None, compare=False)
    """Of the lines (documents, prompts, questions) of UTF-8, each with a newline; on all languages,
    one after another. None for figures of no text: those of a vocabulary, of numbers, of words with
    their morphemes."""


class Results(tuple[Result, ...]):
    """An immutable list of rows."""

    __slots__ = ()

    def __new__(cls, rows: Iterable[Result] = ()) -> Results:
        """Freeze `rows` in their order."""
        return super().__new__(cls, tuple(rows))

    def __add__(self, other: object) -> Results:
        """Rows of both."""
        if not isinstance(other, tuple):
            return NotImplemented
        return Results((*self, *other))

    def where(
        self,
        *,
        subject: str | None = None,
        language: str | None = None,
        metric: str | None = None,
    ) -> Results:
        """The rows that match every given field."""
        return Results(
            row
            for row in self
            if (subject is None or row.subject == subject)
            and (language is None or row.language == language)
            and (metric is None or row.metric == metric)
        )

    def value(self, subject: str, language: str, metric: str) -> float:
        """The one value for these three; KeyError where there is none or more than one."""
        rows = self.where(subject=subject, language=language, metric=metric)
        if len(rows) != 1:
            raise KeyError(f"{len(rows)} rows for {(subject, language, metric)}, need one")
        return rows[0].value

    def distinct(self, field: str) -> list[str]:
        """Values of "subject", "language" or "metric", in order of first appearance."""
        return list(dict.fromkeys(str(getattr(row, field)) for row in self))

    def to_dicts(self) -> list[dict[str, object]]:
        """Plain dictionaries, as `--json` prints them; without checksums that are not known."""
        return [
            {
                name: value
                for name, value in asdict(row).items()
                if value is not None or name not in _SOURCES
            }
            for row in self
        ]

    def to_jsonl(self) -> str:
        """One JSON object a line."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.to_dicts())

    @classmethod
    def from_jsonl(cls, text: str) -> Results:
        """The inverse of `to_jsonl`."""
        return cls(Result(**json.loads(line)) for line in text.split("\n") if line.strip())

    def save(self, path: str | Path) -> None:
        """Write JSON lines to `path`."""
        Path(path).write_text(self.to_jsonl(), encoding="utf-8")

    def __iter__(self) -> Iterator[Result]:
        """Rows in order."""
        return super().__iter__()


def sha256_of(lines: Iterable[str]) -> str:
    """SHA-256, in hex, of lines of UTF-8, each with a newline after it."""
    digest = sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def with_sources(
    rows: Iterable[Result],
    texts: Mapping[str, Iterable[str]],
    tokenizers: Mapping[str, str | None],
    *,
    apart: Mapping[str, Iterable[str]] | None = None,
) -> Results:
    """The rows with the SHA-256 of their tokenizer, and of the text of their language or else of
    all languages.

    texts: lines by language, as they were measured; each is read twice. `apart`: others, which are
        no part of all. tokenizers: checksums by subject, where they are known.
    """
    own = {label: sha256_of(lines) for label, lines in {**texts, **(apart or {})}.items()}
    everything = sha256_of(chain.from_iterable(texts.values())) if texts else None
    return Results(
        replace(
            row,
            tokenizer_sha256=tokenizers.get(row.subject),
            text_sha256=own.get(row.language, everything),
        )
        for row in rows
    )


def stands_apart(label: str) -> bool:
    """Whether a label is no natural language, and so no part of a mean over languages.

    Code, text without a label, and code-switched pairs ("hi+en").
    """
    return label in (CODE, UNLABELLED, WHOLE) or "+" in label


def averaged(languages: Iterable[str]) -> list[str]:
    """The labels that a mean over languages is of: all of them where none is a language."""
    known = list(languages)
    return [label for label in known if not stands_apart(label)] or known


def read_results(files: Iterable[str | Path]) -> Results:
    """The rows of files that `vocabshift evaluate --output` or `Results.save` wrote, in order.

    A row that is there twice counts once. ValueError names file and line of what is no row, and of
    a row that is there already with another value.
    """
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
        and all(isinstance(row.get(name), str | None) for name in _SOURCES)
    )
    if not is_row:
        raise ValueError(
            f"{where} is no row of results; `vocabshift evaluate --output` writes such files"
        )
    return {name: row.get(name) for name in (*_FIELDS, *_SOURCES)}


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # An int may be larger than any float; NaN is not.
    return is_number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]
