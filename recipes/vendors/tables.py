"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown

FORMS = ("native", "ISO 15919", "informal", "informal, doubled")
SOME = ("hi", "bn", "mr", "ta", "te", "ml")
ENGLISH = ("en", "eng")


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    return {
        "romanized": _romanized(rows),
        "romanized-languages": _by_language(rows),
        "residue": _residue(rows),
    }


def _fertility(rows: list[Row], **facts: str) -> dict[str, float]:
    """By language."""
    wanted = {"what": "fertility", **facts}
    found = [row for row in rows if all(row.get(name) == to for name, to in wanted.items())]
    return {row["language"]: row["tokens"] / row["words"] for row in found}


def _names(rows: list[Row]) -> list[str]:
    """By mean fertility of informal text."""
    names = {row["tokenizer"] for row in rows if row["what"] == "fertility"}
    means = {
        name: mean(_fertility(rows, tokenizer=name, form="informal").values()) for name in names
    }
    return sorted(means, key=lambda name: (means[name], name))


def _romanized(rows: list[Row]) -> str:
    cells = []
    for name in _names(rows):
        native = _fertility(rows, tokenizer=name, form="native")
        english = [native.pop(label) for label in ENGLISH if label in native]
        forms = [native, *(_fertility(rows, tokenizer=name, form=form) for form in FORMS[1:])]
        means = [mean(by.values()) for by in forms]
        cells.append(
            [
                name,
                *(f"{value:.2f}" for value in english),
                *(f"{value:.2f}" for value in means),
                f"{means[2] / means[0]:.2f}",
            ]
        )
    return markdown(("tokens per word", "English", *FORMS, "informal / native"), cells)


def _by_language(rows: list[Row]) -> str:
    known = {row.get("language") for row in rows}
    languages = [language for language in SOME if language in known]
    cells = []
    for name in _names(rows):
        native, informal = (
            _fertility(rows, tokenizer=name, form=form) for form in ("native", "informal")
        )
        shown = (f"{native[one]:.2f} / {informal[one]:.2f}" for one in languages)
        cells.append([name, *shown])
    return markdown(("native / informal", *languages), cells)


def _residue(rows: list[Row]) -> str:
    found = [row for row in rows if row["what"] == "residue"]
    found.sort(key=lambda row: (row["residue"] / row["vocab_size"], row["tokenizer"]))
    cells = [
        (
            row["tokenizer"],
            f"{row['vocab_size']:,}",
            f"{row['tokens'] / row['vocab_size']:.0f}",
            f"{row['residue']:,}",
            f"{100 * row['residue'] / row['vocab_size']:.2f}",
        )
        for row in found
    ]
    header = ("tokenizer", "tokens", "of text per token", "merge residue", "%")
    return markdown(header, cells)
