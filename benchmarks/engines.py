"""Count and encode on Spark: beside the local command, and beside what people do without us.

    python benchmarks/engines.py --text corpus.txt --megabytes 100 --master 'local[2]'
    python benchmarks/engines.py --text corpus.txt --ways spark --master 'local[2,4]' \\
        --kill worker:30
    python benchmarks/engines.py --text corpus.txt --ways spark \\
        --master 'local-cluster[2,1,2048]' --kill executor:60

Ways: "local" and "spark" are `vocabshift count`; "regex" is plain PySpark, `flatMap` of the same
pattern in Python's `regex` and `reduceByKey`; "arrow" encodes with `EncodeTexts` in `mapInArrow`,
"tokenizers" with that library in `mapInPandas`. Each is a new process, one after the other.

Seconds are wall time from start to end, the start of Python and of the JVM included. CPU seconds
and peak memory (PSS) are those of all processes of the session, sampled every half second. Bytes
shuffled are those that Spark's tasks wrote for others, from its event log. The checksum is of all
words with their counts, or of all ids. `--kill` kills one Python worker or executor of the run by
SIGKILL, so many seconds after its first task began.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train

_TICKS = os.sysconf("SC_CLK_TCK")
_VICTIMS = {"worker": "pyspark.daemon", "executor": "CoarseGrainedExecutorBackend"}


# What runs in a process of its own; each prints one JSON object.


def checksum(words: Iterable[tuple[bytes, int]]) -> tuple[int, int]:
    """Number of words, and a sum that does not depend on their order."""
    n_words = total = 0
    for word, count in words:
        n_words += 1
        total += zlib.crc32(word) * count
    return n_words, total % (1 << 64)


def of_folder(folder: Path) -> tuple[int, int]:
    from vocabshift import CountFolder

    def words() -> Iterator[tuple[bytes, int]]:
        counts = CountFolder.open(folder)
        for data, ends, numbers in counts.read(0):
            begin = 0
            for end, count in zip(ends.tolist(), numbers.tolist(), strict=True):
                yield data[begin:end], count
                begin = end

    return checksum(words())


def run_regex(session: Any, text: Path, _tokenizer: str) -> tuple[int, int]:
    import regex

    from vocabshift.text.patterns import NAMED

    [split] = NAMED["o200k"]
    words = regex.compile(split.regex)
    lines = session.sparkContext.textFile(f"file://{text}")
    counted = lines.flatMap(words.findall).map(lambda word: (word, 1))
    sums = counted.reduceByKey(lambda a, b: a + b)
    pairs = sums.map(lambda pair: (1, zlib.crc32(pair[0].encode()) * pair[1]))
    n_words, total = pairs.reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]))
    return n_words, total % (1 << 64)


def run_tokenizers(session: Any, text: Path, tokenizer: str) -> tuple[int, int]:
    def encode(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas
        from tokenizers import Tokenizer

        backend = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
        for frame in frames:
            encodings = backend.encode_batch(list(frame["value"]), add_special_tokens=False)
            yield pandas.DataFrame({"ids": [encoding.ids for encoding in encodings]})

    lines = session.read.text(str(text), lineSep="\n").where("value != ''")
    return _of_ids(lines.mapInPandas(encode, "ids array<int>"))


def run_arrow(session: Any, text: Path, tokenizer: str) -> tuple[int, int]:
    from vocabshift.engines import EncodeTexts

    lines = session.read.text(str(text), lineSep="\n").where("value != ''")
    encode = EncodeTexts(tokenizer, "value")
    return _of_ids(_encoded(lines, encode))


def _encoded(lines: Any, encode: Any) -> Any:
    """Only the ids."""

    def ids(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in encode(batches):
            import pyarrow as pa

            yield pa.record_batch([batch.column("input_ids")], names=["ids"])

    return lines.mapInArrow(ids, "ids array<int>")


def _of_ids(frame: Any) -> tuple[int, int]:
    from pyspark.sql import functions as f

    sums = f.aggregate("ids", f.lit(0).cast("long"), lambda total, each: total + each)
    row = (
        frame.select(f.size("ids").alias("n"), sums.alias("s"))
        .agg({"n": "sum", "s": "sum"})
        .first()
    )
    return int(row["sum(n)"]), int(row["sum(s)"])


def run_inside(args: argparse.Namespace) -> None:
    """One of the ways that need a session of their own."""
    from vocabshift.engines.spark_session import SparkSettings, open_session

    with open_session(SparkSettings(args.master, tuple(args.conf))) as session:
        way = {"regex": run_regex, "tokenizers": run_tokenizers, "arrow": run_arrow}[args.inside]
        print(json.dumps(way(session, args.text, args.tokenizer)))


# Measuring all processes of a session.


@dataclass
class Figures:
    seconds: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0
    shuffled: int = 0
    words: int = 0
    checksum: int = 0
    killed: str = ""


def _session_processes(session: int) -> Iterator[tuple[int, float, float, str]]:
    """(pid, CPU seconds, PSS in MB, command line) of every process of a session."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            pss = (folder / "smaps_rollup").read_text().partition("Pss:")[2].split()[0]
            line = (folder / "cmdline").read_text().replace("\0", " ")
        except (OSError, IndexError):
            continue
        yield int(folder.name), (int(fields[11]) + int(fields[12])) / _TICKS, int(pss) / 1024, line


def observe(command: list[str], kill: str | None) -> tuple[Figures, str]:
    """Run a command in a session of its own, and watch it."""
    figures, cpu = Figures(), dict[int, float]()
    victim, _, wait = (kill or "").partition(":")
    first_task = None
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        while run.poll() is None:
            processes = list(_session_processes(run.pid))
            cpu |= {pid: seconds for pid, seconds, _, _ in processes}
            figures.peak_mb = max(figures.peak_mb, sum(pss for _, _, pss, _ in processes))
            workers = [pid for pid, _, _, line in processes if _VICTIMS["worker"] in line]
            if first_task is None and len(workers) > 1:
                first_task = time.perf_counter()
            if victim and first_task and time.perf_counter() - first_task >= float(wait):
                found = [
                    (pid, used) for pid, used, _, line in processes if _VICTIMS[victim] in line
                ]
                pid = max(found, key=lambda each: each[1])[0]
                os.kill(pid, signal.SIGKILL)
                at = time.perf_counter() - start
                figures.killed, victim = f"{victim} {pid} after {at:.0f} s", ""
            time.sleep(0.5)
        assert run.stdout is not None
        said = run.stdout.read()
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {run.returncode}")
    figures.seconds, figures.cpu = time.perf_counter() - start, sum(cpu.values())
    return figures, said


def shuffled_bytes(log: Path) -> int:
    """What tasks wrote for other tasks, from Spark's event log."""
    total = 0
    for file in log.rglob("*"):
        for line in file.read_text().splitlines() if file.is_file() else ():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                total += event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return total


def measured(way: str, text: Path, args: argparse.Namespace, folder: Path) -> Figures:
    out, log = folder / f"{way}-counts", folder / f"{way}-log"
    log.mkdir()
    conf = [
        *("spark.eventLog.enabled=true", f"spark.eventLog.dir=file://{log}"),
        *("spark.eventLog.compress=false", "spark.eventLog.rolling.enabled=false", *args.conf),
    ]
    count = [sys.executable, "-m", "vocabshift", "count", str(text), "-o", str(out), "--json"]
    if way == "local":
        command = [*count, "-j", str(args.threads)]
    elif way == "spark":
        command = [*count, "--engine", "spark", "--master", args.master, "--conf", *conf]
    else:
        command = [sys.executable, __file__, "--inside", way, "--text", str(text)]
        command += ["--master", args.master, "--tokenizer", args.tokenizer, "--conf", *conf]
    figures, said = observe(command, args.kill if way == "spark" else None)
    found = of_folder(out) if way in ("local", "spark") else json.loads(said.splitlines()[-1])
    figures.words, figures.checksum = found
    figures.shuffled = shuffled_bytes(log)
    return figures


def main() -> None:
    """Run the comparison and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=None, help="a UTF-8 text file")
    parser.add_argument("--megabytes", type=float, help="text to count (default: all)")
    parser.add_argument("--ways", nargs="+", default=["local", "spark", "regex"])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--threads", type=int, default=2, help="of the local command")
    parser.add_argument("--tokenizer", default="", help="folder, for arrow and tokenizers")
    parser.add_argument("--conf", nargs="*", default=[], help="settings of Spark")
    parser.add_argument("--kill", metavar="worker|executor:SECONDS")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return run_inside(args)
    text = args.text or train.sample_text()
    with tempfile.TemporaryDirectory() as name:
        part = Path(name) / "text.txt"
        with text.open("rb") as whole:
            data = whole.read(int(args.megabytes * 1e6) if args.megabytes else -1)
        part.write_bytes(data[: data.rfind(b"\n") + 1])
        size = part.stat().st_size
        del data
        print(
            f"| way, {size / 1e6:.1f} MB | master | s | CPU s | shuffled, bytes per byte | "
            "peak MB | words | checksum | killed |\n|" + "---|" * 9
        )
        for way in args.ways:
            f = measured(way, part, args, Path(name))
            where = f"{args.threads} threads" if way == "local" else args.master
            print(
                f"| {way} | {where} | {f.seconds:.1f} | {f.cpu:.1f} | {f.shuffled / size:.4f} | "
                f"{f.peak_mb:.0f} | {f.words} | {f.checksum:016x} | {f.killed} |",
                flush=True,
            )
    print("\n" + measure.machine())
    return None


if __name__ == "__main__":
    main()
