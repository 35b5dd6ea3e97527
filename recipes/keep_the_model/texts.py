"""The text of the study: what is trained on, drawn once for each seed, and what is scored.

Files OUT/text/BYTES-SEED/LANGUAGE.jsonl hold the same documents for every arm.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import vocabshift as vs

sys.path.append(str(Path(__file__).parents[1] / "adaptation_study"))
from arms import documents, find, held_out

SHARE_OF_NEW = 0.6
"""Share of new languages in training text. The rest is replay of home, in equal parts: the question
here is what a swap loses at home."""

_MOST_CODE = 300  # pieces of program text that are scored


def training(
    train: Path, out: Path, new: list[str], home: list[str], *, n_bytes: int, seed: int
) -> list[str]:
    """The SPECs of one draw, which is made once."""
    folder = out / "text" / f"{n_bytes}-{seed}"
    if not folder.exists():
        sizes = {name: round(n_bytes * SHARE_OF_NEW / len(new)) for name in new}
        sizes |= {name: round(n_bytes * (1 - SHARE_OF_NEW) / len(home)) for name in home}
        texts = {name: documents([find(train, name)]) for name in sizes}
        drawn: dict[str, list[str]] = {name: [] for name in sizes}
        for name, text in vs.Corpus.from_texts(texts).limit_bytes(sizes, seed=seed).texts():
            drawn[str(name)].append(text)
        partial = folder.with_name(folder.name + ".partial")
        partial.mkdir(parents=True, exist_ok=True)
        for name, own in drawn.items():
            lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in own]
            (partial / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        partial.rename(folder)
    return [f"{name}={folder / name}.jsonl" for name in (*new, *home)]


def scored(evaluation: Path, languages: list[str], n: int) -> Mapping[str, list[str]]:
    """`n` held-out documents of each language, evenly spaced, of code at most 300."""
    return {
        name: held_out(
            evaluation,
            [name],
            n if (evaluation / "sib200-flores" / f"{name}.txt").exists() else min(n, _MOST_CODE),
        )[name]
        for name in languages
    }
