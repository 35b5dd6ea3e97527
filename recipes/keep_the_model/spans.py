"""How much of a text a new tokenizer reads as the old one did.

    python recipes/keep_the_model/spans.py runs/smollm2/model runs/keep_the_model/hi/tokenizers \
        --eval ../shared/data-unpacked/eval --new hi --languages hi en code de -o results.jsonl

For each tokenizer and language: the share of tokens whose bytes are a token of the old tokenizer,
so that their rows are copied, and the share of tokens that begin and end where the old tokenizer's
do in that text. Where they do not, the model never read such a token, whatever its row. A row has
the SHA-256 of both tokenizers and of the text, which all arms of that tokenizer were measured with.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
from names import BASE, TOKENIZERS
from record import Row, add
from results import KEY, rounded
from texts import scored

import vocabshift as vs
from vocabshift.evaluation.lines.subject import checksum_of
from vocabshift.results import sha256_of

Spans = list[set[tuple[int, int]]]


def read(tokenizer: vs.Tokenizer, texts: Sequence[str]) -> tuple[list[bytes], Spans]:
    """All tokens' bytes; of each text, the (begin, end) of its tokens in bytes."""
    ids, offsets = vs.Encoder(tokenizer).encode_batch(texts)
    tokens = [tokenizer.token_bytes[i] for i in ids.tolist()]
    spans = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        ends = np.cumsum([0, *map(len, tokens[begin:end])]).tolist()
        spans.append(set(itertools.pairwise(ends)))
    return tokens, spans


def rows_of(old: vs.Tokenizer, new: vs.Tokenizer, texts: dict[str, Sequence[str]]) -> Iterator[Row]:
    """One row for each language."""
    known = set(old.token_bytes.values())
    for language, own in texts.items():
        tokens, spans = read(new, own)
        _, before = read(old, own)
        same = sum(len(a & b) for a, b in zip(spans, before, strict=True))
        yield {
            "language": language,
            "tokens": len(tokens),
            "copied": sum(token in known for token in tokens) / len(tokens),
            "same_span": same / len(tokens),
            "base_sha256": checksum_of(old),
            "tokenizer_sha256": checksum_of(new),
            "text_sha256": sha256_of(own),
        }


def main() -> None:
    """Write a row for each tokenizer and language."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="the folder with the old tokenizer")
    parser.add_argument("tokenizers", type=Path, help="the folder with the new ones")
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--new", nargs="+", required=True)
    parser.add_argument("--languages", nargs="+", required=True)
    parser.add_argument("--documents", type=int, default=1004)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    old = vs.load_tokenizer(args.model)
    texts = dict(scored(args.eval, args.languages, args.documents))
    found: list[Row] = []
    for name in (each for each in TOKENIZERS if each != BASE):
        new = vs.load_tokenizer(args.tokenizers / name)
        same = {"what": "spans", "on": "all", "new": "+".join(args.new)}
        same |= {"arm": f"{name}-fvt-none", "n_bytes": 0}
        found += [rounded(same | row) for row in rows_of(old, new, texts)]
    add(args.output, found, key=KEY)


if __name__ == "__main__":
    main()
