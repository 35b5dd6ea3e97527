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
for 30 minutes again and again, until one such run met no new edge, or 200 million inputs were tried
since the first. Of `--seeds` a target takes the inputs that reach what its own do not: most targets
draw a pre-tokenizer and a text alike. `--record` adds the executions to `fuzz_core.jsonl` and
writes the table of all runs into RESULTS.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
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
    new_edges: int | None = None  # beyond what its corpus and the runs before reached


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
    target: str, program: Path, build: Path, seconds: int, seed: int, *, known_edges: int = 0
) -> Run:
    """One target for so many seconds; a seed of 0 is drawn. `known_edges` were met before, some of
    which the corpus may miss, for two threads do not always meet alike."""
    corpus, findings = build / "corpus" / target, build / "findings" / target
    write_seeds(target, corpus)
    findings.mkdir(parents=True, exist_ok=True)
    command = [
        *(str(program), str(corpus), f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}"),
        *("-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1", "-verbosity=1"),
        *(f"-seed={seed}", f"-artifact_prefix={findings}/"),
    ]
    if target == "regex":
        (findings / "words").write_text(dictionary(OF_REGEXES.split()), encoding="utf-8")
        command.append(f"-dict={findings}/words")
    environment = os.environ | {
        "ASAN_OPTIONS": "detect_leaks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    took = round(time.monotonic() - began)  # a finding ends it early
    log = done.stderr.decode(errors="replace")
    (findings / "log").write_text(log, encoding="utf-8")
    executions = re.findall(r"number_of_executed_units:\s+(\d+)", log) or re.findall(
        r"^#(\d+)", log, re.M
    )
    edges = max(map(int, re.findall(r"cov: (\d+)", log)), default=0)
    at_first = re.search(r"INITED cov: (\d+)", log)
    written = re.findall(r"Test unit written to (\S+)", log)
    finding = written[-1] if written else (str(findings / "log") if done.returncode else "")
    date = datetime.date.today().isoformat()
    return Run(
        target,
        int(executions[-1]) if executions else 0,
        took,
        edges,
        finding,
        date,
        None if at_first is None else max(0, edges - max(int(at_first[1]), known_edges)),
    )


def until_quiet(target: str, program: Path, build: Path, seconds: int, seed: int) -> Iterator[Run]:
    """Runs of a target, up to the first that met no new edge, or ENOUGH inputs; or a finding."""
    executions = known_edges = 0
    while executions < ENOUGH:
        last = run(target, program, build, seconds, seed, known_edges=known_edges)
        executions += last.executions
        known_edges = max(known_edges, last.edges)
        yield last
        if last.finding or not last.new_edges:
            break


def table(runs: list[Run]) -> str:
    """Markdown, all runs of a target together."""
    lines = [
        "| target | executions | hours | edges | new in the last run | open findings |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    by_target: dict[str, list[Run]] = {}
    for each in runs:
        by_target.setdefault(each.target, []).append(each)
    for target, own in sorted(by_target.items()):
        hours = sum(each.seconds for each in own) / 3600
        lines.append(
            f"| {target} | {sum(each.executions for each in own):,} | {hours:.2f} "
            f"| {own[-1].edges:,} | {_last(own[-1])} "
            f"| {int(bool(own[-1].finding))} |"
        )
    lines.append(f"| all | {sum(each.executions for each in runs):,} | | | | |")
    return "\n".join(lines)


def _last(last: Run) -> str:
    """New edges of a run, and how long it was."""
    if last.new_edges is None:
        return "–"
    return f"{last.new_edges:,} in {last.seconds / 60:.0f} min"


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

    def of(name: str) -> list[Run]:
        fixed = name, programs[name], options.build
        own = []
        if options.seeds:
            take_seeds(*fixed, options.seeds)
        if options.until_quiet is None:
            found = iter([run(*fixed, seconds, options.seed)])
        else:
            found = until_quiet(*fixed, round(options.until_quiet * 60), options.seed)
        for each in found:
            own.append(each)
            if options.record:  # at once: the others may take hours
                with RECORD.open("a", encoding="utf-8") as out:
                    out.write(f"{json.dumps(asdict(each))}\n")
        return own

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        runs = [each for own in pool.map(of, names) for each in own]
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
