"""What llama.cpp makes of texts: token ids, and the most likely token after each position.

For an environment of its own: `pip install llama-cpp-python==0.3.36` compiles llama.cpp, 5 to 25
minutes on two cores. Imports nothing of vocabshift, so that it is an independent reader.

    python recipes/smollm2/peer.py MODEL.gguf texts.json -o peer.npz [--ids-only | --new 16]

`texts.json`: a list of strings. `peer.npz`: `ids_N` and `top_N` (int32, one per token) and
`logits_N` (float32, of the last position) of text N; `new_N` (int32) is what follows it, greedily.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import llama_cpp
import numpy as np


def greedy(model: llama_cpp.Llama, context: list[int], n: int) -> list[int]:
    """The most likely tokens after `context`, one after the other."""
    new: list[int] = []
    while len(new) < n:
        model.eval(new[-1:] or context)
        new.append(int(np.argmax(model.scores[model.n_tokens - 1])))
    return new


def main() -> None:
    """Run llama.cpp over the texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", metavar="MODEL.gguf")
    parser.add_argument("texts", type=Path, metavar="texts.json")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--bos", type=int, help="the id put before each text")
    parser.add_argument("--ids-only", action="store_true", help="load the vocabulary alone")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--new", type=int, metavar="N", help="write N tokens after each text")
    args = parser.parse_args()
    model = llama_cpp.Llama(
        args.model,
        vocab_only=args.ids_only,
        logits_all=True,
        n_ctx=2048,
        n_threads=args.threads,
        verbose=False,
    )
    found = {}
    for number, text in enumerate(json.loads(args.texts.read_text(encoding="utf-8"))):
        ids = model.tokenize(text.encode(), add_bos=False, special=False)
        found[f"ids_{number}"] = np.array(ids, dtype=np.int32)
        if args.ids_only:
            continue
        context = ids if args.bos is None else [args.bos, *ids]
        model.reset()
        if args.new:
            found[f"new_{number}"] = np.array(greedy(model, context, args.new), dtype=np.int32)
            continue
        model.eval(context)
        logits = np.array(model.scores[: len(context)])
        found[f"top_{number}"] = logits.argmax(axis=1).astype(np.int32)
        found[f"logits_{number}"] = logits[-1].astype(np.float32)
    np.savez_compressed(args.out, **found)


if __name__ == "__main__":
    main()
