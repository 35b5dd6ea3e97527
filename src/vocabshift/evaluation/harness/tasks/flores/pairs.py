"""FLORES sentences of two languages side by side: from the Hub, or from the files of FLORES-200."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def sentence_pairs(source: str, target: str, folder: str | None = None, **_: Any) -> dict[str, Any]:
    """{"dev", "devtest"} of rows {id, source, target}; `source`, `target`: codes like "est_Latn".

    `folder`: that of the FLORES-200 archive, with `dev/est_Latn.dev` and so on, line n of each
    saying the same. Without it FLORES+ on the Hub, which is gated (accept its terms, log in).
    """
    from datasets import Dataset

    read = _from_hub if folder is None else _from_files(Path(folder))
    splits = {}
    for split in ("dev", "devtest"):
        ours, theirs = read(source, split), read(target, split)
        rows = [
            {"id": number, "source": text, "target": theirs[number]}
            for number, text in ours.items()
            if number in theirs
        ]
        splits[split] = Dataset.from_list(rows)
    return splits


def _from_files(folder: Path) -> Any:
    def read(code: str, split: str) -> dict[int, str]:
        text = (folder / split / f"{code}.{split}").read_text(encoding="utf-8")
        return dict(enumerate(text.removesuffix("\n").split("\n")))

    return read


def _from_hub(code: str, split: str) -> dict[int, str]:
    from datasets import load_dataset

    rows = load_dataset("openlanguagedata/flores_plus", code, split=split)
    return {row["id"]: row["text"] for row in rows}
