"""Tokenizers on romanized Indian text, and their merge residue, into OUT/results.jsonl.

    python recipes/vendors/measure.py OUT TOKENIZER… --train DIR --text DIR

Rows (`what`): "fertility", tokens and words of parallel text in one `form` (its own script, or
romanized as `romanize.py` says); "residue", tokens that merges use up in training text; "made",
checksums of parallel text and tokenizers (`data/rows.py`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import vocabshift as vs
from vocabshift.checks.vocabulary import merge_residue
from vocabshift.workflows.tokenizers import load_named

sys.path.append(str(Path(__file__).parents[1] / "data"))
sys.path.append(str(Path(__file__).parent))
import record
import romanize
from rows import sources_of

KEY = ("what", "tokenizer", "language", "form")
FORMS: dict[str, Callable[[str, str], str]] = {
    "native": lambda line, _: line,
    "ISO 15919": lambda line, _: romanize.iso(line),
    "informal": romanize.informal,
    "informal, doubled": lambda line, language: romanize.informal(line, language, doubled=True),
}
ENGLISH = ("en", "eng")


def read(path: Path, n_lines: int) -> list[str]:
    """The first lines that are not blank."""
    lines = (line for line in path.read_text(encoding="utf-8").split("\n") if line.strip())
    return [line for line, _ in zip(lines, range(n_lines), strict=False)]


def main() -> None:
    """Measure, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--train", type=Path, required=True, help="LANG.txt, code.jsonl")
    parser.add_argument("--text", type=Path, required=True, help="LANG.txt, parallel")
    parser.add_argument("--lines", type=int, default=400, help="of the parallel text")
    parser.add_argument("--kb", type=int, default=200, help="of training text a language")
    parser.add_argument("--more-kb", type=int, default=3000, help="the same of English and code")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    languages = dict.fromkeys(romanize.LANGUAGES) | dict.fromkeys(romanize.SAMPLE)
    parallel = {
        language: read(args.text / f"{language}.txt", args.lines)
        for language in [*languages, *ENGLISH]
        if (args.text / f"{language}.txt").exists()
    }
    train = vs.Corpus.from_specs(
        [f"{file.stem}={file}" for file in sorted(args.train.iterdir()) if file.suffix != ".tsv"]
    )
    sizes = dict.fromkeys(train.languages, args.kb * 1000)
    sizes |= {name: args.more_kb * 1000 for name in ("code", *ENGLISH) if name in sizes}
    drawn: dict[str, list[str]] = {}
    for label, text in train.texts():
        name = str(label)
        if sizes[name] > 0:
            drawn.setdefault(name, []).append(text)
            sizes[name] -= len(text.encode())
    tokenizers = load_named(args.tokenizers)
    rows: list[dict[str, Any]] = [{"what": "made", **sources_of(parallel, tokenizers)}]
    for name, tokenizer in tokenizers.items():
        for language, lines in parallel.items():
            for form, spell in FORMS.items():
                if form != "native" and language in ENGLISH:
                    continue
                spelled = [spell(line, language) for line in lines]
                ids, _ = tokenizer.encode_batch(spelled)
                n_words = sum(len(line.split()) for line in spelled)
                row = {"what": "fertility", "tokenizer": name, "language": language, "form": form}
                rows.append(row | {"tokens": len(ids), "words": n_words})
        counts = np.zeros(tokenizer.row_count, dtype=np.int64)
        for texts in drawn.values():
            counts += np.bincount(tokenizer.encode_batch(texts)[0], minlength=len(counts))
        row = {"what": "residue", "tokenizer": name, "vocab_size": tokenizer.vocab_size}
        residue = merge_residue(tokenizer, counts) if tokenizer.kind == "BPE" else ()
        rows.append(row | {"residue": len(residue), "tokens": int(counts.sum())})
        print(f"{name}: {len(residue):,} tokens of residue", file=sys.stderr, flush=True)
    record.add(args.out / "results.jsonl", rows, key=KEY)


if __name__ == "__main__":
    main()
