"""Named pre-tokenization patterns, as the regex text that is exported in ``tokenizer.json``.

A pattern is an ordered list of Split steps (regex, behavior); each step splits every piece that
the one before it left. The regex text is the truth: the core's scanners are held equal to it by
tests, and a list with any other step runs through `tokenizers` itself, slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from vocabshift import _core
from vocabshift.text.regexes import (
    CL100K,
    DEEPSEEK,
    DIGIT_TRIPLES,
    GPT2,
    HAN,
    INDIC,
    INDIC_WALLS,
    MATRA,
    O200K,
    QWEN2,
    TEKKEN,
    WALLS,
    join_words,
    repair_regex,
)
from vocabshift.text.sentences import SentencePolicy, parse_sentence_regex
from vocabshift.text.syllables import SYLLABLES, syllable_rules

Behavior = Literal["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


@dataclass(frozen=True, slots=True)
class Split:
    """One Split pre-tokenizer."""

    regex: str
    behavior: Behavior = "Isolated"
    invert: bool = False

    def __post_init__(self) -> None:
        if self.behavior not in get_args(Behavior):
            raise ValueError(f"behavior {self.behavior!r} is none of {get_args(Behavior)}")


Pattern = tuple[Split, ...]


def sentence_split(policy: SentencePolicy) -> Pattern:
    """The step that ends a piece behind a sentence terminal; nothing for an empty policy."""
    return (Split(policy.regex, "MergedWithPrevious"),) if policy.regex else ()


NAMED: Mapping[str, Pattern] = {
    "gpt2": (Split(GPT2),),
    "cl100k": (Split(CL100K),),
    "qwen2": (Split(QWEN2),),
    "o200k": (Split(O200K),),
    "tekken": (Split(TEKKEN),),
    "matra": (Split(HAN), Split(DIGIT_TRIPLES), Split(MATRA)),
    "matra-left": (Split(HAN), Split(MATRA)),
    "indic": (Split(INDIC),),
    "syllables": (Split(SYLLABLES),),
    "deepseek": tuple(Split(regex) for regex in DEEPSEEK),
    "superbpe-stage2": (Split(WALLS),),
    "ist-stage2": (Split(WALLS), *sentence_split(SentencePolicy())),
    "indic-stage2": (Split(INDIC_WALLS), *sentence_split(SentencePolicy())),
    "matra-stage2": (Split(HAN), Split(DIGIT_TRIPLES), Split(WALLS)),
    "matra-left-stage2": (Split(HAN), Split(WALLS)),
}
"""The patterns that have a name. "llama3" is cl100k, "llama4" is o200k. The two named "left" cut
digits from the left: nothing in them is quadratic, whoever runs the regex."""

ALIASES = {"llama3": "cl100k", "llama4": "o200k", "qwen": "qwen2"}

_SCANNERS = {
    GPT2: _core.Pattern.GPT2,
    CL100K: _core.Pattern.CL100K,
    QWEN2: _core.Pattern.QWEN2,
    O200K: _core.Pattern.O200K,
    TEKKEN: _core.Pattern.TEKKEN,
    MATRA: _core.Pattern.MATRA,
    INDIC: _core.Pattern.INDIC,
    repair_regex(GPT2): _core.Pattern.GPT2_REPAIRED,
    repair_regex(CL100K): _core.Pattern.CL100K_REPAIRED,
    repair_regex(QWEN2): _core.Pattern.QWEN2_REPAIRED,
    repair_regex(TEKKEN): _core.Pattern.TEKKEN_REPAIRED,
    WALLS: _core.Pattern.WALLS,
    INDIC_WALLS: _core.Pattern.INDIC_WALLS,
    DIGIT_TRIPLES: _core.Pattern.DIGIT_TRIPLES,
    HAN: _core.Pattern.HAN,
}

_OF_WORDS = (GPT2, CL100K, QWEN2, O200K, TEKKEN)
_JOINED = {
    join_words(words): _SCANNERS[words]
    for own in _OF_WORDS
    for words in (own, repair_regex(own) or own)
}


def get_pattern(name_or_regex: str | Pattern) -> Pattern:
    """The pattern of a name, or a one-step pattern of a regex; ValueError if neither fits.

    A name consists of letters, digits and "-"; anything else is read as a regex, isolated.
    """
    if not isinstance(name_or_regex, str):
        return tuple(name_or_regex)
    name = ALIASES.get(name_or_regex, name_or_regex)
    if name in NAMED:
        return NAMED[name]
    if name.replace("-", "").replace("_", "").isalnum() or not name:
        raise ValueError(
            f"no pre-tokenizer is named {name_or_regex!r}; the names are "
            f"{', '.join(NAMED)}, and anything else must be a regex"
        )
    from tokenizers import Regex

    try:
        Regex(name)
    except Exception as error:  # tokenizers raises plain Exception for a bad regex
        message = f"{name_or_regex!r} is not a regex that tokenizers can run: {error}"
        raise ValueError(message) from None
    return (Split(name),)


def to_spec(pattern: Pattern) -> dict[str, Any]:
    """The pre-tokenizer of a byte-level tokenizer with this pattern, as tokenizer.json has it."""
    splits = [
        {
            "type": "Split",
            "pattern": {"Regex": split.regex},
            "behavior": split.behavior,
            "invert": split.invert,
        }
        for split in pattern
    ]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,  # Subtle: true would put a space into the text
        "trim_offsets": True,
        "use_regex": False,  # true would cut again with GPT-2's pattern
    }
    return {"type": "Sequence", "pretokenizers": [*splits, byte_level]}


def from_spec(spec: Mapping[str, Any] | None) -> Pattern | None:
    """The pattern of a byte-level pre-tokenizer, or None where it is something else.

    Understood: Split steps by regex or string, then one ByteLevel without a prefix space.
    """
    if spec is None:
        return None
    steps = spec.get("pretokenizers", []) if spec.get("type") == "Sequence" else [spec]
    if not steps or steps[-1].get("type") != "ByteLevel" or steps[-1].get("add_prefix_space", True):
        return None
    pattern = []
    for step in steps[:-1]:
        regex = step.get("pattern", {}).get("Regex")
        if step.get("type") != "Split" or regex is None:
            return None
        pattern.append(Split(regex, step["behavior"], step.get("invert", False)))
    if steps[-1].get("use_regex", True):
        pattern.append(Split(GPT2))
    return tuple(pattern)


def compile_pattern(pattern: Sequence[Split]) -> _core.PreTokenizer | None:
    """The core's scanners for a pattern, or None where only a regex engine can run it.

    The core knows the step of every named pattern but deepseek's, and those of sentence policies,
    in any number and order.
    """
    steps = [_step_of(split) for split in pattern]
    if None in steps:
        return None
    return _core.PreTokenizer([step for step in steps if step is not None])


def _step_of(
    split: Split,
) -> _core.Pattern | _core.SentenceEnds | _core.SyllableRules | _core.JoinedWords | None:
    if split.invert:
        return None
    if split.behavior == "Isolated":
        if split.regex in _JOINED:
            return _core.JoinedWords(_JOINED[split.regex])
        return syllable_rules() if split.regex == SYLLABLES else _SCANNERS.get(split.regex)
    if split.behavior != "MergedWithPrevious":
        return None
    policy = parse_sentence_regex(split.regex)
    if policy is None or any(_core.char_class(ord(c)) for c in policy.terminals):
        return None  # the core takes no letter, mark, number or space for a terminal
    return _core.SentenceEnds(policy.everywhere, policy.ascii_period == "sentence")


def splitter(pattern: Pattern) -> Callable[[str], list[str]]:
    """The pattern as a function from a text to its pieces, run by `tokenizers`: always exact."""
    splits = to_tokenizers(pattern)

    def split(text: str) -> list[str]:
        return [piece for piece, _ in splits.pre_tokenize_str(text)]

    return split


def to_tokenizers(pattern: Pattern) -> Any:
    """The Split steps in `tokenizers`, without ByteLevel: pieces stay text."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split.regex), _BEHAVIORS[split.behavior], split.invert)
            for split in pattern
        ]
    )


_BEHAVIORS = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}
