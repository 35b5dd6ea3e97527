"""What runs each step of a pattern: one of the core's scanners, its automaton, or `tokenizers`.

A scanner is written by hand for one regex, as splits.py defines it, and cuts every text as that
regex does (tests/property/test_pre_tokenize.py). The core runs all steps of a pattern or none.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vocabshift import _core
from vocabshift.text import patterns, regexes
from vocabshift.text.regexes import join_words, repair_regex
from vocabshift.text.splits import Split
from vocabshift.text.writing import (
    PUNCTUATION,
    PUNCTUATION_RANGES,
    SYLLABLES,
    syllable_rules,
)

_Step = (
    _core.Pattern
    | _core.SentenceEnds
    | _core.SyllableRules
    | _core.JoinedWords
    | _core.CharacterRuns
)

_SCANNERS = {
    regexes.GPT2: _core.Pattern.GPT2,
    regexes.CL100K: _core.Pattern.CL100K,
    regexes.CL100K_TIKTOKEN: _core.Pattern.CL100K_TIKTOKEN,
    regexes.CL100K_POSSESSIVE: _core.Pattern.CL100K_POSSESSIVE,
    regexes.QWEN2: _core.Pattern.QWEN2,
    regexes.QWEN35: _core.Pattern.QWEN35,
    regexes.O200K: _core.Pattern.O200K,
    regexes.KIMI: _core.Pattern.KIMI,
    regexes.TEKKEN: _core.Pattern.TEKKEN,
    regexes.DEEPSEEK[2]: _core.Pattern.DEEPSEEK,
    regexes.MATRA: _core.Pattern.MATRA,
    regexes.INDIC: _core.Pattern.INDIC,
    repair_regex(regexes.GPT2): _core.Pattern.GPT2_REPAIRED,
    repair_regex(regexes.CL100K): _core.Pattern.CL100K_REPAIRED,
    repair_regex(regexes.QWEN2): _core.Pattern.QWEN2_REPAIRED,
    repair_regex(regexes.QWEN35): _core.Pattern.QWEN35_REPAIRED,
    repair_regex(regexes.TEKKEN): _core.Pattern.TEKKEN_REPAIRED,
    regexes.BOUNDARIES: _core.Pattern.WALLS,
    regexes.INDIC_BOUNDARIES: _core.Pattern.INDIC_WALLS,
    regexes.DIGIT_TRIPLES: _core.Pattern.DIGIT_TRIPLES,
    regexes.HAN: _core.Pattern.HAN,
}

_WORDS = (
    *(regexes.GPT2, regexes.CL100K, regexes.QWEN2, regexes.QWEN35, regexes.O200K),
    regexes.TEKKEN,
)
_JOINED = {
    join_words(words): _SCANNERS[words]
    for own in _WORDS
    for words in (own, repair_regex(own) or own)
}

_NUMBER, _NEWLINE = 16, 64  # bits of `_core.char_class`
_YOUNGER_DIGITS = ((0x11DE0, 0x11DE9), (0x16FF4, 0x16FF6))
_CHINESE = ((0x4E00, 0x9FA5), (0x3040, 0x309F), (0x30A0, 0x30FF))
_CHARACTERS = {
    r"\p{N}": (_NUMBER, (), 1),
    r"\p{N}{1,3}": (_NUMBER, (), 3),
    r"\p{N}+": (_NUMBER, (), 0),
    regexes.DIGITS: (_NUMBER, _YOUNGER_DIGITS, 1),
    regexes.DIGITS + "+": (_NUMBER, _YOUNGER_DIGITS, 0),
    regexes.DEEPSEEK[1]: (0, _CHINESE, 0),
    "[\r\n]": (_NEWLINE, (), 1),
    PUNCTUATION: (0, PUNCTUATION_RANGES, 1),
}
"""Regex of one character, or of a run -> class bits, ranges, longest run (0 for any length)."""

_CUTS = {
    "Isolated": "around",
    "Contiguous": "around",
    "MergedWithPrevious": "after",
    "MergedWithNext": "before",
}


def compile_pattern(
    pattern: Sequence[Split], byte_steps: Sequence[Mapping[str, Any]] = ()
) -> _core.PreTokenizer | None:
    """The core's form of a pattern, or None if only `tokenizers` can run it.

    `byte_steps`: those after ByteLevel, as `tokenizer.json` spells them.

    The core has scanners for the steps of all named patterns, and those of sentence policies, in
    any number and order. An automaton runs other steps whose regex is within its subset
    (docs/algorithms/pre-tokenization.md).
    """
    steps: list[_Step | _core.Automaton | _core.ByteRuns | None] = [
        _step_of(split) or _automaton(split) for split in pattern
    ]
    steps += map(byte_step, byte_steps)
    if None in steps:
        return None
    return _core.PreTokenizer([step for step in steps if step is not None])


def run_by(split: Split) -> str:
    """What runs a step: the name of its scanner in the core, "automaton" or "tokenizers".

    The scanners of word patterns are called as the patterns are: "o200k", "qwen2-repaired" (with
    marks and joiners in words), "qwen2-joined" (across single spaces).
    """
    step = _step_of(split)
    if step is None:
        return "tokenizers" if _automaton(split) is None else "automaton"
    if isinstance(step, _core.Pattern):
        return _name(step)
    if isinstance(step, _core.JoinedWords):
        return f"{_name(_JOINED[split.regex])}-joined"
    return _KINDS[type(step)]


_KINDS: dict[type, str] = {
    _core.CharacterRuns: "characters",
    _core.SentenceEnds: "sentence-ends",
    _core.SyllableRules: "syllables",
}


@functools.lru_cache(maxsize=64)
def _automaton(split: Split) -> _core.Automaton | None:
    """Kept, because an automaton grows with the texts that it has seen."""
    return _core.Automaton.compile(split.regex, split.behavior, split.invert)


def _name(scanner: _core.Pattern) -> str:
    return scanner.name.lower().replace("_", "-").replace("walls", "boundaries")


def _character(regex: str) -> str | None:
    """The character of a regex that matches one character and no other."""
    return regex[-1] if regex and patterns.quoted(regex[-1]) == regex else None


def _step_of(split: Split) -> _Step | None:
    if split.is_isolated:
        if split.regex in _JOINED:
            return _core.JoinedWords(_JOINED[split.regex])
        if split.regex in _SCANNERS:
            return _SCANNERS[split.regex]
        if split.regex == SYLLABLES:
            return syllable_rules()
    character = _character(split.regex)
    known = ((0, ((ord(character),) * 2,), 1)) if character else _CHARACTERS.get(split.regex)
    if known is not None and split.behavior in _CUTS and not split.invert:
        bits, ranges, longest = known
        if split.behavior == "Contiguous":
            longest = 0
        return _core.CharacterRuns(bits, ranges, longest, _CUTS[split.behavior])
    policy = split.sentences
    if policy is None or any(_core.char_class(ord(c)) for c in policy.terminals):
        return None  # the core takes no letter, mark, number or space for a terminal
    return _core.SentenceEnds(policy.everywhere, policy.ascii_period == "sentence")


@dataclass(frozen=True, slots=True)
class Cuts:
    """What a `pre_tokenizer` of tokenizer.json does, in the core's terms."""

    splits: patterns.Pattern
    is_byte_level: bool = False
    byte_steps: tuple[Mapping[str, Any], ...] = ()
    """Those after ByteLevel, as they are spelt: they see every byte as a character (Falcon's)."""
    metaspace: tuple[str, str] | None = None
    """Of Metaspace, which runs before `splits`: what a space becomes, and before which parts one is
    put ("never", "first" or "always")."""


def cuts_of(spec: Mapping[str, Any] | None) -> Cuts | None:
    """None for a pre-tokenizer with a step that is none of a pattern's.

    Metaspace has to be the only step. ByteLevel must not put a space before the text.
    """
    steps = patterns.flat(spec)
    kinds = [step.get("type") for step in steps]
    if kinds == ["Metaspace"]:
        space = str(steps[0]["replacement"])
        cut = (Split(patterns.quoted(space), "MergedWithNext"),)
        prepend = str(steps[0].get("prepend_scheme", "always"))
        return Cuts(cut if steps[0].get("split", True) else (), metaspace=(space, prepend))
    end = kinds.index("ByteLevel") + 1 if "ByteLevel" in kinds else 0
    pattern = patterns.from_spec({"type": "Sequence", "pretokenizers": steps[:end]})
    if pattern is not None and all(map(byte_step, steps[end:])):
        return Cuts(pattern, is_byte_level=True, byte_steps=tuple(steps[end:]))
    splits = patterns.text_splits(spec)
    return None if splits is None else Cuts(splits)


_BYTE_DIGITS = b"0123456789\xb2\xb3\xb9\xbc\xbd\xbe"
"""Bytes that ByteLevel spells as numeric characters: six are none by themselves, such as the byte
of "²" in Latin-1, which ends many a character of three bytes."""


def byte_step(step: Mapping[str, Any]) -> _core.ByteRuns | None:
    """The core's form of a step after ByteLevel: Digits, and a Split at three digits (Falcon's);
    None for any other."""
    if step.get("type") == "Digits":
        return _core.ByteRuns(_BYTE_DIGITS, 1 if step.get("individual_digits") else 0)
    if step == {
        "type": "Split",
        "pattern": {"Regex": "[0-9][0-9][0-9]"},
        "behavior": "Isolated",
        "invert": False,
    }:
        return _core.ByteRuns(b"0123456789", 3)
    return None
