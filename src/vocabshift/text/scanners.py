"""What runs each step of a pattern: one of the core's scanners, its automaton, or `tokenizers`.

A scanner is written by hand for one regex, as splits.py defines it, and cuts every text as that
regex does (tests/property/test_pre_tokenize.py). The core runs all steps of a pattern or none.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from vocabshift import _core
from vocabshift.text import regexes
from vocabshift.text.regexes import join_words, repair_regex
from vocabshift.text.splits import Split
from vocabshift.text.writing import SYLLABLES, syllable_rules

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
    " ": (0, ((0x20, 0x20),), 1),
}
"""Regex of one character, or of a run -> class bits, ranges, longest run (0 for any length)."""

_CUTS = {
    "Isolated": "around",
    "Contiguous": "around",
    "MergedWithPrevious": "after",
    "MergedWithNext": "before",
}


def compile_pattern(pattern: Sequence[Split]) -> _core.PreTokenizer | None:
    """The core's form of a pattern, or None if only `tokenizers` can run it.

    The core has scanners for the steps of all named patterns, and those of sentence policies, in
    any number and order. An automaton runs other steps whose regex is within its subset
    (docs/algorithms/pre-tokenization.md).
    """
    steps = [_step_of(split) or _automaton(split) for split in pattern]
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


def _step_of(split: Split) -> _Step | None:
    if split.is_isolated:
        if split.regex in _JOINED:
            return _core.JoinedWords(_JOINED[split.regex])
        if split.regex in _SCANNERS:
            return _SCANNERS[split.regex]
        if split.regex == SYLLABLES:
            return syllable_rules()
    if split.regex in _CHARACTERS and split.behavior in _CUTS and not split.invert:
        bits, ranges, longest = _CHARACTERS[split.regex]
        if split.behavior == "Contiguous":
            longest = 0
        return _core.CharacterRuns(bits, ranges, longest, _CUTS[split.behavior])
    policy = split.sentences
    if policy is None or any(_core.char_class(ord(c)) for c in policy.terminals):
        return None  # the core takes no letter, mark, number or space for a terminal
    return _core.SentenceEnds(policy.everywhere, policy.ascii_period == "sentence")
