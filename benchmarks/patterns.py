"""Encode with one vocabulary and the patterns of many vendors: split by the core, and by
`tokenizers`.

    python benchmarks/patterns.py --quick
    python benchmarks/patterns.py --text hi.txt en.txt code.txt --tokenizer FOLDER --mb 4

FOLDER is a byte-level tokenizer; its pre-tokenizer is replaced by each pattern in turn and its
normalizer taken away, for that has figures of its own. The texts are cut into documents of about
4 KB. Prints MB per CPU second on one thread of a second pass, the best of `--runs`, with the core's
scanners, with `tokenizers` cutting and the core encoding, and with `tokenizers` alone. All give
the same ids; a row with other ids ends the run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import encode
import measure
import numpy as np
import train

from vocabshift.text import regexes
from vocabshift.text.patterns import NAMED, Pattern, to_spec
from vocabshift.text.splits import Split

PATTERNS: dict[str, Pattern] = {
    **{name: NAMED[name] for name in ("gpt2", "cl100k", "qwen2", "qwen35", "o200k", "kimi")},
    **{name: NAMED[name] for name in ("deepseek", "smollm", "tekken")},
    "cl100k (tiktoken)": (Split(regexes.CL100K_POSSESSIVE),),
}


def best(encode_all: Callable[[], Any], runs: int) -> float:
    """The least CPU seconds of `runs` calls after one that builds the tables."""
    encode_all()
    least = float("inf")
    for _ in range(runs):
        start = time.process_time()
        encode_all()
        least = min(least, time.process_time() - start)
    return least


def sides(tokenizer: Any) -> dict[str, Callable[[list[str]], np.ndarray]]:
    """Ways to encode a list of texts, by name."""
    import vocabshift as vs
    from vocabshift.tokenizer import pipeline

    core = vs.Encoder(tokenizer)
    scanners = pipeline.compile_pattern
    pipeline.compile_pattern = lambda *_: None
    behind = vs.Encoder(tokenizer)
    pipeline.compile_pattern = scanners
    backend = tokenizer.backend

    def alone(texts: list[str]) -> np.ndarray:
        encoded = [backend.encode(text, add_special_tokens=False).ids for text in texts]
        return np.concatenate([np.array(ids, dtype=np.int32) for ids in encoded])

    return {
        "core": lambda texts: core.encode_batch(texts, threads=1)[0],
        "core behind `tokenizers`": lambda texts: behind.encode_batch(texts, threads=1)[0],
        "`tokenizers`": alone,
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, nargs="+")
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--pattern", nargs="+", choices=PATTERNS, default=list(PATTERNS))
    parser.add_argument("--mb", type=float, default=4.0, help="of each text, for the core")
    parser.add_argument("--slow-mb", type=float, default=0.5, help="for the others")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick:
        args.text = [train.sample_text()]
        args.tokenizer = encode.superword_tokenizer(args.text[0])
    if not (args.text and args.tokenizer):
        parser.error("give --text and --tokenizer, or --quick")
    import vocabshift as vs

    base = replace(vs.load_tokenizer(args.tokenizer), normalizer=None)
    rows: dict[str, list[str]] = {}
    for path in args.text:
        texts, size = [], 0
        for text in encode.documents(path):
            if size >= args.mb * 1e6:
                break
            texts.append(text)
            size += len(text.encode())
        few = texts[: max(1, int(len(texts) * args.slow_mb / args.mb))]
        for name in args.pattern:
            ways = sides(replace(base, pre_tokenizer=to_spec(PATTERNS[name])))
            checksums = {way: encode_all(few).tobytes() for way, encode_all in ways.items()}
            if len(set(checksums.values())) > 1:
                raise SystemExit(f"{name}, {path.name}: the ids differ")
            cells = []
            for way, encode_all in ways.items():
                own = texts if way == "core" else few
                megabytes = sum(len(text.encode()) for text in own) / 1e6
                seconds = best(lambda e=encode_all, own=own: e(own), args.runs)
                cells.append(f"{megabytes / seconds:.1f}")
            rows.setdefault(name, []).append(" / ".join(cells))
            print(name, path.name, cells, file=sys.stderr)
    print("| pattern | " + " | ".join(path.stem for path in args.text) + " |")
    print("|---" * (len(args.text) + 1) + "|")
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(f"\n{measure.machine()}")


if __name__ == "__main__":
    main()
