"""Count and encode in engines: beside the local command, and beside what people do without us.

    python benchmarks/synthetic.py hi=hindi.txt en=english.txt --gb 4 -o big.txt
    python benchmarks/engines.py --text big.txt --megabytes 100 1000 4000 --results engines.jsonl
    python benchmarks/engines.py --text big.txt --megabytes 100 --ways words-spark \\
        superwords-spark --master 'local-cluster[2,1,2048]' --kill executor:20 --at runs
    python benchmarks/engines.py --results engines.jsonl --ways

Ways of `words`: `vocabshift count` here (-local) and on Spark (-spark); plain PySpark, `flatMap` of
the same pattern in Python's `regex` and `reduceByKey` (-regex); a pipeline of datatrove and
`count --join` (-datatrove). Of `superwords`: `train` on the text (-text), and from counts, three
steps `words`, `runs` and `train`, here (-local) or the first two on Spark (-spark). Of `ids`:
`EncodeTexts` in Spark and Ray, `EncodeDocuments` in datatrove, and `tokenizers` in the same places
(-tokenizers; datatrove's step: -own). `encode-megatron` and `encode-nanotron` are `vocabshift
encode`. Each step is a new process; they run one after the other.

Seconds are wall time, the start of Python and of the JVM included. CPU seconds are those of all
processes, sampled every half second, more often in the first five. Peaks are the largest resident
memory of one process of a kind (VmHWM): a JVM that runs tasks (of an executor, or in local mode of
the driver), a Python worker, and any other Python. Bytes shuffled are those that Spark's tasks
wrote for others, from its event log, by stage; so are the tasks that were lost and run again. What
is equal has one checksum: words with their counts, ids, the merges of a tokenizer, or the bytes of
a folder.

`--kill KIND:SECONDS` kills one process by SIGKILL, so many seconds after the first of its kind
was at work: a Python `worker` of Spark, an `executor`, a Ray `actor`, a `task` of datatrove, or the
`command` itself, which is then run again. `--at` names the step. A row that is in `--results` is
not measured again, so a list of sizes can be interrupted.
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
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import engine_ways
import measure
import train

_TICKS = os.sysconf("SC_CLK_TCK")
_MARK = "VOCABSHIFT_MEASURED"
_KINDS = {  # of a process, by its command line; the first that fits
    "executor": "CoarseGrainedExecutorBackend",
    "worker": "pyspark.daemon",
    "actor": "ray::Map",
    "task": "multiprocess.forkserver",
}
_PART_BYTES = 32_000_000
_PATIENCE = 30.0  # seconds without work after a kill: nobody waits for the dead
_SIZES = ["--recipe", "ist", "--vocab-size", "64000"]
WAYS = {
    "words-local": ["words"],
    "words-spark": ["words"],
    "superwords-text": ["train"],
    "superwords-local": ["words", "runs", "train"],
    "superwords-spark": ["words", "runs", "train"],
    "encode-megatron": ["encode"],
    "encode-nanotron": ["encode"],
    **{way: [way.partition("-")[0]] for way in engine_ways.WAYS},
}


@dataclass
class Row:
    """One step of one way."""

    way: str
    step: str
    megabytes: float
    engine: str
    conf: list[str]
    kill: str | None
    seconds: float = 0.0
    cpu: float = 0.0
    peak_mb: dict[str, float] = field(default_factory=dict)
    shuffled: dict[str, int] = field(default_factory=dict)  # by stage
    found: int = 0
    checksum: int = 0
    killed: str = ""
    lost: dict[str, int] = field(default_factory=dict)  # tasks of Spark, by stage
    again: int = 0  # times that the command had to be repeated

    @property
    def key(self) -> list[Any]:
        return [self.way, self.step, self.megabytes, self.engine, self.conf, self.kill]


def processes(mark: str) -> Iterator[tuple[int, float, float, str]]:
    """(pid, CPU seconds, peak MB, kind) of every process that inherited the mark."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() not in (folder / "environ").read_bytes():
                continue
            times = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
            line = (folder / "cmdline").read_text().replace("\0", " ")
            peak = (folder / "status").read_text().partition("VmHWM:")[2].split()[0]
        except (OSError, IndexError):
            continue
        kind = next((name for name, text in _KINDS.items() if text in line), None)
        if kind is None:
            kind = "driver" if "java" in line.partition(" ")[0] else "command"
        yield int(folder.name), sum(map(int, times)) / _TICKS, int(peak) / 1024, kind


def observe(command: list[str], row: Row, kill: str | None) -> str:
    """Run a command, watch all its processes, and add to the figures of a row; what it printed."""
    mark, cpu = f"{_MARK}={uuid.uuid4().hex}", dict[int, float]()
    victim, _, wait = (kill or "").partition(":")
    at_work = idle_since = None
    start = time.perf_counter()
    environment = dict([*os.environ.items(), mark.split("=")])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as run:
        while run.poll() is None:
            before, now = sum(cpu.values()), time.perf_counter()
            found = list(processes(mark))
            victims = [
                (used - cpu.get(pid, 0), pid) for pid, used, _, kind in found if kind == victim
            ]
            for pid, seconds, peak, kind in found:
                cpu[pid] = seconds
                row.peak_mb[kind] = max(row.peak_mb.get(kind, 0.0), peak)
            # Spark's workers have a daemon above them, and datatrove's tasks a server.
            if at_work is None and len(victims) > (victim in ("worker", "task")):
                at_work = now
            is_time = at_work is not None and now - at_work >= float(wait or 0)
            if is_time and victims and max(victims)[0] > 0:  # it is at work right now
                os.kill(max(victims)[1], signal.SIGKILL)
                row.killed, victim = f"{victim} after {now - start:.0f} s", ""
            if sum(cpu.values()) > before + 0.02 or not row.killed:
                idle_since = now
            elif now - (idle_since or now) > _PATIENCE:
                break
            time.sleep(0.5 if now - start > 5 else 0.05)  # or a short command is never sampled
        if run.returncode is None:  # it waits for what was killed
            for pid, *_ in processes(mark):
                os.kill(pid, signal.SIGKILL)
        assert run.stdout is not None
        said = run.stdout.read()
    row.seconds += time.perf_counter() - start
    row.cpu += sum(cpu.values())
    if run.returncode and row.killed and not row.again:
        row.again += 1
        return observe(command, row, None)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {run.returncode}")
    return said


def command_of(row: Row, text: Path, folder: Path, args: argparse.Namespace) -> list[str]:
    """What a step runs. It writes into `folder`, in which the steps before it have written."""
    out, log = folder / row.step, folder / f"{row.step}-log"
    log.mkdir(exist_ok=True)
    conf = ["spark.eventLog.enabled=true", f"spark.eventLog.dir=file://{log}"]
    conf += ["spark.eventLog.compress=false", "spark.eventLog.rolling.enabled=false", *row.conf]
    if row.way in engine_ways.WAYS:
        program = Path(__file__).with_name("engine_ways.py")
        command = [sys.executable, str(program), row.way, "--text", str(text), "--out", str(out)]
        command += ["--tokenizer", args.tokenizer, "--threads", str(args.threads)]
        return [*command, "--master", args.master, "--conf", *conf]
    run = [sys.executable, "-m", "vocabshift"]
    here = ["-j", str(args.threads), "-o", str(out), "--json"]
    if row.step == "encode":
        form = row.way.partition("-")[2]
        return [*run, "encode", args.tokenizer, str(text), "--format", form, *here]
    if row.step == "train":
        counted = ["--counts", str(folder / "words"), "--runs", str(folder / "runs")]
        source = ["--corpus", str(text)] if row.way == "superwords-text" else counted
        return [*run, "train", *_SIZES, *source, *here]
    count = [*run, "count", str(text)]
    if row.way.startswith("superwords"):
        of_runs = ["--runs", "--counts", str(folder / "words"), *_SIZES]
        count += of_runs if row.step == "runs" else ["--pattern", "ist-stage2+o200k"]
    if not row.way.endswith("-spark"):
        return [*count, *here]
    return [*count, "--engine", "spark", "--master", args.master, "--conf", *conf, *here[2:]]


def result_of(row: Row, folder: Path, said: str) -> engine_ways.Found:
    """Size and checksum of what a step made."""
    out = folder / row.step
    if row.way in engine_ways.WAYS:
        found, checksum = json.loads(said.splitlines()[-1])
        return found, checksum
    if row.step == "words":
        return engine_ways.of_folder(out)
    if row.step == "encode":
        return engine_ways.of_packed(out)
    if row.step == "train":
        tokenizer = (out / "tokenizer.json").read_bytes()
        return len(json.loads(tokenizer)["model"]["vocab"]), zlib.crc32(tokenizer)
    return json.loads(said)["runs"], zlib.crc32(
        b"".join(file.read_bytes() for file in sorted(out.glob("*")) if file.is_file())
    )


def rows_of(way: str, megabytes: float, args: argparse.Namespace) -> Iterator[Row]:
    """The steps of a way, not measured yet."""
    on_spark = "spark" in way or way == "words-regex"
    for step in WAYS[way]:
        engine = args.master if on_spark and step != "train" else f"{args.threads} processes"
        if way.endswith(("local", "text")) or step in ("train", "encode"):
            engine = f"{args.threads} threads"
        kill = args.kill if args.at in (None, step) else None
        yield Row(way, step, megabytes, engine, args.conf if on_spark else [], kill)


def write_parts(text: Path, megabytes: float, folder: Path) -> None:
    """The beginning of a text as files of whole lines."""
    left = int(megabytes * 1e6)
    with text.open("rb") as whole:
        for number in range(sys.maxsize):
            data = whole.read(min(_PART_BYTES, left)) + whole.readline()
            left -= len(data)
            if not data:
                raise SystemExit(f"{text} has fewer than {megabytes:g} MB")
            (folder / f"{number:05d}.txt").write_bytes(data.rstrip(b"\n") + b"\n")
            if left <= 0:
                return


def show(rows: list[Row]) -> None:
    """All rows as Markdown; what is not equal to the first of its kind is marked."""
    print(
        "| MB | way | step | where | s | CPU s | shuffled, bytes per byte | JVM MB | worker MB | "
        "command MB | found | checksum | killed; tasks lost | repeated |\n|" + "---|" * 14
    )
    first: dict[tuple[Any, ...], int] = {}
    for row in sorted(rows, key=lambda row: (row.way.partition("-")[0], row.step, row.megabytes)):
        what = row.way if row.step == "encode" else row.way.partition("-")[0]
        is_same = row.checksum == first.setdefault((what, row.step, row.megabytes), row.checksum)
        by_stage = [written / row.megabytes / 1e6 for written in row.shuffled.values()]
        shuffled = " + ".join(f"{each:.4f}" for each in by_stage if each > 1e-4)
        jvm = row.peak_mb.get("executor") or row.peak_mb.get("driver", 0.0)
        worker = max(row.peak_mb.get(kind, 0.0) for kind in ("worker", "actor", "task"))
        cells = [f"{row.megabytes:g}", row.way, row.step, " ".join([row.engine, *row.conf])]
        cells += [f"{row.seconds:.1f}", f"{row.cpu:.1f}", shuffled]
        cells += [f"{mb:.0f}" if mb else "" for mb in (jvm, worker, row.peak_mb.get("command"))]
        cells += [f"{row.found:,}"]
        lost = [f"; {n} tasks of stage {stage}" for stage, n in row.lost.items()]
        cells += [f"{row.checksum:016x}{'' if is_same else ' **other**'}"]
        cells += [row.killed + "".join(lost)]
        print(f"| {' | '.join([*cells, str(row.again or '')])} |", flush=True)
    print("\n" + measure.machine())


def main() -> None:
    """Measure what is not in the results yet, and print all of them as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a UTF-8 text file (default: our samples)")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[0.1])
    usual = ["words-local", "words-spark", "words-regex"]
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=usual, metavar="WAY")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--threads", type=int, default=2, help="of what is not Spark")
    parser.add_argument("--tokenizer", default="", help="folder, for ids and encode")
    parser.add_argument("--conf", nargs="*", default=[], help="settings of Spark")
    parser.add_argument("--kill", metavar="KIND:SECONDS")
    parser.add_argument("--at", metavar="STEP", help="the step in which --kill kills")
    parser.add_argument("--results", type=Path, help="file of results, which is added to")
    args = parser.parse_args()
    lines = args.results.read_text().splitlines() if args.results and args.results.exists() else []
    rows = [Row(**json.loads(line)) for line in lines]
    for megabytes in args.megabytes:
        for way in args.ways:
            wanted = list(rows_of(way, megabytes, args))
            if all(row.key in [known.key for known in rows] for row in wanted):
                continue
            with tempfile.TemporaryDirectory() as name:
                text = Path(name) / "text"
                text.mkdir()
                write_parts(args.text or train.sample_text(), megabytes, text)
                for row in wanted:
                    command = command_of(row, text, Path(name), args)
                    said = observe(command, row, row.kill)
                    row.found, row.checksum = result_of(row, Path(name), said)
                    log = Path(name) / f"{row.step}-log"
                    row.shuffled, row.lost = engine_ways.of_event_log(log)
            rows += wanted
            if args.results:
                with args.results.open("a") as file:
                    file.writelines(json.dumps(asdict(row)) + "\n" for row in wanted)
    show(rows)


if __name__ == "__main__":
    main()
