"""Hold a converted model to what llama.cpp makes of the same texts (`peer.py`).

    python recipes/smollm2/against_llama_cpp.py FOLDER texts.json peer.npz --row F32

Prints the texts whose ids are equal, the positions whose most likely token is equal, and the
largest difference of a logit at the last positions.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.append(str(Path(__file__).parents[1] / "data"))
import record


def main() -> None:
    """Compare, print, and keep the row if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("peer", type=Path)
    parser.add_argument("--file", type=Path, help="also put the row into this file")
    parser.add_argument("--row", help="what the row is called in the file")
    args = parser.parse_args()
    texts = json.loads(args.texts.read_text(encoding="utf-8"))
    peer = np.load(args.peer)
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    model = AutoModelForCausalLM.from_pretrained(args.folder, dtype=torch.float32).eval()
    bos = model.config.bos_token_id
    same_ids = positions = same_top = 0
    furthest = 0.0
    for number, text in enumerate(texts):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if ids != peer[f"ids_{number}"].tolist():
            print(f"text {number}: other ids: {text[:60]!r}")
            continue
        same_ids += 1
        with torch.inference_mode():
            logits = model(torch.tensor([[bos, *ids]])).logits[0]
        top = peer[f"top_{number}"]
        positions += len(top)
        same_top += int((logits.argmax(dim=1).numpy() == top).sum())
        furthest = max(furthest, float(np.abs(logits[-1].numpy() - peer[f"logits_{number}"]).max()))
    row = {
        "what": "llama.cpp",
        "row": args.row or args.peer.name,
        "texts": len(texts),
        "equal_ids": same_ids,
        "positions": positions,
        "equal_top": same_top,
        "largest_logit_difference": round(furthest, 4),
    }
    print(json.dumps(row))
    if args.file:
        record.add(args.file, [row], key=("what", "row"))


if __name__ == "__main__":
    main()
