"""Matra's Table 2 as its printed figures fit, beside our columns, which follow its words.

    python recipes/matra/other_reading.py runs/matra/matra vendors/o200k --text hi=hi.txt en=en.txt

The paper's section 5.1 defines SeqRed as 1 - tokens / bytes and NSL as tokens / characters. Its
printed SeqRed is 1 - tokens / characters and its NSL tokens / bytes, and its 1ch% counts pieces of
a character as characters (docs/errata.md). Prints these three as JSON lines: sums over the lines of
a language, then the ratio, then the mean over languages.
"""

from __future__ import annotations

import argparse
import json
from statistics import mean

import numpy as np

from vocabshift.evaluation.lines.subject import engine_of, subject_names
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.engine import Engine


def shares(engine: Engine, lines: list[str]) -> tuple[float, float, float]:
    """1 - tokens / characters, tokens / bytes, share of tokens that show as one character."""
    ids, _ = engine.encode_batch(lines)
    n_characters = sum(map(len, lines))
    n_bytes = sum(len(line.encode()) for line in lines)
    used, counts = np.unique(ids, return_counts=True)
    is_one = [len(engine.spelled[i].decode(errors="replace")) == 1 for i in used.tolist()]
    return 1 - len(ids) / n_characters, len(ids) / n_bytes, float(counts[is_one].sum() / len(ids))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+")
    parser.add_argument("--text", metavar="SPEC", nargs="+", required=True)
    args = parser.parse_args()
    lines: dict[str | None, list[str]] = {}
    for language, text in Corpus.from_specs(args.text).texts():
        if text.strip():
            lines.setdefault(language, []).append(text)
    for name, path in zip(subject_names(args.tokenizers), args.tokenizers, strict=True):
        engine = engine_of(path)
        of_languages = zip(*(shares(engine, own) for own in lines.values()), strict=True)
        reduction, length, single = map(mean, of_languages)
        row = {"what": "other reading", "tokenizer": name, "reduction": reduction, "length": length}
        print(json.dumps({**row, "single": single}, ensure_ascii=False))


if __name__ == "__main__":
    main()
