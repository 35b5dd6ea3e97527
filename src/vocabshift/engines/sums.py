"""Sums of counted words on their way from an engine to a folder of counts.

An engine adds up what `CountPieces` returns. `PackSums` makes a few large rows of its many small
ones, and `Sums` takes these into the core's counter, which sorts them within its memory budget.
Knows nothing of any engine.
"""

from __future__ import annotations

import base64
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift import _core
from vocabshift.engines.words import sorted_blocks
from vocabshift.errors import CorpusError
from vocabshift.text.count_folder import write_counts
from vocabshift.text.count_shards import BAD_ROW, STATISTIC, flat_words
from vocabshift.text.counting import CorpusReader
from vocabshift.text.weighing import Group

BAD_ROWS = "bad-rows.jsonl"
"""File of the rows that could not be read; there only if there are any."""

WORDS, FIGURES, BAD = range(3)
"""Kinds of packed rows."""

_PACKED_BYTES = 8 << 20

Key = tuple[int, str | None, int]
"""Part of the corpus, language and kind."""


class PackSums:
    """Packs rows of (part, language, word, count) into rows of many words; can be pickled.

    From record batches with these columns (int32, string, binary, int64) it makes record batches
    of `part`, `language`, `kind`, and the words as three binary columns: `words`, one after the
    other, their `ends` (int64) and their `counts` (uint64).
    """

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Pack the batches; about 8 MB are held at a time."""
        waiting: dict[Key, list[tuple[Any, Any]]] = defaultdict(list)
        n_bytes = 0
        for batch in batches:
            n_bytes += batch.nbytes
            for key, rows in _by_key(batch):
                waiting[key].append(rows)
            if n_bytes >= _PACKED_BYTES:
                yield from _packed(waiting)
                n_bytes = 0
        yield from _packed(waiting)


def _by_key(batch: Any) -> Iterator[tuple[Key, tuple[Any, Any]]]:
    import pyarrow.compute as pc

    if not len(batch):
        return
    words, counts = batch.column("word"), batch.column("count")
    languages = batch.column("language").dictionary_encode()
    labels = languages.dictionary.to_pylist()
    flat, ends = flat_words(words)
    first = np.frombuffer(flat, np.uint8)[np.append(0, ends)[:-1]]  # no word is empty
    kinds = np.select([first == STATISTIC[0], first == BAD_ROW[0]], [FIGURES, BAD], WORDS)
    codes = languages.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    parts = batch.column("part").to_numpy(zero_copy_only=False)
    keys, rows = np.unique(np.stack([parts, codes, kinds]), axis=1, return_inverse=True)
    for number, (part, code, kind) in enumerate(keys.T.tolist()):
        own = np.flatnonzero(rows.ravel() == number)
        label = None if code < 0 else labels[code]
        yield (part, label, kind), (pc.take(words, own), pc.take(counts, own))


def _packed(waiting: dict[Key, list[tuple[Any, Any]]]) -> Iterator[Any]:
    """One record batch of one row for each key; empties `waiting`."""
    import pyarrow as pa

    for (part, language, kind), rows in waiting.items():
        data, ends, counts = [], [], []
        end = 0
        for words, numbers in rows:
            flat, own = flat_words(words)
            data.append(flat)
            ends.append(own + end)
            counts.append(numbers.to_numpy(zero_copy_only=False).astype(np.uint64))
            end += len(data[-1])
        yield pa.record_batch(
            {
                "part": pa.array([part], pa.int32()),
                "language": pa.array([language], pa.string()),
                "kind": pa.array([kind], pa.int32()),
                "words": pa.array([b"".join(data)], pa.binary()),
                "ends": pa.array([np.concatenate(ends).tobytes()], pa.binary()),
                "counts": pa.array([np.concatenate(counts).tobytes()], pa.binary()),
            }
        )
    waiting.clear()


class Sums:
    """Takes the packed rows of all parts of a corpus, and writes them as a folder of counts.

    The rows of the kind FIGURES must come first. Part i has the weight weights[i] and, in messages,
    the name names[i].
    """

    def __init__(
        self,
        reader: CorpusReader,
        *,
        weights: Sequence[float],
        names: Sequence[str],
        memory_bytes: int = 0,
        folder: Path,
    ) -> None:
        """reader: settings of the count; it gets the statistics. folder: to write into."""
        self._reader, self._weights, self._names = reader, weights, names
        self._folder = folder
        counters = [
            _core.WordCounter(_core.PreTokenizer([]), 1, memory_bytes, str(folder))
            for _ in (WORDS, BAD)
        ]
        self._words, self._bad = counters
        self._n_bad = self._n_nulls = 0
        self._figures: dict[tuple[int, str | None], Counter[str]] = defaultdict(Counter)

    @property
    def figures(self) -> dict[str, Any]:
        """What the verb reports."""
        return {
            "groups": len(self._reader.groups),
            "documents": self._reader.n_documents,
            "bytes": self._reader.n_bytes,
            "words": sum(map(self._words.size, range(self._words.group_count))),
            "corpus_fingerprint": self._reader.fingerprint,
            "null_rows": self._n_nulls,
            "bad_rows": self._n_bad,
        }

    def require(self, languages: Iterable[str]) -> None:
        """CorpusError unless there is text in each of these languages."""
        self._restore()
        found = {group.language for group in self._reader.groups}
        silent = [label for label in languages if label not in found]
        if silent:
            raise CorpusError(
                f"no text in {', '.join(map(repr, silent))}: a tokenizer cannot learn a language "
                "that it does not see; give files that are not empty, or leave the label out"
            )

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a packed row; CorpusError at the first word if no document was counted."""
        words, ends, counts = _unpacked(row)
        if row["kind"] == FIGURES:
            begin = 0
            for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
                name = words[begin + len(STATISTIC) : end].decode()
                self._figures[row["part"], row["language"]][name] += count
                begin = end
            return
        self._restore()
        if row["kind"] == BAD:
            self._n_bad += int(counts.sum())
            self._bad.add_words(words, ends, counts, row["part"])
            return
        key = (row["language"], self._weights[row["part"]])
        group = [(group.language, group.weight) for group in self._reader.groups].index(key)
        self._words.add_words(words, ends, counts, group)

    def write(self) -> None:
        """Write the folder of counts, and the bad rows if there are any."""
        self._restore()
        write_counts(self._words, self._reader, self._folder)
        if not self._n_bad:
            return
        with (self._folder / BAD_ROWS).open("w", encoding="utf-8") as file:
            for part, words, ends, counts in sorted_blocks(self._bad):
                begin = 0
                for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
                    about = _bad_row(words[begin:end])
                    begin = end
                    line = {"source": self._names[part], "rows": count, **about}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _restore(self) -> None:
        """The statistics of the text; groups are in the order in which a reader meets them."""
        if self._reader.groups:
            return
        found, self._figures = self._figures, {}
        total: Counter[str] = sum(found.values(), Counter())
        self._n_nulls = total["nulls"]
        groups: dict[tuple[str | None, float], Group] = {}
        for (part, language), figures in sorted(found.items(), key=_in_order):
            if figures["documents"]:
                weight = self._weights[part]
                group = groups.setdefault((language, weight), Group(language, weight))
                group.n_documents += figures["documents"]
                group.n_bytes += figures["bytes"]
                group.n_special += figures["special"]
        if not groups:
            raise CorpusError(f"no text in {', '.join(self._names)}: name files that are not empty")
        by_language: Counter[str | None] = Counter()
        for group in groups.values():
            by_language[group.language] += group.n_bytes
        fingerprint = ((total["high"] << 32) + total["low"]) % (1 << 64)
        self._reader.restore(
            {
                "groups": [asdict(group) for group in groups.values()],
                "language_bytes": list(by_language.items()),
                "n_special": total["special"],
                "fingerprint": f"{fingerprint:016x}",
            }
        )


def _in_order(item: tuple[tuple[int, str | None], Any]) -> tuple[int, bool, str]:
    (part, language), _ = item
    return part, language is not None, language or ""


def _unpacked(row: Mapping[str, Any]) -> tuple[bytes, Any, Any]:
    return (
        bytes(row["words"]),
        np.frombuffer(row["ends"], np.int64),
        np.frombuffer(row["counts"], np.uint64),
    )


def _bad_row(word: bytes) -> dict[str, str]:
    """Reason and row; a row that JSON cannot hold, as it is not UTF-8, in base 64."""
    reason, _, row = word[len(BAD_ROW) :].partition(b"\0")
    try:
        content = {"row": row.decode()}
    except UnicodeDecodeError:
        content = {"row_base64": base64.b64encode(row).decode()}
    return {"reason": reason.decode("utf-8", "replace"), **content}
