"""Draw the picture of README.md from the figures that the IST recipe measured.

    python tools/readme_picture.py docs/images/fertility.svg

The values are those of model_cards/ist-200k/results.jsonl, which `RECORD=1 recipes/ist/run.sh`
writes; the drawing is that of `vocabshift evaluate --figures`. Needs the extra [plots].
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from vocabshift.report.figures import write_figures
from vocabshift.results import Results

RESULTS = Path(__file__).parents[1] / "model_cards" / "ist-200k" / "results.jsonl"
SUBJECTS = {
    "Llama-3": "Llama-3",
    "Qwen-2.5": "Qwen-2.5",
    "o200k": "o200k (GPT-4o)",
    "Llama-4": "Llama-4",
    "ist": "trained with vocabshift (IST, 200k)",
}
LANGUAGES = {
    "en": "English",
    "hi": "Hindi",
    "bn": "Bengali",
    "pa": "Punjabi",
    "ta": "Tamil",
    "te": "Telugu",
    "ml": "Malayalam",
    "sat": "Santali",
}


def draw(file: Path) -> None:
    """Write tokens per word, by language and tokenizer, as an SVG."""
    measured = Results.from_jsonl(RESULTS.read_text(encoding="utf-8"))
    rows = Results(
        replace(row, subject=name)
        for subject, name in SUBJECTS.items()
        for language in LANGUAGES
        for row in measured.where(subject=subject, language=language, metric="fertility")
    )
    with tempfile.TemporaryDirectory() as folder:
        write_figures(rows, folder, names=LANGUAGES)
        shutil.copyfile(Path(folder) / "bars.svg", file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    draw(parser.parse_args().file)
