"""A folder of counted runs: `count --runs` writes it, and the superword stage is trained on it.

A run is what is left of the tokens of stage 1 where text is cut at rare borders
(docs/algorithms/superwords.md): their ids, each as 4 bytes, the lowest byte first. Where sentences
have weights, a second row with `WEIGHT` after the bytes holds the sum of the weights. There is one
sorted shard (count_shards.py) for each language, and `runs.json` records the settings under which
the runs were counted. Knows nothing of how they are counted. Needs the extra `vocabshift[data]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.count_shards import Block, ShardWriter, read_shard
from vocabshift.text.records import check_installed

FILE = "runs.json"
FORMAT = 1
"""Increased whenever this code would misread an older folder."""

WEIGHT = b"w"
"""Ends a run whose count is the sum of its sentences' weights."""

AGAIN = "count the runs again (vocabshift count --runs)"
"""Advice for a folder that does not fit."""

_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Text of one language."""

    language: str | None
    tokens: int  # before any superword
    bytes: int  # as it was encoded: normalized, without special tokens
    runs: int  # rows of the shard
    occurrences: int  # sum of their counts
    shard: str  # name of its file


def write_runs(
    counter: _core.WordCounter,
    read: Sequence[tuple[str | None, int, int]],
    settings: Mapping[str, Any],
    bound: int,
    folder: Path,
) -> None:
    """Write the runs of `counter` into an existing folder that holds none.

    read: (language, tokens, bytes) of each group of the counter. settings: plain JSON values.
    bound: weighted; the text was cut at borders that count less.
    """
    writers = [ShardWriter(folder / _shard_name(i), column="run") for i in range(len(read))]
    try:
        counter.sorted_blocks(
            lambda group, data, ends, counts: writers[group].write(data, ends, counts),
            _BLOCK_BYTES,
        )
    finally:
        for writer in writers:
            writer.close()
    groups = [
        RunGroup(*about, writer.words, writer.occurrences, _shard_name(i))
        for i, (about, writer) in enumerate(zip(read, writers, strict=True))
    ]
    document = {
        "format": FORMAT,
        "settings": settings,
        "bound": bound,
        "groups": [asdict(group) for group in groups],
    }
    text = json.dumps(document, ensure_ascii=False, indent=2)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder of runs, opened by `open`."""

    path: Path
    settings: Mapping[str, Any]  # under which the runs were counted
    bound: int  # weighted: the text was cut at borders that count less
    groups: tuple[RunGroup, ...]

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Open the folder at `path` and read every shard once; CorpusError if any is damaged."""
        check_installed("pyarrow", f"{path} (a folder of runs)")
        folder = _parse(Path(path))
        for group in range(len(folder.groups)):
            for _ in folder.read(group):
                pass
        return folder

    @property
    def tokens(self) -> int:
        """Tokens of the text before any superword."""
        return sum(group.tokens for group in self.groups)

    def read(self, group: int) -> Iterator[Block]:
        """The rows of a group, in blocks, sorted by their bytes."""
        expected = self.groups[group]
        shard = self.path / expected.shard
        runs = occurrences = 0
        for data, ends, counts in read_shard(shard, column="run", is_text=False):
            runs += len(ends)
            occurrences += sum(counts.tolist())  # Python integers: may exceed 64 bits
            yield data, ends, counts
        if (runs, occurrences) != (expected.runs, expected.occurrences):
            raise CorpusError(
                f"{shard} holds {runs:,} runs and {occurrences:,} occurrences; {FILE} says "
                f"{expected.runs:,} and {expected.occurrences:,}; {AGAIN}"
            )

    def require(self, settings: Mapping[str, Any]) -> None:
        """Raise CorpusError unless the runs were counted under these settings."""
        # The hash of stage 1 says least, so what it depends on is compared first.
        for name in sorted({*settings, *self.settings}, key=lambda name: (name == "stage1", name)):
            here, there = self.settings.get(name), settings.get(name)
            if here != there:
                what = name.replace("_", " ").replace("stage1", "stage 1")
                raise CorpusError(
                    f"{self.path} was counted with another {what} ({_short(here)}) than training "
                    f"has ({_short(there)}); {AGAIN} with the options of this training, or train "
                    "with those of the runs"
                )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"


def _shard_name(group: int) -> str:
    return f"runs-{group:05d}.parquet"


def _parse(path: Path) -> RunFolder:
    """Parse `runs.json` and check its types."""
    file = path / FILE
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(
            f"{path} is no folder of runs (no {FILE}); name one that `vocabshift count --runs` "
            "wrote"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CorpusError(f"{file} cannot be read ({error}); {AGAIN}") from error
    try:
        if document["format"] != FORMAT:
            raise CorpusError(
                f"{file} has the format {document['format']!r}, and this version reads {FORMAT}; "
                + AGAIN
            )
        if type(document["settings"]) is not dict:
            raise TypeError("no settings")
        groups = tuple(_parse_group(group) for group in document["groups"])
        return RunFolder(path, document["settings"], _count(document["bound"]), groups)
    except CorpusError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(f"{file} is damaged ({error!r}); {AGAIN}") from error


def _parse_group(group: Any) -> RunGroup:
    parsed = RunGroup(**group)
    if type(parsed.language) not in (str, type(None)) or type(parsed.shard) is not str:
        raise TypeError(f"{group!r} is no group")
    for number in (parsed.tokens, parsed.bytes, parsed.runs, parsed.occurrences):
        _count(number)
    if Path(parsed.shard).name != parsed.shard:
        raise ValueError(f"a shard outside the folder: {parsed.shard!r}")
    return parsed


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError(f"a count of {value!r}")
    return value
