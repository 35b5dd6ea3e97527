"""Text made to hurt: is any of it slow beyond its size, large beyond its size, or deaf to Ctrl-C?

    python benchmarks/adversarial.py --mb 100                    # everything, one table
    python benchmarks/adversarial.py --mb 8 --works bpe encode --texts word a --quarter

Each row is one work on one text in a process of its own, with one thread: CPU seconds, peak memory
above that of a process that has loaded everything, per byte of text, and the longest time that a
Ctrl-C would have waited for its answer. (A timer signals the process every 20 ms; what is measured
is the most CPU time between two answers of the interpreter, whichever language was running.)
`--quarter` also runs a quarter of the text and gives the exponent of growth: 1 is linear, 2 is
quadratic. A work that is not done in `--limit` CPU seconds is stopped and the row says so.

"bytes" is no UTF-8: there the error is the result, and it must come at once.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train

RECIPES = (
    *("bpe", "ist", "superbpe", "matra", "vocabshift"),
    *("boundless", "picky", "stacked", "overlap"),
)
WORKS = (*RECIPES, "encode", "encode-list", "extend", "evaluate")
TICK = 0.02  # seconds
_IS_MAC = sys.platform == "darwin"  # counts bytes where others count kilobytes


def letters(n: int) -> bytes:
    return bytes(np.random.default_rng(0).integers(97, 123, n, dtype=np.uint8))


def distinct(n: int) -> bytes:
    return b" ".join(b"w%xq" % i for i in range(n // 8))


def sample_line(n: int) -> bytes:
    text = train.sample_text().read_bytes().replace(b"\n", b" ")
    return (text * (n // len(text) + 1))[:n].decode(errors="ignore").encode()


def unicode_noise(n: int) -> bytes:
    codes = np.random.default_rng(1).integers(0x20, 0x2FFFF, n // 4)
    return "".join(map(chr, codes[(codes < 0xD800) | (codes > 0xDFFF)].tolist())).encode()


def any_bytes(n: int) -> bytes:
    return bytes(np.random.default_rng(2).integers(0, 256, n, dtype=np.uint8))


TEXTS: dict[str, Callable[[int], bytes]] = {
    "word": letters,  # one word
    "a": lambda n: b"a" * n,
    "ka": lambda n: "क".encode() * (n // 3),  # one character of three bytes
    "pairs": lambda n: b"ab" * (n // 2),
    "pairs apart": lambda n: b"a b " * (n // 4),
    "one word again": lambda n: b" the" * (n // 4),
    "distinct words": distinct,
    "one line": sample_line,
    "spaces": lambda n: b" " * n,
    "newlines": lambda n: b"\n" * n,
    "digits": lambda n: b"1" * n,
    "marks": lambda n: b"a" + "\u0301".encode() * (n // 2),
    "joiners": lambda n: "क्\u200d".encode() * (n // 9),
    "terminals": lambda n: "।".encode() * (n // 3),
    "noise": unicode_noise,
    "bytes": any_bytes,
}


def work_of(name: str, path: Path, vocab_size: int) -> Callable[[], object]:
    """Prepares outside the clock and returns what is measured."""
    import vocabshift as vs

    languages = {"x": path, "y": train.sample_text()}  # two, for what compares languages
    corpus = partial(vs.Corpus.from_files, languages)
    if name in RECIPES:
        from vocabshift.trainers.recipes import RECIPES as KNOWN

        trainer: Any = KNOWN[name].trainer(vocab_size=vocab_size)
        return lambda: trainer.train(corpus())
    base = small_tokenizer()
    if name == "extend":
        return lambda: vs.extend(base, corpus(), n_tokens=200)
    if name == "evaluate":
        return lambda: vs.evaluate({"x": base}, corpus(), ["fertility"])
    encoder, data = vs.Encoder(base), path.read_bytes()
    if name == "encode-list":
        return lambda: encoder.encode_batch([data.decode()])
    start, end = np.array([[0], [len(data)]])
    return lambda: encoder.encode_documents(data, start, end)


def small_tokenizer() -> Any:
    """IST on our own sample text."""
    import vocabshift as vs

    corpus = vs.Corpus.from_files({"text": train.sample_text()})
    return vs.SuperwordTrainer(vocab_size=4_000).train(corpus)


@dataclass(frozen=True)
class Told:
    cpu: float  # seconds
    peak: int  # bytes above the start
    gap: float  # seconds that a Ctrl-C would have waited, at worst
    outcome: str  # "", or the error


def peak_memory() -> int:
    """Most bytes that this process has held.

    Subtle: what Linux gives by getrusage counts the process that started it, too.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if _IS_MAC else 1024)


def _child(name: str, path: Path, vocab_size: int, limit: int, pipe: Connection) -> None:
    timed = work_of(name, path, vocab_size)
    resource.setrlimit(resource.RLIMIT_CPU, (limit + int(time.process_time()),) * 2)
    floor = peak_memory()
    last, gaps = time.process_time(), [0.0]

    def answer(*_: object) -> None:
        nonlocal last
        now = time.process_time()  # what others do on the machine is not ours
        gaps.append(now - last)
        last = now

    signal.signal(signal.SIGALRM, answer)
    outcome, start = "", time.process_time()
    last = start
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        timed()
    except (ValueError, MemoryError) as error:
        outcome = f"{type(error).__name__}: {str(error).rpartition('/')[2]}"
    answer()
    signal.setitimer(signal.ITIMER_REAL, 0)
    cpu = time.process_time() - start
    peak = peak_memory() - floor
    pipe.send(Told(cpu, peak, max(gaps), outcome))


def run(name: str, path: Path, vocab_size: int, limit: int) -> Told:
    """One row's measurement."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(name, path, vocab_size, limit, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        process.join()
        code = process.exitcode
        stopped = code in (-signal.SIGXCPU, -signal.SIGKILL)
        return Told(
            math.nan, 0, math.nan, f"**over {limit} s**" if stopped else f"**died: {code}**"
        )
    finally:
        process.join()


def row(name: str, text: str, mb: float, quarter: bool, measured: Callable[..., Told]) -> str:
    """A line of the table; makes the text and removes it."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for size in (mb / 4, mb) if quarter else (mb,):
            path = Path(folder) / "text.txt"
            path.write_bytes(TEXTS[text](int(size * 1e6)))
            n_bytes = path.stat().st_size
            found[size] = measured(name, path)
    told = found[mb]
    power = (
        ""
        if not quarter
        else f"{math.log(max(told.cpu, 1e-3) / max(found[mb / 4].cpu, 1e-3), 4):.2f}"
    )
    return (
        f"| {name} | {text} | {told.cpu:.2f} | {power} | {told.peak / n_bytes:.1f} "
        f"| {told.gap:.2f} | {told.outcome} |"
    )


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--works", nargs="+", default=WORKS, choices=WORKS)
    parser.add_argument("--texts", nargs="+", default=list(TEXTS), choices=list(TEXTS))
    parser.add_argument("--vocab-size", type=int, default=8_192)
    parser.add_argument("--quarter", action="store_true", help="also a quarter, for the exponent")
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds for a row")
    args = parser.parse_args()
    measured = partial(run, vocab_size=args.vocab_size, limit=args.limit)
    print(f"### Adversarial text, {args.mb:g} MB each, vocabulary {args.vocab_size}\n")
    print("| work | text | CPU s | exponent | bytes per byte | Ctrl-C after, s | |")
    print("|---|---|---|---|---|---|---|")
    for name in args.works:
        for text in args.texts:
            print(row(name, text, args.mb, args.quarter, measured), flush=True)
    print(f"\n{measure.machine()}")


if __name__ == "__main__":
    main()
