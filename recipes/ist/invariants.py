"""What a superword tokenizer promises, counted: boundaries, reachability, text that comes back.

    python recipes/ist/invariants.py runs/ist/ist runs/ist/superbpe --eval eval/*/*.txt \\
        --corpus train/*.txt -j 2 [--strict]

One column for each tokenizer, one row for each count; a Markdown table on standard output, and with
`--rows FILE` the counts as JSON lines. With
`--eval` every document is encoded and decoded. With `--corpus` all of it is encoded by us and by
`tokenizers` with the saved file, and every id is compared; where the folder was trained here, the
number of tokens must be the one that training ended with. With `--strict` the exit status is 2
where a count that ought to be 0 is not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers

from vocabshift import _core
from vocabshift.checks.check import check
from vocabshift.text.corpus import Corpus
from vocabshift.text.writing import SentencePolicy
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.token_bytes import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import crossed

_NUMBER = 16  # bit of _core.char_class
_DIGITS_TOGETHER = 3
_TERMINALS = set(SentencePolicy().terminals)
_STAGE2 = "tokens of stage 2"
_AT_ONCE = 2048  # documents that `tokenizers` encodes in one call


@dataclass(frozen=True)
class Count:
    """One line of the table."""

    name: str
    value: int
    must_be_zero: bool = False


def vocabulary_counts(folder: str, tokenizer: Tokenizer, *, matra: bool) -> list[Count]:
    """What the tokens alone tell."""
    own = _own(tokenizer)
    texts = {token_id: data.decode(errors="ignore") for token_id, data in own.items()}
    digits = [sum(bool(_core.char_class(ord(c)) & _NUMBER) for c in t) for t in texts.values()]
    too_many = sum(n > _DIGITS_TOGETHER for n in digits)
    beside = sum(0 < n < len(text) for n, text in zip(digits, texts.values(), strict=True))
    of_terminals = []
    kinds = {"superwords": [texts[i] for i, data in own.items() if b" " in data.strip()]}
    stage1_merges = _figure(folder, "stage1_merges")
    if stage1_merges is not None:
        kinds[_STAGE2] = [t for i, t in texts.items() if i >= 256 + stage1_merges]
    for kind, of_kind in kinds.items():
        of_terminals.append(Count(kind, len(of_kind)))
        for what, characters in (("a terminal", _TERMINALS), ("a period", {"."})):
            holding = sum(not characters.isdisjoint(text) for text in of_kind)
            must_be_zero = matra and kind == _STAGE2
            of_terminals.append(Count(f"{kind} that hold {what}", holding, must_be_zero))
    return [
        *of_terminals,
        Count("tokens of more than three digits", too_many, must_be_zero=True),
        Count("tokens that join a digit and something else", beside, must_be_zero=True),
    ]


def check_counts(
    folder: str, tokenizer: Tokenizer, text: Corpus | None, threads: int, *, matra: bool
) -> list[Count]:
    """What `vocabshift check` finds.

    Matra's words may begin with a sign: "!=" is one of code, and no token of its second stage.
    """
    report = check(tokenizer, text, threads=threads)
    spanning, by_pipeline = report.terminal_spanning, report.unreachable_by_pipeline or ()
    rare = report.only_in_rare_contexts  # of these
    counts = [Count("tokens that span a sentence end", len(spanning), must_be_zero=not matra)]
    stage1_merges = _figure(folder, "stage1_merges")
    if stage1_merges is not None:
        late = [t for t in spanning if tokenizer.model.vocab[t] >= 256 + stage1_merges]
        counts.append(Count(f"{_STAGE2} that span a sentence end", len(late), must_be_zero=True))
    counts += [
        Count("unreachable by merges (STT)", len(report.unreachable), must_be_zero=True),
        Count("unreachable by the pipeline", len(by_pipeline) - len(rare), must_be_zero=True),
        Count("reached by unusual text alone", len(rare)),
    ]
    if text is not None:
        lost = report.round_trip_failures
        counts.append(Count("documents that do not come back", lost, must_be_zero=True))
    return counts


def corpus_counts(folder: str, tokenizer: Tokenizer, text: Corpus, threads: int) -> list[Count]:
    """Our ids beside those of `tokenizers`, over all of the text."""
    encoder = Encoder(tokenizer)
    file = Path(folder) / "tokenizer.json"
    backend = tokenizers.Tokenizer.from_file(str(file if file.exists() else folder))
    n_documents = n_tokens = differing = 0
    for documents in text.batches():
        texts = list(documents.texts())
        for at in range(0, len(texts), _AT_ONCE):
            some = texts[at : at + _AT_ONCE]
            ids, offsets = encoder.encode_batch(some, threads=threads)
            theirs = backend.encode_batch_fast(some, add_special_tokens=False)
            n_tokens += sum(map(len, theirs))
            n_documents += len(some)
            differing += sum(
                not np.array_equal(ids[offsets[i] : offsets[i + 1]], encoding.ids)
                for i, encoding in enumerate(theirs)
            )
    counts = [
        Count("documents of the corpus", n_documents),
        Count("tokens of the corpus, by tokenizers", n_tokens),
        Count("documents with other ids than by tokenizers", differing, must_be_zero=True),
    ]
    trained = _figure(folder, "training_tokens")
    if trained is not None:
        off = abs(n_tokens - trained)
        counts.append(Count("tokens more or fewer than at the end of training", off, True))
    return counts


def _own(tokenizer: Tokenizer) -> dict[int, bytes]:
    added = {token.id for token in tokenizer.added_tokens}
    return {i: data for i, data in token_bytes(tokenizer).items() if i not in added}


def _figure(folder: str, name: str) -> int | None:
    """A figure of the training run, where the tokenizer was trained here."""
    file = Path(folder) / "vocabshift.json"
    if not file.exists():
        return None
    figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
    return int(figures[name]) if name in figures else None


def main() -> int:
    """Print the table; 0, or 2 with --strict where something is amiss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+")
    parser.add_argument("--eval", metavar="SPEC", nargs="+", help="text that must come back")
    parser.add_argument("--corpus", metavar="SPEC", nargs="+", help="text to encode twice")
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--matra",
        action="store_true",
        help="Matra's promise: no token of stage 2 holds a terminal or a period at all",
    )
    parser.add_argument("--rows", type=Path, help="also write the counts there, as JSON lines")
    parser.add_argument("--strict", action="store_true", help="exit with 2 if anything is amiss")
    args = parser.parse_args()
    columns: dict[str, list[Count]] = {}
    for source in args.tokenizers:
        tokenizer = load_tokenizer(source)
        counts = vocabulary_counts(source, tokenizer, matra=args.matra)
        held_out = Corpus.from_specs(args.eval) if args.eval else None
        counts += check_counts(source, tokenizer, held_out, args.threads, matra=args.matra)
        if args.corpus:
            corpus = Corpus.from_specs(args.corpus)
            counts += corpus_counts(source, tokenizer, corpus, args.threads)
        columns[source] = counts
    rows = [
        {
            "what": "invariant",
            "tokenizer": Path(source).name,
            "count": count.name,
            "value": count.value,
        }
        for source, counts in columns.items()
        for count in counts
    ]
    print(crossed(rows, "count", "tokenizer"))
    if args.rows is not None:
        lines = (json.dumps(row, sort_keys=True) + "\n" for row in rows)
        args.rows.write_text("".join(lines), encoding="utf-8")
    amiss = [
        f"{source}: {count.value:,} {count.name}"
        for source, counts in columns.items()
        for count in counts
        if count.must_be_zero and count.value
    ]
    for line in amiss if args.strict else ():
        print(line, file=sys.stderr)
    return 2 if args.strict and amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())
