"""Ways to extend a tokenizer with one language, in the paper's Figures 6, 7 and 9.

    python recipes/continued_bpe/estonian.py llama3 --train et=et.txt --eval et.dev \\
        --english en.dev -o runs/continued_bpe/estonian.json

Figure 6: continued BPE and regen, learned from ever less text. Figure 7: how often the new tokens
occur in a tenth of the text that was held out. Figure 9: continued BPE and five other ways. One
JSON file, written whole or not at all; one that is there is not made again.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from curves import SIZES, first_tokens, lines_of

from vocabshift.extension.baselines import BASELINES, Auxiliary, naive_extension, train_auxiliary
from vocabshift.extension.continued import Additions, extended, learn
from vocabshift.extension.counting import TrainingInput, count_text
from vocabshift.extension.options import ExtensionOptions
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer

SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the text, in Figure 6."""
OFTEN = (0, 1, 4, 16, 64, 256)
"""Classes of Figure 7: the least number of occurrences."""
Figures = dict[str, Any]


def learned_from(base: Tokenizer, lines: Iterable[str], n: int) -> tuple[TrainingInput, Additions]:
    """What continued BPE learns from some lines."""
    counted = count_text(base, Corpus.from_texts(lines), ExtensionOptions(n_tokens=n))
    return counted, learn(counted.form, counted.text, n_tokens=n)


def added_as_spelled(base: Tokenizer, auxiliary: Auxiliary, n: int) -> Tokenizer:
    """New tokens as added tokens, spelled as the vocabulary spells them (Ġ for a space)."""
    tokens = auxiliary.new_tokens(base)[:n]
    added = (
        AddedToken(token, base.row_count + i, special=False, normalized=True)
        for i, token in enumerate(tokens)
    )
    return replace(base, added_tokens=(*base.added_tokens, *added))


def on_lines(tokenizer: Tokenizer, lines: list[str]) -> tuple[float, int]:
    """Bytes per token, and lines that do not come back."""
    encoder = Encoder(tokenizer)
    ids, offsets = encoder.encode_batch(lines)
    lost = sum(a != b for a, b in zip(lines, encoder.decode_batch(ids, offsets), strict=True))
    return sum(len(line.encode()) for line in lines) / len(ids), lost


def text_sizes(base: Tokenizer, lines: list[str], held_out: list[str], n: int) -> list[Figures]:
    """Figure 6."""
    found = []
    order = random.Random(1).sample(lines, len(lines))
    for share in SHARES:
        some = order[: round(share * len(order))]
        counted, learned = learned_from(base, some, n)
        auxiliary = train_auxiliary(base, counted.text)
        row: Figures = {"megabytes": sum(len(line.encode()) + 1 for line in some) / 1e6}
        for name, longer in (
            ("continued", extended(base, learned)),
            ("naive", naive_extension(base, auxiliary, "regen", n_tokens=n)),
        ):
            row[name] = on_lines(longer, held_out)[0]
            row[f"added: {name}"] = longer.row_count - base.row_count
        found.append(row)
    return found


def frequencies(base: Tokenizer, lines: list[str], n: int) -> Figures:
    """Figure 7: percent of the new tokens by how often the held-out lines have them."""
    held_out = lines[::10]
    counted, learned = learned_from(base, [line for i, line in enumerate(lines) if i % 10], n)
    auxiliary = train_auxiliary(base, counted.text)
    ends = [f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(OFTEN)]
    found: Figures = {"classes": [*ends, f"{OFTEN[-1]} or more"]}
    for name, longer in (
        ("continued", extended(base, learned)),
        ("naive", naive_extension(base, auxiliary, "regen", n_tokens=n)),
    ):
        ids, _ = Encoder(longer).encode_batch(held_out)
        counts = np.bincount(ids, minlength=longer.row_count)[base.row_count :]
        among = np.bincount(np.searchsorted(OFTEN, counts, side="right") - 1, minlength=len(OFTEN))
        found[name] = (100 * among / len(counts)).tolist()
    return found


def ways(
    base: Tokenizer, lines: list[str], held_out: list[str], english: list[str], sizes: list[int]
) -> list[Figures]:
    """Figure 9."""
    counted, learned = learned_from(base, lines, max(sizes))
    auxiliary = train_auxiliary(base, counted.text)
    found = []
    for n in sizes:
        made = {"continued": extended(base, first_tokens(learned, n))}
        made |= {way: naive_extension(base, auxiliary, way, n_tokens=n) for way in BASELINES}
        made["add-tokens, as spelled"] = added_as_spelled(base, auxiliary, n)
        for way, longer in made.items():
            own, other = on_lines(longer, held_out), on_lines(longer, english)
            found.append(
                {
                    "way": way,
                    "n_tokens": n,
                    "bytes_per_token": own[0],
                    "english": other[0],
                    "unreachable": len(unreachable_tokens(longer)),
                    "lossy": own[1] + other[1],
                }
            )
    return found


def main() -> None:
    """Write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", metavar="TOKENIZER")
    parser.add_argument("--train", metavar="FILE", type=Path, required=True)
    parser.add_argument("--eval", metavar="FILE", type=Path, required=True)
    parser.add_argument("--english", metavar="FILE", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("-o", "--out", metavar="JSON", type=Path, required=True)
    args = parser.parse_args()
    if args.out.exists():
        return
    base = load_tokenizer(args.tokenizer)
    lines, held_out, english = (lines_of(file) for file in (args.train, args.eval, args.english))
    middle = args.sizes[len(args.sizes) // 2 :]
    figures = {
        "tokenizer": Path(args.tokenizer).name,
        "language": args.eval.stem,
        "n_tokens": {"6": args.sizes[-2], "7": middle[0]},
        "6": text_sizes(base, lines, held_out, args.sizes[-2]),
        "7": frequencies(base, lines, middle[0]),
        "9": ways(base, lines, held_out, english, args.sizes),
    }
    partial = args.out.with_suffix(".partial")
    partial.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    partial.rename(args.out)


if __name__ == "__main__":
    main()
