"""What folders of counted words and of counted runs share: shards, and a JSON that describes them.

Owns how shards are written and named, and the checks of the description, which another program or a
damaged disk may have changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.count_shards import BLOCK_BYTES, ShardWriter

Folder = TypeVar("Folder")


def write_shards(
    counter: _core.WordCounter, folder: Path, n_groups: int, column: str
) -> list[tuple[int, int, str]]:
    """Write a sorted shard of each group; (rows, sum of their counts, name of the file) of each."""
    names = [f"{column}s-{group:05d}.parquet" for group in range(n_groups)]
    writers = [ShardWriter(folder / name, column=column) for name in names]
    try:
        counter.sorted_blocks(
            lambda group, data, ends, counts: writers[group].write(data, ends, counts), BLOCK_BYTES
        )
    finally:
        for writer in writers:
            writer.close()
    return [(each.words, each.occurrences, name) for each, name in zip(writers, names, strict=True)]


def write_description(file: Path, version: int, facts: Mapping[str, Any]) -> None:
    """Write what `read_description` reads."""
    text = json.dumps({"format": version, **facts}, ensure_ascii=False, indent=2)
    file.write_text(text + "\n", encoding="utf-8")


def read_description(
    file: Path,
    what: str,
    verb: str,
    *,
    version: int,
    again: str,
    parse: Callable[[dict[str, Any]], Folder],
) -> Folder:
    """What `parse` makes of the description in `file`; CorpusError if it cannot be read.

    what, verb: what the folder should hold, and the command that writes it. version: the format
    that `parse` reads. again: how to make the folder anew. `parse` may raise KeyError, TypeError,
    ValueError and AttributeError for a damaged description.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(
            f"{file.parent} is no folder of {what} (no {file.name}); name one that `{verb}` wrote"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CorpusError(f"{file} cannot be read ({error}); {again}") from error
    try:
        if document["format"] != version:
            raise CorpusError(
                f"{file} has the format {document['format']!r}, and this version reads {version}; "
                + again
            )
        return parse(document)
    except CorpusError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(f"{file} is damaged ({error!r}); {again}") from error


def of_type(value: Any, *types: type) -> Any:
    """The value; TypeError if it is of no such type."""
    if type(value) not in types:
        raise TypeError(f"{value!r} stands where {types[0].__name__} is needed")
    return value


def plain_count(value: Any) -> int:
    """A number from 0 on, which may exceed 64 bits; TypeError or ValueError for others."""
    if of_type(value, int) < 0:
        raise ValueError(f"a count of {value}")
    return int(value)


def shard_name(value: Any) -> str:
    """The name of a file in the folder itself; ValueError for a path out of it."""
    if Path(of_type(value, str)).name != value:
        raise ValueError(f"a shard outside the folder: {value!r}")
    return str(value)
