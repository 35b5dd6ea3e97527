"""Do superwords leave fewer under-trained tokens than late subwords? IST's claim at our size.

    python recipes/glitch/superwords.py en.txt hi.txt -o runs/glitch [--smoke] [--seeds 0 1 2]

Two tokenizers share the first 90 % of their vocabulary; the last 10 % are superwords in one (IST)
and further subwords in the other (BPE). A small tied model learns the same bytes with each. Of the
K tokens nearest to the mean of dummies: how many are of the last 10 %? (IST, Figure 5.)
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tables
from training import (
    END,
    Size,
    arguments,
    checksums,
    counts_of,
    read_lines,
    report_of,
    trained_model,
)

import vocabshift as vs
from vocabshift.checks.vocabulary import with_unused

FULL = Size(n_bytes=1_500_000, vocab_size=4096, hidden_size=64, rounds=1.0)
SMOKE = Size(n_bytes=60_000, vocab_size=600, hidden_size=32, rounds=1.0, n_dummies=20)
SHARED = 0.9


def tokenizers(lines: list[str], size: Size) -> dict[str, Any]:
    """Both, with dummies; they differ in the last tenth of their tokens alone."""
    corpus = vs.Corpus.from_texts(lines)
    options: dict[str, Any] = {
        "vocab_size": size.vocab_size,
        "pre_tokenizer": "o200k",
        "normalizer": "nfkc",
        "special_tokens": (END,),
    }
    # transition=1: stage 1 goes on to the end. A BpeTrainer would differ in a few tokens before,
    # for IST's first stage merges no sentence end with what follows.
    made = {
        name: vs.SuperwordTrainer(transition=transition, **options).train(corpus)
        for name, transition in (("bpe", 1.0), ("ist", SHARED))
    }
    first = [list(made[name].model.vocab)[: round(SHARED * size.vocab_size)] for name in made]
    if first[0] != first[1]:
        raise SystemExit("the two vocabularies do not share their first 90 %")
    return {
        name: with_unused(replace(tokenizer, name=name), size.n_dummies)
        for name, tokenizer in made.items()
    }


def judge(folder: Path, tokenizer: Any, lines: list[str], size: Size) -> dict[str, Any]:
    """The curve, and how often the last tenth was seen."""
    summary, rows = report_of(folder, "cosine")
    counts = counts_of(tokenizer, lines)
    late = np.arange(round(SHARED * size.vocab_size), size.vocab_size)
    bits = json.loads((folder / "training.json").read_text())["bits_per_byte"]
    bytes_per_token = sum(len(line.encode()) for line in lines) / counts.sum()
    return {
        "curve": summary["curve"],
        "suspect_late": sum(rows[i]["is_suspect"] for i in late.tolist()),
        "suspect": summary["n_suspect"],
        "superwords": sum(row["class"] == "superword" for row in rows),
        "median_count_late": float(np.median(counts[late])),
        "unseen_late": int((counts[late] == 0).sum()),
        "bits_per_byte": bits,
        "nats_per_token": float(bits * math.log(2) * bytes_per_token),
    }


def main() -> None:
    """Train, judge, write superwords.jsonl and superwords.md."""
    args = arguments(__doc__)
    size = SMOKE if args.smoke else FULL
    args.out.mkdir(parents=True, exist_ok=True)
    lines = read_lines(args.files, size.n_bytes, seed=0)
    results: list[dict[str, Any]] = []
    for name, tokenizer in tokenizers(lines, size).items():
        for seed in args.seeds:
            folder = args.out / f"superwords-{name}-{seed}"
            trained_model(tokenizer, lines, size, folder, tied=True, seed=seed)
            found = judge(folder, tokenizer, lines, size) | checksums(tokenizer, lines)
            results.append({"what": "superwords", "tokenizer": name, "seed": seed, **found})
    text = tables.superwords(results) + "\n"
    (args.out / "superwords.jsonl").write_text("".join(json.dumps(row) + "\n" for row in results))
    (args.out / "superwords.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
