"""Named pre-tokenization patterns, and how a pattern is written to ``tokenizer.json``.

A pattern is an ordered list of Split steps (regex, behavior); each step splits the pre-tokens of
the previous one. The regex text is the definition, and tests compare the core's scanners
(scanners.py) and the exported text (splits.py) with it. A step without a scanner is run by an
automaton. A pattern with a step beyond that runs through `tokenizers` itself, which is much slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vocabshift.errors import regex_bound
from vocabshift.text import regexes
from vocabshift.text.splits import Split
from vocabshift.text.writing import PUNCTUATION, SYLLABLES, SentencePolicy

Pattern = tuple[Split, ...]


def sentence_split(policy: SentencePolicy) -> Pattern:
    """The step that ends a pre-token after a sentence terminal; nothing for an empty policy."""
    return (Split(policy.regex, "MergedWithPrevious"),) if policy.regex else ()


@dataclass(frozen=True, slots=True)
class NamedPattern:
    """A pattern that has a name."""

    name: str
    splits: Pattern
    summary: str  # one line of Markdown, as docs/algorithms/pre-tokenization.md lists it
    aliases: tuple[str, ...] = ()


_HAN, _TRIPLES = Split(regexes.HAN), Split(regexes.DIGIT_TRIPLES)
_BOUNDARIES = Split(regexes.BOUNDARIES)

PATTERNS = (
    NamedPattern(
        "gpt2",
        (Split(regexes.GPT2),),
        r"GPT-2: `'s\|'t\|…\| ?\p{L}+\| ?\p{N}+\| ?[^\s\p{L}\p{N}]+\|\s+(?!\S)\|\s+`",
    ),
    NamedPattern(
        "cl100k",
        (Split(regexes.CL100K),),
        r"contractions; `[^\r\n\p{L}\p{N}]?\p{L}+`; digits in threes from the left; punctuation "
        "with newlines; white space",
        ("llama3",),
    ),
    NamedPattern("qwen2", (Split(regexes.QWEN2),), "`cl100k` with digits one by one", ("qwen",)),
    NamedPattern(
        "qwen35",
        (Split(regexes.QWEN35),),
        "`qwen2` with marks inside words and not inside punctuation (Qwen3.5 and 3.6)",
    ),
    NamedPattern(
        "o200k",
        (Split(regexes.O200K),),
        "capitals, then small letters, marks in both classes; digits in threes",
        ("llama4",),
    ),
    NamedPattern(
        "tekken",
        (Split(regexes.TEKKEN),),
        "`o200k` without contractions, digits one by one (Mistral Nemo)",
    ),
    NamedPattern(
        "deepseek",
        tuple(map(Split, regexes.DEEPSEEK)),
        "DeepSeek-V3's three steps: digits in threes; Chinese and kana; words and punctuation",
    ),
    NamedPattern(
        "kimi",
        (Split(regexes.KIMI),),
        "`o200k` with runs of Han characters apart (Kimi-K2)",
    ),
    NamedPattern(
        "smollm",
        (Split(regexes.DIGITS), Split(regexes.GPT2)),
        "single digits, then `gpt2` (SmolLM, StarCoder, Command-R)",
    ),
    NamedPattern(
        "indic",
        (Split(regexes.INDIC),),
        "`o200k`, but ZWJ and ZWNJ after a letter of the word stay in it",
    ),
    NamedPattern(
        "matra", (_HAN, _TRIPLES, Split(regexes.MATRA)), "Matra's words, see [matra.md](matra.md)"
    ),
    NamedPattern(
        "matra-left",
        (_HAN, Split(regexes.MATRA)),
        "`matra` with digits in threes from the left: linear, whoever runs the regex",
    ),
    NamedPattern("syllables", (Split(SYLLABLES),), "orthographic syllables"),
    NamedPattern(
        "superbpe-stage2",
        (_BOUNDARIES,),
        "the boundaries that stay when the space is lifted (below)",
    ),
    NamedPattern(
        "ist-stage2",
        (_BOUNDARIES, *sentence_split(SentencePolicy())),
        "the same, then sentence ends",
    ),
    NamedPattern(
        "indic-stage2",
        (Split(regexes.INDIC_BOUNDARIES), *sentence_split(SentencePolicy())),
        "for `indic`: a joiner after a letter begins no run of punctuation; then sentence ends",
    ),
    NamedPattern(
        "matra-stage2",
        (_HAN, _TRIPLES, _BOUNDARIES),
        "Han and digits as in `matra`, then the boundaries of `superbpe-stage2`",
    ),
    NamedPattern(
        "matra-left-stage2",
        (_HAN, _BOUNDARIES),
        "Han as in `matra-left`, then the boundaries of `superbpe-stage2`",
    ),
)
"""The only list of named patterns. A new pattern is a row here. A new regex is a constant in
regexes.py, and to be fast it needs a scanner in the core (scanners.py)."""

NAMED: Mapping[str, Pattern] = {known.name: known.splits for known in PATTERNS}
ALIASES = {alias: known.name for known in PATTERNS for alias in known.aliases}


def get_pattern(name_or_regex: str | Pattern) -> Pattern:
    """The pattern with this name, or a one-step pattern from a regex; ValueError otherwise.

    A name consists of letters, digits and "-"; anything else is read as a regex, isolated. Names
    joined by "+" are one pattern after the other, such as "ist-stage2+o200k".
    """
    if not isinstance(name_or_regex, str):
        return tuple(name_or_regex)
    name = ALIASES.get(name_or_regex, name_or_regex)
    if name in NAMED:
        return NAMED[name]
    joined = [NAMED.get(ALIASES.get(part, part)) for part in name.split("+")]
    if None not in joined:
        return tuple(split for part in joined if part is not None for split in part)
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
    return (Split(name).defined(),)


def pattern_name(pattern: Pattern) -> str | None:
    """The name by which `get_pattern` finds this pattern, or None."""
    names = {known: name for name, known in NAMED.items()}
    if pattern in names:
        return names[pattern]
    for cut in range(1, len(pattern)):
        first, rest = names.get(pattern[:cut]), pattern_name(pattern[cut:])
        if first is not None and rest is not None:
            return f"{first}+{rest}"
    return None


def to_spec(pattern: Pattern) -> dict[str, Any]:
    """The `pre_tokenizer` of tokenizer.json for a byte-level tokenizer with this pattern.

    Its steps are in the form that every program reads, see `Split.exported`.
    """
    splits = [
        {
            "type": "Split",
            "pattern": {"Regex": split.regex},
            "behavior": split.behavior,
            "invert": split.invert,
        }
        for split in map(Split.exported, pattern)
    ]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,  # Subtle: true would put a space into the text
        "trim_offsets": True,
        "use_regex": False,  # true would cut again with GPT-2's pattern
    }
    return {"type": "Sequence", "pretokenizers": [*splits, byte_level]}


def from_spec(spec: Mapping[str, Any] | None) -> Pattern | None:
    """The pattern of a byte-level pre-tokenizer, or None for any other pre-tokenizer.

    Supports the steps of `text_splits`, followed by one ByteLevel without a prefix space.
    """
    steps = flat(spec)
    if not steps or steps[-1].get("type") != "ByteLevel" or steps[-1].get("add_prefix_space", True):
        return None
    pattern = _splits(steps[:-1])
    if pattern is not None and steps[-1].get("use_regex", True):
        return (*pattern, Split(regexes.GPT2))
    return pattern


def text_splits(spec: Mapping[str, Any] | None) -> Pattern | None:
    """The steps of a pre-tokenizer that leaves text as text; None where one is no Split.

    Supports Split by regex or string, Digits, Punctuation, and sequences of them.
    """
    return _splits(flat(spec))


def flat(spec: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The steps of a pre-tokenizer, those of nested sequences in their place."""
    if spec is None:
        return []
    if spec.get("type") != "Sequence":
        return [spec]
    return [step for part in spec.get("pretokenizers", []) for step in flat(part)]


def _splits(steps: Sequence[Mapping[str, Any]]) -> Pattern | None:
    pattern = []
    for step in steps:
        if step.get("type") == "Digits":
            pattern.append(Split(regexes.DIGITS + "+" * (not step.get("individual_digits"))))
            continue
        if step.get("type") == "Punctuation":
            pattern.append(Split(PUNCTUATION, step.get("behavior", "Isolated")))
            continue
        own = step.get("pattern", {})
        regex = own.get("Regex", quoted(own.get("String", "")))
        if step.get("type") != "Split" or not regex:
            return None
        pattern.append(Split(regex, step["behavior"], step.get("invert", False)).defined())
    return tuple(pattern)


def quoted(text: str) -> str:
    """A regex that matches this text."""
    return re.sub(r"[!-/:-@\[-`{-~]", r"\\\g<0>", text)


def splitter(pattern: Pattern) -> Callable[[str], list[str]]:
    """The pattern as a function from text to pre-tokens, run by `tokenizers`: always exact.

    The function raises InvalidTokenizerError where a regex backtracks without end.
    """
    splits = to_tokenizers(pattern)

    def split(text: str) -> list[str]:
        with regex_bound():
            return [pre_token for pre_token, _ in splits.pre_tokenize_str(text)]

    return split


_BEHAVIORS = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}


def to_tokenizers(pattern: Pattern) -> Any:
    """The Split steps in `tokenizers`, without ByteLevel: pre-tokens stay text."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split.regex), _BEHAVIORS[split.behavior], split.invert)
            for split in pattern
        ]
    )
