"""Call vs.hf_tokenizer(FOLDER) and the tokenizer of AutoTokenizer on the same batches.

    python benchmarks/hf_tokenizer.py --text en.txt hi.txt --tokenizer FOLDER --runs 3

The text is cut into documents of about 2.5 KB, and these into batches of 1,000. A run calls the
tokenizer on each batch and drops the result; two batches are encoded before the clock starts, and
again after it. The checksum is of how many rows there are and of the ids of each batch's last one.
One thread.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import encode
import measure
import train

CALLS: dict[str, dict[str, Any]] = {
    "tok(texts)": {},
    "padded, cut to 512, pt": {
        "padding": True,
        "truncation": True,
        "max_length": 512,
        "return_tensors": "pt",
    },
    "windows of 512": {"truncation": True, "max_length": 512, "return_overflowing_tokens": True},
    "one text a call": {},
}
BATCH = 1000


def work(path: Path, *, name: str, tokenizer: Path, call: str) -> Callable[[], int]:
    """A run of one contestant."""
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    import transformers

    import vocabshift as vs

    transformers.logging.set_verbosity_error()
    plain = name == "transformers"
    hf = (transformers.AutoTokenizer.from_pretrained if plain else vs.hf_tokenizer)(tokenizer)
    hf.pad_token = hf.pad_token or hf.eos_token or hf.convert_ids_to_tokens(0)
    texts = encode.documents(path, 2560)
    batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]

    def results() -> Iterator[Any]:
        for batch in batches:
            yield from map(hf, batch) if call == "one text a call" else [hf(batch, **CALLS[call])]

    for result in itertools.islice(results(), 50 if call == "one text a call" else 2):
        del result

    def timed() -> int:
        checksum = 0
        for result in results():
            ids = result["input_ids"]
            checksum = zlib.crc32(
                repr((len(ids), ids[-1] if isinstance(ids, list) else ids[-1].tolist())).encode(),
                checksum,
            )
        return checksum

    return timed


def main() -> None:
    """Run the comparison and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, nargs="+", help="UTF-8 text files")
    parser.add_argument("--tokenizer", type=Path, help="a folder with a tokenizer.json")
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    texts = args.text or [train.sample_text()]
    tokenizer = args.tokenizer or encode.superword_tokenizer(texts[0])
    for path, call in itertools.product(texts, args.calls):
        contestants = {
            name: partial(work, name=name, tokenizer=tokenizer, call=call)
            for name in ("vocabshift", "transformers")
        }
        results = measure.compare(contestants, path, args.runs)
        title = f"{call}: {path.name} with {tokenizer.name}"
        print(measure.report(title, results, path.stat().st_size))
    print(measure.machine())


if __name__ == "__main__":
    main()
