"""Copy a chat model, and let documents begin and end with the token that pre-training used.

    python recipes/keep_the_model/document_start.py runs/smollm2/model runs/keep_the_model/model

SmolLM2-Instruct names `<|im_start|>` as BOS. It begins a chat message: a role is what the model
expects after it, and text is a surprise. On FLORES that costs 0.1 bits per byte of English, which
any training on text wins back, so that a model which has lost its English seems to have kept it.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--token", default="<|endoftext|>")
    args = parser.parse_args()
    tokens = json.loads((args.model / "tokenizer.json").read_text("utf-8"))["added_tokens"]
    ids = {each["content"]: each["id"] for each in tokens}
    if args.token not in ids:
        raise SystemExit(f"{args.model} has no special token {args.token}; there are {[*ids]}")
    token_id = ids[args.token]
    partial = args.out.with_name(args.out.name + ".partial")
    if partial.exists():  # of a run that was killed
        shutil.rmtree(partial)
    shutil.copytree(args.model, partial)
    for name in ("config.json", "generation_config.json"):
        values = json.loads((partial / name).read_text("utf-8"))
        values |= {"bos_token_id": token_id, "eos_token_id": token_id}
        (partial / name).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    file = partial / "tokenizer_config.json"
    values = json.loads(file.read_text("utf-8"))
    values |= {"bos_token": args.token, "eos_token": args.token}
    file.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    partial.rename(args.out)


if __name__ == "__main__":
    main()
