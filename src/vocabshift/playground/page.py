"""The page's requests and responses as values: the text in all tokenizers, a token, the samples.

Owns how much of a text and of a token is shown, how malformed text is handled, and the page's files
with the headers that keep it to them. The values are plain, ready for JSON; `app` handles HTTP.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from vocabshift.evaluation.lines.placing import is_same
from vocabshift.evaluation.lines.views import TextBorders, id_marks, text_borders, token_marks
from vocabshift.report.tokenized_line import token_css
from vocabshift.text.languages import find_language
from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.splits import Splits, merge_tree
from vocabshift.tokenizer.token_spans import LineSpans, iter_token_spans

SLACK = 1000
"""Characters after the shown part that its tokens may depend on."""

MOST_SPELLED = 400
"""Characters of a token that the page gets to see, and bytes likewise."""

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # innerHTML and similar throw
        "trusted-types 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every response: a browser restricts the page to its own files."""

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and media type of each file of the page by its URL path."""
    found = {"/token_view.css": (token_css().encode(), _TYPES["css"])}
    for file in (files(__package__) / "static").iterdir():
        suffix = file.name.rpartition(".")[2]
        if suffix in _TYPES:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            found[path] = (file.read_bytes(), _TYPES[suffix])
    return found


class Panel:
    """One tokenizer on the page."""

    def __init__(self, engine: Engine, label: str | None = None) -> None:
        self.engine = engine
        self.label = label or engine.name
        engine.encode_batch(["a"])  # build caches of the first use now,
        id_marks(engine)  # not while the user types

    def facts(self) -> dict[str, Any]:
        """Name, kind, and number of tokens."""
        engine = self.engine
        return {"name": self.label, "kind": engine.kind, "vocab_size": len(engine.tokens)}

    def tokenize(
        self, text: str, shown: str, borders: TextBorders, *, parse_special: bool
    ) -> dict[str, Any]:
        """The number of tokens in the text, and the ids, spans and marks of those in `shown`.

        `shown` is the text or its beginning, and `borders` are the borders in it. Spans are in
        bytes of `shown`: `ends` of the tokens, and `starts` for those that do not begin at the
        end of the one before.
        """
        ids, _ = self.engine.encode_batch([text], parse_special=parse_special)
        spans = self._shown_spans(ids, text, shown, parse_special=parse_special)
        starts, ends = spans.starts.tolist(), spans.ends.tolist()
        is_chain = starts == [0, *ends[:-1]][: len(starts)]
        distinct = np.unique(spans.ids).tolist()
        return {
            "n_tokens": len(ids),
            "ids": spans.ids.tolist(),
            "ends": ends,
            "starts": None if is_chain else starts,
            "marks": token_marks(self.engine, borders, spans).tolist(),
            "exact": spans.exact,
            "lost": not spans.exact and self._is_lost(text),
            "spelled": {i: self.engine.tokens.get(i, "")[:MOST_SPELLED] for i in distinct},
        }

    def _is_lost(self, text: str) -> bool:
        """Whether the text does not come back, as such: after special tokens some put spaces."""
        return not is_same(text, self.engine.decode_batch(*self.engine.encode_batch([text]))[0])

    def _shown_spans(self, ids: Ids, text: str, shown: str, *, parse_special: bool) -> LineSpans:
        """Spans of the tokens that begin in `shown`; those that reach beyond it are cut there.

        Of a long text, only the beginning is laid out, as far as its tokens equal the whole text's.
        """
        head = text if len(text) <= len(shown) + SLACK else text[: len(shown) + SLACK]
        (spans,) = iter_token_spans(self.engine, [head], parse_special=parse_special)
        if len(head) == len(text) == len(shown):
            return spans
        both = min(len(ids), len(spans.ids))
        differ = np.flatnonzero(ids[:both] != spans.ids[:both])
        n_bytes = len(shown.encode())
        kept = min(int(differ[0]) if len(differ) else both, int((spans.starts < n_bytes).sum()))
        ends = np.minimum(spans.ends[:kept], n_bytes)
        return LineSpans(spans.ids[:kept], spans.starts[:kept], ends, spans.exact)

    def token(self, token_id: int) -> dict[str, Any]:
        """Describe a token: `how` it is made, and the nodes of its tree, the token itself first.

        `how` is "merges", "byte" (a byte or character, made by no merge), "vocabulary" (present
        only as a whole), "added", "unknown", "score" (Unigram) or "prefix" (WordPiece).
        KeyError for an id without a token.
        """
        engine = self.engine
        if token_id not in engine.tokens:
            raise KeyError(f"no token has the id {token_id}")
        found: dict[str, Any] = {"how": self._how(token_id), "nodes": [self._node(token_id)]}
        tokens = engine.tokenizer
        if tokens.kind != "BPE":
            found["score"] = tokens.scores.get(token_id)
            found["prefix"] = tokens.continuing_prefix
        elif found["how"] == "merges":
            found["nodes"] = [
                {
                    **self._node(node.id),
                    "rank": node.rank,
                    "left": node.left,
                    "right": node.right,
                    "is_cut": node.is_cut,
                }
                for node in merge_tree(self._splits, token_id)
            ]
        return found

    def _how(self, token_id: int) -> str:
        tokens = self.engine.tokenizer
        if token_id == self.engine.unknown_id:
            return "unknown"
        if any(token.id == token_id for token in tokens.added_tokens):
            return "added"
        if tokens.kind != "BPE":
            return "score" if tokens.kind == "Unigram" else "prefix"
        if self._splits.rank[token_id] >= 0:
            return "merges"
        return "vocabulary" if self._splits.unreachable[token_id] else "byte"

    def _node(self, token_id: int) -> dict[str, Any]:
        data = self.engine.spelled[token_id]
        return {
            "id": token_id,
            "token": self.engine.tokens[token_id][:MOST_SPELLED],
            "bytes": data[:MOST_SPELLED].hex(),
            "n_bytes": len(data),
        }

    @cached_property
    def _splits(self) -> Splits:
        return self.engine.tokenizer.splits()


MOST_SHOWN = 12_000
"""Characters of a text that are drawn; all of it is counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Sample:
    """A text to start from."""

    name: str
    language: str  # for the `lang` attribute; "" if there is no single language
    text: str


def samples_of(texts: Mapping[str, Sequence[str]], several: str = "") -> list[Sample]:
    """One sample per language, of its lines; `several` scripts, if given, come first."""
    samples = []
    for label, lines in texts.items():
        language = find_language(label)
        name = label.capitalize() if language is None else language.name
        tag = "" if language is None else language.short_code or language.code
        samples.append(Sample(name, tag, "\n".join(lines)))
    first = [Sample("Several scripts", "", several)] if several else []
    return [*first, *sorted(samples, key=lambda one: one.name)]


class Playground:
    """The tokenizers of a page; it handles one request at a time."""

    def __init__(
        self, panels: Sequence[Panel], samples: Sequence[Sample] = (), *, most_bytes: int = 2 << 20
    ) -> None:
        """`most_bytes`: limit of a request's body, the text as JSON (default: 2 MiB)."""
        self.panels = tuple(panels)
        self.samples = tuple(samples)
        self.most_bytes = most_bytes
        self._lock = threading.Lock()

    def start(self) -> dict[str, Any]:
        """What the page needs before the user types."""
        return {
            "tokenizers": [panel.facts() for panel in self.panels],
            "samples": [asdict(sample) for sample in self.samples],
            "most_bytes": self.most_bytes,
        }

    def tokenize(self, text: str, *, parse_special: bool = True) -> dict[str, Any]:
        """Tokenize the text with every tokenizer.

        Lone surrogates, which UTF-8 cannot encode, become U+FFFD and are counted. `borders` are the
        bytes of `shown` at which the display may be divided: one syllable is between two.
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
        """How a token of tokenizer number `panel` is made; LookupError if there is none."""
        if not 0 <= panel < len(self.panels):
            raise IndexError(f"there is no tokenizer number {panel}")
        with self._lock:
            return self.panels[panel].token(token_id)


def _beginning(text: str) -> str:
    """At most MOST_SHOWN characters, cut at white space if there is some near the end."""
    if len(text) <= MOST_SHOWN:
        return text
    head = text[:MOST_SHOWN]
    spaces = list(re.finditer(r"\s", head[-200:]))
    return head[: len(head) - len(head[-200:]) + spaces[-1].start()] if spaces else head
