r"""Split steps: how a text is cut, and how the steps are spelt in `tokenizer.json`.

Most programs cut a text at the matches of a regex and keep what is between the matches. Some
(ExecuTorch) keep the matches alone, and lose the rest. So a step is exported in its total form,
which cuts the same and matches every character: the last alternative is the rest of the text. It
has literal characters for `\uHHHH`, which PCRE2 and RE2 do not read, and no intersection (`&&`),
which PCRE2 reads as two ampersands. What is read becomes the definition again: of total forms, and
of the spellings of earlier versions.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from vocabshift.errors import regex_bound
from vocabshift.text import regexes
from vocabshift.text.regexes import BOUNDARIES, EMOJI_MARK, JOINERS, join_words, repair_regex
from vocabshift.text.writing import SYLLABLES, SentencePolicy, parse_sentence_regex

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

    @property
    def is_isolated(self) -> bool:
        """Whether the matches and what is between them are the pre-tokens."""
        return self.behavior == "Isolated" and not self.invert

    @property
    def sentences(self) -> SentencePolicy | None:
        """The policy of a step that ends pre-tokens after sentences; None for another step."""
        if self.behavior != "MergedWithPrevious" or self.invert:
            return None
        policy = parse_sentence_regex(self.regex)
        return policy if policy is not None and policy.regex == self.regex else None

    def exported(self) -> Split:
        """The step in its total form; itself where it has none."""
        own = self.defined()
        if own.is_isolated:
            return Split(total(own.regex))
        return own if own.sentences is None else Split(own.sentences.sentence_regex)

    def defined(self) -> Split:
        """The step as this version defines it: of a total form or of an earlier spelling."""
        if self.is_isolated:
            policy = parse_sentence_regex(self.regex)
            if policy is not None and self.regex == policy.sentence_regex:
                return Split(policy.regex, "MergedWithPrevious")
        regex = definition(self.regex)
        if self.behavior == "Removed" and self.invert and _TOTAL.get(regex) == regex:
            return Split(regex)  # nothing is between the matches
        return replace(self, regex=regex)


def _gaps(after_letters: str = "") -> str:
    r"""What BOUNDARIES leaves between its matches, as one match.

    Letters and marks; a character of punctuation with none after it; the whitespace before these,
    or before a digit. A space before two characters of punctuation is part of the boundary, other
    whitespace is not. Nothing follows the loop, so it never backtracks.
    """
    letters, punctuation = r"[\p{L}\p{M}]", r"[^\s\p{L}\p{N}\p{M}]"
    return (
        rf"(?: ?{letters}+{after_letters}| ?{punctuation}(?!{punctuation})| (?=\p{{N}})|"
        r"[^\S\r\n ](?=\S))+"
    )


_WORDS = [
    regex
    for own in (
        *(regexes.GPT2, regexes.CL100K, regexes.QWEN2, regexes.QWEN35, regexes.O200K),
        *(regexes.TEKKEN, regexes.INDIC, regexes.MATRA, regexes.KIMI),
        *(regexes.CL100K_TIKTOKEN, regexes.CL100K_POSSESSIVE),
    )
    for regex in (own, repair_regex(own) or own)
]
_TOTAL = {
    # They match every character already. Trying one out costs 20 ms, half of it for `tokenizers`.
    **{regex: regex for words in _WORDS for regex in (words, join_words(words))},
    SYLLABLES: SYLLABLES,
    BOUNDARIES: f"{_gaps()}|{BOUNDARIES}",
    # A joiner that belongs to the word before it is met only where that word is.
    regexes.INDIC_BOUNDARIES: f"{_gaps(f'(?:(?<!{EMOJI_MARK})[{JOINERS}]+)?')}|{BOUNDARIES}",
    regexes.HAN: rf"\P{{Han}}+|{regexes.HAN}",
    regexes.DIGIT_TRIPLES: rf"\P{{N}}+|{regexes.DIGIT_TRIPLES}",
    regexes.DIGITS: f"{regexes.DIGITS}|[^{regexes.DIGITS[1:]}+",
    regexes.DEEPSEEK[2]: (
        rf"{regexes.DEEPSEEK[2]}|[^\s\p{{L}}\p{{M}}\p{{P}}\p{{S}}]+(?![\p{{L}}\p{{M}}])"
    ),
}
SPELLINGS = {
    regexes.KIMI_OWN: regexes.KIMI,
    regexes.CL100K_POSSESSIVE.replace(r"\p{N}{1,3}+", r"(?>\p{N}{1,3})"): regexes.CL100K_TIKTOKEN,
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|"
    r"\s++$|\s+(?!\S)|\s": regexes.GPT2,
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": regexes.GPT2,
    # LFM2.5; those of several programs that train tokenizers like GPT-4's; Ling (BailingMoE)
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]|\s+(?!\S)|\s": regexes.CL100K,
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
    r"\s*[\r\n]|\s+(?!\S)|\s+": regexes.CL100K,
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
    r"\s*[\r\n]|\s+(?!\S)|\s+": regexes.QWEN2,
}
r"""Other spellings of a regex, equal to it on every text: possessive ones, contractions by letter,
`\s*[\r\n]`, which ends at the last newline as `\s*[\r\n]+` does. Nothing may stand here that
tests/property/test_pre_tokenize.py does not try."""
_DEFINITIONS = {form: regex for regex, form in _TOTAL.items()} | SPELLINGS


_CLASS = re.compile(
    r"(?P<one>\\[pPdDsSwW](\{\w+\})?|\[(?P<negated>\^?)(?P<inside>(\\.|[^\\\[\]])+)\])"
    r"(\+|\{1,\d+\})?",
    re.DOTALL,
)


def _complement(regex: str) -> str:
    """Runs of characters of one class, or runs of all others; itself for another regex."""
    found = _CLASS.fullmatch(regex)
    if found is None:
        return regex
    return f"{regex}|[{'' if found['negated'] else '^'}{found['inside'] or found['one']}]+"


def _the_rest(regex: str) -> str:
    """Whatever the regex does not match, up to where it does.

    `tokenizers` refuses more than about five million characters of it in a row.
    """
    return rf"{regex}|(?:(?!{regex})[\s\S])+"


def _up_to(regex: str) -> str:
    """For a regex of no characters, such as a lookahead: the text up to where it matches."""
    return rf"[\s\S]+?(?={regex})|[\s\S]+"


_FORMS: tuple[tuple[Callable[[str], str], re.Pattern[str]], ...] = (
    (_complement, re.compile(r"(.*)\|\[.*", re.DOTALL)),
    (_the_rest, re.compile(r"(.*)\|\(\?:\(\?!.*\)\[\\s\\S\]\)\+", re.DOTALL)),
    (_up_to, re.compile(r"\[\\s\\S\]\+\?\(\?=(.*)\)\|\[\\s\\S\]\+", re.DOTALL)),
)


@functools.cache
def total(regex: str) -> str:
    """The form of an isolated regex that matches every character and cuts the same.

    The regex itself where it does so already, or where no such form was found.
    """
    regex = definition(regex)
    if regex in _TOTAL:
        return _TOTAL[regex]
    if not uncovered(regex):
        return regex
    wanted = _cut(regex, "isolated")
    forms = (form(regex) for form, _ in _FORMS)
    fit = (form for form in forms if not uncovered(form) and _cut(form, "isolated") == wanted)
    return next(fit, regex)


def definition(regex: str) -> str:
    """The regex as this version defines it: of a total form, or of an earlier spelling."""
    regex = _ESCAPE.sub(_literal, regex)
    for earlier, now in _EARLIER:
        regex = earlier.sub(now, regex)
    if regex in _DEFINITIONS:
        return _DEFINITIONS[regex]
    found = ((form, inverse.fullmatch(regex)) for form, inverse in _FORMS)
    return next((own[1] for form, own in found if own and form(own[1]) == regex), regex)


def uncovered(regex: str) -> str:
    """Text that no match covers, such as "a"; empty where every character was matched.

    Tried on text with characters of all kinds and scripts, not on every text there is.
    """
    return next(iter(_cut(regex, "removed")), "")


def _cut(regex: str, behavior: str) -> list[str]:
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(regex), behavior)
    with regex_bound():
        return [piece for text in _probes() for piece, _ in split.pre_tokenize_str(text)]


_KINDS = (
    "aAzſǅʰक्\u093f़أ漢ー々のカ한あ𝐀1१½Ⅷ'.,!?-/(&$+^`_|~।۔。،…©€ \t\n\r\u00a0\u2028\u3000"
    "\u0301\ufe0f\u200b\u200c\u200d\x00\x7f\u00ad\ue000\uffff\U0001f600\U000e0100"
)


@functools.cache
def _probes() -> list[str]:
    """Texts of all kinds of characters, most pairs among them; each kind with digits around it; and
    the first 256 characters, then one in sixteen of the first two planes."""
    chance = random.Random(0)
    mixed = ["".join(chance.choices(_KINDS, k=20)) for _ in range(1000)]
    digits = [f"{kind}{'1234567'[:n]}{kind}12" for kind in _KINDS for n in range(8)]
    planes = [
        "".join(map(chr, range(start, start + 256, 16)))
        for start in range(0, 0x20000, 256)
        if not 0xD800 <= start < 0xE000
    ]
    return [*mixed, *digits, "".join(map(chr, range(256))), *planes]


_ESCAPE = re.compile(r"\\u(?P<code>[0-9A-Fa-f]{4})|\\.", re.DOTALL)


def _literal(escape: re.Match[str]) -> str:
    """The character of a `\\uHHHH` that has no other meaning in a regex."""
    code = int(escape["code"] or "0", 16)
    return escape[0] if code < 0x80 or 0xD800 <= code < 0xE000 else chr(code)


def _as_is(text: str) -> str:
    """A replacement that is no template."""
    return text.replace("\\", r"\\")


_SCRIPTS = r"((?:\\p\{\w+\})+)"
_EARLIER = [
    (re.compile(earlier), now)
    for earlier, now in (
        (re.escape(regexes.WORD_WITH_JOINERS_BEFORE), _as_is(regexes.WORD_WITH_JOINERS)),
        # The letters of some scripts; those of all others, with or without marks.
        (rf"\[\\p\{{L\}}&&\[{_SCRIPTS}\]\]", r"(?:(?=\\p{L})[\1])"),
        (
            rf"\[\\p\{{M\}}{JOINERS}\[\\p\{{L\}}&&\[\^{_SCRIPTS}\]\]\]\*",
            rf"(?:[^\\P{{L}}\1]+|[\\p{{M}}{JOINERS}]+)*",
        ),
        (rf"\[\\p\{{L\}}&&\[\^{_SCRIPTS}\]\]", r"[^\\P{L}\1]"),
        # A letter, mark or joiner before it, but no EMOJI_MARK.
        (
            rf"\(\?<!\[\\p\{{L\}}\\p\{{M\}}{JOINERS}&&\[\^{EMOJI_MARK}\]\]\)",
            rf"(?<![\\p{{L}}\\p{{M}}{JOINERS}])|(?<={EMOJI_MARK})",
        ),
        (
            rf"\(\?<=\[\\p\{{L\}}\\p\{{M\}}&&\[\^{EMOJI_MARK}\]\]\)",
            rf"(?<=[\\p{{L}}\\p{{M}}])(?<!{EMOJI_MARK})",
        ),
    )
]
"""Parts that this package wrote before, with lookaheads and intersections."""
