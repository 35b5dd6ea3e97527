"""What `open.sh` needs and no verb of the command line does; rows go to standard output.

    python recipes/matra/open.py not-blended OUT --vocab-size 64000 --corpus hi=hi.txt
    python recipes/matra/open.py bins bins.jsonl
    python recipes/matra/open.py spanning OUT/E vendors/o200k
    python recipes/matra/open.py speed OUT/E vendors/o200k --corpus hi=hi.txt --mb 4

`not-blended` trains the control of Matra's section 6.3: words weighted as always, sentences not.
`bins`: fertility by the rank of a word (section 6.2), means over languages. `spanning`: tokens that
hold a sentence terminal (section 6.1). `speed`: CPU time of encoding beside `tiktoken`,
SentencePiece and `tokenizers` (section 5.6), for each library that reads the tokenizer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from vocabshift.checks.vocabulary import terminal_spanning
from vocabshift.evaluation.lines.subject import engine_of, subject_names
from vocabshift.text.corpus import Corpus
from vocabshift.text.writing import SentencePolicy
from vocabshift.tokenizer.engine import Engine
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.workflows.tokenizers import load_named

sys.path += [str(Path(__file__).parents[1] / "data"), str(Path(__file__).parents[2] / "benchmarks")]
from encode import with_tiktoken
from rows import Row, made, shown, sources, sources_of

TERMINALS = (*SentencePolicy().terminals, ".", "\n")
_WORD = r"\p{L}\p{M}\p{N}_"  # `re` has no vowel signs in \w
BETWEEN_WORDS = regex.compile(rf"[{_WORD}][{SentencePolicy().terminals}.\n][^{_WORD}]*[{_WORD}]")
N_SAMPLE = 1000
N_SHOWN = 4
WARM_UP = 50


@dataclass(frozen=True, kw_only=True)
class NotBlended(MatraTrainer):
    """Matra whose second stage counts every sentence alike."""

    @property
    def _weighs_sentences(self) -> bool:
        return False


def not_blended(out: Path, vocab_size: int, corpus: list[str]) -> None:
    """Train the control."""
    trainer = NotBlended(vocab_size=vocab_size, sampling_alpha=0.7)
    trainer.train(Corpus.from_specs(corpus)).save_pretrained(out)


def bins(measured: Path) -> Iterator[Row]:
    """One row per tokenizer, a column for each bin of ranks."""
    values: dict[str, dict[str, list[float]]] = {}
    for line in measured.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name = row["metric"].removeprefix("fertility_bin_").replace("_up", " and up")
        name = name.replace("_", " to ")
        values.setdefault(row["subject"], {}).setdefault(name, []).append(row["value"])
    for subject, own in values.items():
        means = {name: statistics.fmean(found) for name, found in own.items()}
        yield {"table": "matra-section-6.2", "row": subject, "values": means}


def spanning(name: str, engine: Engine) -> Row:
    """Tokens that hold a terminal and a letter or digit, and that span a sentence end."""
    special = {token.id for token in engine.tokenizer.added_tokens}
    own = {i: data for i, data in engine.token_bytes.items() if i not in special}
    texts = {i: data.decode(errors="ignore") for i, data in own.items()}
    holding = [
        i
        for i, text in texts.items()
        if any(mark in text for mark in TERMINALS) and any(c.isalnum() for c in text)
    ]
    crossing = terminal_spanning({str(i): data for i, data in own.items()})
    sample = random.Random(name).sample(sorted(texts), min(N_SAMPLE, len(texts)))
    found = {int(i) for i in crossing}
    of_words = {i for i in found if BETWEEN_WORDS.search(texts[i])}
    first = sorted((texts[i] for i in of_words), key=lambda text: (len(text), text))[:N_SHOWN]
    values = {
        "tokens": len(own),
        "hold a terminal beside a letter or digit": len(holding),
        "span a sentence end": len(crossing),
        "the same between words": len(of_words),
        f"span, among {N_SAMPLE:,} drawn by chance": len(found.intersection(sample)),
    }
    return {"table": "matra-section-6.1", "row": name, "values": values, "shortest": first}


def seconds(encode: Callable[[list[str]], Any], texts: list[str]) -> float:
    """CPU time of the process for texts that are new to it, after WARM_UP others."""
    encode(texts[:WARM_UP])
    start = time.process_time()
    encode(texts[WARM_UP:])
    return time.process_time() - start


def speed(name: str, path: str, texts: list[str]) -> Row:
    """CPU time of the libraries that read this tokenizer, as multiples of ours."""
    engine = engine_of(path)
    found = {"ours": seconds(engine.encode_batch, texts)}
    n_tokens = len(engine.encode_batch(texts[WARM_UP:])[0])
    with engine.backend(parse_special=False) as backend:
        found["tokenizers"] = seconds(
            lambda some: backend.encode_batch_fast(some, add_special_tokens=False), texts
        )
    with contextlib.suppress(ValueError):  # no rank file: tiktoken cannot read it
        found["tiktoken"] = seconds(with_tiktoken(Path(path), 1), texts)
    if (model := Path(path).resolve()).name.startswith("tokenizer.model"):
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        found["SentencePiece"] = seconds(lambda some: [processor.encode(t) for t in some], texts)
    ours = found.pop("ours")
    values = {them: value / ours for them, value in found.items()}
    values["ours: million tokens a CPU second"] = n_tokens / ours / 1e6
    return {"table": "matra-section-5.6", "row": name, "values": values}


def some_lines(corpus: list[str], megabytes: float) -> list[str]:
    """The same lines each time: so much of each language, every language in turn."""
    kept: dict[str | None, list[str]] = {}
    sizes: dict[str | None, int] = {}
    for language, text in Corpus.from_specs(corpus).texts():
        if sizes.get(language, 0) < megabytes * 1e6:
            sizes[language] = sizes.get(language, 0) + len(text.encode())
            kept.setdefault(language, []).append(text)
    texts = [text for own in kept.values() for text in own]
    random.Random(0).shuffle(texts)
    return texts


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("not-blended", "bins", "spanning", "speed"))
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--vocab-size", type=int, default=64_000)
    parser.add_argument("--corpus", metavar="SPEC", nargs="+", default=[])
    parser.add_argument("--mb", type=float, default=4.0)
    args = parser.parse_args()
    names = subject_names(args.paths)
    texts: list[str] = []
    if args.what == "not-blended":
        not_blended(Path(args.paths[0]), args.vocab_size, args.corpus)
        return
    if args.what == "bins":
        rows = list(bins(Path(args.paths[0])))
    elif args.what == "spanning":
        rows = [
            spanning(name, engine_of(path)) for name, path in zip(names, args.paths, strict=True)
        ]
    else:
        texts = some_lines(args.corpus, args.mb)
        rows = [speed(name, path, texts) for name, path in zip(names, args.paths, strict=True)]
    size = f"{args.mb:g} MB of each language" if args.what == "speed" else "All tokens"
    if args.what == "bins":
        size = "Ranks in the training text"
    how = made(rows[0]["table"], "recipes/matra/open.sh", size, None)
    if args.what == "bins":
        measured = Path(args.paths[0]).read_text(encoding="utf-8").splitlines()
        how |= sources(map(json.loads, measured))
    else:
        how |= sources_of({"all": texts} if texts else {}, load_named(args.paths))
    for row in [*rows, how]:
        print(shown(row))


if __name__ == "__main__":
    main()
