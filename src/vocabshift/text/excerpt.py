"""The first so many bytes of each language of a corpus, in memory.

For work whose price grows with the text, such as running a model over it. Owns the cut; the bound
is the caller's.
"""

from __future__ import annotations

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus

UNLABELLED = "all"
"""Label of text without one, as Results call it."""


def excerpt(corpus: Corpus, n_bytes: int) -> dict[str, list[str]]:
    """Label -> its first documents that are not blank, `n_bytes` of UTF-8 at most.

    A document that does not fit is cut behind a whole character. Reads no further than needed.
    CorpusError where there is nothing.
    """
    if n_bytes < 1:
        raise ValueError(f"n_bytes is {n_bytes}; give at least 1")
    found: dict[str, list[str]] = {}
    room: dict[str, int] = {}
    for part in corpus.parts:
        label = UNLABELLED if part.language is None else part.language
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
