r"""Which runtimes cannot run a pre-tokenizer as it is written, known without running them.

Owns what their regex engines read and what they keep, tried with ExecuTorch's pytorch-tokenizers
1.5.0 (RE2, then PCRE2) and iree-tokenizer 0.3.0. `runtimes` encodes text with every runtime that is
installed, and finds other faults too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vocabshift.text.splits import Split, uncovered

Effect = Literal["loses text", "gives wrong ids", "does not load"]


@dataclass(frozen=True, slots=True)
class PatternLimit:
    """A runtime that does not cut text as the pre-tokenizer of `tokenizer.json` says."""

    runtime: str  # a name of `runtimes.RUNTIMES`
    effect: Effect
    reason: str


def pattern_limits(spec: Mapping[str, Any] | None) -> tuple[PatternLimit, ...]:
    """The limits that follow from the regexes of a `pre_tokenizer`; each runtime once.

    `spec`: as it stands in `tokenizer.json`. Of the effects on a runtime the worst is named, which
    is the silent one. Empty does not mean that all runtimes are right: they have other faults too.
    """
    found: dict[str, PatternLimit] = {}
    for split in _splits(spec):
        for limit in (*_silent(split), *_refused(split)):
            found.setdefault(limit.runtime, limit)
            if _ORDER[limit.effect] < _ORDER[found[limit.runtime].effect]:
                found[limit.runtime] = limit
    return tuple(found.values())


_ORDER: Mapping[Effect, int] = {"loses text": 0, "gives wrong ids": 1, "does not load": 2}


def _silent(split: Split) -> Iterator[PatternLimit]:
    gap = uncovered(split.regex)
    if gap:
        character = f"U+{ord(gap[0]):04X}"
        reason = f"it keeps what a regex matches and nothing else; no match has {character}"
        yield PatternLimit("pytorch-tokenizers", "loses text", reason)
    if _INTERSECTION.search(split.regex):
        yield PatternLimit("pytorch-tokenizers", "gives wrong ids", "PCRE2 has no && in classes")


def _refused(split: Split) -> Iterator[PatternLimit]:
    if _ESCAPE.search(split.regex):
        reason = r"PCRE2 and RE2 have no \uHHHH; write the character itself"
        yield PatternLimit("pytorch-tokenizers", "does not load", reason)
    if split.invert or split.behavior in ("MergedWithNext", "Contiguous"):
        reason = f"it has no Split {'inverted' if split.invert else split.behavior}"
        yield PatternLimit("pytorch-tokenizers", "does not load", reason)
    unknown = _NOT_IREE.search(split.regex)
    if unknown:
        yield PatternLimit("iree-tokenizer", "does not load", f"its regexes have no {unknown[0]}")


_INTERSECTION = re.compile(r"\[(?:\\.|[^\]\\])*&&", re.DOTALL)
_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u[0-9A-Fa-f]{4}")
_SCRIPT = r"\\p\{[A-Z][a-z_]{2,}[A-Za-z_]*\}"
_NOT_IREE = re.compile(rf"\(\?(?:=|<[=!]|>|!(?!(?:\\[SsDdWw]|[^\\\[(.])\)))|\\P\{{\w+\}}|{_SCRIPT}")


def _splits(spec: Mapping[str, Any] | None) -> Iterator[Split]:
    """The Split steps by regex, those of nested sequences in their place."""
    if spec is None:
        return
    for part in spec.get("pretokenizers", ()):
        yield from _splits(part)
    if spec["type"] == "Split" and "Regex" in spec["pattern"]:
        yield Split(spec["pattern"]["Regex"], spec["behavior"], spec.get("invert", False))
