"""Text on disk to token ids on disk: `vocabshift encode` and `datasets.map`, in turn.

    python benchmarks/pack.py --quick
    python benchmarks/pack.py --text corpus.txt --tokenizer FOLDER --runs 3 --threads 2

From a text file, a line a document, to files that training maps, EOS behind every document; in
both cases with the library loaded and nothing cached. `datasets.map` runs the `tokenizers` library
with batched=True, either in threads of that library or in processes of its own (num_proc). The
checksum is that of all ids; taking it is part of the time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train
from encode import superword_tokenizer


def with_vocabshift(path: Path, *, tokenizer: Path, threads: int, form: str) -> Callable[[], int]:
    import numpy as np

    import vocabshift as vs
    from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus

    if form == "arrow":
        import pyarrow.ipc  # noqa: F401 - outside the clock, as for the peer
    loaded = vs.load_tokenizer(tokenizer)
    out = Path(tempfile.mkdtemp(dir=path.parent))
    options = PackOptions(eos=loaded.eos_token, format=form)

    def pack() -> int:
        corpus = vs.Corpus.from_files({"text": path})
        pack_corpus(loaded, corpus, out / "packed", options, threads=threads)
        packed = vs.PackedIds.open(out / "packed", checksums=False)
        checksum = 0
        for start in range(0, packed.n_tokens, 1 << 20):
            ids = packed.tokens(start, min(start + (1 << 20), packed.n_tokens))
            checksum = zlib.crc32(ids.astype(np.uint32).tobytes(), checksum)
        shutil.rmtree(out)
        return checksum

    return pack


def with_datasets(
    path: Path, *, tokenizer: Path, threads: int, processes: bool
) -> Callable[[], int]:
    inside = 1 if processes else threads
    os.environ["RAYON_NUM_THREADS"] = str(inside)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if inside > 1 else "false"
    import datasets
    import numpy as np
    from tokenizers import Tokenizer

    import vocabshift as vs

    datasets.disable_progress_bars()
    backend = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    eos = vs.load_tokenizer(tokenizer).eos_token
    end = [] if eos is None else [backend.token_to_id(eos)]
    cache = tempfile.mkdtemp(dir=path.parent)

    def encode(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        encodings = backend.encode_batch(batch["text"], add_special_tokens=False)
        return {"input_ids": [encoding.ids + end for encoding in encodings]}

    def pack() -> int:
        text = datasets.load_dataset("text", data_files=str(path), cache_dir=cache, split="train")
        lines = text.filter(
            lambda batch: [bool(line) for line in batch["text"]],
            batched=True,
            num_proc=threads if processes else None,
        )
        packed = lines.map(
            encode,
            batched=True,
            remove_columns=["text"],
            features=datasets.Features({"input_ids": datasets.Sequence(datasets.Value("uint32"))}),
            num_proc=threads if processes else None,
        )
        checksum = 0
        for chunk in packed.data.column("input_ids").chunks:
            ids = chunk.flatten().to_numpy()
            checksum = zlib.crc32(ids.astype(np.uint32).tobytes(), checksum)
        shutil.rmtree(cache)
        return checksum

    return pack


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
    common = {"tokenizer": args.tokenizer, "threads": args.threads}
    works = {
        "vocabshift": partial(with_vocabshift, form="numpy", **common),
        "vocabshift, Arrow": partial(with_vocabshift, form="arrow", **common),
        "datasets.map": partial(with_datasets, processes=False, **common),
    }
    if args.threads > 1:
        works["datasets.map, num_proc"] = partial(with_datasets, processes=True, **common)
    n_bytes = args.text.stat().st_size
    title = f"Packing: {args.text.name} with {args.tokenizer.name}, {args.threads} thread(s)"
    with tempfile.TemporaryDirectory() as folder:  # where all of them write
        text = Path(folder) / args.text.name
        text.symlink_to(args.text.resolve())
        print(measure.report(title, measure.compare(works, text, args.runs), n_bytes))
    print(measure.machine())


if __name__ == "__main__":
    main()
