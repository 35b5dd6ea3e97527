"""A tiny Llama with random weights for a tokenizer, so that `--smoke` needs no download."""

from __future__ import annotations

import sys
from pathlib import Path

import vocabshift as vs

sys.path.append(str(Path(__file__).parents[1] / "adaptation_study"))
from training import Setting, make

if __name__ == "__main__":
    tokenizer, folder = vs.load_tokenizer(sys.argv[1]), Path(sys.argv[2])
    setting = Setting(hidden=32, layers=1, length=32, step_bytes=500, points=1)
    tokenizer.save_pretrained(folder)
    make(tokenizer, setting, seed=0).save_pretrained(folder)
