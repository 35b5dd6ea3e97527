"""Named pre-tokenization patterns, as the regex text that is exported in ``tokenizer.json``.

A pattern is an ordered list of Split steps (regex, behavior); each step splits every piece that
the one before it left. This text is the truth: the core's scanners are held equal to it by
tests, and any other list of steps runs through `tokenizers` itself, slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from vocabshift import _core
from vocabshift.text.sentences import SentencePolicy

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

_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PREFIX = r"[^\r\n\p{L}\p{N}]?"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _cl100k(digits: str) -> str:
    return rf"{_CONTRACTION}|{_PREFIX}\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"


def _o200k(digits: str, contraction: str) -> str:
    return (
        rf"{_PREFIX}{_UPPER}*{_LOWER}+{contraction}|{_PREFIX}{_UPPER}+{_LOWER}*{contraction}|"
        rf"{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    )


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = _cl100k(r"\p{N}{1,3}")
QWEN2 = _cl100k(r"\p{N}")
O200K = _o200k(r"\p{N}{1,3}", _CONTRACTION + "?")
TEKKEN = _o200k(r"\p{N}", "")
WALLS = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}\p{M}]{2,}[\r\n/]*|\s*[\r\n]+|\s+(?!\S)"
"""Superword stage: all the walls that stay when the space wall is lifted. SuperBPE's own pattern
cuts words at two combining marks in a row; here marks are letters."""

_DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)


def sentence_split(policy: SentencePolicy) -> Pattern:
    """The step that ends a piece behind a sentence terminal; nothing for an empty policy."""
    return (Split(policy.regex, "MergedWithPrevious"),) if policy.regex else ()


NAMED: Mapping[str, Pattern] = {
    "gpt2": (Split(GPT2),),
    "cl100k": (Split(CL100K),),
    "qwen2": (Split(QWEN2),),
    "o200k": (Split(O200K),),
    "tekken": (Split(TEKKEN),),
    "deepseek": tuple(Split(regex) for regex in _DEEPSEEK),
    "superbpe-stage2": (Split(WALLS),),
    "ist-stage2": (Split(WALLS), *sentence_split(SentencePolicy())),
}
"""The patterns that have a name. "llama3" is cl100k, "llama4" is o200k."""

ALIASES = {"llama3": "cl100k", "llama4": "o200k", "qwen": "qwen2"}

_SCANNERS = {
    GPT2: _core.Pattern.GPT2,
    CL100K: _core.Pattern.CL100K,
    QWEN2: _core.Pattern.QWEN2,
    O200K: _core.Pattern.O200K,
    TEKKEN: _core.Pattern.TEKKEN,
    WALLS: _core.Pattern.WALLS,
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
    """The core's scanner for a pattern, or None where only a regex engine can run it.

    The core knows a named pattern, then a sentence step, then a second named pattern inside; the
    last two may be missing.
    """
    rest = list(pattern)
    outer = inner = _core.Pattern.WHOLE
    terminals, period = "", False
    if rest and (scanner := _scanner_of(rest[0])) is not None:
        outer = scanner
        rest.pop(0)
        if rest and (policy := _policy_of(rest[0])) is not None:
            terminals, period = policy.terminals, policy.ascii_period == "sentence"
            rest.pop(0)
        if rest and (scanner := _scanner_of(rest[0])) is not None:
            inner = scanner
            rest.pop(0)
    return None if rest else _core.PreTokenizer(outer, terminals, period, inner)


def _scanner_of(split: Split) -> _core.Pattern | None:
    if split.behavior != "Isolated" or split.invert:
        return None
    return _SCANNERS.get(split.regex)


def _policy_of(split: Split) -> SentencePolicy | None:
    if split.behavior != "MergedWithPrevious" or split.invert:
        return None
    policy = parse_sentence_regex(split.regex)
    if policy is None or any(_core.char_class(ord(c)) for c in policy.terminals):
        return None  # the core takes no letter, mark, number or space for a terminal
    return policy


def parse_sentence_regex(regex: str) -> SentencePolicy | None:
    """The policy whose regex this is, or None."""
    period = r"\.(?=\s|$)"
    body, ascii_period = (
        (regex.removesuffix(period).removesuffix("|"), "sentence")
        if regex.endswith(period)
        else (regex, "never")
    )
    terminals = body[1:-2] if body else ""
    try:
        policy = SentencePolicy(terminals, ascii_period)  # type: ignore[arg-type]
    except ValueError:
        return None
    return policy if policy.regex == regex else None


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
