"""Fuzz the core with libFuzzer, every target for the same time: `make fuzz-core MINUTES=5`.

    python benchmarks/fuzz_core.py build/fuzz --minutes 5
    python benchmarks/fuzz_core.py build/fuzz --minutes 120 --only regex train --record
    python benchmarks/fuzz_core.py build/fuzz --until-quiet 30 --record
    python benchmarks/fuzz_core.py build/fuzz --only encode --seeds build/fuzz/corpus/train

The targets are the programs of `cpp/fuzz`, built with the address and undefined-behaviour
sanitizers. Two run at a time. They begin with our sample texts and named patterns and keep what
reaches new code in BUILD/corpus, where the next run goes on. With `--seed` and without that folder
the same inputs come in the same order. Prints executions, edges reached and findings; a finding
ends the run with an error and the command that repeats it. With `--until-quiet 30` each target runs
until it met no new edge for 30 minutes, or tried 200 million inputs. `--record` adds the executions
to `fuzz_core.jsonl` and writes the table of all runs into RESULTS.md.

Of `--seeds` a target takes the inputs that reach what its own do not: most targets draw a
pre-tokenizer and a text alike. Give no folder of a target that runs: libFuzzer takes them up anew,
without end, where one is gone meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from vocabshift.demo import story
from vocabshift.text.patterns import NAMED

HERE = Path(__file__).parent
RECORD, RESULTS = HERE / "fuzz_core.jsonl", HERE / "RESULTS.md"
MOST_BYTES = 1024  # of an input: what goes wrong goes wrong in short texts
AT_A_TIME = 2
ENOUGH = 200_000_000  # executions of a target
LOOK_EVERY = 5  # seconds, at the log of a running target
INTERRUPTED = 72  # libFuzzer's exit code
# What regexes are made of, so that it is drawn as a whole.
OF_REGEXES = r"""
^ $ . | * + ? *? ++ ?+ {2} {1,3} {,2} {2,} ( ) (?: (?i) (?i: (?= (?! (?<= (?<! (?> (?#
[ [^ ] && - [: [:^ :] [:alpha:] [:space:] \p{ \P{ \p{^ } L Lu N Nd P S Z M Cc Han Latin Alphabetic
\d \D \s \S \w \W \h \H \A \z \Z \b \B \N \O \R \t \r \u00e9 \x41 \x{1f600} \p{word} K s é 一
"""
TABLE = re.compile(r"(<!-- fuzz -->\n).*?(<!-- /fuzz -->)", flags=re.DOTALL)


@dataclass(frozen=True)
class Run:
    """What one target did."""

    target: str
    executions: int
    seconds: int
    edges: int
    finding: str  # the file with the input; "" for none
    date: str
    quiet_seconds: int | None = None  # up to its end, without a new edge


def targets(build: Path) -> dict[str, Path]:
    """The programs by name."""
    found = {file.name.removeprefix("fuzz_"): file for file in sorted(build.glob("fuzz/fuzz_*"))}
    return {name: file for name, file in found.items() if os.access(file, os.X_OK)}


def write_seeds(target: str, folder: Path) -> None:
    """Inputs to begin with. A target takes its numbers from the end of an input, and a string up to
    a backslash from its start, in which a backslash is doubled."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = ["\n".join(own) for own in story.beginnings(3).values()]
    if target == "regex":
        regexes = [split.regex for splits in NAMED.values() for split in splits]
        escaped = [regex.replace("\\", "\\\\") for regex in dict.fromkeys(regexes)]
        seeds = [f"{regex}\\ {texts[i % len(texts)]}" for i, regex in enumerate(escaped)]
    elif target == "model_json":
        vocab = {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4, '\\"\u00e9': 5}
        models = [[["a", "b"], ["\u0120", "ab"]], ["a b", "\u0120 ab"]]
        seeds = [
            json.dumps({"model": {"type": "BPE", "vocab": vocab, "merges": own}}) for own in models
        ]
    else:
        seeds = texts
    for i, seed in enumerate(seeds):
        (folder / f"seed-{i}").write_bytes(
            seed.encode()[: MOST_BYTES // 2] + bytes(range(i, i + 16))
        )


def dictionary(words: list[str]) -> str:
    """In libFuzzer's form, with a backslash doubled as the targets take it."""
    escaped = [word.replace("\\", "\\\\").encode() for word in words]
    lines = ["".join(rf"\x{byte:02x}" for byte in word) for word in escaped]
    return "".join(f'"{line}"\n' for line in lines)


def take_seeds(target: str, program: Path, build: Path, seeds: list[Path]) -> None:
    """Copies into a target's corpus the inputs of other folders that reach something new in it."""
    corpus, findings = build / "corpus" / target, build / "findings" / target
    write_seeds(target, corpus)
    findings.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    command = [program, "-merge=1", f"-max_len={MOST_BYTES}", "-timeout=20", corpus, *seeds]
    command.append(f"-artifact_prefix={findings}/")
    subprocess.run([*map(str, command)], stderr=subprocess.DEVNULL, check=True)
    if new := set(findings.iterdir()) - before:  # a merge passes over inputs that fail
        raise SystemExit(f"{target}: to see what a seed does: {program} {min(new)}")


def run(
    target: str,
    program: Path,
    build: Path,
    seed: int,
    *,
    seconds: int = 0,
    quiet_seconds: int | None = None,
) -> Run:
    """One target for so many seconds (0: no bound), until `quiet_seconds` passed without a new
    edge, or ENOUGH inputs. A seed of 0 is drawn. An interrupted run counts like another."""
    corpus, findings = build / "corpus" / target, build / "findings" / target
    write_seeds(target, corpus)
    findings.mkdir(parents=True, exist_ok=True)
    command = [
        *(str(program), str(corpus), f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}"),
        *("-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1", "-verbosity=1"),
        *(f"-runs={ENOUGH}", f"-seed={seed}", f"-artifact_prefix={findings}/"),
    ]
    if target == "regex":
        (findings / "words").write_text(dictionary(OF_REGEXES.split()), encoding="utf-8")
        command.append(f"-dict={findings}/words")
    environment = os.environ | {
        "ASAN_OPTIONS": "detect_leaks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    began = last_new = time.monotonic()
    edges = 0
    with (findings / "log").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_EVERY)
        now = time.monotonic()
        log = (findings / "log").read_text(encoding="utf-8", errors="replace")
        met = max(map(int, re.findall(r"cov: (\d+)", log)), default=0)
        if met > edges or "INITED" not in log:  # until then it reads its corpus
            edges, last_new = met, now
        if process.returncode is not None:
            break
        if quiet_seconds is not None and now - last_new >= quiet_seconds:
            process.send_signal(signal.SIGINT)
    executions = re.findall(r"number_of_executed_units:\s+(\d+)", log) or re.findall(
        r"^#(\d+)", log, re.M
    )
    written = re.findall(r"Test unit written to (\S+)", log)
    failed = process.returncode not in (0, INTERRUPTED)
    return Run(
        target,
        int(executions[-1]) if executions else 0,
        round(now - began),
        edges,
        written[-1] if written else str(findings / "log") if failed else "",
        datetime.date.today().isoformat(),
        round(now - last_new),
    )


def table(runs: list[Run]) -> str:
    """Markdown, all runs of a target together."""
    lines = [
        "| target | executions | hours | edges | minutes without a new edge | open findings |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    by_target: dict[str, list[Run]] = {}
    for each in runs:
        by_target.setdefault(each.target, []).append(each)
    for target, own in sorted(by_target.items()):
        hours = sum(each.seconds for each in own) / 3600
        quiet = own[-1].quiet_seconds
        lines.append(
            f"| {target} | {sum(each.executions for each in own):,} | {hours:.2f} "
            f"| {own[-1].edges:,} | {'–' if quiet is None else quiet // 60} "
            f"| {int(bool(own[-1].finding))} |"
        )
    lines.append(f"| all | {sum(each.executions for each in runs):,} | | | | |")
    return "\n".join(lines)


def main() -> None:
    """Run the targets, and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="where cmake built the targets")
    long = parser.add_mutually_exclusive_group()
    long.add_argument("--minutes", type=float, default=5, help="for all targets together")
    long.add_argument("--until-quiet", type=float, metavar="MINUTES", help="of each target")
    parser.add_argument("--only", nargs="+", help="these targets")
    parser.add_argument(
        "--seeds", nargs="+", type=Path, metavar="FOLDER", help="more inputs to begin with"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of what is drawn (0: another each time)"
    )
    parser.add_argument("--record", action="store_true", help="into fuzz_core.jsonl and RESULTS.md")
    options = parser.parse_args()
    programs = targets(options.build)
    names = options.only or [*programs]
    if missing := [name for name in names if name not in programs] or not names:
        raise SystemExit(
            f"{options.build} has no target {missing}; there are {', '.join(programs)}"
        )
    if absent := [str(folder) for folder in options.seeds or [] if not folder.is_dir()]:
        raise SystemExit(f"--seeds: no such folder: {', '.join(absent)}")
    seconds = max(1, round(options.minutes * 60 * min(AT_A_TIME, len(names)) / len(names)))

    def of(name: str) -> Run:
        fixed = name, programs[name], options.build
        if options.seeds:
            take_seeds(*fixed, options.seeds)
        if options.until_quiet is None:
            done = run(*fixed, options.seed, seconds=seconds)
        else:
            done = run(*fixed, options.seed, quiet_seconds=round(options.until_quiet * 60))
        if options.record:  # at once: the others may take hours
            with RECORD.open("a", encoding="utf-8") as out:
                out.write(f"{json.dumps(asdict(done))}\n")
        return done

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        runs = [*pool.map(of, names)]
    print(table(runs))
    if options.record:
        recorded = [Run(**json.loads(line)) for line in RECORD.read_text("utf-8").splitlines()]
        text = RESULTS.read_text(encoding="utf-8")
        RESULTS.write_text(
            TABLE.sub(lambda found: f"{found[1]}\n{table(recorded)}\n\n{found[2]}", text),
            encoding="utf-8",
        )
    for each in runs:
        if each.finding:
            print(
                f"{each.target}: to see it again: {programs[each.target]} {each.finding}",
                file=sys.stderr,
            )
    sys.exit(int(any(each.finding for each in runs)))


if __name__ == "__main__":
    main()
