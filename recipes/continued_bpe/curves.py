"""Bytes per token against new tokens, by language: continued BPE and regen, at the paper's sizes.

    python recipes/continued_bpe/curves.py llama3 qwen25 --pre-tokenizer kept \\
        --train texts/train --eval texts/eval/sib200-flores -o runs/continued_bpe/curves -j 2

One JSON file for each tokenizer, pre-tokenizer and language goes to OUT; one that is there is not
made again. Continued BPE learns once, up to the largest size; what fewer tokens do follows from
running the first of its merges. The auxiliary tokenizer of regen is trained once too, and its text
encoded at each size. Exit status 1 where an added token of ours is unreachable, or where encoding
with the extended tokenizer is not what running the merges says.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from jobs import run_all
from rapidfuzz.distance import Levenshtein

from vocabshift.checks.vocabulary import bytes_per_token
from vocabshift.evaluation.metrics.distribution import renyi_entropy
from vocabshift.extension.baselines import (
    Auxiliary,
    regen,
    train_auxiliary,
    train_sentencepiece_auxiliary,
)
from vocabshift.extension.continued import Additions, extended, learn
from vocabshift.extension.counting import TrainingInput, count_text
from vocabshift.extension.effect import Effect, measure, measure_by_encoding
from vocabshift.extension.options import ExtensionOptions, repaired
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.token_bytes import is_metaspace
from vocabshift.tokenizer.tokenizer import Tokenizer

SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
Figures = dict[str, Any]
HELD_OUT, TRAINED = "held-out", "train"
HAS_SENTENCEPIECE = importlib.util.find_spec("sentencepiece") is not None


@dataclass(frozen=True)
class Job:
    """One tokenizer, one pre-tokenizer, one language."""

    tokenizer: str
    pre_tokenizer: str  # "kept" or "repaired"
    language: str
    train: Path
    held_out: Path
    sizes: tuple[int, ...]
    english: Path
    out: Path

    @property
    def file(self) -> Path:
        """What it writes."""
        name = Path(self.tokenizer).name
        return self.out / f"{name}.{self.pre_tokenizer}.{self.language}.json"


@lru_cache(maxsize=2)
def base_of(source: str, pre_tokenizer: str) -> Tokenizer:
    """The tokenizer that is extended."""
    base = load_tokenizer(source)
    return repaired(base) if pre_tokenizer == "repaired" else base


def first_tokens(learned: Additions, n_tokens: int) -> Additions:
    """What a run that asked for fewer tokens would have learned."""
    later = set(learned.tokens[n_tokens:])
    merges = learned.merges
    end = next((i for i, pair in enumerate(merges) if "".join(pair) in later), len(merges))
    return replace(learned, tokens=learned.tokens[:n_tokens], merges=merges[:end])


def figures(base: Tokenizer, longer: Tokenizer, effect: Effect) -> Figures:
    """One method at one size; tokens are new ones, but for `unreachable_all`."""
    known = base.model.vocab
    used = {row.language: row.new_tokens_used for row in effect.languages}
    unreachable = unreachable_tokens(longer)
    return {
        "n_added": effect.n_new,
        "bytes_per_token": effect.bytes_per_token(effect.n_new, HELD_OUT),
        "unreachable": sum(token not in known for token in unreachable),
        "unreachable_all": len(unreachable),
        "unused_held_out": effect.n_new - used[HELD_OUT],
        "unused_train": effect.n_new - used[TRAINED],
    }


def side_effects(base: Tokenizer, longer: Tokenizer, english: list[str], held_out: Path) -> Figures:
    """What an extension does to English (Table 6) and to the distribution of tokens (Tables 1, 7).

    Rényi entropy is of order 2.5, on the held-out text, over the logarithm of the number of tokens
    in the vocabulary, and of those that the text has.
    """
    before, after = ((Encoder(t).encode_batch(english)) for t in (base, longer))
    pairs = [
        tuple(ids[offsets[i] : offsets[i + 1]].tolist() for ids, offsets in (before, after))
        for i in range(len(english))
    ]
    ids, _ = Encoder(longer).encode_batch(lines_of(held_out))
    counts = np.bincount(ids)
    entropy = renyi_entropy(counts)
    found: Figures = {
        "english_distance": fmean(Levenshtein.distance(one, other) for one, other in pairs),
        "english_same": fmean(one == other for one, other in pairs),
        "renyi": entropy / log2(longer.vocab_size),
        "renyi_of_used": entropy / log2(np.count_nonzero(counts)),
    }
    if base.model.ignore_merges:
        plain = longer.without_merge_skipping()
        corpus = Corpus.from_files({HELD_OUT: held_out})
        found["without_skipping"] = bytes_per_token(plain, corpus)[HELD_OUT]
    return found


def lines_of(file: Path) -> list[str]:
    """The lines of a text that are not empty."""
    return [line for line in file.read_text(encoding="utf-8").split("\n") if line]


def run(job: Job) -> Figures:
    """All figures of one job."""
    english = lines_of(job.english)
    base = base_of(job.tokenizer, job.pre_tokenizer)
    asked = ExtensionOptions(n_tokens=max(job.sizes))
    corpus = Corpus.from_files({TRAINED: job.train})
    both = Corpus.from_files({HELD_OUT: job.held_out, TRAINED: job.train})
    counted = count_text(base, corpus, asked)
    form = counted.form.tokenizer  # the base, with characters that it lacked (SentencePiece)
    judged = count_text(form, both, asked.without_characters()).text
    learned = learn(counted.form, counted.text, n_tokens=asked.n_tokens)
    auxiliary = auxiliary_of(form, counted, corpus)
    before = measure(counted.form, Additions((), ()), judged)
    plain = before
    if counted.characters:
        own = count_text(base, both, asked.without_characters())
        plain = measure(own.form, Additions((), ()), own.text)
    rows = []
    for n in job.sizes:
        some = first_tokens(learned, n)
        ours = extended(form, some)
        effect = measure(counted.form, some, judged)
        if n == max(job.sizes):
            require_same(effect, measure_by_encoding(form, ours, both, before))
        row: Figures = {"n_tokens": n, "ours": figures(form, ours, effect), "regen": None}
        row["ours"] |= side_effects(form, ours, english, job.held_out)
        if auxiliary is not None:
            theirs = extended(form, regen(form, auxiliary, n_tokens=n))
            row["regen"] = figures(form, theirs, measure_by_encoding(form, theirs, both, before))
            row["regen"] |= side_effects(form, theirs, english, job.held_out)
        rows.append(row)
    return {
        "tokenizer": Path(job.tokenizer).name,
        "pre_tokenizer": job.pre_tokenizer,
        "language": job.language,
        "n_bytes": int(before.n_bytes[1]),
        "n_characters": len(counted.characters),
        "bytes_per_token": plain.bytes_per_token(0, HELD_OUT),
        "ceiling_bytes_per_token": before.languages[0].ceiling_bytes_per_token,
        "stopped_because": learned.stopped_because,
        "rows": rows,
    }


def auxiliary_of(form: Tokenizer, counted: TrainingInput, corpus: Corpus) -> Auxiliary | None:
    """The tokenizer that regen takes tokens from, of 64,000 as in the paper's toolkit.

    None without the package sentencepiece where only its trainer can make one; main says so.
    """
    if not is_metaspace(form):
        return train_auxiliary(form, counted.text)
    return train_sentencepiece_auxiliary(form, corpus) if HAS_SENTENCEPIECE else None


def require_same(by_merges: Effect, by_encoding: Effect) -> None:
    """RuntimeError where the two ways to the same figures differ."""
    for row in by_merges.languages:
        label = row.language
        figures = [(e.n_new, e.bytes_per_token(e.n_new, label)) for e in (by_merges, by_encoding)]
        if figures[0] != figures[1] or by_merges.unused != by_encoding.unused:
            raise RuntimeError(f"running merges says {figures[0]}, encoding says {figures[1]}")


def jobs_of(args: argparse.Namespace) -> Iterator[Job]:
    """Every tokenizer with every language that has both texts, largest first."""
    pairs = [
        (args.train / file.name, file)
        for file in args.eval.glob("*.txt")
        if (args.train / file.name).exists() and file.stem not in args.leave_out
    ]
    pairs.sort(key=lambda pair: (-pair[0].stat().st_size, pair[1].name))
    for tokenizer in args.tokenizers:
        for train, held_out in pairs:
            yield Job(
                tokenizer,
                args.pre_tokenizer,
                held_out.stem,
                train,
                held_out,
                tuple(args.sizes),
                args.english,
                args.out,
            )


def main() -> int:
    """Do what is not done yet; 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+")
    parser.add_argument("--pre-tokenizer", choices=("kept", "repaired"), default="kept")
    parser.add_argument("--train", type=Path, required=True, help="folder of LANG.txt")
    parser.add_argument("--eval", type=Path, required=True, help="folder of LANG.txt, held out")
    parser.add_argument("--english", type=Path, required=True, help="held-out English text")
    parser.add_argument("--leave-out", metavar="LANG", nargs="*", default=[])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("-j", "--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    jobs = list(jobs_of(args))
    if not jobs:
        parser.error(f"no language has a text both in {args.train} and in {args.eval}")
    if not HAS_SENTENCEPIECE:
        print("without the package sentencepiece regen is left out for its kind", file=sys.stderr)
    broken = [
        f"{job.file.name}: {row['ours']['unreachable']} unreachable of {row['n_tokens']} added"
        for job, result in zip(jobs, run_all(run, jobs, args.processes), strict=True)
        for row in result["rows"]
        if row["ours"]["unreachable"]
    ]
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
