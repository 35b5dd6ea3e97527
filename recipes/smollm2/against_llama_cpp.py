"""Hold a converted model to what llama.cpp makes of the same texts (`peer.py`).

    python recipes/smollm2/against_llama_cpp.py FOLDER texts.json peer.npz --row F32

Prints the texts whose ids are equal, the positions whose most likely token is equal, and the
largest difference of a logit at the last positions. Of a peer that wrote no logits the texts with
equal ids; of one that continued the texts (`--new`) those that transformers continues so too; with
`--before OTHER-FOLDER other-peer.npz` those that the model of another tokenizer continues with the
same text in llama.cpp.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

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
    parser.add_argument("--before", nargs=2, type=Path, metavar=("FOLDER", "PEER"))
    args = parser.parse_args()
    texts = json.loads(args.texts.read_text(encoding="utf-8"))
    peer = np.load(args.peer)
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    if args.before:
        row = same_answers(tokenizer, peer, *args.before)
    elif "new_0" in peer:
        row = same_continuations(args.folder, tokenizer, texts, peer)
    elif "logits_0" in peer:
        row = same_logits(args.folder, tokenizer, texts, peer)
    else:
        row = same_ids(tokenizer, texts, peer)
    row["row"] = args.row or args.peer.name
    print(json.dumps(row))
    if args.file:
        record.add(args.file, [row], key=("what", "row"))


def own_ids(tokenizer: Any, text: str) -> list[int]:
    """Without tokens around the text."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def same_ids(tokenizer: Any, texts: list[str], peer: Any) -> record.Row:
    """Texts with equal ids, and their tokens."""
    ids = [own_ids(tokenizer, text) for text in texts]
    equal = [own == peer[f"ids_{i}"].tolist() for i, own in enumerate(ids)]
    for text, is_equal in zip(texts, equal, strict=True):
        if not is_equal:
            print(f"other ids: {text[:60]!r}")
    n_tokens = sum(map(len, ids))
    return {"what": "ids", "texts": len(texts), "equal_ids": sum(equal), "tokens": n_tokens}


def same_continuations(folder: Path, tokenizer: Any, texts: list[str], peer: Any) -> record.Row:
    """Texts that transformers continues with the same tokens, greedily."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None  # llama.cpp is not stopped there either
    equal = n_new = 0
    for number, text in enumerate(texts):
        new = peer[f"new_{number}"].tolist()
        given = torch.tensor([[model.config.bos_token_id, *own_ids(tokenizer, text)]])
        made = model.generate(
            given,
            attention_mask=torch.ones_like(given),
            do_sample=False,
            max_new_tokens=len(new),
            pad_token_id=0,
        )[0, given.shape[1] :].tolist()
        equal += made == new
        n_new += len(new)
        if made != new:
            print(f"text {number}: {tokenizer.decode(made)!r}, not {tokenizer.decode(new)!r}")
    return {"what": "greedy", "texts": len(texts), "equal": equal, "tokens": n_new}


def same_answers(tokenizer: Any, peer: Any, folder: Path, file: Path) -> record.Row:
    """Continuations with the same text as before; of those whose tokens are all still there."""
    before, other = AutoTokenizer.from_pretrained(folder), np.load(file)
    known = set(tokenizer.get_vocab())
    numbers = [i for i in range(len(other.files)) if f"new_{i}" in other]
    stay = equal = 0
    for number in numbers:
        ids = [*other[f"ids_{number}"].tolist(), *other[f"new_{number}"].tolist()]
        if not known.issuperset(before.convert_ids_to_tokens(ids)):
            continue
        stay += 1
        old = before.decode(other[f"new_{number}"].tolist())
        new = tokenizer.decode(peer[f"new_{number}"].tolist())
        equal += old == new
        if old != new:
            print(f"text {number}: {new!r}, not {old!r}")
    return {
        "what": "answers",
        "texts": len(numbers),
        "texts_whose_tokens_stay": stay,
        "equal": equal,
    }


def same_logits(folder: Path, tokenizer: Any, texts: list[str], peer: Any) -> record.Row:
    """Equal ids, equal most likely tokens, and the largest difference of a logit."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    bos = model.config.bos_token_id
    n_same = positions = same_top = 0
    furthest = 0.0
    for number, text in enumerate(texts):
        ids = own_ids(tokenizer, text)
        if ids != peer[f"ids_{number}"].tolist():
            print(f"text {number}: other ids: {text[:60]!r}")
            continue
        n_same += 1
        with torch.inference_mode():
            logits = model(torch.tensor([[bos, *ids]])).logits[0]
        top = peer[f"top_{number}"]
        positions += len(top)
        same_top += int((logits.argmax(dim=1).numpy() == top).sum())
        furthest = max(furthest, float(np.abs(logits[-1].numpy() - peer[f"logits_{number}"]).max()))
    return {
        "what": "llama.cpp",
        "texts": len(texts),
        "equal_ids": n_same,
        "positions": positions,
        "equal_top": same_top,
        "largest_logit_difference": round(furthest, 4),
    }


if __name__ == "__main__":
    main()
