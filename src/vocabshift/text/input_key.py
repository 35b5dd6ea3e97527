"""A name for the text that a run reads, by which the next process knows that it is the same.

Owns which facts make up the name, and for which sources there is none. A file is known by path,
size and time of change, as `make` does: reading a corpus to hash it would cost as much as the
first phase of the work.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from vocabshift.text.corpus import Corpus, Part
from vocabshift.text.files import File
from vocabshift.text.readers import FileSource, HubSource, StandardInputSource


def input_key(corpus: Corpus) -> str | None:
    """Hex digits that change with the files, labels, weights, choices and units of `corpus`.

    None where a part is no local file; `no_key_reason` says why.
    """
    if no_key_reason(corpus) is not None:
        return None
    facts = json.dumps([_facts(part) for part in corpus.parts], ensure_ascii=False)
    return hashlib.sha256(facts.encode()).hexdigest()


def no_key_reason(corpus: Corpus) -> str | None:
    """Why a later run cannot know this corpus again; None where it can."""
    for part in corpus.parts:
        if isinstance(part.source, StandardInputSource):
            return "standard input is gone when the process ends"
        if isinstance(part.source, HubSource):
            return f"{part.source.name} may change on the Hub from one run to the next"
        if not isinstance(part.source, FileSource):
            return f"{part.source.name} lie in memory only"
    return None


def _facts(part: Part) -> list[Any]:
    assert isinstance(part.source, FileSource)
    files = [_file_facts(file) for file in part.source.files]
    source = [part.source.unit, part.source.column, files]
    return [part.language, part.weight, *source, *(choice.facts for choice in part.choices)]


def _file_facts(file: File) -> list[Any]:
    state = file.path.stat()
    # surrogateescape: a file name need not be UTF-8
    path = str(file.path.resolve()).encode("utf-8", "surrogateescape").hex()
    return [path, file.format, file.compression, state.st_size, state.st_mtime_ns]
