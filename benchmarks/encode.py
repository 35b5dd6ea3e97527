"""Encode a text with vocabshift and with the `tokenizers` library, in turn, and compare.

    python benchmarks/encode.py --quick
    python benchmarks/encode.py --text corpus.txt --tokenizer FOLDER --runs 3

The text is encoded line by line, once, from a list of str, with cold caches; the checksum is that
of all ids.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train


def _read(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def with_vocabshift(path: Path, *, tokenizer: Path, threads: int) -> Callable[[], int]:
    import zlib

    import vocabshift as vs

    encoder = vs.Encoder.from_pretrained(tokenizer)
    texts = _read(path)

    def encode() -> int:
        ids, _ = encoder.encode_batch(texts, threads=threads)
        return zlib.crc32(ids.tobytes())

    return encode


def with_tokenizers(path: Path, *, tokenizer: Path, threads: int) -> Callable[[], int]:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    import zlib

    import numpy as np
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    texts = _read(path)

    def encode() -> int:
        checksum = 0
        for at in range(0, len(texts), 1000):  # all at once would need gigabytes of Encodings
            for encoding in backend.encode_batch(texts[at : at + 1000], add_special_tokens=False):
                checksum = zlib.crc32(np.array(encoding.ids, dtype=np.int32).tobytes(), checksum)
        return checksum

    return encode


def main() -> None:
    """Run the comparison and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a UTF-8 text file")
    parser.add_argument("--tokenizer", type=Path, help="a folder with a tokenizer.json")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick or not args.text:
        args.text = train.sample_text()
    if args.tokenizer is None:
        args.tokenizer = superword_tokenizer(args.text)
    works = {
        name: partial(work, tokenizer=args.tokenizer, threads=args.threads)
        for name, work in {"vocabshift": with_vocabshift, "tokenizers": with_tokenizers}.items()
    }
    n_bytes = args.text.stat().st_size
    title = f"Encoding: {args.text.name} with {args.tokenizer.name}, {args.threads} thread(s)"
    print(measure.report(title, measure.compare(works, args.text, args.runs), n_bytes))
    print(measure.machine())


def superword_tokenizer(text: Path) -> Path:
    """An IST tokenizer of 8,000 tokens trained on the text itself."""
    import vocabshift as vs

    folder = Path(tempfile.mkdtemp()) / "ist-8k"
    corpus = vs.Corpus.from_files({"text": text})
    return vs.SuperwordTrainer(vocab_size=8_000).train(corpus).save_pretrained(folder)


if __name__ == "__main__":
    main()
