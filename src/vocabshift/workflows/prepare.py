"""Text prepared once for many runs: what `vocabshift count` and `vocabshift encode` do.

`text.count_folder` writes counted words, `cpt.pack_corpus` packed token ids. This module opens the
tokenizer, finds its EOS and sums up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from vocabshift import _core
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_shards import Format
from vocabshift.engines.spark import DRIVER_BYTES, SparkOptions, count_on_spark
from vocabshift.engines.words import CountPieces
from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress, Progress, in_phase
from vocabshift.storage.outcome import check_output, outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import write_counts
from vocabshift.text.count_join import MEMORY, CountJoin
from vocabshift.text.counting import CorpusReader
from vocabshift.text.normalize import NORMALIZER_HELP
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.readers import no_key_reason
from vocabshift.text.records import check_installed
from vocabshift.text.run_folder import FILE as RUNS
from vocabshift.text.run_folder import RunFolder, join_runs
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer

__all__ = [
    "NORMALIZER_HELP",
    "PackOptions",
    "SparkOptions",
    "count_to_folder",
    "encode_to_folder",
    "join_counts",
]


def count_to_folder(
    corpus: Corpus,
    out: str | Path,
    *,
    pattern: str | Pattern = "o200k",
    normalizer: str | None = None,
    special_tokens: Iterable[str] = (),
    memory_bytes: int = 0,
    threads: int = 1,
    spark: SparkOptions | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Count the pre-tokens of a corpus by language, and write them as sorted Parquet files.

    pattern: name of a pattern, or a regex. normalizer: steps applied to the text first; None:
        none. special_tokens: texts that no word may overlap.
    out: the folder, which appears whole or not at all. It does not depend on `threads` or memory.
    memory_bytes: budget for the counts; 0: no limit, or 1 GB on Spark's driver.
    spark: count on Spark, with these options; `threads` and `progress` are then ignored.
    progress: called with "count", the bytes done and the total.

    Returns the keys of `vocabshift count --json`. FileExistsError if `out` exists, without
    `force`; ImportError without pyarrow; CorpusError for text that cannot be read.
    """
    check_installed("pyarrow", "count (it writes Parquet)")
    special = tuple(special_tokens)
    if spark is not None:
        count = CountPieces(pattern, normalizer, special)
        with outcome("count", out, inputs=[corpus], force=force) as output:
            figures = count_on_spark(
                corpus, count, spark, output.folder, memory_bytes=memory_bytes or DRIVER_BYTES
            )
        return {"out": str(out), **figures}
    reader = CorpusReader(corpus, get_pattern(pattern), normalizer, special, by_language=True)
    run: dict[str, Any] = {"memory_bytes": memory_bytes, "threads": threads, "force": force}
    return _counted(reader, corpus, out, in_phase(progress, "count"), **run)


def join_counts(
    parts: Iterable[str | Path],
    out: str | Path,
    *,
    pattern: str | Pattern | None = None,
    normalizer: str | None = None,
    special_tokens: Iterable[str] = (),
    memory_bytes: int = 0,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Add up counts, and write them as `count_to_folder` would write those of all the text.

    parts: folders that `count` wrote; Parquet files of other programs with the columns `word`
        (binary or string), `count` (an integer) and maybe `language`, or folders of such files.
        Or folders of runs alone, if all were cut at the same borders.
    pattern, normalizer, special_tokens: how words of other programs were cut. Folders of ours say
        it, and must say the same.
    memory_bytes: budget for the counts; 0: 1 GB. progress: called with "join", the words (or runs)
        read and their number. out, threads, force: see `count_to_folder`.

    Returns the keys of `vocabshift count --json`. CorpusError for parts that differ in how words
    were cut, that do not say it, or that are damaged.
    """
    paths = [Path(part) for part in parts]
    if any((path / RUNS).exists() for path in paths):
        if pattern is not None or normalizer is not None or special_tokens:
            raise ValueError(
                "runs say under what they were counted; leave the pattern, normalizer "
                "and special tokens out"
            )
        return _joined_runs(
            paths,
            out,
            memory_bytes=memory_bytes,
            threads=threads,
            force=force,
            progress=in_phase(progress, "join"),
        )
    chosen = None if pattern is None else get_pattern(pattern)
    reader = CountJoin.open(paths, chosen, normalizer, tuple(special_tokens))
    run: dict[str, Any] = {"memory_bytes": memory_bytes, "threads": threads, "force": force}
    return _counted(reader, reader, out, in_phase(progress, "join"), **run)


def _joined_runs(
    parts: Sequence[Path],
    out: str | Path,
    *,
    memory_bytes: int,
    threads: int,
    force: bool,
    progress: PhaseProgress | None,
) -> dict[str, Any]:
    """Add up folders of runs; the keys of the verb."""
    if len({part.resolve() for part in parts}) < len(parts):
        raise CorpusError("a folder of runs is given twice, and would be counted twice")
    runs = [RunFolder.open(part) for part in parts]
    with outcome("count", out, inputs=parts, force=force) as output:
        counter = _core.WordCounter(
            _core.PreTokenizer([]), threads, memory_bytes or MEMORY, str(output.folder)
        )
        join_runs(runs, counter, output.folder, progress=progress)
        joined = RunFolder.open(output.folder)
    return {"out": str(out), **joined.figures}


def _counted(
    reader: CorpusReader | CountJoin,
    source: Corpus | CountJoin,
    out: str | Path,
    progress: PhaseProgress | None,
    *,
    memory_bytes: int,
    threads: int,
    force: bool,
) -> dict[str, Any]:
    """Write what a reader of a source counts; the keys of the verb."""
    with outcome("count", out, inputs=[source], force=force) as output:
        counter = reader.count_words(
            threads=threads,
            progress=progress,
            memory_bytes=memory_bytes,
            spill_folder=output.folder,
        )
        write_counts(counter, reader, output.folder)
    return {
        "out": str(out),
        "groups": len(reader.groups),
        "documents": reader.n_documents,
        "bytes": reader.n_bytes,
        "words": sum(counter.size(group) for group in range(counter.group_count)),
        "corpus_fingerprint": reader.fingerprint,
    }


def encode_to_folder(
    tokenizer: TokenizerLike,
    corpus: Corpus,
    out: str | Path,
    *,
    eos: str | None = None,
    without_eos: bool = False,
    format: Format = PackOptions.format,
    shard_tokens: int = PackOptions.shard_tokens,
    parse_special: bool = PackOptions.parse_special,
    threads: int = 1,
    force: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Encode a corpus once into files that training maps from disk.

    eos: token after every document; None: the one that the tokenizer's config names, unless
        `without_eos`. format, shard_tokens, parse_special: see `PackOptions`.
    out: the folder, which appears whole or not at all. The same call resumes a run that was
        killed, unless `resume` is off.
    progress: called with the phase, the bytes done and the total. note: called with messages for
        the user, such as that there is no EOS.

    Returns the keys of `vocabshift encode --json`. ValueError for weights and for an EOS that is
    not a token; FileExistsError if `out` exists, without `force`; CorpusError for text that cannot
    be read.
    """
    check_output(out, corpus, tokenizer, force=force)
    loaded = as_tokenizer(tokenizer)
    if eos is None and not without_eos:
        eos = loaded.eos_token
        if eos is None and note is not None:
            note("the tokenizer names no EOS: nothing stands between documents (see --eos)")
    options = PackOptions(
        eos=eos, format=format, shard_tokens=shard_tokens, parse_special=parse_special
    )
    if note is not None and (reason := no_key_reason(corpus)) is not None:
        note(f"this run could not be resumed: {reason}")
    start = time.perf_counter()
    header = pack_corpus(
        loaded,
        corpus,
        out,
        options,
        threads=threads,
        force=force,
        resume=resume,
        progress=progress,
    )
    return {
        "out": str(out),
        **{key: header[key] for key in ("n_tokens", "n_documents", "n_bytes", "dtype", "eos")},
        "bytes_per_token": header["n_bytes"] / max(header["n_tokens"], 1),
        "seconds": round(time.perf_counter() - start, 3),
        "shards": len(header["shards"]),
        "languages": header["languages"],
    }
