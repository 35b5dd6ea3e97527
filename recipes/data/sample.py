"""A smaller corpus of the same make-up: lines drawn at random from every file of a folder.

    python recipes/data/sample.py train/ sample/ --mb 50 --seed 1

Every `.txt` and `.jsonl` gives the same share of its lines, in their order, so the shares of the
languages stay. (Heads of files will not do: files are often sorted by source.)
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path


def main() -> None:
    """Write the sample, file by file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="folder")
    parser.add_argument("output", type=Path, help="folder; made where it does not exist")
    parser.add_argument("--mb", type=float, required=True, help="10^6 bytes, of all files together")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    files = sorted([*args.source.glob("*.txt"), *args.source.glob("*.jsonl")])
    n_bytes = sum(file.stat().st_size for file in files)
    if not n_bytes:
        parser.error(f"{args.source} holds no .txt or .jsonl with text")
    share = args.mb * 1e6 / n_bytes
    args.output.mkdir(parents=True, exist_ok=True)
    for file in files:
        rng = random.Random(f"{args.seed} {file.name}")  # a file's sample knows no other file
        with file.open("rb") as lines, (args.output / file.name).open("wb") as out:
            out.writelines(line for line in lines if rng.random() < share)


if __name__ == "__main__":
    main()
