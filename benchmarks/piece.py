"""Encode single pieces: texts in which the pre-tokenizer finds no place to cut, or hardly any.

    python benchmarks/piece.py --tokenizer FOLDER --mb 1

The texts are made of the package's own sample words (Hindi and English), of random letters, of DNA,
of base64 and of one character. Prints CPU milliseconds of `Encoder.encode`, of the first run (which
makes what is made once for long words) and the least of `--runs`, and the tokens. Bold is a first
run that takes longer than 20 ms for 1 MB.
"""

from __future__ import annotations

import argparse
import base64
import random
import string
import sys
import time
from pathlib import Path

import regex

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train

WANTED_MS = 20  # for 1 MB, in a first run


def pieces(n_bytes: int) -> dict[str, str]:
    """Texts of about that many bytes, by what they are."""
    sample = train.sample_text().read_text(encoding="utf-8")
    words = regex.findall(r"[\p{L}\p{M}]+", sample)
    rng = random.Random(0)
    some = rng.choices(words, k=n_bytes // 4)
    ascii_words = [word.lower() for word in words if word.isascii()]
    consonants = [chr(code) for code in range(0x915, 0x93A)]
    base64_letters = base64.b64encode(rng.randbytes(n_bytes)).decode()
    texts = {
        "words and spaces": " ".join(some),
        "one word of words": "".join(some),
        "one word of English words": "".join(rng.choices(ascii_words, k=n_bytes // 3)),
        "one word of random letters": "".join(rng.choices(string.ascii_lowercase, k=n_bytes)),
        "random letters of Hindi": "".join(rng.choices(consonants, k=n_bytes // 3)),
        "the letters of base64": regex.sub("[^A-Za-z]", "", base64_letters),
        "base64": base64_letters,
        "DNA": "".join(rng.choices("ACGT", k=n_bytes)),
        "one letter": "a" * n_bytes,
        "one sign": "=" * n_bytes,
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
    print("| piece | first, CPU ms | CPU ms | MB/s | tokens |\n|---|---:|---:|---:|---:|")
    for name, text in pieces(int(args.mb * 1e6)).items():
        taken = []
        for _ in range(args.runs):
            start = time.process_time()
            tokens = len(encoder.encode(text))
            taken.append(1000 * (time.process_time() - start))
        speed = 1000 * args.mb / min(taken)
        first = f"{taken[0]:.1f}" if taken[0] <= WANTED_MS * args.mb else f"**{taken[0]:.1f}**"
        print(f"| {name} | {first} | {min(taken):.1f} | {speed:.0f} | {tokens:,} |")
    print(f"\n{measure.machine()}")


if __name__ == "__main__":
    main()
