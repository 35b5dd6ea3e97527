"""What benchmarks/engines.py measures and is no command of vocabshift; and checksums of results.

    python benchmarks/engine_ways.py ids-spark --text PARTS --out DIR --tokenizer DIR --master M

Every way prints one JSON list: a number of words or ids, and a checksum that depends neither on
their order nor on how the text was divided. A document is a line that is not empty.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Found = tuple[int, int]
"""How many, and their checksum."""

_ROWS = 2000  # documents of a batch, where the engine does not say
_TASKS = 8


def checksum(words: Iterable[tuple[bytes, int]]) -> Found:
    """Number of words, and a sum over their occurrences."""
    n_words = total = 0
    for word, count in words:
        n_words += 1
        total += zlib.crc32(word) * count
    return n_words, total % (1 << 64)


def of_folder(folder: Path) -> Found:
    """Of a folder of counts."""
    from vocabshift import CountFolder

    def words() -> Iterator[tuple[bytes, int]]:
        counts = CountFolder.open(folder)
        for group in range(len(counts.groups)):
            for data, ends, numbers in counts.read(group):
                begin = 0
                for end, count in zip(ends.tolist(), numbers.tolist(), strict=True):
                    yield data[begin:end], count
                    begin = end

    return checksum(words())


def of_ids(batches: Iterable[Any]) -> Found:
    """Of arrays of ids."""
    sums = [(len(ids), int(np.asarray(ids, np.int64).sum())) for ids in batches]
    return sum(n for n, _ in sums), sum(total for _, total in sums)


def session_of(args: argparse.Namespace) -> Any:
    from vocabshift.engines.spark_session import SparkSettings, open_session

    return open_session(SparkSettings(args.master, tuple(args.conf)))


def words_regex(args: argparse.Namespace) -> Found:
    """What people do without us: Python's `regex` in plain PySpark."""
    import regex

    from vocabshift.text.patterns import NAMED

    [split] = NAMED["o200k"]
    words = regex.compile(split.regex)
    with session_of(args) as session:
        lines = session.sparkContext.textFile(f"file://{args.text}")
        counted = lines.flatMap(words.findall).map(lambda word: (word, 1))
        sums = counted.reduceByKey(lambda a, b: a + b)
        return checksum((word.encode(), count) for word, count in sums.toLocalIterator())


def ids_in_spark(args: argparse.Namespace) -> Found:
    from pyspark.sql import functions as f

    with session_of(args) as session:
        lines = session.read.text(str(args.text), lineSep="\n").where("value != ''")
        encode = _encode_with_tokenizers if args.way.endswith("tokenizers") else _encode_in_arrow
        frame = encode(lines, args.tokenizer)
        sums = f.aggregate("ids", f.lit(0).cast("long"), lambda total, each: total + each)
        row = (
            frame.select(f.size("ids").alias("n"), sums.alias("s"))
            .agg({"n": "sum", "s": "sum"})
            .first()
        )
        return int(row["sum(n)"]), int(row["sum(s)"])


def _encode_with_tokenizers(lines: Any, tokenizer: str) -> Any:
    def encode(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas
        from tokenizers import Tokenizer

        backend = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
        for frame in frames:
            encodings = backend.encode_batch_fast(list(frame["value"]), add_special_tokens=False)
            yield pandas.DataFrame({"ids": [encoding.ids for encoding in encodings]})

    return lines.mapInPandas(encode, "ids array<int>")


def _encode_in_arrow(lines: Any, tokenizer: str) -> Any:
    from vocabshift.engines import EncodeTexts

    encode = EncodeTexts(tokenizer, {"value": "ids"})
    return lines.mapInArrow(encode, "ids array<int>")


def ids_in_ray(args: argparse.Namespace) -> Found:
    import ray
    from ray.data import ActorPoolStrategy, DataContext

    ray.init(
        num_cpus=2 * args.threads,  # the tasks that read need one, beside the actors
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=500_000_000,
    )
    DataContext.get_current().enable_progress_bars = False
    # Ray pickles by value only what is in no module that its workers could import.
    encoder: Any = _ray_tokenizers if args.way.endswith("tokenizers") else _ray_ours
    # By default Ray drops lines of spaces too.
    texts = ray.data.read_text(str(args.text), drop_empty_lines=False)
    sums = texts.map_batches(
        encoder(),
        fn_constructor_args=(args.tokenizer,),
        batch_format="pyarrow",
        batch_size=_ROWS,
        compute=ActorPoolStrategy(size=args.threads),
    )
    rows = sums.take_all()
    ray.shutdown()
    return sum(row["n"] for row in rows), sum(row["s"] for row in rows)


def _ray_ours() -> type:
    import pyarrow as pa
    import pyarrow.compute as pc

    from vocabshift.engines import EncodeTexts

    class Ours(EncodeTexts):
        def __call__(self, table: Any) -> Any:
            ids = pc.list_flatten(super().__call__(table)["input_ids"])
            return pa.table({"n": [len(ids)], "s": [pc.sum(ids).as_py() or 0]})

    return Ours


def _ray_tokenizers() -> type:
    import pyarrow as pa

    class Theirs:
        def __init__(self, tokenizer: str) -> None:
            from tokenizers import Tokenizer

            self.backend = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")

        def __call__(self, table: Any) -> Any:
            texts = table["text"].to_pylist()
            encoded = self.backend.encode_batch_fast(texts, add_special_tokens=False)
            ids = [each.ids for each in encoded]
            return pa.table({"n": [sum(map(len, ids))], "s": [sum(map(sum, ids))]})

    return Theirs


def in_datatrove(args: argparse.Namespace) -> Found:
    """A pipeline in two processes; tasks that an earlier run finished are not run again."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.tokens.tokenizer import DocumentTokenizer

    from vocabshift.engines.datatrove import CountWords, EncodeDocuments

    out = Path(args.out)
    tokenizer = f"{args.tokenizer}/tokenizer.json"
    options = {"shuffle_documents": False, "eos_token": None}
    step: Any = {
        "words-datatrove": lambda: CountWords(out / "made", language=None),
        "ids-datatrove": lambda: EncodeDocuments(str(out / "made"), tokenizer, **options),
        "ids-datatrove-own": lambda: DocumentTokenizer(str(out / "made"), tokenizer, **options),
    }[args.way]()
    LocalPipelineExecutor(
        [_reader(str(args.text)), step],
        tasks=_TASKS,
        workers=args.threads,
        logging_dir=str(out / "log"),
        skip_completed=True,
    ).run()
    if args.way == "words-datatrove":
        from vocabshift.workflows.prepare import join_counts

        join_counts(sorted((out / "made").iterdir()), out / "joined", force=True)
        return of_folder(out / "joined")
    files = sorted((out / "made").rglob("*.ds"))
    width = int(Path(f"{files[0]}.metadata").read_text().splitlines()[0].rpartition("|")[2])
    return of_ids(np.fromfile(file, f"<u{width}") for file in files)


def _reader(folder: str) -> Callable[..., Iterator[Any]]:
    """A first step of a pipeline that shares text files among its tasks."""

    def read(_data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        from datatrove.data import Document

        for number, file in enumerate(sorted(Path(folder).iterdir())):
            with file.open(encoding="utf-8", newline="\n") as lines:
                for at, line in enumerate(lines):
                    # Many documents are one task's: a file may be all of the text.
                    if (at // _ROWS + number) % world_size == rank and (text := line[:-1]):
                        yield Document(text=text, id=f"{number}/{at}")

    return read


def of_event_log(log: Path) -> tuple[dict[str, int], dict[str, int]]:
    """By stage of Spark: bytes that tasks wrote for other tasks, and how many tasks were lost."""
    shuffled, lost = Counter[str](), Counter[str]()
    for file in log.rglob("*"):
        for line in file.read_text().splitlines() if file.is_file() else ():
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd":
                continue
            stage = str(event["Stage ID"])
            lost[stage] += event["Task End Reason"]["Reason"] != "Success"
            if metrics := event.get("Task Metrics"):
                shuffled[stage] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return dict(+shuffled), dict(+lost)


def of_packed(folder: Path) -> Found:
    """Of a folder that `vocabshift encode` wrote: every byte of it counts."""
    sums = Counter({file.name: zlib.crc32(file.read_bytes()) for file in folder.iterdir()})
    header = json.loads((folder / "packed.json").read_text(encoding="utf-8"))
    return header["n_tokens"], zlib.crc32(json.dumps(sorted(sums.items())).encode())


WAYS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "words-regex": words_regex,
    "words-datatrove": in_datatrove,
    "ids-spark": ids_in_spark,
    "ids-spark-tokenizers": ids_in_spark,
    "ids-ray": ids_in_ray,
    "ids-ray-tokenizers": ids_in_ray,
    "ids-datatrove": in_datatrove,
    "ids-datatrove-own": in_datatrove,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--text", type=Path, required=True, help="folder of text files")
    parser.add_argument("--out", type=Path, required=True, help="folder for what is written")
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", nargs="*", default=[])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(json.dumps(WAYS[args.way](args)), flush=True)


if __name__ == "__main__":
    main()
