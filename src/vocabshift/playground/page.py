"""What the page sends and gets, as values: the text in all tokenizers, a token, the samples.

Owns how much text is shown and what becomes of text that is not well formed. Knows nothing of
HTTP.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from vocabshift.evaluation.token_marks import text_borders
from vocabshift.playground.subject import Subject

MOST_SHOWN = 20_000
"""Characters of a text that are drawn; all of it is counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Playground:
    """The tokenizers of a page; one request at a time is worked on."""

    def __init__(
        self, subjects: Sequence[Subject], samples: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.subjects = tuple(subjects)
        self.samples = {label: list(texts) for label, texts in (samples or {}).items()}
        self._lock = threading.Lock()

    def start(self) -> dict[str, Any]:
        """What the page needs before anybody types."""
        return {
            "tokenizers": [subject.facts() for subject in self.subjects],
            "samples": self.samples,
        }

    def tokenize(self, text: str, *, parse_special: bool = True) -> dict[str, Any]:
        """The text in every tokenizer.

        Lone surrogates, which UTF-8 cannot carry, become U+FFFD and are counted. `clusters` are
        the bytes [start, end) of syllables and characters that some tokenizer cuts: what is drawn
        as one sign.
        """
        text, n_surrogates = _SURROGATE.subn("\ufffd", text)
        shown = _beginning(text)
        borders = text_borders(shown)
        with self._lock:
            rows = [
                subject.tokenize(text, shown, borders, parse_special=parse_special)
                for subject in self.subjects
            ]
        at = borders.syllables.nonzero()[0].tolist()
        return {
            "shown": shown,
            "is_whole": len(shown) == len(text),
            "n_surrogates": n_surrogates,
            "n_characters": len(text),
            "n_bytes": len(text.encode()),
            "n_words": len(text.split()),
            "borders": at,
            "tokenizers": rows,
        }

    def token(self, subject: int, token_id: int) -> dict[str, Any]:
        """How a token of the tokenizer with this number is made; LookupError if there is none."""
        if not 0 <= subject < len(self.subjects):
            raise IndexError(f"there is no tokenizer number {subject}")
        with self._lock:
            return self.subjects[subject].token(token_id)


def _beginning(text: str) -> str:
    """At most MOST_SHOWN characters, cut at white space where there is some near the end."""
    if len(text) <= MOST_SHOWN:
        return text
    head = text[:MOST_SHOWN]
    spaces = list(re.finditer(r"\s", head[-200:]))
    return head[: len(head) - len(head[-200:]) + spaces[-1].start()] if spaces else head
