"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown

EVERY = "indic-study"
ARABIC = ("arabic-forms", "arabic-letters", "arabic-letters:LANGUAGE", "arabic-marks")
SHOWN = (
    *("nfc", "spaces", "punctuation", "joiners", "no-joiners", "nukta", "vowel-signs", "dandas"),
    *("visarga", "fifth-case", EVERY),
)


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    return {
        "changed-parallel": _changed(rows, "parallel"),
        "changed-train": _changed(rows, "train"),
        "changed-arabic": _arabic(rows),
        "fertility": _fertility(rows),
        "share": _share(rows),
        "indicnlp": _indicnlp(rows),
    }


def _of(rows: list[Row], **facts: str) -> list[Row]:
    return [row for row in rows if all(row.get(name) == to for name, to in facts.items())]


def _percent(rows: list[Row], of: str, whole: str) -> str:
    if not rows or not rows[0][whole]:
        return "0"
    return f"{100 * rows[0][of] / rows[0][whole]:.2f}"


def _changed(rows: list[Row], text: str) -> str:
    of = _of(rows, what="changed", text=text)
    languages = sorted({row["language"] for row in of})
    cells = [
        [
            language,
            *(
                _percent(_of(of, language=language, rule=rule), "words_changed", "words")
                for rule in SHOWN
            ),
        ]
        for language in languages
    ]
    return markdown(("% of words", *(f"`{rule}`" for rule in SHOWN)), cells)


def _arabic(rows: list[Row]) -> str:
    cells = []
    for text in ("parallel", "train"):
        for language in ("ur", "sd_Arab", "ks_Arab"):
            of = _of(rows, what="changed", text=text, language=language)
            line = [f"{language}, {text}"]
            for rule in (*ARABIC, "arabic-joiners"):
                found = _of(of, rule=rule)
                line.append(_percent(found, "words_changed", "words"))
                line.append(_percent(found, "characters_changed", "characters"))
            if of:
                cells.append(line)
    names = (
        f"`{rule}`: {unit}" for rule in (*ARABIC, "arabic-joiners") for unit in ("words", "chars")
    )
    return markdown(("%", *names), cells)


def _indicnlp(rows: list[Row]) -> str:
    """Lines that both sides make equal."""
    cells = [
        (
            *(row["language"], f"{row['lines']:,}", _percent([row], "equal", "lines")),
            *(f"{row['changed']:,}", _percent([row], "changed_equal", "changed")),
        )
        for row in sorted(_of(rows, what="indicnlp"), key=lambda row: row["language"])
    ]
    return markdown(("", "lines", "equal, %", "changed by the study", "of these equal, %"), cells)


def _fertilities(rows: list[Row], words: str = "words") -> dict[str, dict[str, float]]:
    """By group of rules, then language."""
    found: dict[str, dict[str, float]] = {}
    for row in _of(rows, what="fertility"):
        of = found.setdefault(row["rule"], {})
        of[row["language"]] = row["tokens"] / row[words]
    order = ("none", "spaces, punctuation", "joiners, nukta, vowel signs", "dandas, visarga")
    order += ("fifth case", "Arabic forms, letters", "these and Arabic marks", "all")
    return {name: dict(sorted(found[name].items())) for name in order if name in found}


def _fertility(rows: list[Row]) -> str:
    of = _fertilities(rows)
    languages = list(of["none"])
    cells = [[language, *(f"{by[language]:.3f}" for by in of.values())] for language in languages]
    cells.append(["mean", *(f"{mean(by.values()):.4f}" for by in of.values())])
    return markdown(("", *of), cells)


def _share(rows: list[Row]) -> str:
    """How far the mean falls, and the languages that change most."""
    of = _fertilities(rows)
    none = of.pop("none")
    cells = []
    for name, by in of.items():
        falls = {language: none[language] - value for language, value in by.items()}
        total = sum(falls.values())
        most = sorted(falls.items(), key=lambda item: -abs(item[1]))[:4]
        lower = sum(fall > 0 for fall in falls.values())
        cells.append(
            [
                name,
                f"{total / len(falls):.4f}",
                f"{100 * total / sum(none.values()):.2f}",
                f"{lower} of {len(falls)}",
                ", ".join(f"{language} {fall:+.3f}" for language, fall in most),
            ]
        )
    return markdown(
        ("rules", "fall of the mean", "%", "languages lower", "largest changes (fall)"), cells
    )
