"""Are tokens that training never reached found? Precision and recall, tied and untied.

    python recipes/glitch/planted.py en.txt hi.txt -o runs/glitch [--smoke] [--seeds 0 1 2]

A BPE tokenizer is trained on all lines. Then tokens are drawn that few lines have, and these lines
are taken away: the tokens are planted. What is to be found is every token that text yields and that
the remaining lines never have: the planted ones, what else went with their lines, and tokens that
BPE only passed through. `vocabshift glitch` knows nothing but the saved model.
"""

from __future__ import annotations

import json
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
from vocabshift.evaluation.glitch.classes import JUDGED
from vocabshift.tokenizer.formats.encoder import Encoder

FULL = Size(n_bytes=1_500_000, vocab_size=4096, hidden_size=64, rounds=2.0)
SMOKE = Size(n_bytes=60_000, vocab_size=600, hidden_size=32, rounds=1.0, n_dummies=20)
INDICATORS = tables.INDICATORS
RARE = (2, 12)  # lines that a token to plant may be in


def plant(tokenizer: Any, lines: list[str], n: int, seed: int) -> tuple[list[int], list[str]]:
    """Ids of `n` tokens drawn by the seed, and the lines that have none of them."""
    random = np.random.default_rng(seed)
    ids, offsets = Encoder(tokenizer).encode_batch(lines)
    line_of = np.repeat(np.arange(len(lines)), np.diff(offsets))
    pairs = np.unique(np.stack([ids, line_of]), axis=1)
    in_lines = np.bincount(pairs[0], minlength=tokenizer.row_count)
    low, high = RARE
    rare = np.flatnonzero((in_lines >= low) & (in_lines <= high))
    chosen = np.sort(random.choice(rare, size=min(n, len(rare)), replace=False))
    hit = np.unique(pairs[1][np.isin(pairs[0], chosen)])
    kept = np.setdiff1d(np.arange(len(lines)), hit)
    return chosen.tolist(), [lines[i] for i in kept.tolist()]


def judge(folder: Path, counts: Any, planted: list[int], indicator: str) -> dict[str, float]:
    """How well one indicator finds what was never seen."""
    summary, rows = report_of(folder, indicator)
    judged = [row for row in rows if row["class"] in JUDGED]
    unseen = {row["id"] for row in judged if counts[row["id"]] == 0}
    suspect = {row["id"] for row in judged if row["is_suspect"]}
    hit = suspect & unseen
    rare = {row["id"] for row in judged if counts[row["id"]] <= 2}
    values = np.array([row["indicator"] for row in judged])
    is_unseen = np.array([row["id"] in unseen for row in judged])[np.argsort(values, kind="stable")]
    places = np.flatnonzero(is_unseen) + 1
    wanted = set(planted) & {row["id"] for row in judged}
    return {
        "tokens": len(judged),
        "unseen": len(unseen),
        "planted": len(wanted),
        "suspect": len(suspect),
        "precision": len(hit) / max(len(suspect), 1),
        "precision_rare": len(suspect & rare) / max(len(suspect), 1),
        "recall": len(hit) / max(len(unseen), 1),
        "recall_planted": len(suspect & wanted) / max(len(wanted), 1),
        "average_precision": float(np.mean(np.arange(1, len(places) + 1) / places)),
        "threshold": summary["threshold"]["value"],
    }


def main() -> None:
    """Train, judge, write planted.jsonl and planted.md."""
    args = arguments(__doc__)
    size = SMOKE if args.smoke else FULL
    args.out.mkdir(parents=True, exist_ok=True)
    lines = read_lines(args.files, size.n_bytes, seed=0)
    trainer = vs.BpeTrainer(
        vocab_size=size.vocab_size, pre_tokenizer="o200k", special_tokens=(END,)
    )
    tokenizer = trainer.train(vs.Corpus.from_texts(lines))
    tokenizer = with_unused(replace(tokenizer, name="bpe"), size.n_dummies)
    results: list[dict[str, Any]] = []
    for seed in args.seeds:
        planted, seen = plant(tokenizer, lines, size.vocab_size // 50, seed)
        counts = counts_of(tokenizer, seen)
        assert not counts[planted].any()
        for kind in ("tied", "untied"):
            folder = args.out / f"planted-{kind}-{seed}"
            trained_model(tokenizer, seen, size, folder, tied=kind == "tied", seed=seed)
            for indicator in INDICATORS:
                found = judge(folder, counts, planted, indicator)
                row = {"what": "planted", "kind": kind, "seed": seed, "indicator": indicator}
                results.append({**row, **found, **checksums(tokenizer, seen)})
    text = tables.planted(results) + "\n"
    (args.out / "planted.jsonl").write_text("".join(json.dumps(row) + "\n" for row in results))
    (args.out / "planted.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
