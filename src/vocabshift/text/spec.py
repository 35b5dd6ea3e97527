"""SPEC: how a corpus is named on the command line.

    [lang=]PATH|DIR|GLOB|URI|hf:DATASET[:CONFIG[:SPLIT[:COLUMN]]][@WEIGHT]

A URI such as `s3a://bucket/hindi/*.parquet` is read by an engine (`count --engine spark`). It and a
local file may name their column too, `articles.jsonl:body`, and so may a folder or a glob whose
files all have columns. `-` is standard input (the file of that name is `./-`).

**An existing path wins.** `=`, `@` and `:` may be part of a path. The parser tries readings with as
few marks as possible first, and takes the first whose path exists or whose glob matches. So
`a=b.txt` is the file `a=b.txt` if it exists, and otherwise `b.txt` in language `a`. Only a column
name cannot contain `@`. Nothing is guessed: without `lang=` the language is None, whatever the
names of files and folders are.

Owns the grammar; opens nothing and knows nothing of formats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from vocabshift.errors import CorpusError
from vocabshift.text import files

STANDARD_INPUT = "-"
_HUB = "hf:"
_REMOTE = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Local:
    """A path, a folder or a glob; it exists."""

    place: str
    column: str | None = None  # None: `text`


@dataclass(frozen=True, slots=True)
class Remote:
    """Files in the storage of a cluster, which its engine reads."""

    uri: str  # may be a folder or a glob
    column: str | None = None  # None: `text`


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A data set of the Hugging Face Hub."""

    name: str
    config: str | None = None
    split: str = "train"
    column: str = "text"

    def __str__(self) -> str:
        return f"{_HUB}{self.name}:{self.config or ''}:{self.split}:{self.column}"


@dataclass(frozen=True, slots=True)
class StandardInput:
    """Text lines from standard input."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec."""

    place: Local | Remote | HubDataset | StandardInput
    language: str | None = None
    weight: float = 1.0


def parse_spec(spec: str) -> Spec:
    """Parse `spec`; the module docstring has the grammar.

    Raises CorpusError if no reading has an existing path. Raises ValueError for an empty label,
    path or data set name, and for a weight that is not a finite number above 0.
    """
    if not isinstance(spec, str):
        raise TypeError(f"a SPEC is a str, not {type(spec).__name__}; for paths use from_files")
    for language, rest in _with_and_without_language(spec):
        for body, weight in _with_and_without_weight(rest):
            if body != STANDARD_INPUT and files.exists(body):
                if language is not None:
                    check_label(language)
                return Spec(Local(body), language, check_weight(weight, spec))

    *_, (language, rest) = _with_and_without_language(spec)
    *_, (body, tail) = _with_and_without_weight(rest)
    weight = check_weight(tail, spec)
    if language is not None:
        check_label(language)
    if not body:
        raise ValueError(f"{spec!r} names no path; write [lang=]PATH[@WEIGHT]")
    if body == STANDARD_INPUT:
        return Spec(StandardInput(), language, weight)
    if body.startswith(_HUB):
        return Spec(_hub_dataset(body, spec), language, weight)
    if _REMOTE.match(body):
        return Spec(_remote(body), language, weight)
    for label, rest in _with_and_without_language(spec):
        *_, (body, _) = _with_and_without_weight(rest)
        local = _with_column(body)
        if local is not None:
            return Spec(local, label, weight)
    read_as = "" if body == spec else f" (the path in {spec!r})"
    raise CorpusError(f"{body}: no such file, folder or match{read_as}; check the path")


def check_weight(weight: str | float, of: str) -> float:
    """`weight` as a finite number above 0, or ValueError; `of` names its owner in the message."""
    try:
        value = float(weight)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError(
            f"{of!r}: weight {weight!r} is not a finite number above 0; write for example @2 or "
            "@0.5 (a path with @ in it must exist)"
        )
    return value


def check_label(language: object) -> str:
    """`language` if it can be a label (any text that is not blank), else ValueError."""
    if not isinstance(language, str):
        raise TypeError(f"a language is a str, not {type(language).__name__}")
    if not language.strip():
        raise ValueError("a language label is blank; write for example hin=hindi.txt")
    if any("\ud800" <= character <= "\udfff" for character in language):
        raise ValueError(f"the language label {language!r} is not UTF-8; write for example hin")
    return language


def _with_and_without_language(spec: str) -> Iterator[tuple[str | None, str]]:
    yield None, spec
    label, equals, rest = spec.partition("=")
    if equals and not spec.startswith(_HUB) and not _REMOTE.match(spec):
        yield label, rest


def _with_and_without_weight(rest: str) -> Iterator[tuple[str, str | float]]:
    yield rest, 1.0
    body, at, weight = rest.rpartition("@")
    if at and "/" not in weight:
        yield body, weight


def _with_column(body: str) -> Local | None:
    colon = body.rfind(":")
    while colon > 0:
        if files.exists(body[:colon]) and body[colon + 1 :]:
            return Local(body[:colon], body[colon + 1 :])
        colon = body.rfind(":", 0, colon)
    return None


def _remote(body: str) -> Remote:
    folder, slash, name = body.rpartition("/")
    name, _, column = name.partition(":")
    return Remote(folder + slash + name, column or None)


def _hub_dataset(body: str, spec: str) -> HubDataset:
    name, *more = body.removeprefix(_HUB).split(":")
    if not name or len(more) > 3:
        raise ValueError(f"{spec!r}: write hf:DATASET[:CONFIG[:SPLIT[:COLUMN]]]")
    config, split, column = (*more, "", "", "")[:3]
    return HubDataset(name, config or None, split or "train", column or "text")
