"""Counts from several places as one: what `vocabshift count --join` reads.

A part is a folder that `count` wrote; or Parquet of any other program (a file, or a folder of
files) with the columns `word`, `count` and maybe `language`, in any order of rows. The language of
a file may stand in its path instead, as Spark writes it (`language=hin/part-0.parquet`). What
`engines.CountPieces` returns may be written to such files by any engine; the statistics in it make
the result that of counting the text. All words go through one counter, so memory is bounded by its
budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress
from vocabshift.text.count_folder import FILE, CountFolder
from vocabshift.text.count_shards import Block, ForeignShard, weighted_sum
from vocabshift.text.patterns import Pattern
from vocabshift.text.records import check_installed
from vocabshift.text.weighing import Group, WeightedText, fingerprint_seed, format_fingerprint

MEMORY = 1 << 30
"""Budget of the counter where none is given, in bytes."""

_IN_PATH = "language="
_NULL_IN_PATH = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class _ForeignPart:
    """Parquet files of another program."""

    path: Path
    shards: tuple[tuple[ForeignShard, str | None], ...]  # with the language in its path

    @property
    def languages(self) -> list[str | None]:
        """Sorted, so that they do not depend on how rows are divided among files."""
        found: set[str | None] = set()
        for shard, label in self.shards:
            own = shard.languages()
            if label is not None and (others := own - {None, label}):
                raise CorpusError(
                    f"{shard.path} has rows of {', '.join(sorted(map(repr, others)))}, and its "
                    f"folder says {label}; leave out the column language, or rename the folder"
                )
            found |= {label} if own and label is not None else own
        if any(label is not None and not label.strip() for label in found):
            raise CorpusError(
                f"{self.path} has a language that is blank; write for example hin, or null"
            )
        return sorted(found, key=lambda label: (label is not None, label or ""))

    def figures(self) -> Counter[tuple[str | None, str]]:
        """Statistics by language and name, once all is read."""
        total: Counter[tuple[str | None, str]] = Counter()
        for shard, label in self.shards:
            for (language, name), count in shard.figures.items():
                is_own = label is not None and name not in ("high", "low")
                total[label if is_own else language, name] += count
        return total

    def read(self) -> Iterator[tuple[str | None, Block]]:
        for shard, label in self.shards:
            for language, block in shard.read():
                yield language if label is None else label, block


@dataclass
class CountJoin(WeightedText):
    """Parts opened by `open`, to be counted as a corpus is."""

    parts: tuple[CountFolder | _ForeignPart, ...]
    pattern: Pattern
    normalizer: str | None
    special_tokens: tuple[str, ...]
    groups: list[Group] = field(default_factory=list)  # in order of appearance
    n_special: int = 0
    fingerprint: str = ""
    _sum: int = 0  # of the fingerprints of the parts

    @property
    def paths(self) -> list[Path]:
        """Files and folders that are read."""
        return [part.path for part in self.parts]

    @classmethod
    def open(
        cls,
        parts: Iterable[str | Path],
        pattern: Pattern | None = None,
        normalizer: str | None = None,
        special_tokens: Sequence[str] = (),
    ) -> CountJoin:
        """Open the parts and check how their words were cut; the words are read by `count_words`.

        pattern, normalizer, special_tokens: how words of other programs were cut; folders of ours
            say it themselves, and must say the same. pattern None: as they say.

        CorpusError for parts that differ in these, for files that hold no counts, and where no part
        says how it was cut.
        """
        check_installed("pyarrow", "joining counts (Parquet)")
        paths = [Path(part) for part in parts]
        met: set[Path] = set()
        for path in paths:
            if path.resolve() in met:
                raise CorpusError(f"{path} is given twice, and would be counted twice")
            met.add(path.resolve())
        opened = [_open(path) for path in paths]
        ours = [part for part in opened if isinstance(part, CountFolder)]
        if pattern is None and not ours:
            raise CorpusError(
                f"{', '.join(map(str, paths))}: the files do not say how the words were cut; name "
                "the pattern (--pattern)"
            )
        if ours:
            pattern = ours[0].pattern if pattern is None else pattern
            normalizer = ours[0].normalizer if normalizer is None else normalizer
            special_tokens = special_tokens or ours[0].special_tokens
        assert pattern is not None
        for part in ours:
            part.require(pattern, normalizer, special_tokens)
        return cls(tuple(opened), pattern, normalizer, tuple(special_tokens))

    def count_words(
        self,
        *,
        threads: int = 1,
        progress: PhaseProgress | None = None,
        memory_bytes: int = 0,
        spill_folder: Path | None = None,
    ) -> _core.WordCounter:
        """Add up all words, group by group. `memory_bytes` 0: `MEMORY`.

        CorpusError for a damaged part, and where no part has a word; ValueError where a count
        outgrows 64 bits.
        """
        spill = "." if spill_folder is None else str(spill_folder)
        counter = _core.WordCounter(_core.PreTokenizer([]), threads, memory_bytes or MEMORY, spill)
        self.groups, self.n_special, self._sum = [], 0, 0
        done, n_rows = 0, self._n_rows
        for part in self.parts:
            for index, block in self._blocks(part):
                counter.add_words(*block, index)
                done += len(block[1])
                if progress is not None:
                    progress(done, n_rows)
        if not done:
            raise CorpusError(
                f"{', '.join(map(str, self.paths))}: there is no word that occurs; name counts of "
                "some text"
            )
        self.fingerprint = format_fingerprint(self._sum)
        return counter

    def _blocks(self, part: CountFolder | _ForeignPart) -> Iterator[tuple[int, Block]]:
        """Blocks of words with their group; collects the statistics of the part."""
        if isinstance(part, CountFolder):
            self.n_special += part.special_tokens_in_text
            self._sum += part.fingerprint_number
            for number, about in enumerate(part.groups):
                index = self._index(about.language, about.weight)
                group = self.groups[index]
                group.n_bytes += about.bytes
                group.n_documents += about.documents
                group.n_special += about.special
                for block in part.read(number):
                    yield index, block
            return
        for language in part.languages:
            self._index(language, 1.0)
        n_bytes: Counter[str | None] = Counter()
        fingerprint = 0
        for language, block in part.read():
            n_bytes[language] += weighted_sum(np.diff(block[1], prepend=0), block[2])
            fingerprint += _fingerprint(language, block)
            yield self._index(language, 1.0), block
        figures = part.figures()
        if (None, "high") in figures:  # of the text itself
            fingerprint = (figures[None, "high"] << 32) + figures[None, "low"]
            n_bytes = Counter({label: n for (label, name), n in figures.items() if name == "bytes"})
        self._sum += fingerprint
        for language, n in n_bytes.items():
            group = self.groups[self._index(language, 1.0)]
            group.n_bytes += n
            group.n_documents += figures[language, "documents"]
            group.n_special += figures[language, "special"]
            self.n_special += figures[language, "special"]

    def _index(self, language: str | None, weight: float) -> int:
        keys = [(group.language, group.weight) for group in self.groups]
        if (language, weight) not in keys:
            keys.append((language, weight))
            self.groups.append(Group(language, weight))
        return keys.index((language, weight))

    @property
    def _n_rows(self) -> int:
        return sum(
            sum(group.words for group in part.groups)
            if isinstance(part, CountFolder)
            else sum(shard.n_rows for shard, _ in part.shards)
            for part in self.parts
        )


def _open(path: Path) -> CountFolder | _ForeignPart:
    """One part; CorpusError where there is none."""
    if (path / FILE).exists():
        return CountFolder.open(path, read=False)
    files = [path]
    if path.is_dir():  # what begins with "_" or "." is unfinished work of Spark and Hadoop
        files = [
            file
            for file in sorted(path.rglob("*.parquet"))
            if not any(name.startswith(("_", ".")) for name in file.relative_to(path).parts)
        ]
    if not files or not files[0].is_file():
        raise CorpusError(
            f"{path} holds no counts: no {FILE}, as vocabshift count writes it, and no *.parquet "
            "with the columns word and count"
        )
    for folder in sorted({file.parent for file in files}):
        if (folder / FILE).exists():  # its languages and statistics are not in the Parquet files
            raise CorpusError(f"{folder} is a folder of counts in itself; name it, not {path}")
    return _ForeignPart(path, tuple((ForeignShard(file), _label(file, path)) for file in files))


def _label(file: Path, part: Path) -> str | None:
    """The language that a folder between the part and the file names."""
    for folder in file.relative_to(part).parts[:-1] if file != part else ():
        if folder.startswith(_IN_PATH) and folder != _IN_PATH + _NULL_IN_PATH:
            return unquote(folder.removeprefix(_IN_PATH))
    return None


def _fingerprint(language: str | None, block: Block) -> int:
    """Of counted words: linear in counts, so that neither order nor division of rows matters."""
    data, ends, counts = block
    starts = np.append(0, ends)[:-1]
    seed = fingerprint_seed(language, 1.0)
    total = 0
    order = np.argsort(counts, kind="stable")
    values, first = np.unique(counts[order], return_index=True)
    for count, chosen in zip(values.tolist(), np.split(order, first[1:]), strict=True):
        total += count * _core.fingerprint(data, starts[chosen], ends[chosen], seed)
    return total
