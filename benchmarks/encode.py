"""Encode texts with vocabshift and with its peers, in turn, and compare.

    python benchmarks/encode.py --quick
    python benchmarks/encode.py --text hi.txt en.txt --tokenizer FOLDER --runs 3 --peers fastokens
    python benchmarks/encode.py --text hi.txt en.txt --together --threads 2 --tokenizer FOLDER
    python benchmarks/encode.py --text en.txt --short --tokenizer FOLDER

The texts are cut into documents of about 4 KB at line ends and encoded from a list of str; with
--short line by line, one call each. With --together they are one text, one language after the
other. "first pass" is new text, after 50 documents that let every contestant build its tables;
"again" is the same text once more, or, with --passes N, after N passes over it: each of our
threads remembers the words that it has encoded itself, and takes other documents in each pass. The
checksum is that of all ids: a peer with others is wrong, not slow. Peers that are not installed, or
refuse the tokenizer, are named and left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train

Encode = Callable[[list[str]], Any]  # -> ids, or ids by document

DOCUMENT_BYTES = 4096
WARM_UP = 50  # documents


def documents(path: Path, n_bytes: int = DOCUMENT_BYTES) -> list[str]:
    """The text in documents of about `n_bytes`, cut after newlines."""
    texts: list[str] = []
    lines: list[str] = []
    size = 0
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            lines.append(line)
            size += len(line.encode())
            if size >= n_bytes:
                texts.append("".join(lines))
                lines, size = [], 0
    return [*texts, "".join(lines)] if lines else texts


def with_vocabshift(tokenizer: Path, threads: int, *, short: bool = False) -> Encode:
    import vocabshift as vs

    encoder = vs.Encoder.from_pretrained(tokenizer)
    if short:
        return lambda texts: [encoder.encode(text) for text in texts]
    return lambda texts: encoder.encode_batch(texts, threads=threads)[0]


def with_tokenizers(tokenizer: Path, threads: int, *, short: bool = False) -> Encode:
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    if short:
        return lambda texts: [backend.encode(text, add_special_tokens=False) for text in texts]

    def encode(texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = []
        for at in range(0, len(texts), 256):  # all at once would need gigabytes of Encodings
            part = backend.encode_batch(texts[at : at + 256], add_special_tokens=False)
            ids += [encoding.ids for encoding in part]
        return ids

    return encode


def with_fastokens(tokenizer: Path, _threads: int) -> Encode:
    from fastokens import _native

    backend = _native.Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    return lambda texts: [backend.encode(text) for text in texts]


def with_gigatoken(tokenizer: Path, _threads: int) -> Encode:
    import gigatoken

    backend = gigatoken.Tokenizer(str(tokenizer / "tokenizer.json"))
    return lambda texts: [backend.encode(text) for text in texts]


def with_tuetoken(tokenizer: Path, threads: int, *, short: bool = False) -> Encode:
    import tuetoken

    backend = tuetoken.Tokenizer(str(tokenizer / "tokenizer.json"))
    if short:
        return lambda texts: [backend.encode_ordinary(text) for text in texts]
    return lambda texts: backend.encode_ordinary_batch(texts, num_threads=threads)


def with_morpheme(tokenizer: Path, _threads: int) -> Encode:
    import morpheme

    backend = morpheme.Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    return lambda texts: [backend.encode(text, add_special_tokens=False) for text in texts]


def with_kitoken(tokenizer: Path, _threads: int) -> Encode:
    import kitoken

    backend = kitoken.Kitoken.from_tokenizers_file(str(tokenizer / "tokenizer.json"))
    return lambda texts: [backend.encode(text) for text in texts]


def with_tiktoken(tokenizer: Path, _threads: int) -> Encode:
    """Only for tokenizers that are rank files: one Split, and merges in the order of the ids."""
    import tiktoken

    from vocabshift import load_tokenizer
    from vocabshift.tokenizer.token_bytes import token_bytes

    value = load_tokenizer(tokenizer)
    splits = [
        step["pattern"]["Regex"]
        for step in (value.pre_tokenizer or {}).get("pretokenizers", [])
        if step["type"] == "Split"
    ]
    if len(splits) != 1 or not value.model.ignore_merges:
        raise ValueError("tiktoken has one pattern, and ranks that are ids")
    special = {token.content: token.id for token in value.added_tokens}
    of_vocab = set(value.model.vocab.values()) - set(special.values())
    ranks = {data: i for i, data in token_bytes(value).items() if i in of_vocab}
    backend = tiktoken.Encoding("peer", pat_str=splits[0], mergeable_ranks=ranks, special_tokens={})
    return lambda texts: [backend.encode_ordinary(text) for text in texts]


CONTESTANTS: dict[str, Callable[..., Encode]] = {
    "vocabshift": with_vocabshift,
    "tokenizers": with_tokenizers,
    "fastokens": with_fastokens,
    "gigatoken": with_gigatoken,
    "tiktoken": with_tiktoken,
    "tuetoken": with_tuetoken,
    "morpheme": with_morpheme,
    "kitoken": with_kitoken,
}


HAVE_CALLS_FOR_ONE = ("vocabshift", "tokenizers", "tuetoken")
"""Those that take a batch otherwise; the others are always called text by text."""


def _work(path: Path, *, name: str, tokenizer: Path, threads: int, before: int, short: bool) -> Any:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    options = {"short": True} if short and name in HAVE_CALLS_FOR_ONE else {}
    encode = CONTESTANTS[name](tokenizer, threads, **options)
    texts = documents(path, 1) if short else documents(path)
    if not before:
        encode(texts[:WARM_UP])
    for _ in range(before):
        encode(texts)

    def timed() -> Callable[[], int]:
        ids = encode(texts)
        return lambda: _checksum(ids)

    return timed


def _checksum(ids: Any) -> int:
    import zlib

    import numpy as np

    checksum = 0
    for part in [ids] if isinstance(ids, np.ndarray) else ids:
        listed = getattr(part, "ids", part)  # of an Encoding
        checksum = zlib.crc32(np.asarray(listed, dtype=np.int32).tobytes(), checksum)
    return checksum


def compare(
    names: list[str], path: Path, runs: int, **options: Any
) -> tuple[dict[str, list[measure.Run]], dict[str, str]]:
    """Rounds of all contestants in turn, and why some are missing."""
    missing = {name: "not installed" for name in names if not importlib.util.find_spec(name)}
    results: dict[str, list[measure.Run]] = {name: [] for name in names if name not in missing}
    for _ in range(runs):
        for name in list(results):
            try:
                results[name].append(measure.run_once(partial(_work, name=name, **options), path))
            except RuntimeError:
                del results[name]
                missing[name] = "refuses this tokenizer or text"
    if "vocabshift" not in results:
        raise SystemExit("vocabshift itself failed; see above")
    return results, missing


def rows(results: dict[str, list[measure.Run]], n_bytes: int) -> list[dict[str, Any]]:
    """One object for each contestant; ratios are of CPU time, theirs to ours, round by round."""
    ours = results["vocabshift"]
    table = []
    for name, runs in results.items():
        ratios = [run.cpu / base.cpu for run, base in zip(runs, ours, strict=True)]
        table.append(
            {
                "name": name,
                "MB/s": n_bytes / 1e6 / statistics.median(run.elapsed for run in runs),
                "MB/CPU-s": n_bytes / 1e6 / statistics.median(run.cpu for run in runs),
                "CPU ratio": statistics.median(ratios),
                "CPU ratio spread": [min(ratios), max(ratios)],
                "peak MB": max(run.peak_mb for run in runs),
                "same ids": all(run.checksum == ours[0].checksum for run in runs),
            }
        )
    return table


def main() -> None:
    """Run the comparison and print Markdown, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, nargs="+", help="UTF-8 text files")
    parser.add_argument("--tokenizer", type=Path, help="a folder with a tokenizer.json")
    parser.add_argument("--regex", help="put into its first Split, such as one without a scanner")
    parser.add_argument("--peers", nargs="*", default=[n for n in CONTESTANTS if n != "vocabshift"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--passes", type=int, default=1, help="before the last one is timed")
    parser.add_argument("--short", action="store_true", help="line by line, one call each")
    parser.add_argument("--together", action="store_true", help="the texts one after the other")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick or not args.text:
        args.text = [train.sample_text()]
    if args.tokenizer is None:
        args.tokenizer = superword_tokenizer(args.text[0])
    if args.together:
        joined = Path(tempfile.mkdtemp()) / "together.txt"
        joined.write_bytes(b"".join(path.read_bytes() for path in args.text))
        args.text = [joined]
    if args.regex:
        args.tokenizer = with_regex(args.tokenizer, args.regex)
    if args.passes < 1:
        parser.error("--passes must be at least 1")
    names = ["vocabshift", *args.peers]
    unknown = set(names) - set(CONTESTANTS)
    if unknown:
        parser.error(f"no peer is named {sorted(unknown)[0]!r}; there are {', '.join(CONTESTANTS)}")
    document: dict[str, Any] = {"machine": measure.machine(), "runs": args.runs, "tables": []}
    for path in args.text:
        for before in (0, args.passes):
            options = {"tokenizer": args.tokenizer, "threads": args.threads, "before": before}
            options["short"] = args.short
            results, missing = compare(names, path, args.runs, **options)
            title = (
                f"Encoding: {path.name} with {args.tokenizer.name}, {args.threads} thread(s), "
                f"{_passed(before)}{', line by line' if args.short else ''}"
            )
            n_bytes = path.stat().st_size
            table = {"title": title, "rows": rows(results, n_bytes), "missing": missing}
            document["tables"].append(table)
            if not args.json:
                print(measure.report(title, results, n_bytes))
                for name, reason in missing.items():
                    print(f"{name} is missing: {reason}.\n")
    print(json.dumps(document, indent=1) if args.json else document["machine"])


def _passed(before: int) -> str:
    if before > 1:
        return f"after {before} passes"
    return "again" if before else "first pass"


def with_regex(tokenizer: Path, regex: str) -> Path:
    """A copy of a tokenizer's file whose first Split has another regex."""
    spec = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    step = spec["pre_tokenizer"]
    step = next(s for s in step.get("pretokenizers", [step]) if s["type"] == "Split")
    step["pattern"] = {"Regex": regex}
    folder = Path(tempfile.mkdtemp()) / tokenizer.name
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder


def superword_tokenizer(text: Path) -> Path:
    """An IST tokenizer of 8,000 tokens trained on the text itself."""
    import vocabshift as vs

    folder = Path(tempfile.mkdtemp()) / "ist-8k"
    corpus = vs.Corpus.from_files({"text": text})
    return vs.SuperwordTrainer(vocab_size=8_000).train(corpus).save_pretrained(folder)


if __name__ == "__main__":
    main()
