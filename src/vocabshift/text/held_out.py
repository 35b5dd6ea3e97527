"""Smaller corpora for measurements: held-out documents, the first bytes of each language, samples.

Every n-th document is held out of training for evaluation. The split depends only on the order of
the documents.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.documents import Documents
from vocabshift.text.languages import ALL
from vocabshift.text.readers import StandardInputSource

EVERY = 20
"""One document in this many is held out."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The held-out documents of a source, or the others."""

    first: int  # index of the first held-out document
    every: int
    is_held_out: bool

    @property
    def name(self) -> str:
        """For messages."""
        held_out = f"every {self.every}th document"
        return held_out if self.is_held_out else f"without {held_out}"

    @property
    def facts(self) -> list[Any]:
        """For `input_key`."""
        return ["held out", self.first, self.every, self.is_held_out]

    def n_bytes_hint(self, n_bytes: int) -> int:
        """The share of `n_bytes` that is kept."""
        held_out = n_bytes // self.every
        return held_out if self.is_held_out else n_bytes - held_out

    def of(self, blocks: Iterator[Documents]) -> Iterator[Documents]:
        """The held-out documents, or the rest."""
        seen = 0
        for documents in blocks:
            places = np.arange(seen, seen + len(documents))
            seen += len(documents)
            is_taken = (places % self.every == self.first) == self.is_held_out
            if is_taken.any():
                yield documents.where(is_taken)


def hold_out(corpus: Corpus, every: int = EVERY) -> tuple[Corpus, Corpus]:
    """(training, held out): the first document of each language and every `every`-th after it.

    The second source of a language starts with its second document, and so on, so that many sources
    of one document each are split too. ValueError for standard input, which cannot be read twice.
    """
    if any(isinstance(part.source, StandardInputSource) for part in corpus.parts):
        raise ValueError("standard input can be read only once; write the text to a file first")

    firsts = []
    n_sources: Counter[str | None] = Counter()
    for part in corpus.parts:
        # After its i-th source a language has at least i documents.
        firsts.append(-n_sources[part.language] % every)
        n_sources[part.language] += 1

    def part_of(is_held_out: bool) -> Corpus:
        return Corpus(
            part.choosing(HeldOut(first, every, is_held_out))
            for part, first in zip(corpus.parts, firsts, strict=True)
        )

    return part_of(False), part_of(True)


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Cuts longer documents: before white space in the second half, or else between characters."""

    n_bytes: int

    @property
    def name(self) -> str:
        """For messages."""
        return f"the first {self.n_bytes:,} bytes of each document"

    @property
    def facts(self) -> list[Any]:
        """For `input_key`."""
        return ["beginnings", self.n_bytes]

    def n_bytes_hint(self, n_bytes: int) -> int:
        """All: how long documents are is not known."""
        return n_bytes

    def of(self, blocks: Iterator[Documents]) -> Iterator[Documents]:
        """All documents, none longer than `n_bytes`."""
        for documents in blocks:
            ends = documents.ends.copy()
            for i in np.flatnonzero(ends - documents.starts > self.n_bytes).tolist():
                start = int(documents.starts[i])
                head = bytes(documents.data[start : start + self.n_bytes])
                space = max(head.rfind(b" "), head.rfind(b"\n"))
                if 2 * space < self.n_bytes:
                    space = len(head.decode("utf-8", errors="ignore").encode("utf-8"))
                ends[i] = start + space
            yield replace(documents, ends=ends)


def excerpt(corpus: Corpus, n_bytes: int) -> dict[str, list[str]]:
    """Label -> its first non-blank documents, at most `n_bytes` of UTF-8, in memory.

    For work whose cost grows with the text, such as running a model over it. Text without a label
    is filed under `ALL`, as in Results. A document that does not fit is cut after a whole
    character. Reads no further than needed. CorpusError if there is no text.
    """
    if n_bytes < 1:
        raise ValueError(f"n_bytes is {n_bytes}; give at least 1")
    found: dict[str, list[str]] = {}
    room: dict[str, int] = {}
    for part in corpus.parts:
        label = ALL if part.language is None else part.language
        texts = found.setdefault(label, [])
        if room.setdefault(label, n_bytes) <= 0:
            continue
        for documents in part.read():
            for text in documents.texts():
                data = text.encode("utf-8")
                cut = data[: room[label]].decode("utf-8", errors="ignore")
                room[label] -= len(data)
                if cut.strip():
                    texts.append(cut)
                if room[label] <= 0:
                    break
            if room[label] <= 0:
                break
    if not any(found.values()):
        raise CorpusError(f"there is no text in {corpus!r}; name files that are not empty")
    return {label: texts for label, texts in found.items() if texts}


def most_of_one(n_bytes: int) -> int:
    """Bytes of one document in a drawn excerpt of `n_bytes`, at most.

    A twentieth, so that twenty documents fit, however long they are: models are compared by
    document. A character has up to four bytes.
    """
    return max(n_bytes // 20, 4)


def drawn_excerpt(
    corpus: Corpus, languages: Iterable[str], n_bytes: int, *, seed: int = 0
) -> dict[str, list[str]]:
    """As `excerpt`, but documents drawn at random from all of the text of each of these languages.

    Each is cut to `most_of_one(n_bytes)`. Where what is drawn is blank, or does not fit, the first
    documents. CorpusError if the corpus lacks a language, or has no more than blank text of it.
    """
    head = Beginnings(most_of_one(n_bytes))
    found: dict[str, list[str]] = {}
    for name in languages:
        if name not in corpus.languages:
            raise CorpusError(f"the held-out text lacks {name}")
        own = Corpus(part.choosing(head) for part in corpus.select(name).parts)
        try:
            found |= excerpt(own.limit_bytes(n_bytes, seed=seed), n_bytes)
        except CorpusError:
            try:
                found |= excerpt(own, n_bytes)
            except CorpusError:
                raise CorpusError(
                    f"the held-out text of {name} is blank; give more text, or other held-out text"
                ) from None
    return found


def sample_texts(n_documents: int = 24) -> list[str]:
    """The first documents of each of the twenty languages (and code) that come with the package,
    and `script_texts`.

    Texts in many scripts to compare tokenizers on, where no others are given.
    """
    folder = resources.files("vocabshift") / "demo" / "texts"
    found = [text for _, text in script_texts()]
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        lines = file.read_text(encoding="utf-8").split("\n")[:n_documents]
        is_json = file.name.endswith(".jsonl")
        found += [str(json.loads(line)["text"]) if is_json else line for line in lines if line]
    return found


def script_texts() -> list[tuple[str, str]]:
    """Short texts of ours with their labels: 50 languages in all their scripts, code, numbers,
    white space, emoji and marks. Nothing is trained on them."""
    file = resources.files("vocabshift.text") / "scripts.jsonl"
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [(row["language"], row["text"]) for row in rows]
