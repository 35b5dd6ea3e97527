"""Real text and vendor tokenizers for tests that need them: deterministic mixtures, one loading."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer


@lru_cache(maxsize=4)
def vendor(path: Path) -> Tokenizer:
    """A vendor's tokenizer, loaded once for tests in a row: never changed, for it cannot be."""
    return load_tokenizer(path)


@lru_cache(maxsize=2)
def vendor_engine(path: Path) -> Engine:
    """The same, ready to be judged."""
    return engine_of(vendor(path))


def mixture(shared_data: Path, megabytes: float) -> list[str]:
    """About so many MB of every language and code, as lines in shuffled blocks of 32."""
    files = sorted((shared_data / "train").glob("*.txt"))
    share = int(megabytes * 1e6 / len(files))
    rng = random.Random(2)
    blocks = []
    for file in files:
        with file.open("rb") as stream:  # from a place inside, for heads are often alike
            stream.seek(max(0, file.stat().st_size // 2 - share))
            head = stream.read(share)
        lines = head.decode(errors="ignore").split("\n")[1:-1]
        blocks += [lines[at : at + 32] for at in range(0, len(lines), 32)]
    rng.shuffle(blocks)
    return [line for block in blocks for line in block if line]


def eval_lines(shared_data: Path, n_bytes: int | None = None) -> dict[str, list[str]]:
    """Lines of every evaluation file, or of its first bytes, by its path."""
    folder = shared_data / "eval"
    texts = {}
    for file in sorted(folder.rglob("*.txt")):
        head = file.read_bytes()[:n_bytes].decode(errors="ignore")
        texts[str(file.relative_to(folder))] = head.split("\n")
    return texts
