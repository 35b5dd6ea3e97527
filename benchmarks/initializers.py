"""Bits per byte right after a transfer, before any training, for every initializer.

    python benchmarks/initializers.py --text en=TEXT hi=TEXT ta=TEXT --seeds 3

A small Llama is trained from scratch with a BPE tokenizer learnt mostly from the first language,
once per seed, and moved to an IST superword tokenizer learnt from all of them. Its body stays as it
is: only rows differ between the lines of the table. The donor of `omp` is another small Llama,
trained with the IST tokenizer on the same text. Text is taken from the head of each file, what is
scored from behind it. Mean and standard deviation over seeds; one thread.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from pathlib import Path
from typing import Any

import vocabshift as vs
from vocabshift.cpt.loop import LoopConfig, Phase, pretrain
from vocabshift.demo import walk as small_llama
from vocabshift.surgery.omp import Donor

END = "<|end|>"
PLAIN = ("fvt", "fvt-weighted", "first-last", "mean", "normal", "random", "zeros")
SCORED_BYTES = 24_000  # of each language


def taken(spec: str, n_bytes: int) -> tuple[str, list[str], list[str]]:
    """(language, lines to learn from, lines to score) of LANG=PATH."""
    language, path = spec.split("=", 1)
    learnt: list[str] = []
    scored: list[str] = []
    size = 0
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            size += len(line.encode())
            if size > n_bytes + SCORED_BYTES:
                break
            (learnt if size <= n_bytes else scored).append(line.rstrip("\n"))
    return language, learnt, scored


def trained(tokenizer: Any, texts: dict[str, list[str]], args: Any, seed: int) -> Any:
    """A small Llama after `args.train_bytes` of text."""
    import torch

    model = small_llama.make(
        tokenizer, END, hidden_size=args.hidden, n_layers=args.layers, context=args.context
    )
    torch.manual_seed(seed)
    model.apply(model._init_weights)
    pretrain(
        model,
        tokenizer,
        vs.Corpus.from_texts(texts),
        phases=[Phase(n_bytes=args.train_bytes, learning_rate=2e-3)],
        config=LoopConfig(sequence_length=args.context, batch_size=4, seed=seed),
    )
    return model.eval()


def prices(model: Any, tokenizer: Any, texts: dict[str, list[str]]) -> dict[str, float]:
    """Bits per byte by language."""
    return {row.language: row.value for row in vs.score(model, tokenizer, texts)}


def tries(donor: Any, ist: Any, learnt: dict[str, list[str]]) -> list[tuple[str, dict[str, Any]]]:
    """(name, options of transfer)."""
    rows: list[tuple[str, dict[str, Any]]] = [(name, {"init": name}) for name in PLAIN]
    rows.append(("omp", {"init": "omp", "donor": Donor.of_model(donor, ist)}))
    rows.append(("focus", {"init": "focus", "corpus": learnt}))
    return rows


def main() -> None:
    """Print one JSON object and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", nargs="+", required=True, metavar="LANG=PATH")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--text-bytes", type=int, default=1_200_000, help="of each language")
    parser.add_argument("--train-bytes", type=int, default=1_800_000)
    parser.add_argument("--base-vocab", type=int, default=4096)
    parser.add_argument("--ist-vocab", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--context", type=int, default=128)
    args = parser.parse_args()
    began = time.process_time()
    parts = [taken(spec, args.text_bytes) for spec in args.text]
    learnt = {language: lines for language, lines, _ in parts}
    scored = {language: lines for language, _, lines in parts}
    first = parts[0][0]
    familiar = {
        language: lines if language == first else lines[::8] for language, lines in learnt.items()
    }
    base = vs.BpeTrainer(vocab_size=args.base_vocab, special_tokens=(END,)).train(
        vs.Corpus.from_texts(familiar)
    )
    ist = vs.SuperwordTrainer(vocab_size=args.ist_vocab, special_tokens=(END,)).train(
        vs.Corpus.from_texts(learnt)
    )
    found: dict[str, list[dict[str, float]]] = {}
    with small_llama.one_thread():
        donor = trained(ist, learnt, args, seed=100)
        found["(donor, its own tokenizer)"] = [prices(donor, ist, scored)]
        for seed in range(args.seeds):
            model = trained(base, learnt, args, seed)
            found.setdefault("(before, old tokenizer)", []).append(prices(model, base, scored))
            print("before", seed, found["(before, old tokenizer)"][-1], flush=True)
            for name, options in tries(donor, ist, learnt):
                moved, tokenizer = vs.transfer(
                    copy.deepcopy(model), old=base, new=ist, seed=seed, **options
                )
                found.setdefault(name, []).append(prices(moved, tokenizer, scored))
                print(name, seed, found[name][-1], flush=True)
    print(json.dumps({"bits_per_byte": found, "cpu_seconds": time.process_time() - began}))
    print(table(found, list(learnt)))


def table(found: dict[str, list[dict[str, float]]], languages: list[str]) -> str:
    """Markdown: all languages alike, then each; the best of what was moved first."""

    def cell(values: list[float]) -> str:
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.3f}{spread}"

    lines = [f"| init | mean | {' | '.join(languages)} |", "|---" * (2 + len(languages)) + "|"]
    whole = {name: [statistics.mean(row.values()) for row in rows] for name, rows in found.items()}
    for name in sorted(found, key=lambda name: (name[0] != "(", statistics.mean(whole[name]))):
        own = [cell([row[language] for row in found[name]]) for language in languages]
        lines.append(f"| {name} | {cell(whole[name])} | {' | '.join(own)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
