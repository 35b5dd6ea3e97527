r"""What runs a tokenizer here, and which runtimes cannot, known without running them.

Owns what the regex engines of runtimes read and what they keep, tried with ExecuTorch's
pytorch-tokenizers 1.5.0 (RE2, then PCRE2) and iree-tokenizer 0.3.0. `runtimes` encodes text with
every runtime that is installed, and finds other faults too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vocabshift.checks.runtimes import RUNTIMES
from vocabshift.text import patterns
from vocabshift.text.normalize import name_of
from vocabshift.text.scanners import cuts_of, run_by
from vocabshift.text.splits import Split, uncovered
from vocabshift.text.writing import PUNCTUATION

if TYPE_CHECKING:
    from vocabshift.tokenizer.pipeline import Engine
    from vocabshift.tokenizer.tokenizer_json import TokenizerParts

Effect = Literal["loses text", "gives wrong ids", "does not load"]


@dataclass(frozen=True, slots=True)
class EngineParts:
    """What runs a tokenizer here, part by part."""

    engine: Engine
    normalizer: Literal["core", "vocabshift", "tokenizers"] | None  # None: there is none
    steps: tuple[tuple[str, str], ...]
    """Of the pre-tokenizer: a regex (or the type of another step) and what runs it, by itself: the
    name of a scanner of the core, "automaton" (the core's too) or "tokenizers". The core runs all
    of them or none."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        steps = [{"step": step, "run_by": by} for step, by in self.steps]
        return {"engine": self.engine, "normalizer": self.normalizer, "steps": steps}


def about_engine(entry: Mapping[str, Any]) -> list[str]:
    """What encodes with a checked tokenizer here, in a sentence; none if that is not known."""
    name, parts = entry["tokenizer"], entry.get("engine")
    return [] if parts is None else [_sentence(name, parts)]


def _sentence(name: str, parts: Mapping[str, Any]) -> str:
    if parts["engine"] == "core":
        scanners = ", ".join(step["run_by"] for step in parts["steps"])
        return f"{name} is encoded by the core alone ({scanners or 'whole texts'})."
    if parts["engine"] == "tokenizers":
        return f"{name} is encoded by `tokenizers`, slowly: the core lacks a part of it."
    slow = [f"the step {step['step']}" for step in parts["steps"] if step["run_by"] == "tokenizers"]
    if parts["normalizer"] in ("tokenizers", "vocabshift"):
        slow.insert(0, "the normalizer")
    return f"{name} is encoded slowly: the core lacks {' and '.join(slow)}."


def engine_parts(tokenizer: TokenizerParts) -> EngineParts:
    """What `tokenizer.pipeline` runs for a BPE tokenizer, without compiling it."""
    from vocabshift.tokenizer.pipeline import needs_tokenizers

    spec = tokenizer.pre_tokenizer
    cuts = cuts_of(spec)
    if cuts is None:
        steps = tuple((step["type"], "tokenizers") for step in patterns.flat(spec))
    else:
        names = {PUNCTUATION: "Punctuation"}  # its regex is a thousand letters long
        steps = tuple((names.get(s.regex, s.regex), run_by(s)) for s in cuts.splits)
        if cuts.metaspace is not None:
            steps = (("Metaspace", "metaspace"), *steps)
        for step in cuts.byte_steps:
            regex = step.get("pattern", {}).get("Regex", step["type"])
            steps += ((regex, "bytes"),)
    is_cut = all(by != "tokenizers" for _, by in steps)
    normalizer = _normalizer_run_by(tokenizer, cuts=is_cut)
    if needs_tokenizers(tokenizer):
        return EngineParts("tokenizers", normalizer and "tokenizers", steps)
    is_core = is_cut and normalizer in (None, "core")
    return EngineParts("core" if is_core else "core behind tokenizers", normalizer, steps)


def _normalizer_run_by(
    tokenizer: TokenizerParts, *, cuts: bool
) -> Literal["core", "vocabshift", "tokenizers"] | None:
    from vocabshift.tokenizer.pipeline import simple_normalizer

    simple, name = simple_normalizer(tokenizer.normalizer), name_of(tokenizer.normalizer)
    if simple == ("", ""):
        return None
    if cuts and (simple is not None or name == "nfc"):
        return "core"
    return "tokenizers" if name is None else "vocabshift"


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


def about_limits(entry: Mapping[str, Any]) -> list[str]:
    """The limits of a checked tokenizer, in sentences."""
    return [
        f"{RUNTIMES[limit['runtime']].label} {limit['effect']} with the pre-tokenizer of "
        f"{entry['tokenizer']}: {limit['reason']}."
        for limit in entry.get("pattern_limits", ())
    ]


_ORDER: Mapping[Effect, int] = {"loses text": 0, "gives wrong ids": 1, "does not load": 2}


def _silent(split: Split) -> Iterator[PatternLimit]:
    gap = uncovered(split.regex)
    if gap:
        character = f"U+{ord(gap[0]):04X}"
        reason = f"it keeps what a regex matches and nothing else; no match has {character}"
        yield PatternLimit("pytorch-tokenizers", "loses text", reason)
    if _has_intersection(split.regex):
        yield PatternLimit("pytorch-tokenizers", "gives wrong ids", "PCRE2 has no && in classes")


def _has_intersection(regex: str) -> bool:
    """Whether a class in it has &&; one look at each character, for a file may hold any regex."""
    is_open = False
    for token in re.findall(r"\\.|\[|\]|&&", regex, re.DOTALL):
        if token == "&&" and is_open:
            return True
        is_open = token == "[" or (is_open and token != "]")
    return False


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


_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u[0-9A-Fa-f]{4}")
_SCRIPT = r"\\p\{[A-Z][a-z_]{2}[A-Za-z_]*\}"
_NOT_IREE = re.compile(rf"\(\?(?:=|<[=!]|>|!(?!(?:\\[SsDdWw]|[^\\\[(.])\)))|\\P\{{\w+\}}|{_SCRIPT}")


def _splits(spec: Mapping[str, Any] | None) -> Iterator[Split]:
    """The Split steps by regex, those of nested sequences in their place."""
    if spec is None:
        return
    for part in spec.get("pretokenizers", ()):
        yield from _splits(part)
    if spec["type"] == "Split" and "Regex" in spec["pattern"]:
        yield Split(spec["pattern"]["Regex"], spec["behavior"], spec.get("invert", False))
