"""A folder of counted runs: `count --runs` writes it, and the superword stage is trained on it.

A run is what is left of the tokens of stage 1 where text is cut at rare borders
(docs/algorithms/superwords.md): their ids, each as 4 bytes, the lowest byte first. Where sentences
have weights, a second row with `WEIGHT` after the bytes holds the sum of the weights. There is one
sorted shard (count_shards.py) for each language, and `runs.json` records the settings under which
the runs were counted. Knows nothing of how they are counted. Needs the extra `vocabshift[data]`.

Runs of several parts of a text may be added up if all were cut at the same borders. Where each part
was cut by a sketch of its own, a border that is rare in one part and frequent in all has lost its
occurrences, whatever the bounds are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress
from vocabshift.text.count_shards import Block, read_shard
from vocabshift.text.records import check_installed
from vocabshift.text.shard_folder import (
    of_type,
    plain_count,
    read_description,
    shard_name,
    write_description,
    write_shards,
)

FILE = "runs.json"
FORMAT = 1
"""Increased whenever this code would misread an older folder."""

WEIGHT = b"w"
"""Ends a run whose count is the sum of its sentences' weights."""

AGAIN = "count the runs again (vocabshift count --runs)"
"""Advice for a folder that does not fit."""


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
    folder: Path,
    *,
    bound: int,
    borders: str | None,
) -> None:
    """Write the runs of `counter` into an existing folder that holds none.

    read: (language, tokens, bytes) of each group of the counter. settings: plain JSON values.
    bound: weighted; the text was cut at borders that count less. borders: identifies these.
    """
    shards = write_shards(counter, folder, len(read), "run")
    groups = [RunGroup(*about, *shard) for about, shard in zip(read, shards, strict=True)]
    facts = {
        "settings": settings,
        "bound": bound,
        "borders": borders,
        "groups": [asdict(group) for group in groups],
    }
    write_description(folder / FILE, FORMAT, facts)


def join_runs(
    parts: Sequence[RunFolder],
    counter: _core.WordCounter,
    folder: Path,
    *,
    progress: PhaseProgress | None = None,
) -> None:
    """Add up runs of several parts of a text, and write them into an existing folder.

    counter: empty; it takes all runs. progress: called with the runs read and their number.
    CorpusError for parts that were not cut at the same borders.
    """
    first = parts[0]
    places = {group.language: number for number, group in enumerate(first.groups)}
    tokens, n_bytes = [0] * len(places), [0] * len(places)
    done, n_runs = 0, sum(part.figures["runs"] for part in parts)
    for part in parts:
        _require_same_borders(first, part)
        for number, group in enumerate(part.groups):
            place = places[group.language]
            tokens[place] += group.tokens
            n_bytes[place] += group.bytes
            for block in part.read(number):
                counter.add_words(*block, place)
                done += len(block[1])
                if progress is not None:
                    progress(done, n_runs)
    read = list(zip(places, tokens, n_bytes, strict=True))
    write_runs(counter, read, first.settings, folder, bound=first.bound, borders=first.borders)


def _require_same_borders(first: RunFolder, other: RunFolder) -> None:
    facts = [
        (folder.settings, folder.bound, {group.language for group in folder.groups})
        for folder in (first, other)
    ]
    if facts[0] != facts[1]:
        raise CorpusError(
            f"{other.path} was counted under other options, words or bound than {first.path}; "
            f"{AGAIN} with the same of all three"
        )
    if first.borders is None or first.borders != other.borders:
        raise CorpusError(
            f"{first.path} and {other.path} were cut at different borders, each at those that are "
            "rare in its own text, so their sums lack what is frequent in both together; count the "
            "runs of all text in one run, or by one sketch of all text (docs/clusters.md)"
        )


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder of runs, opened by `open`."""

    path: Path
    settings: Mapping[str, Any]  # under which the runs were counted
    bound: int  # weighted: the text was cut at borders that count less
    groups: tuple[RunGroup, ...]
    borders: str | None = None  # identifies these; older folders do not say

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

    @property
    def figures(self) -> dict[str, int]:
        """The sums over the groups that `count --runs` reports."""
        return {
            "bound": self.bound,
            "groups": len(self.groups),
            "tokens": self.tokens,
            "bytes": sum(group.bytes for group in self.groups),
            "runs": sum(group.runs for group in self.groups),
            "occurrences": sum(group.occurrences for group in self.groups),
        }

    def read(self, group: int) -> Iterator[Block]:
        """The rows of a group, in blocks, sorted by their bytes."""
        about = self.groups[group]
        expected = about.runs, about.occurrences
        return read_shard(self.path / about.shard, expected, column="run", is_text=False)

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


def _parse(path: Path) -> RunFolder:
    """Parse `runs.json` and check its types."""

    def parse(document: dict[str, Any]) -> RunFolder:
        groups = tuple(map(_parse_group, document["groups"]))
        settings = of_type(document["settings"], dict)
        borders = of_type(document.get("borders"), str, type(None))
        return RunFolder(path, settings, _number(document["bound"]), groups, borders)

    return read_description(
        path / FILE, "runs", "vocabshift count --runs", version=FORMAT, again=AGAIN, parse=parse
    )


def _parse_group(group: Any) -> RunGroup:
    parsed = RunGroup(**group)
    of_type(parsed.language, str, type(None))
    for number in (parsed.tokens, parsed.bytes, parsed.runs, parsed.occurrences):
        _number(number)
    shard_name(parsed.shard)
    return parsed


def _number(value: Any) -> int:
    if plain_count(value) >= 1 << 64:
        raise ValueError(f"a count of {value}")
    return int(value)
