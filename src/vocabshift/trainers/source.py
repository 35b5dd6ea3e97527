"""What a trainer may learn from: a corpus, or a folder of counts that stands for one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.count_reader import CountReader
from vocabshift.text.counting import CorpusReader
from vocabshift.text.input_key import input_key
from vocabshift.text.patterns import Pattern

Source = Corpus | CountFolder
Reader = CorpusReader | CountReader


def make_reader(
    source: Source,
    pattern: Pattern,
    words: Pattern,
    *,
    normalizer: str | None,
    special_tokens: tuple[str, ...],
    sampling_alpha: float | None,
) -> Reader:
    """The source cut by `pattern`, and inside its pieces by `words`.

    A folder of counts must have been counted under `pattern` (CorpusError).
    """
    if isinstance(source, Corpus):
        return CorpusReader(source, (*pattern, *words), normalizer, special_tokens, sampling_alpha)
    normalizer = None if normalizer == "none" else normalizer
    source.require(pattern, normalizer, special_tokens)
    return CountReader(source, words, sampling_alpha)


def source_paths(source: Source) -> list[Path]:
    """Local files and folders that the source is read from."""
    return source.paths if isinstance(source, Corpus) else [source.path]


def source_key(source: Source) -> str | None:
    """What a later run knows the source by; None where it cannot (see `input_key`)."""
    if isinstance(source, Corpus):
        return input_key(source)
    shards = [source.path / group.shard for group in source.groups]
    state = [(shard.stat().st_size, shard.stat().st_mtime_ns) for shard in shards]
    text = f"{source.path.resolve()} {source.fingerprint} {state}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def source_texts(source: Source) -> Iterator[str]:
    """Documents, or counted words where there are no documents."""
    if isinstance(source, Corpus):
        yield from (text for _, text in source.texts())
        return
    for group in range(len(source.groups)):
        for data, ends, _ in source.read(group):
            begin = 0
            for end in ends.tolist():
                yield data[begin:end].decode()
                begin = end
