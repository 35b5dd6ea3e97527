"""The sample texts: our own sentences in many scripts, and some code.

Owns the list of languages, their groups and which lines are held out. Knows nothing of tokenizers
or models. A `.txt` has one document per line; code is in `.jsonl` files.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

INDIAN = "Indian languages"
FAMILIAR = "English, German"
OTHER = "other languages"
CODE = "code"

GROUPS: dict[str, tuple[str, ...]] = {
    INDIAN: (
        *("asm", "ben", "guj", "hin", "kan", "mal", "mar", "mni_Mtei", "npi", "ory", "pan"),
        *("sat", "tam", "tel", "urd"),
    ),
    FAMILIAR: ("eng", "deu"),
    OTHER: ("est", "rus"),
    CODE: ("code",),
}
"""Languages (ISO 639-3, with a script where a language has several) by the group they stand in."""

HELD_OUT_EVERY = 8
HELD_OUT_FIRST = 4
"""Documents 4, 12, 20, … are never trained on. The demo's settings were chosen on another split
(8, 16, …), so its figures are not those that chose them."""


def group_of(language: str) -> str:
    """The group of a language; KeyError if it has none."""
    return next(group for group, languages in GROUPS.items() if language in languages)


def familiar() -> tuple[str, ...]:
    """The languages that the base tokenizer and the base model know best."""
    return GROUPS[FAMILIAR] + GROUPS[CODE]


def languages() -> list[str]:
    """The languages that come with the package, in order of their groups."""
    known = [language for of_group in GROUPS.values() for language in of_group]
    return sorted((Path(file.name).stem for file in _files()), key=known.index)


def beginnings(n_documents: int) -> dict[str, list[str]]:
    """The first documents of every language, in order of their groups."""
    by_language = {Path(file.name).stem: file for file in _files()}
    found = {}
    for language in languages():
        text = by_language[language].read_text(encoding="utf-8").removesuffix("\n")
        lines = text.split("\n")[:n_documents]
        is_json = by_language[language].name.endswith(".jsonl")
        found[language] = [str(json.loads(line)["text"]) if is_json else line for line in lines]
    return found


def write_split(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Copy the texts to `folder`/train and `folder`/held-out; each as {language: file}."""
    split: tuple[dict[str, Path], dict[str, Path]] = ({}, {})
    for directory in ("train", "held-out"):
        (folder / directory).mkdir(parents=True)
    by_language = {Path(file.name).stem: file for file in _files()}
    for language in languages():
        file = by_language[language]
        lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line]
        held_out = lines[HELD_OUT_FIRST - 1 :: HELD_OUT_EVERY]
        kept = [line for i, line in enumerate(lines, 1) if i % HELD_OUT_EVERY != HELD_OUT_FIRST]
        for part, directory, own in ((0, "train", kept), (1, "held-out", held_out)):
            path = folder / directory / file.name
            path.write_text("".join(line + "\n" for line in own), encoding="utf-8", newline="")
            split[part][language] = path
    return split


def _files() -> list[resources.abc.Traversable]:
    folder = resources.files("vocabshift.demo") / "texts"
    return [file for file in folder.iterdir() if file.name.endswith((".txt", ".jsonl"))]
