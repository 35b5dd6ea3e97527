"""Encode single pieces: texts in which the pre-tokenizer finds no place to cut, or hardly any.

    python benchmarks/piece.py --tokenizer FOLDER --mb 1

The texts are made of the package's own sample words (Hindi and English), of random letters and of
one letter. Prints CPU milliseconds of `Encoder.encode`, the least of `--runs`, and the tokens.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import regex

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train


def pieces(n_bytes: int) -> dict[str, str]:
    """Texts of about that many bytes, by what they are."""
    sample = train.sample_text().read_text(encoding="utf-8")
    words = regex.findall(r"[\p{L}\p{M}]+", sample)
    rng = random.Random(0)
    some = rng.choices(words, k=n_bytes // 4)
    letters = rng.choices("abcdefghijklmnopqrstuvwxyz", k=n_bytes)
    texts = {
        "words and spaces": " ".join(some),
        "one word of words": "".join(some),
        "one word of random letters": "".join(letters),
        "one letter": "a" * n_bytes,
    }
    return {name: text.encode()[:n_bytes].decode(errors="ignore") for name, text in texts.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder of a tokenizer.json")
    parser.add_argument("--mb", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    import vocabshift as vs

    encoder = vs.Encoder.from_pretrained(args.tokenizer)
    print(f"### Single pieces of {args.mb} MB: {args.tokenizer.name}\n")
    print("| piece | CPU ms | MB/s | tokens |\n|---|---:|---:|---:|")
    for name, text in pieces(int(args.mb * 1e6)).items():
        least = float("inf")
        for _ in range(args.runs):
            start = time.process_time()
            tokens = len(encoder.encode(text))
            least = min(least, time.process_time() - start)
        print(f"| {name} | {1000 * least:.1f} | {args.mb / least:.0f} | {tokens:,} |")
    print(f"\n{measure.machine()}")


if __name__ == "__main__":
    main()
