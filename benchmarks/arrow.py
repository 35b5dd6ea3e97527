"""Encode a column of a data set in four ways, in turn: what does a Python string cost?

    python benchmarks/arrow.py --quick
    python benchmarks/arrow.py --text corpus.txt --tokenizer FOLDER --runs 3 --threads 2

"list of str": the column as Python strings, made within the time. "Arrow": the same column as it
lies in memory. "datasets.map, Arrow": `map` over tables, as docs/datasets.md shows it.
"datasets.map, tokenizers": the usual way, batched=True, in threads of that library. Each ends with
flat ids, whose checksum is compared; the data set stands on disk before the clock starts.
`--peer-bytes` gives the last one a part of the text alone (its MB/s compare, its seconds do not).
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
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train
from encode import superword_tokenizer

Checksum = Callable[[], int]


def _column(path: Path) -> Any:
    """The lines of the text as a data set, read before the clock starts."""
    import datasets

    datasets.disable_progress_bars()
    cache = tempfile.mkdtemp(dir=path.parent)
    return datasets.load_dataset("text", data_files=str(path), cache_dir=cache, split="train")


def _checksum(ids: Any) -> int:
    import numpy as np

    return zlib.crc32(np.ascontiguousarray(ids, dtype=np.int32).tobytes())


def in_one_call(path: Path, *, tokenizer: Path, threads: int, form: str) -> Checksum:
    import vocabshift as vs

    encoder = vs.Encoder.from_pretrained(tokenizer)
    column = _column(path).data.column("text")
    encoder.encode_batch(["warm"])

    def encode() -> int:
        texts = column.to_pylist() if form == "str" else column
        return _checksum(encoder.encode_batch(texts, threads=threads)[0])

    return encode


def with_map(path: Path, *, tokenizer: Path, threads: int) -> Checksum:
    import numpy as np
    import pyarrow as pa

    import vocabshift as vs

    encoder = vs.Encoder.from_pretrained(tokenizer)
    lines = _column(path)

    def encode(table: Any) -> Any:
        ids, offsets = encoder.encode_batch(table["text"], threads=threads)
        return pa.table({"input_ids": pa.ListArray.from_arrays(offsets.astype(np.int32), ids)})

    def timed() -> int:
        encoded = lines.with_format("arrow").map(
            encode, batched=True, batch_size=10_000, remove_columns=["text"]
        )
        return _checksum(_flat(encoded))

    return timed


def with_tokenizers(path: Path, *, tokenizer: Path, threads: int) -> Checksum:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    lines = _column(path)

    def encode(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        encodings = backend.encode_batch(batch["text"], add_special_tokens=False)
        return {"input_ids": [encoding.ids for encoding in encodings]}

    def timed() -> int:
        encoded = lines.map(encode, batched=True, remove_columns=["text"])
        return _checksum(_flat(encoded))

    return timed


def _flat(encoded: Any) -> Any:
    import numpy as np

    chunks = encoded.data.column("input_ids").chunks
    return np.concatenate([chunk.flatten().to_numpy() for chunk in chunks])


def head(path: Path, n_bytes: int) -> Path:
    """The first lines of a text, beside it."""
    part = path.with_name(f"head-{path.name}")
    with path.open("rb") as whole:
        data = whole.read(n_bytes)
    part.write_bytes(data[: data.rfind(b"\n") + 1])
    return part


def main() -> None:
    """Run the comparison and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a UTF-8 text file")
    parser.add_argument("--tokenizer", type=Path, help="a folder with a tokenizer.json")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer-bytes", type=float, help="how much of the text the peer is given")
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick or not args.text:
        args.text = train.sample_text()
    if args.tokenizer is None:
        args.tokenizer = superword_tokenizer(args.text)
    common = {"tokenizer": args.tokenizer, "threads": args.threads}
    ours = {
        "Arrow": partial(in_one_call, form="arrow", **common),
        "list of str": partial(in_one_call, form="str", **common),
        "datasets.map, Arrow": partial(with_map, **common),
    }
    peer = {"datasets.map, tokenizers": partial(with_tokenizers, **common)}
    title = f"A column: {{}} with {args.tokenizer.name}, {args.threads} thread(s)"
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / args.text.name
        shutil.copyfile(args.text, text)
        whole = ours if args.peer_bytes else ours | peer
        results = measure.compare(whole, text, args.runs)
        print(measure.report(title.format(args.text.name), results, text.stat().st_size))
        if args.peer_bytes:
            part = head(text, int(args.peer_bytes))
            results = measure.compare({"Arrow": ours["Arrow"], **peer}, part, args.runs)
            name = f"the first {part.stat().st_size / 1e6:.0f} MB of {args.text.name}"
            print(measure.report(title.format(name), results, part.stat().st_size))
    print(measure.machine())


if __name__ == "__main__":
    main()
