"""What the repaired pre-tokenizer changes in text that it ought not to touch, line by line.

    python recipes/continued_bpe/unchanged.py llama3 qwen25 --text en=en.txt code=a.py code=b.py \\
        -o unchanged.json

Every line is encoded by the tokenizer and by the same with repaired words. Exit status 1 where a
line changes in which no letter is followed by a combining mark, ZWNJ or ZWJ: that is the promise.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import regex

from vocabshift.extension.options import repaired
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer

COUNTED = ("lines", "a letter is followed by a mark", "changed", "changed without such a letter")
FOLLOWED = regex.compile(r"\p{L}[\p{M}\u200c\u200d]")


def main() -> int:
    """Write the counts; 1 where the promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+")
    parser.add_argument("--text", metavar="SPEC", nargs="+", required=True)
    parser.add_argument("-o", "--out", metavar="JSON", type=Path, required=True)
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for source in args.tokenizers:
        base = load_tokenizer(source)
        before, after = Encoder(base), Encoder(repaired(base))
        counts: dict[str | None, list[int]] = {}
        for documents in Corpus.from_specs(args.text).batches():
            row = counts.setdefault(documents.language, [0, 0, 0, 0])
            texts = list(documents.texts())
            ids = [encoder.encode_batch(texts, threads=args.threads) for encoder in (before, after)]
            (own, ends), (new, new_ends) = ids
            row[0] += len(texts)
            for i, text in enumerate(texts):
                is_followed = FOLLOWED.search(text) is not None
                changed = own[ends[i] : ends[i + 1]].tolist()
                changed = changed != new[new_ends[i] : new_ends[i + 1]].tolist()
                row[1] += is_followed
                row[2] += changed
                row[3] += changed and not is_followed
        for language, row in counts.items():
            of_text = {"tokenizer": Path(source).name, "text": language}
            rows.append(of_text | dict(zip(COUNTED, row, strict=True)))
    args.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 1 if any(row[COUNTED[-1]] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
