"""A folder of counted words: `count` writes it, and training can read it instead of a corpus.

It holds one shard (count_shards.py) per group, that is, per language and weight. `counts.json`
records how the words were cut out of the text. The same text produces the same bytes, whatever the
number of threads and the memory. Needs the extra `vocabshift[data]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.count_shards import AGAIN, Block, read_shard, weighted_sum
from vocabshift.text.normalize import normalizer_spec
from vocabshift.text.patterns import Pattern, pattern_name
from vocabshift.text.records import check_installed
from vocabshift.text.run_folder import RunFolder
from vocabshift.text.shard_folder import (
    of_type,
    plain_count,
    read_description,
    shard_name,
    write_description,
    write_shards,
)
from vocabshift.text.splits import Split

if TYPE_CHECKING:
    from vocabshift.text.count_join import CountJoin
    from vocabshift.text.counting import CorpusReader

FILE = "counts.json"
FORMAT = 1
"""Increased whenever this code would misread an older folder."""


@dataclass(frozen=True, slots=True)
class CountedGroup:
    """Documents that were counted together."""

    language: str | None
    weight: float
    documents: int
    bytes: int
    words: int  # distinct
    occurrences: int
    shard: str  # name of its file
    special: int = 0  # special tokens found in them


def write_counts(
    counter: _core.WordCounter, reader: CorpusReader | CountJoin, folder: Path
) -> None:
    """Write what `counter` counted for `reader` into an existing folder that holds no counts."""
    check_installed("pyarrow", "a folder of counts (Parquet)")
    shards = write_shards(counter, folder, len(reader.groups), "word")
    groups = [
        CountedGroup(
            group.language, group.weight, group.n_documents, group.n_bytes, *shard, group.n_special
        )
        for group, shard in zip(reader.groups, shards, strict=True)
    ]
    facts = {
        "pattern": [asdict(split) for split in reader.pattern],
        "normalizer": reader.normalizer,
        "special_tokens": list(reader.special_tokens),
        "special_tokens_in_text": reader.n_special,
        "corpus_fingerprint": reader.fingerprint,
        "groups": [asdict(group) for group in groups],
    }
    write_description(folder / FILE, FORMAT, facts)


@dataclass(frozen=True, slots=True)
class CountFolder:
    """A folder of counts, opened by `open`."""

    path: Path
    pattern: Pattern  # that cut the words
    normalizer: str | None  # its name; None: the text was not normalized
    special_tokens: tuple[str, ...]  # cut out of the text first
    special_tokens_in_text: int  # number of their occurrences
    fingerprint: str  # of the corpus
    groups: tuple[CountedGroup, ...]  # documents of one language and weight each
    runs: RunFolder | None = None  # of the same text, for the superwords of two-stage recipes

    @property
    def fingerprint_number(self) -> int:
        """The fingerprint, to be added to others; CorpusError if it is none."""
        try:
            return int(self.fingerprint, 16)
        except ValueError as error:
            raise CorpusError(f"{self.path / FILE} is damaged ({error}); {AGAIN}") from None

    @property
    def paths(self) -> list[Path]:
        """The folder itself, and that of the runs; the counterpart of `Corpus.paths`."""
        return [self.path] if self.runs is None else [self.path, self.runs.path]

    @classmethod
    def open(
        cls, path: str | Path, runs: str | Path | None = None, *, read: bool = True
    ) -> CountFolder:
        """Open the folder at `path` and read every shard once; CorpusError if any is damaged.

        runs: a folder that `count --runs` wrote for it, or None. `read=False` leaves the shards
        alone, for a caller that reads each of them once anyway.
        """
        check_installed("pyarrow", f"{path} (a folder of counts)")
        folder = _parse(Path(path))
        for group in range(len(folder.groups) if read else 0):
            for _ in folder.read(group):
                pass
        return folder if runs is None else replace(folder, runs=RunFolder.open(runs))

    def language_bytes(self) -> dict[str | None, int]:
        """Bytes of all counted words by language, each as often as it occurs."""
        sizes: dict[str | None, int] = {}
        for group, about in enumerate(self.groups):
            sizes.setdefault(about.language, 0)  # text of special tokens alone has no words
            for _, ends, counts in self.read(group):
                sizes[about.language] += weighted_sum(np.diff(ends, prepend=0), counts)
        return sizes

    def read(self, group: int) -> Iterator[Block]:
        """The words of a group, in blocks, sorted by their bytes."""
        about = self.groups[group]
        return read_shard(self.path / about.shard, (about.words, about.occurrences))

    def load_into(self, counter: _core.WordCounter) -> None:
        """Add all words to a counter, under the group numbers of this folder."""
        for group in range(len(self.groups)):
            for data, ends, counts in self.read(group):
                counter.add_words(data, ends, counts, group)

    def reader_state(self) -> dict[str, Any]:
        """The statistics of the corpus, in the form that `CorpusReader.restore` takes."""
        by_language: dict[str | None, int] = {}
        for group in self.groups:
            by_language[group.language] = by_language.get(group.language, 0) + group.bytes
        return {
            "language_bytes": list(by_language.items()),
            "groups": [
                {
                    "language": group.language,
                    "weight": group.weight,
                    "n_bytes": group.bytes,
                    "n_documents": group.documents,
                    "n_special": group.special,
                }
                for group in self.groups
            ],
            "n_special": self.special_tokens_in_text,
            "fingerprint": self.fingerprint,
        }

    def require(
        self, pattern: Pattern, normalizer: str | None, special_tokens: Sequence[str]
    ) -> None:
        """Raise CorpusError unless the words were counted with these settings."""
        for what, here, there in (
            ("pattern", _name(self.pattern), _name(tuple(pattern))),
            ("normalizer", self.normalizer, normalizer),
            ("special tokens", sorted(self.special_tokens), sorted(special_tokens)),
        ):
            is_same = here == there
            if what == "normalizer":  # several names may mean the same normalizer
                is_same = normalizer_spec(self.normalizer) == normalizer_spec(normalizer)
            if not is_same:
                raise CorpusError(
                    f"{self.path} was counted with the {what} {here}, and {there} is asked for; "
                    "count again with these, or ask for those"
                )


def count_words_within(
    folder: CountFolder,
    inner: _core.PreTokenizer,
    *,
    threads: int = 1,
    memory_bytes: int = 0,
    spill_folder: str = ".",
) -> _core.WordCounter:
    """Cut the counted pre-tokens of a folder by `inner`, and count the words by group."""
    counter = _core.WordCounter(inner, threads, memory_bytes, spill_folder)
    for group in range(len(folder.groups)):
        for data, ends, counts in folder.read(group):
            counter.add_counted(data, ends, counts, group)
    return counter


def _name(pattern: Pattern) -> str:
    """For messages: the pattern's name, or its regexes."""
    return pattern_name(pattern) or repr([asdict(split) for split in pattern])


def _parse(path: Path) -> CountFolder:
    """Parse `counts.json` and check its types."""

    def parse(document: dict[str, Any]) -> CountFolder:
        return CountFolder(
            path,
            tuple(_parse_split(split) for split in document["pattern"]),
            of_type(document["normalizer"], str, type(None)),
            tuple(of_type(token, str) for token in document["special_tokens"]),
            plain_count(document["special_tokens_in_text"]),
            of_type(document["corpus_fingerprint"], str),
            tuple(_parse_group(group) for group in document["groups"]),
        )

    return read_description(
        path / FILE, "counts", "vocabshift count", version=FORMAT, again=AGAIN, parse=parse
    )


def _parse_split(split: Any) -> Split:
    parsed = Split(**split)
    of_type(parsed.regex, str)
    of_type(parsed.invert, bool)
    return parsed.defined()


def _parse_group(group: Any) -> CountedGroup:
    parsed = CountedGroup(**group)
    of_type(parsed.language, str, type(None))
    if not 0 < of_type(parsed.weight, float, int) <= sys.float_info.max:  # an int may be larger
        raise ValueError(f"a weight of {parsed.weight}")
    numbers = (parsed.documents, parsed.bytes, parsed.words, parsed.occurrences, parsed.special)
    for number in numbers:
        plain_count(number)
    shard_name(parsed.shard)
    return parsed
