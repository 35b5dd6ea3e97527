"""The part of a card that is not measured: how a tokenizer was made, and from which text.

Owns the reading of `vocabshift.json`, of the tokenizer's checksum and of tables of sources, each
into a typed value that can be kept as JSON; and the part of the card about its training text.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.report.table_formats import escape_markdown
from vocabshift.storage import outcome

TOKENIZER_FILE = "tokenizer.json"
SOURCE_COLUMNS = ("source", "bytes", "class", "licence")

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """How a tokenizer folder came about, and which bytes it is."""

    name: str
    version: str  # of vocabshift
    operation: str  # the verb that wrote it
    config: Mapping[str, Any]
    config_hash: str
    corpus_fingerprint: str | None
    figures: Mapping[str, Any]
    sha256: str  # of tokenizer.json
    n_bytes: int  # of tokenizer.json

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TokenizerFacts:
        """The inverse of `to_dict`; ValueError for what is none."""
        kinds = {"config": dict, "figures": dict, "n_bytes": int}
        for field in fields(cls):
            value = values.get(field.name)
            may_lack = field.name == "corpus_fingerprint" and value is None
            if not isinstance(value, kinds.get(field.name, str)) and not may_lack:
                raise ValueError(f"{field.name} is {value!r}; that is no record of a tokenizer")
        return cls(**{field.name: values.get(field.name) for field in fields(cls)})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Source:
    """One source of one language's text."""

    language: str
    source: str
    licence: str
    licence_class: str
    n_bytes: int


def read_facts(folder: str | Path) -> TokenizerFacts:
    """The facts of a folder that `vocabshift` wrote; InvalidTokenizerError for any other."""
    path = Path(folder)
    record = path / outcome.FILE
    if not (path / TOKENIZER_FILE).is_file() or not record.is_file():
        raise InvalidTokenizerError(
            f"{path} needs {TOKENIZER_FILE} and {outcome.FILE}, as `vocabshift train` writes "
            "them: a card says how a tokenizer came about"
        )
    try:
        values = json.loads(record.read_text(encoding="utf-8"))
        own = {"name": path.resolve().name, "sha256": sha256_of(path / TOKENIZER_FILE)}
        own["n_bytes"] = (path / TOKENIZER_FILE).stat().st_size  # type: ignore[assignment]
        return TokenizerFacts.from_dict({**values, **own})
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidTokenizerError(f"{record} cannot be read: {error}") from None


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def read_sources(file: str | Path) -> list[Source]:
    """The sources of one language's text, from a table with tabs and the columns above.

    A column `language` names the language; without it the file's name does, up to its first dot:
    `hi.sources.tsv`. ValueError names the line that is wrong.
    """
    path = Path(file)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from None
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    lacking = [name for name in SOURCE_COLUMNS if name not in (rows.fieldnames or ())]
    if lacking:
        raise ValueError(f"{path} has no column {lacking[0]!r}; {', '.join(SOURCE_COLUMNS)} needed")
    return [_source(row, path, number) for number, row in enumerate(rows, 2)]


def _source(row: Mapping[str, str | None], path: Path, number: int) -> Source:
    size = row["bytes"] or ""
    if not (size.isascii() and size.isdigit()):
        raise ValueError(f"{path}, line {number}: bytes is {size!r}; a whole number is needed")
    return Source(
        row.get("language") or path.name.partition(".")[0],
        row["source"] or "",
        row["licence"] or "",
        row["class"] or "unknown",
        int(size),
    )


def training_text(sources: Sequence[Source]) -> str:
    """Text by class of licence, by source, and by language."""
    if not sources:
        return ""
    total = sum(source.n_bytes for source in sources)
    classes = list(dict.fromkeys(source.licence_class for source in _by_size(sources)))

    def megabytes(some: Iterable[Source]) -> str:
        return f"{sum(source.n_bytes for source in some) / 1e6:,.1f}"

    by_class = []
    for kind in classes:
        of_kind = [source for source in sources if source.licence_class == kind]
        share = sum(source.n_bytes for source in of_kind) / total if total else 0.0
        n_sources = len({source.source for source in of_kind})
        by_class.append([kind, str(n_sources), megabytes(of_kind), f"{share:.1%}"])
    names = dict.fromkeys((s.source, s.licence, s.licence_class) for s in _by_size(sources))
    by_source = []
    for name in names:
        of_name = [s for s in sources if (s.source, s.licence, s.licence_class) == name]
        by_source.append([*name, str(len({s.language for s in of_name})), megabytes(of_name)])
    by_language = [
        [
            language,
            *(
                megabytes(s for s in sources if (s.language, s.licence_class) == (language, kind))
                for kind in classes
            ),
        ]
        for language in sorted({source.language for source in sources})
    ]
    return "\n\n".join(
        [
            "## Training text",
            plain_table(["class of licence", "sources", "MB", "share"], by_class, 1),
            plain_table(["source", "licence", "class", "languages", "MB"], by_source, 3),
            plain_table(["language", *(f"{kind}, MB" for kind in classes)], by_language, 1),
        ]
    )


def _by_size(sources: Sequence[Source]) -> list[Source]:
    """The largest sources first, all parts of one together; equal ones by name."""
    size: dict[tuple[str, str], int] = {}
    for s in sources:
        for key in (("class", s.licence_class), ("source", s.source)):
            size[key] = size.get(key, 0) + s.n_bytes
    return sorted(
        sources,
        key=lambda s: (
            *(-size["class", s.licence_class], s.licence_class),
            *(-size["source", s.source], s.source),
        ),
    )


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], n_words: int) -> str:
    """A Markdown table; its first `n_words` columns are words, the others numbers."""
    rule = ["---" if i < n_words else "---:" for i in range(len(head))]
    lines = [map(escape_markdown, head), rule, *(map(escape_markdown, row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
