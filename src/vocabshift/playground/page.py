"""What the page sends and gets, as values: the text in all tokenizers, a token, the samples.

Owns how much text is shown and what becomes of text that is not well formed. Knows nothing of
HTTP.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vocabshift.evaluation.token_marks import text_borders
from vocabshift.playground.panel import Panel

MOST_SHOWN = 12_000
"""Characters of a text that are drawn; all of it is counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Sample:
    """A text to start from."""

    name: str
    language: str  # for the `lang` attribute; "" where there is no one language
    text: str


class Playground:
    """The tokenizers of a page; one request at a time is worked on."""

    def __init__(
        self, panels: Sequence[Panel], samples: Sequence[Sample] = (), *, most_bytes: int = 2 << 20
    ) -> None:
        """`most_bytes`: of a request's body, the text as JSON (default: 2 MiB)."""
        self.panels = tuple(panels)
        self.samples = tuple(samples)
        self.most_bytes = most_bytes
        self._lock = threading.Lock()

    def start(self) -> dict[str, Any]:
        """What the page needs before anybody types."""
        return {
            "tokenizers": [panel.facts() for panel in self.panels],
            "samples": [asdict(sample) for sample in self.samples],
            "most_bytes": self.most_bytes,
        }

    def tokenize(self, text: str, *, parse_special: bool = True) -> dict[str, Any]:
        """The text in every tokenizer.

        Lone surrogates, which UTF-8 cannot carry, become U+FFFD and are counted. `borders` are the
        bytes of `shown` at which a picture may be divided: between two lies one sign.
        """
        text, n_surrogates = _SURROGATE.subn("\ufffd", text)
        shown = _beginning(text)
        borders = text_borders(shown)
        with self._lock:
            rows = [
                panel.tokenize(text, shown, borders, parse_special=parse_special)
                for panel in self.panels
            ]
        return {
            "shown": shown,
            "is_whole": len(shown) == len(text),
            "n_surrogates": n_surrogates,
            "n_characters": len(text),
            "n_bytes": len(text.encode()),
            "n_words": len(text.split()),
            "borders": borders.syllables.nonzero()[0].tolist(),
            "tokenizers": rows,
        }

    def token(self, panel: int, token_id: int) -> dict[str, Any]:
        """How a token of the tokenizer with this number is made; LookupError if there is none."""
        if not 0 <= panel < len(self.panels):
            raise IndexError(f"there is no tokenizer number {panel}")
        with self._lock:
            return self.panels[panel].token(token_id)


def _beginning(text: str) -> str:
    """At most MOST_SHOWN characters, cut at white space where there is some near the end."""
    if len(text) <= MOST_SHOWN:
        return text
    head = text[:MOST_SHOWN]
    spaces = list(re.finditer(r"\s", head[-200:]))
    return head[: len(head) - len(head[-200:]) + spaces[-1].start()] if spaces else head
