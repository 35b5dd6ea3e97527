"""Which pattern of llama.cpp may take the place of a tokenizer's own?

Owns the choice: of the patterns in `text.llama_cpp` that keep the ids of text without combining
marks, the one with the highest ceiling, which is that of `checks.text`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from vocabshift.checks.text import Drift, ceilings, drift, token_lengths
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import excerpt, hold_out
from vocabshift.text.llama_cpp import KEEP_MARKS, LLAMA_CPP, LlamaCppPattern
from vocabshift.text.normalize import normalizer_spec
from vocabshift.text.patterns import Pattern, splitter, to_spec
from vocabshift.text.regexes import WORTHWHILE_LIFT
from vocabshift.tokenizer import byte_level, components
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.gguf import run_by_llama_cpp
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer

SAMPLES = (
    "It's a test; we'll see.  Don't WORRY, they'd said \"yes\" (or 'no')!\n\nA new paragraph.\n",
    "In 2024 there were 1,234,567 of them: 99.5% on 03/04/2021, 20 kB, v2.0.1, x86, H2O, 3rd.",
    "def add(a, b=None):\n    if a != b:\n\t\treturn [a[0], {'k': b_c}]  # why?\n\n\nclass X:\r\n",
    "See https://example.org/a-b_c?d=1&e=%20f#g or mail me@example.org. ~/x/*.txt <b>bold</b>",
    "Straße, õhtu, naïve café — «Київ», Москва, Αθήνα, “quoted”… 5 € ± 3 °C\tiPhone OpenAI",
    "中文文本，没有空格。日本語のテスト、カタカナ。한국어 문장입니다. 2024年12月31日",
    "سلام دنیا، این یک متن است. שלום עולם, זה טקסט.",
    "- one\n- two\n\n   indented   \n\n1. First\n2. Second\n\n| a | b |\n|---|---|\n 🙂👍🏽",
)
"""Our own text without marks, of kinds that patterns treat differently."""

HELD_OUT_BYTES = 1 << 17
"""Of the held-out text of each language, from its beginning."""

_CHANGES = "changes"  # begins the reason of a pattern that has no fault but other ids
_TWO_WORDS = ("ab cd", "аб вг", "कख गघ", "اب جد")
_GLUED = ("ab1", 'ab"', "ab, cd")
_NUMBERS = "7 20 2024 1234567"


@dataclass(frozen=True)
class Candidate:
    """One pattern of llama.cpp, measured on held-out text."""

    name: str  # in `tokenizer.ggml.pre`
    ceiling_bytes_per_token: float  # bytes per pre-token, over all languages
    ceilings: Mapping[str, float]  # the same by language
    documents: int  # without marks, our own samples included; 0: there are no ids to keep
    changed_documents: int
    changed_tokens: float  # share of their tokens, in [0, 1]
    refused: str  # why it cannot be taken; empty: it can


@dataclass(frozen=True)
class Choice:
    """The candidates, and the one that was taken."""

    name: str
    candidates: tuple[Candidate, ...]
    is_named: bool = False  # asked for by name, whatever it changes

    @property
    def llama_cpp(self) -> LlamaCppPattern:
        """What llama.cpp runs under the name."""
        return LLAMA_CPP[self.name]

    @property
    def nearest(self) -> Candidate | None:
        """The candidate with the fewest changes that raises the ceiling worthwhile; or None."""
        taken = next(each for each in self.candidates if each.name == self.name)
        return _nearest(self.candidates, WORTHWHILE_LIFT * taken.ceiling_bytes_per_token)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `llama_cpp_pre` is for `tokenizer.ggml.pre`."""
        near = self.nearest
        return {
            "llama_cpp_pre": self.name,
            "is_named": self.is_named,
            "nearest": None if near is None else near.name,
            "candidates": [asdict(each) for each in self.candidates],
        }


def choose(
    corpus: Corpus,
    tokenizer: Tokenizer | None = None,
    *,
    name: str | None = None,
    normalizer: str | None = None,
    threads: int = 1,
) -> Choice:
    """The deployable pattern for a tokenizer that is extended, or, with None, for a new one.

    corpus: its held-out documents are measured (`text.held_out`), at most `HELD_OUT_BYTES` of a
        language. For a tokenizer its documents without marks and `SAMPLES` must keep their ids.
    name: take this one; what it changes is measured. normalizer: of a new tokenizer.

    ValueError where no pattern can be taken, with the nearest ones. CorpusError without text.
    """
    base = _bytes_alone(normalizer) if tokenizer is None else tokenizer
    if not is_byte_level(base):
        raise ValueError(
            f"{base.name} is not byte-level: llama.cpp cuts no words of such a tokenizer, and "
            "there is no pattern to choose; extend it with its own pre-tokenizer (kept)"
        )
    texts = excerpt(hold_out(corpus)[1], HELD_OUT_BYTES)
    markless = [text for each in texts.values() for text in each if not has_mark(text)]
    ids = _Ids(base, [*SAMPLES, *markless], threads) if tokenizer is not None else None
    sizes = {label: sum(len(text.encode()) for text in each) for label, each in texts.items()}
    held_out = Corpus.from_texts(texts)
    rows = []
    for key, as_run in run_by_llama_cpp(base).items():
        pattern = LLAMA_CPP[key].pattern
        reason = _unfit(pattern)
        change = Drift(0, 0, 0, 0)
        if ids is not None:
            change = ids.change(as_run)
            reason = reason or _digits(base, pattern) or _changes(change)
        by_label = ceilings(as_run, held_out, threads=threads) or {}
        n_words = sum(sizes[label] / ceiling for label, ceiling in by_label.items())
        rows.append(
            Candidate(
                name=key,
                ceiling_bytes_per_token=round(sum(sizes.values()) / n_words, 4),
                ceilings={label: round(ceiling, 4) for label, ceiling in by_label.items()},
                documents=change.documents,
                changed_documents=change.changed_documents,
                changed_tokens=round(change.shares[1], 6),
                refused=reason,
            )
        )
    rows.sort(key=lambda row: -row.ceiling_bytes_per_token)
    if name is not None:
        return Choice(name, tuple(rows), is_named=True)
    best = next((row for row in rows if not row.refused), None)
    if best is None:
        raise ValueError(_none(base.name, rows))
    return Choice(best.name, tuple(rows))


def has_mark(text: str) -> bool:
    r"""Whether text holds a combining mark (\p{M})."""
    return not text.isascii() and any(unicodedata.category(c)[0] == "M" for c in set(text))


def require_text(source: object) -> Corpus:
    """The corpus; CorpusError without one; a folder of counts holds no text to compare on."""
    if not isinstance(source, Corpus):
        raise CorpusError(
            "patterns of llama.cpp are compared on text (counted words hold none); give --corpus"
        )
    return source


class _Ids:
    """The ids of text without marks, to be kept."""

    def __init__(self, base: Tokenizer, texts: list[str], threads: int) -> None:
        self.texts, self.threads = texts, threads
        self.before = Encoder(base).encode_batch(texts, threads=threads)
        self.lengths = token_lengths(base)

    def change(self, other: Tokenizer) -> Drift:
        after = Encoder(other).encode_batch(self.texts, threads=self.threads)
        return drift(self.before, after, self.lengths)


def _bytes_alone(normalizer: str | None) -> Tokenizer:
    images = byte_level.ALPHABET
    return Tokenizer(
        BpeModel({image: token_id for token_id, image in enumerate(images)}, ()),
        normalizer=normalizer_spec(normalizer),
        pre_tokenizer=to_spec(()),
        decoder=components.BYTE_LEVEL_DECODER,
        name="a new tokenizer",
    )


def _unfit(pattern: Pattern) -> str:
    """Why no words can be learned inside the pattern's pre-tokens; empty if they can."""
    split = splitter(pattern)
    if any(len(split(text)) == 1 for text in _TWO_WORDS):
        return "joins words across spaces, which takes superwords"
    if any(re.match("ab.", split(text)[0]) for text in _GLUED):
        return "joins words with digits or punctuation after them"
    return ""


def _digits(base: Tokenizer, pattern: Pattern) -> str:
    """Why numbers would change with the first new tokens: longer runs of digits may merge."""
    own = replace(_bytes_alone(None), pre_tokenizer=base.pre_tokenizer).backend.pre_tokenizer
    spans = [_NUMBERS] if own is None else [span for span, _ in own.pre_tokenize_str(_NUMBERS)]
    if _longest_run(splitter(pattern)(_NUMBERS)) > _longest_run(spans):
        return "lets more digits merge than the tokenizer does"
    return ""


def _longest_run(spans: list[str]) -> int:
    return max(len(run) for span in spans for run in re.findall("[0-9]*", span))


def _changes(change: Drift) -> str:
    if not change.changed_tokens:
        return ""
    return (
        f"{_CHANGES} {change.changed_tokens:,} of {change.tokens:,} tokens of text without marks, "
        f"in {change.changed_documents:,} of {change.documents:,} documents"
    )


def _nearest(rows: tuple[Candidate, ...] | list[Candidate], least: float) -> Candidate | None:
    """Of the patterns that only change ids, the one with the fewest changes above a ceiling."""
    near = [
        row
        for row in rows
        if row.refused.startswith(_CHANGES) and row.ceiling_bytes_per_token > least
    ]
    return min(near, key=lambda row: row.changed_tokens, default=None)


def _none(name: str, rows: list[Candidate]) -> str:
    only_ids = (row for row in rows if row.refused.startswith(_CHANGES))
    near = sorted(only_ids, key=lambda row: row.changed_tokens)[:3]
    listed = "; ".join(
        f"{row.name} {row.refused} (ceiling {row.ceiling_bytes_per_token:.2f})" for row in near
    )
    return (
        f"llama.cpp has no pattern that keeps the ids of {name} on text without marks. Nearest: "
        f"{listed}. Give one of {', '.join(KEEP_MARKS)} by name to accept its changes, or "
        "repaired, for which llama.cpp needs a patch"
    )
