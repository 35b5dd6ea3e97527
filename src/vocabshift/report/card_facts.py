"""What a card says that is no measurement: how a tokenizer came about, and of which text.

Owns the reading of `vocabshift.json`, of the tokenizer's checksum and of tables of sources, each
into a typed value that can be kept as JSON. Renders nothing.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vocabshift import provenance
from vocabshift.errors import InvalidTokenizerError

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
    record = path / provenance.FILE
    if not (path / TOKENIZER_FILE).is_file() or not record.is_file():
        raise InvalidTokenizerError(
            f"{path} needs {TOKENIZER_FILE} and {provenance.FILE}, as `vocabshift train` writes "
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
        lines = path.read_text(encoding="utf-8").splitlines()
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
