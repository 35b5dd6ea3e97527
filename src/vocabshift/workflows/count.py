"""Count the words of a corpus into a folder: what `vocabshift count` does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vocabshift.progress import Progress, in_phase
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import write_counts
from vocabshift.text.counting import CorpusReader
from vocabshift.text.normalize import NORMALIZER_HELP
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.records import check_installed

__all__ = ["NORMALIZER_HELP", "count_to_folder"]


def count_to_folder(
    corpus: Corpus,
    out: str | Path,
    *,
    pattern: str | Pattern = "o200k",
    normalizer: str | None = None,
    special_tokens: Iterable[str] = (),
    memory_bytes: int = 0,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Count the pre-tokens of a corpus by language, and write them as sorted Parquet files.

    pattern: name of a pattern, or a regex. normalizer: steps applied to the text first; None:
        none. special_tokens: texts that no word may overlap.
    out: the folder, which appears whole or not at all. It does not depend on `threads` or memory.
    memory_bytes: budget for the counts; 0: no limit.
    progress: called with "count", the bytes done and the total.

    Returns the keys of `vocabshift count --json`. FileExistsError if `out` exists, without
    `force`; ImportError without pyarrow; CorpusError for text that cannot be read.
    """
    check_installed("pyarrow", "count (it writes Parquet)")
    special = tuple(special_tokens)
    reader = CorpusReader(corpus, get_pattern(pattern), normalizer, special, by_language=True)
    with outcome("count", out, inputs=[corpus], force=force) as output:
        counter = reader.count_words(
            threads=threads,
            progress=in_phase(progress, "count"),
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
