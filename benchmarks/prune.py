"""Time what finding a pruning order takes: load, count, splits, order.

    python benchmarks/prune.py --tokenizer FOLDER --text TEXT... --order leaf-frequency --runs 5

CPU seconds of one thread, the least of several runs, and the peak memory of the process. The
toolkit to compare with (tokenizer-extension) is no package: its figures for Llama-3 and the 4 MB of
../shared/cases/inputs/eten.train.txt.zst are in benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np

from vocabshift.pruning.counts import count_tokens
from vocabshift.pruning.orders import NEED_COUNTS, Vocabulary, removal_order
from vocabshift.pruning.protection import protected
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import load_tokenizer

PHASES = ("load", "count", "splits", "order")
ORDERS = ("leaf-frequency", "leaf-id", "merge", "frequency", "id")


def run(source: str, corpus: Corpus, order: str) -> tuple[list[float], int]:
    """CPU seconds of each phase, and how many tokens the order holds."""
    times = [time.process_time()]

    def lap() -> None:
        times.append(time.process_time())

    tokenizer = load_tokenizer(source)
    lap()
    counts = None
    if order in NEED_COUNTS:  # the encoder is compiled here
        own = tokenizer if order == "frequency" else tokenizer.without_merge_skipping()
        counts = count_tokens(own, corpus).weighted
    lap()
    splits = tokenizer.splits()
    lap()
    ids = list(tokenizer.vocab.values())
    removable = np.zeros(tokenizer.row_count, dtype=bool)
    removable[ids] = True
    removable &= ~splits.trees(protected(tokenizer, splits))
    lengths = np.zeros(tokenizer.row_count, dtype=np.int64)
    lengths[ids] = [len(token) for token in tokenizer.vocab]
    scripts = np.full(tokenizer.row_count, -1)
    found = removal_order(order, Vocabulary(splits, removable, lengths, scripts), counts)
    lap()
    return np.diff(times).tolist(), len(found.ids)


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--text", nargs="+", required=True)
    parser.add_argument("--order", choices=ORDERS, default="leaf-frequency")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    corpus = Corpus.from_specs(args.text)
    runs = [run(args.tokenizer, corpus, args.order) for _ in range(args.runs)]
    least = np.min([seconds for seconds, _ in runs], axis=0)
    figures = dict(zip(PHASES, least.round(3).tolist(), strict=True))
    print(
        json.dumps(
            {
                "order": args.order,
                "tokens": runs[0][1],
                "cpu_seconds": figures,
                "without_load": round(float(least[1:].sum()), 3),
                "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
