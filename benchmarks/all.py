"""All benchmarks of one state of the code on one machine, and their tables in RESULTS.md.

    python benchmarks/all.py --data ../shared/data-unpacked --out runs/benchmarks --model SMOLLM2
    python benchmarks/all.py --data ../shared/data-unpacked --out runs/benchmarks --only encode load
    python benchmarks/all.py --out runs/benchmarks --write

Makes the texts, runs one benchmark after the other and keeps what each prints in OUT/NAME.md; what
is there is not run again. `--write` puts those files into RESULTS.md. Wants a quiet machine, an
hour and a half, 30 GB of disk, SmolLM2 for `score` (`recipes/smollm2/get.sh`), and the peers:

    pip install gigabpe rustbpe ffbpe fastokens gigatoken tiktoken tuetoken morpheme kitoken
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import islice, product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import encode
import measure

from vocabshift.storage.output import atomic_file, write_whole

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"
MACHINE = re.compile(r"(\S+, \d+ CPUs, )load ([\d.]+), (.*), \d{4}-\d\d-\d\d")
"""What `measure.machine` prints."""
BLOCK = re.compile(r"(<!-- all -->\n).*?(<!-- /all -->)", flags=re.DOTALL)

LANGUAGES = ("hi", "ta", "en", "code")
MIXED = ("hi", "en", "ta", "bn", "te", "code")
TOKENIZERS = ("llama3", "llama4", "qwen25")
FASTER = dict.fromkeys(encode.CONTESTANTS, 1.0) | {"fastokens": 1.2}
"""Times less CPU than a peer that encoding has to take."""
ON_TWO_THREADS = 1.8
"""Times as fast as one thread that two have to be."""


def head(source: Path, out: Path, n_bytes: int) -> Path:
    """The first lines of a text, about so many bytes."""
    if not out.exists():
        size = 0
        with atomic_file(out) as partial, source.open("rb") as lines, partial.open("wb") as written:
            for line in lines:
                written.write(line)
                size += len(line)
                if size >= n_bytes:
                    break
    return out


def mixed(train: Path, out: Path, n_bytes: int) -> Path:
    """So many bytes of several languages in equal parts, in shuffled blocks of 32 lines."""
    if not out.exists():
        blocks: list[bytes] = []
        for name in MIXED:
            size = 0
            with (train / f"{name}.txt").open("rb") as lines:
                while size < n_bytes // len(MIXED) and (block := b"".join(islice(lines, 32))):
                    blocks.append(block)
                    size += len(block)
        random.Random(0).shuffle(blocks)
        with atomic_file(out) as partial:
            partial.write_bytes(b"".join(blocks))
    return out


class Inputs:
    """Tokenizers, a model, and texts that are made when they are asked for."""

    def __init__(
        self, data: Path, folder: Path, *, scale: float = 1.0, runs: str = "3", model: str = ""
    ) -> None:
        """`folder`: of the texts; `scale`: share of the sizes that are asked for."""
        self.train, self.flores = data / "train", data / "eval" / "sib200-flores"
        self.tokenizers = data / "tokenizers-hf"
        self.folder, self.scale, self.runs, self.model = folder, scale, runs, model
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, language: str) -> str:
        """8 MB of one language."""
        source = self.train / f"{language}.txt"
        return str(head(source, self.folder / source.name, int(8e6 * self.scale)))

    def mixed(self, mb: int) -> str:
        """Head of 100 MB of six languages."""
        whole = mixed(self.train, self.folder / "six100.txt", int(100e6 * self.scale))
        if mb == 100:
            return str(whole)
        return str(head(whole, self.folder / f"six{mb}.txt", int(mb * 1e6 * self.scale)))

    def synthetic(self, gb: int) -> str:
        """Made of bigrams of all languages."""
        out = self.folder / f"syn{gb}.txt"
        if not out.exists():
            size = ["--gb", str(gb * self.scale), "-o", str(out)]
            run("synthetic.py", str(self.train / "*.txt"), *size)
        return str(out)

    def trained(self, recipe: str, thousands: int) -> str:
        """A tokenizer of so many thousand tokens, of 100 MB of six languages."""
        out = self.folder / f"{recipe}-{thousands}k"
        if not out.exists():
            options = ["--recipe", recipe, "--vocab-size", f"{thousands}000"]
            files = ["--corpus", f"six={self.mixed(100)}", "-o", str(out)]
            vocabshift("train", *options, *files)
        return str(out)

    def languages(self) -> str:
        """A folder of 24 languages of FLORES, and code."""
        out = self.folder / "languages"
        out.mkdir(exist_ok=True)
        for file in self.flores.glob("*.txt"):
            shutil.copy(file, out)
        head(Path(self.of("code")), out / "code.txt", 300_000)
        return str(out)


def run(program: str, *options: str) -> str:
    """What a benchmark prints."""
    command = [sys.executable, str(HERE / program), *options]
    print("$", program, *options, file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def vocabshift(*words: str) -> str:
    """What a command of the package prints."""
    command = [sys.executable, "-m", "vocabshift", *words]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def shown(program: str, *options: str) -> str:
    """The same below the command that prints it, with paths cut to their last part."""
    words = (Path(word).name if "/" in word else word for word in options)
    return f"`python benchmarks/{program} {' '.join(words)}`\n\n{run(program, *options)}"


def training(inputs: Inputs) -> str:
    """One stage beside all trainers; with gigabpe alone on texts that take the others too long."""
    size = ("--vocab-size", "64000")
    gpt2 = (*size, "--pattern", "gpt2", "--threads", "1", "2", "--peers")
    others = (*size, "--pattern", "cl100k", "o200k", "--runs", "1", "--peers", "tokenizers")
    six = ("--text", inputs.mixed(100))
    large = ("--text", inputs.synthetic(1))
    once = ("--pattern", "gpt2", "--threads", "2", "--peers", "tokenizers", "--runs", "1")
    parts = [
        shown("train.py", *six, *gpt2, "tokenizers", "gigabpe", "rustbpe", "ffbpe", "--runs", "1"),
        shown("train.py", *six, *others, "rustbpe", "ffbpe"),
        shown("train.py", *six, *gpt2, "gigabpe", "--runs", inputs.runs),
        shown("train.py", *large, *gpt2, "gigabpe", "--runs", inputs.runs),
        shown("train.py", *large, *size, *once),
        shown("train.py", "--text", inputs.synthetic(10), *gpt2, "gigabpe", "--runs", "1"),
    ]
    return "\n".join(parts)


def superwords(inputs: Inputs) -> str:
    """Stage 2 beside `tokenizers`, and both stages of 10 GB, phase by phase."""
    beside = shown("superwords.py", "--text", inputs.mixed(20), "--runs", "1")
    return f"{beside}\n{by_phase(Path(inputs.synthetic(10)), vocab_size=200_000)}"


def by_phase(text: Path, vocab_size: int) -> str:
    """A row of `vocabshift train --recipe ist`, as a command of its own."""
    options = ["--recipe", "ist", "--vocab-size", str(vocab_size), "-j", "2", "--memory", "8GB"]
    with tempfile.TemporaryDirectory(dir=text.parent) as place:
        files = ["--corpus", f"text={text}", "-o", f"{place}/tokenizer", "--json"]
        before, begun = measure.cpu_seconds(), time.perf_counter()
        printed = vocabshift("train", *options, *files)
        elapsed, cpu = time.perf_counter() - begun, measure.cpu_seconds() - before
    report = json.loads(printed)
    phases = report["phases"]
    peak = max(phase["peak_rss_bytes"] for phase in phases) / 2**20
    head = [*(f"{phase['name']}, s" for phase in phases), "in all, s", "CPU s", "peak MB"]
    cells = [*(f"{phase['seconds']:.1f}" for phase in phases), f"{elapsed:.1f}", f"{cpu:.0f}"]
    cells += [f"{peak:.0f}", f"{report['dropped_words']:,}"]
    return (
        f"`vocabshift train {' '.join(options)} --corpus {text.name}`\n\n"
        f"| {' | '.join(head)} | words left out |\n|{'---:|' * len(cells)}\n"
        f"| {' | '.join(cells)} |\n"
    )


def growth(inputs: Inputs) -> str:
    """Both recipes on two threads, from 1 MB to 10 GB."""
    files = [*map(inputs.mixed, (1, 5, 20, 50, 100)), *map(inputs.synthetic, (1, 10))]
    size = ("--vocab-sizes", "64000", "--threads", "2", "--runs", "1")
    return shown("growth.py", "--texts", *files, *size)


def encoding(inputs: Inputs) -> str:
    """One table: a row for each tokenizer, text and pass, a column for each peer."""
    files = [inputs.of(language) for language in LANGUAGES]
    peers = [name for name in encode.CONTESTANTS if name != "vocabshift"]
    lines = [
        f"Times less CPU than each peer on one thread (`encode.py --runs {inputs.runs}`), and "
        "times as fast on two threads (`--runs 5 --threads 2 --peers`); texts of 8 MB. **Bold: "
        f"missed**; wanted are {FASTER['fastokens']} for fastokens, 1 for others, and "
        f"{ON_TWO_THREADS} for two threads. \\*: other ids.",
        "",
        f"| tokenizer, text, pass | MB/s | {' | '.join(peers)} | two threads |",
        f"|---|{'---:|' * (len(peers) + 2)}",
    ]
    missing: dict[str, list[str]] = {}
    for tokenizer in TOKENIZERS:
        options = ("--tokenizer", str(inputs.tokenizers / tokenizer), "--json", "--text")
        one = tables(run("encode.py", *options, *files, "--runs", inputs.runs))
        alone = ("--runs", "5", "--peers")
        two = [tables(run("encode.py", *options, *files, "--threads", n, *alone)) for n in "12"]
        cases = product(LANGUAGES, ("first", "again"))
        for place, (language, which) in enumerate(cases):
            own = {row["name"]: row for row in one[place]["rows"]}
            speed = [part[place]["rows"][0]["MB/s"] for part in two]
            cells = [f"{own['vocabshift']['MB/s']:.0f}"]
            cells += [_times(own.get(name), FASTER[name]) for name in peers]
            cells.append(_bold(speed[1] / speed[0], ON_TWO_THREADS))
            lines.append(f"| {tokenizer}, {language}, {which} | {' | '.join(cells)} |")
            for name, reason in one[place]["missing"].items():
                missing.setdefault(f"{name}: {reason}", []).append(tokenizer)
    lines += ["", *(f"{why} ({', '.join(sorted(set(of)))})." for why, of in missing.items())]
    return "\n".join(lines)


def tables(printed: str) -> list[dict[str, Any]]:
    """Of `encode.py --json`."""
    found: list[dict[str, Any]] = json.loads(printed)["tables"]
    return found


def _times(row: dict[str, Any] | None, wanted: float) -> str:
    if row is None:
        return "–"
    return _bold(row["CPU ratio"], wanted) + ("" if row["same ids"] else " \\*")


def _bold(times: float, wanted: float) -> str:
    return f"{times:.1f}" if times >= wanted else f"**{times:.2f}**"


def drop_in(inputs: Inputs) -> str:
    """`hf_tokenizer` beside transformers, with Llama-3 and with superwords of its own."""
    options = ("--text", inputs.of("hi"), inputs.of("en"), "--runs", inputs.runs)
    plain = ("--tokenizer", str(inputs.tokenizers / "llama3"))
    return "\n".join(shown("hf_tokenizer.py", *options, *more) for more in (plain, ()))


def sentences(inputs: Inputs) -> str:
    """A call for each line, from Python."""
    files = [inputs.of(language) for language in LANGUAGES]
    options = ("--short", "--runs", inputs.runs, "--tokenizer", str(inputs.tokenizers / "llama3"))
    peers = ("--peers", "tokenizers", "tiktoken", "fastokens")
    found = shown("encode.py", *options, *peers, "--text", *files)
    return f"{found}\nWanted: 3 times as fast as tokenizers, no slower than tiktoken."


def pieces(inputs: Inputs) -> str:
    """Words of 1 MB."""
    folders = (str(inputs.tokenizers / "llama3"), inputs.trained("ist", 200))
    options = ("--runs", inputs.runs, "--tokenizer")
    parts = (shown("piece.py", *options, each) for each in folders)
    return "\n".join([*parts, "Wanted for 1 MB: 20 ms."])


def page(inputs: Inputs) -> str:
    """What `compare` writes of one line."""
    pair = [str(inputs.tokenizers / name) for name in ("llama3", "qwen25")]
    sizes = []
    with tempfile.TemporaryDirectory() as place:
        line, html = Path(place, "line.txt"), Path(place, "page.html")
        for language in LANGUAGES:
            begun = Path(inputs.of(language)).read_bytes()[:1_000_000]
            line.write_text(" ".join(begun.decode(errors="ignore").split()), encoding="utf-8")
            vocabshift("compare", *pair, "--text", str(line), "--force", "--html", str(html))
            sizes.append(f"{html.stat().st_size / 1e6:.2f} MB ({language})")
    found = f"`vocabshift compare llama3 qwen25` of one line of 1 MB: {', '.join(sizes)}."
    return f"{found}\n\nWanted: 2 MB."


def loading(inputs: Inputs) -> str:
    """Four tokenizers in new processes."""
    folders = [*(str(inputs.tokenizers / name) for name in TOKENIZERS), inputs.trained("ist", 200)]
    parts = (shown("load.py", "--runs", "5", "--tokenizer", each) for each in folders)
    return "\n".join([*parts, "Wanted for 200,000 tokens: 0.15 s."])


def packing(inputs: Inputs) -> str:
    """Text to packed training data, from file to file."""
    options = ("--tokenizer", str(inputs.tokenizers / "llama3"), "--runs", "1", "--threads", "2")
    return shown("pack.py", "--text", inputs.mixed(100), *options)


def extending(inputs: Inputs) -> str:
    """Continued BPE of three vendors' tokenizers on text of one language."""
    cases = {"mistral-nemo": "hi", "llama4": "te", "mistral7b-v1": "ta"}
    return "\n".join(
        shown(
            *("extend.py", "--tokenizer", str(inputs.tokenizers / name)),
            *("--text", str(inputs.train / f"{language}.txt"), "--runs", inputs.runs),
        )
        for name, language in cases.items()
    )


def evaluation(inputs: Inputs) -> str:
    """20 tokenizers on 25 languages."""
    folders = sorted(map(str, inputs.tokenizers.iterdir()))
    own = product(("bpe", "ist"), (8, 16, 32, 64, 100, 128, 200))
    folders += [inputs.trained(*each) for each in own]
    options = ("--threads", "2", "--runs", inputs.runs, "--text", inputs.languages())
    found = shown("evaluate.py", *options, "--tokenizers", *folders)
    return f"{found}\nWanted for all metrics: 45 s."


def patterns(inputs: Inputs) -> str:
    """The vocabulary of Qwen-2.5 with every pattern."""
    files = map(inputs.of, LANGUAGES)
    return shown("patterns.py", "--tokenizer", str(inputs.tokenizers / "qwen25"), "--text", *files)


def scoring(inputs: Inputs) -> str:
    """`score`, `harness` and `distill` beside bare forward passes of the same tokens."""
    options = ("--model", inputs.model, "--tokens", "1000", "--runs", inputs.runs)
    found = shown("score.py", *options, "--text", str(inputs.flores / "en.txt"))
    return f"{found}\nWanted: 1.1 times the bare pass."


SECTIONS: dict[str, tuple[str, Callable[[Inputs], str]]] = {
    "train": ("Training", training),
    "superwords": ("Training superwords", superwords),
    "growth": ("Growth", growth),
    "encode": ("Encoding", encoding),
    "hf_tokenizer": ("A tokenizer for transformers", drop_in),
    "short": ("One sentence a call", sentences),
    "piece": ("Single pieces", pieces),
    "page": ("The page of a long line", page),
    "load": ("Loading", loading),
    "pack": ("Packing", packing),
    "extend": ("Extending", extending),
    "evaluate": ("Evaluate", evaluation),
    "patterns": ("Pre-tokenizers", patterns),
    "score": ("Scoring, harness, distillation", scoring),
}


def block(out: Path) -> str:
    """What all finished benchmarks printed, below one another; first the machine, said once."""
    parts: list[str] = []
    machines: dict[str, list[float]] = {}
    for name, (title, _) in SECTIONS.items():
        file = out / f"{name}.md"
        if not file.exists():
            continue
        lines = []
        for line in file.read_text(encoding="utf-8").splitlines():
            for found in MACHINE.finditer(line):
                machines.setdefault(found[1] + found[3], []).append(float(found[2]))
            lines.append(re.sub(r"^### ", "#### ", MACHINE.sub("", line).rstrip()))
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip())
        parts.append(f"### {title}\n\n{text}\n")
    above = [
        f"{machine}; load average as tables were done: {min(loads):.1f} to {max(loads):.1f}.\n"
        for machine, loads in machines.items()
    ]
    return "\n".join([*above, *parts])


def commit() -> str:
    """Of the checkout, with a mark where it has changes."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def measure_all(names: Iterable[str], inputs: Inputs, out: Path) -> None:
    """Run what has no file yet."""
    for name in names:
        file = out / f"{name}.md"
        if file.exists():
            continue
        begun = time.monotonic()
        printed = SECTIONS[name][1](inputs)
        took = f"Commit {commit()}, {time.strftime('%Y-%m-%d')}, {time.monotonic() - begun:.0f} s."
        write_whole(file, f"{printed.strip()}\n\n{took}\n")


def main() -> None:
    """Measure, or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="with train/, eval/ and tokenizers-hf/")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--runs", default="3")
    parser.add_argument("--model", default="", help="folder of SmolLM2, for `score`")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes of texts")
    parser.add_argument("--write", action="store_true", help="put what OUT holds into RESULTS.md")
    args = parser.parse_args()
    if not (args.data or args.write):
        parser.error("nothing to do: give --data to measure, --write to put the tables in place")
    if args.data and "score" in args.only and not args.model:
        parser.error("score needs the folder of a model: give --model, or --only with the others")
    if args.data:
        options = {"scale": args.scale, "runs": args.runs, "model": args.model}
        measure_all(args.only, Inputs(args.data, args.out / "texts", **options), args.out)
    if args.write:
        text = RESULTS.read_text(encoding="utf-8")
        text = BLOCK.sub(lambda match: f"{match[1]}\n{block(args.out)}\n{match[2]}", text)
        write_whole(RESULTS, text)


if __name__ == "__main__":
    main()
