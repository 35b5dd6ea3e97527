"""The regex text of every named pattern: one Split step each, exported verbatim.

It defines how text is cut, and tests compare the core's scanners with it. patterns.py combines the
steps into named patterns. `repair_regex` rewrites any regex so that marks and joiners may follow
the letters of a word.
"""

from __future__ import annotations

import re

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
JOINERS = "\u200c\u200d"
"""ZWNJ and ZWJ themselves (PCRE2 and RE2 have no `\\u`), for use inside a character class."""
EMOJI_MARK = "\ufe0f"
"""A mark by its category, but what it follows is an emoji."""
_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
WORD_WITH_JOINERS = (
    rf"(?:[\p{{Lm}}\p{{Lo}}](?:[{_UPPER}{JOINERS}]*[{_LOWER}{JOINERS}]+)?|"
    rf"[\p{{Ll}}][{_LOWER}{JOINERS}]*|"
    rf"[\p{{Lu}}\p{{Lt}}][{_UPPER}{JOINERS}]*[{_LOWER}{JOINERS}]+)"
)
WORD_WITH_JOINERS_BEFORE = rf"(?=\p{{L}})[{_UPPER}{JOINERS}]*[{_LOWER}{JOINERS}]+"
"""The same by a lookahead, as earlier versions spelt it; some engines have none."""


def _cl100k(digits: str) -> str:
    return rf"{CONTRACTION}|{PREFIX}\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"


def _not_letters(digits: str) -> str:
    return rf"{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


def cased_words(contraction: str) -> str:
    """The words of o200k: runs of letters and marks, capitals first."""
    return (
        rf"{PREFIX}[{_UPPER}]*[{_LOWER}]+{contraction}|"
        rf"{PREFIX}[{_UPPER}]+[{_LOWER}]*{contraction}"
    )


def cased_words_with_joiners(contraction: str) -> str:
    """The same, but ZWJ and ZWNJ after a letter of the word stay in it (see INDIC)."""
    return (
        rf"{PREFIX}\p{{M}}*{WORD_WITH_JOINERS}{contraction}|"
        rf"{PREFIX}\p{{M}}+{contraction}|{PREFIX}[\p{{Lu}}\p{{Lt}}]+{contraction}"
    )


def _boundaries(run_start: str) -> str:
    return (
        rf"\p{{N}}{{1,3}}| ?{run_start}[^\s\p{{L}}\p{{N}}\p{{M}}]{{2,}}[\r\n/]*|"
        r"\s*[\r\n]+|\s+(?!\S)"
    )


NOT_LETTERS = _not_letters(r"\p{N}{1,3}")
"""The end of o200k and of all patterns derived from it: digits, punctuation, whitespace."""

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = _cl100k(r"\p{N}{1,3}")
CL100K_POSSESSIVE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
    r"\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""As tiktoken spells cl100k. In a `tokenizer.json` it means another pattern: the regexes of
`tokenizers` have no possessive `{1,3}+`, so digits are not cut there."""
CL100K_TIKTOKEN = CL100K_POSSESSIVE.replace("{1,3}+", "{1,3}")
"""What it means in tiktoken: CL100K, but white space at the end of a text is one pre-token."""
QWEN2 = _cl100k(r"\p{N}")
QWEN35 = (
    rf"{CONTRACTION}|{PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}|"
    rf" ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
O200K = "|".join((cased_words(CONTRACTION + "?"), NOT_LETTERS))
TEKKEN = "|".join((cased_words(""), _not_letters(r"\p{N}")))


def _kimi(without_han: str) -> str:
    """`without_han`: the template by which the letters of words leave Han characters out."""
    words = re.sub(
        r"\[[^]]+\{M\}\]", lambda own: without_han % own[0], cased_words(CONTRACTION + "?")
    )
    return rf"[\p{{Han}}]+|{words}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"


KIMI = _kimi(r"(?:(?!\p{Han})%s)")
"""Kimi-K2: o200k with runs of Han characters apart, and no slashes at the end of punctuation."""
KIMI_OWN = _kimi("%s").replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]")
"""As Moonshot spells it; some engines read `&&` as two ampersands."""
BOUNDARIES = _boundaries("")
"""Superword stage: the boundaries that remain when words may join across spaces. SuperBPE's own
pattern cuts words at two combining marks in a row; here marks are letters."""

HAN = r"\p{Han}\p{M}*"
"""Each Han character is a pre-token, with the marks on it (variation selectors, tone marks). It is
a separate step before all others, so no run of letters includes a Han character and nothing joins
two. 〇 and the Hangzhou numerals count as Han characters and not as digits."""

DIGIT_TRIPLES = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))"
"""Digits of any script in groups of three from the right: 1|234|567. The core takes linear time; a
regex engine takes time quadratic in the length of a run (`tokenizers`: 1.7 s for 64,000 digits)."""

MATRA = rf"{CONTRACTION}|{PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
"""Matra's seven alternatives (its section 3.1): contractions; letters and marks after an optional
character that is neither (nor a digit or newline); digits, which the previous step has grouped from
the right, or by three from the left without that step; punctuation after an optional space;
newlines with the whitespace before them; trailing whitespace; whitespace.

We decide what the paper leaves open. Contractions ignore case, as in cl100k. A mark counts as a
letter where a word may begin, and as punctuation inside a run of punctuation, so that emoji keep
their variation selectors. Newlines are never joined to punctuation (o200k: "[\r\n/]*"), because
they end sentences. Joiners are punctuation."""

INDIC = "|".join((cased_words_with_joiners(CONTRACTION + "?"), NOT_LETTERS))
"""o200k, but ZWJ and ZWNJ after a letter of the word stay in it, so that words of Malayalam,
Marathi, Urdu and Persian are whole. It equals o200k on text where no word has a joiner after one of
its letters, hence on emoji.

Adding the joiners to both of o200k's letter classes would break emoji, whose ZWJ may follow a
variation selector, which is a mark. So a joiner needs a letter before it in its word here, and the
words of o200k become three kinds: those that have a letter after their leading marks and end in the
second class (letters other than capitals, marks, joiners); marks alone; capitals alone. No run is
backtracked over more than once, so matching takes linear time."""

INDIC_BOUNDARIES = _boundaries(
    rf"(?:(?<![\p{{L}}\p{{M}}{JOINERS}])|(?<={EMOJI_MARK})|(?![{JOINERS}]))"
)
"""BOUNDARIES, but no run of punctuation begins with a joiner that follows a letter, a mark or
another such joiner. U+FE0F does not count as a mark, so emoji are split as by BOUNDARIES."""

DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)

DIGITS = "[\\p{N}\U00011de0-\U00011de9\U00016ff4-\U00016ff6]"
"""What the pre-tokenizer Digits takes for one: its Unicode is a version later than that of regexes.
SmolLM, StarCoder and Command-R cut out single ones before GPT-2's pattern."""

# Steps that GGUF files name and no pattern of ours has (llama.cpp, llama-vocab.cpp).

_CASED_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
    "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-"
    "\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15"
    "\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183"
    "\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-"
    "\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DEEPSEEK_LLM = (
    "[\r\n]",
    rf"\s?[{_CASED_LETTERS}]+",
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    r"\s+$",
    _CJK,
    r"\p{N}+",
)
DEEPSEEK_CODER = ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")
FALCON = (r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]")
SUPERBPE = (r"\p{N}+", r"(?=(\d{3})+(?!\d))")
"""Digits in threes from the right; nothing else is cut, so its superwords cross all spaces."""
BLOOM = (" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+",)
SEED_CODER = (rf"{CONTRACTION}|{PREFIX}\p{{L}}+|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",)
BAILING = (
    rf"'(?i:[sdmt]|ll|ve|re)|{PREFIX}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|"
    r"\s*[\r\n]|\s+(?!\S)|\s+",
)
TINY_AYA = (r"\d{1,3}(?=(?:\d{3})*\b)", O200K)


def join_words(words: str) -> str:
    r"""A word pattern whose pre-tokens may cross single spaces, its other boundaries kept.

    A pre-token continues over a single space between a letter or mark (not EMOJI_MARK) and a
    letter.
    There `words` is matched again, and nothing after it could make it match less, so every
    pre-token is one or more whole pre-tokens of `words`.
    """
    return rf"(?:{words})(?:(?<=[\p{{L}}\p{{M}}])(?<!{EMOJI_MARK})(?= \p{{L}})(?:{words}))*"


# The repair: marks and joiners may follow the letters of a word, in any pre-tokenization regex.
#
# Patterns whose words are `\p{L}+` (GPT-2, cl100k and Llama-3, Qwen-2) split every Indian word at
# its vowel signs, which are marks, and no added token can cross such a boundary. The repair keeps
# the pattern and lets marks, ZWNJ and ZWJ *follow* a letter: `\p{L}+` becomes
# `\p{L}[\p{L}\p{M}JOINERS]*`. Both match the same where no mark or joiner follows a letter,
# and on marks and joiners that follow no letter (emoji).
#
# Where marks already count as letters (o200k, tekken, DeepSeek), only joiners split words. There
# the repair keeps a joiner in the word if a letter of the word precedes it. That raises bytes per
# pre-token by 3.3 % in Kannada, 2.3 in Malayalam, 1.4 in Telugu, 0.2 in Marathi and Nepali, and
# changes nothing in languages that hardly use joiners.

WORTHWHILE_LIFT = 1.1
"""The repair is worth suggesting where it raises bytes per pre-token by this factor. Measured with
Llama-3, Llama-4, Qwen-2.5, Nemo and DeepSeek on 14 languages: where words are split at vowel
signs, the factor is 1.34 (Kashmiri) to 3.7 (Malayalam), everywhere else at most 1.04."""

_WORD = r"\p{L}"
_MARKED = {r"[\p{L}\p{M}]", r"[\p{M}\p{L}]"}
_CONTINUATION = rf"[\p{{L}}\p{{M}}{JOINERS}]*"

_ATOM = re.compile(r"\\[pP]\{[^}]*\}|\\.|[^\\\[]", re.DOTALL)
_QUANTIFIER = re.compile(r"\+(?P<suffix>[+?]?)")
_IN_CLASS = re.compile(r"\\.|[\[\]]|[^\\\[\]]+", re.DOTALL)


def repair_regex(regex: str) -> str | None:
    r"""The regex whose words include marks and joiners; None where it has no such words.

    It rewrites `\p{L}+`, `[\p{L}]+`, `[\p{L}\p{M}]+` (possessive ones too) and the words of o200k
    at the start. The first two match the same text as before where no mark or joiner follows a
    letter; the others where no joiner follows a letter, with or without marks between them.
    """
    for contraction in (CONTRACTION + "?", ""):
        words = cased_words(contraction) + "|"
        if regex.startswith(words):
            return cased_words_with_joiners(contraction) + "|" + regex[len(words) :]
    parts: list[str] = []
    at = 0
    while at < len(regex):
        end = _atom_end(regex, at)
        atom = regex[at:end]
        quantifier = _QUANTIFIER.match(regex, end)
        word = _repeated(atom, quantifier["suffix"]) if quantifier else None
        if quantifier and word:
            parts.append(word)
            end = quantifier.end()
        else:
            parts.append(atom)
        at = end
    repaired = "".join(parts)
    return None if repaired == regex else repaired


def _repeated(atom: str, suffix: str) -> str | None:
    """What one or more of `atom` becomes; None where it is no word (a lazy one has no end)."""
    if suffix == "?":
        return None
    if atom in (_WORD, f"[{_WORD}]"):
        return _WORD + _CONTINUATION + suffix
    if atom in _MARKED:
        marked = rf"\p{{M}}*{_WORD}{_CONTINUATION}|\p{{M}}+"
        return f"(?>{marked})" if suffix else f"(?:{marked})"
    return None


def _atom_end(regex: str, at: int) -> int:
    """End of the character, escape or class at `at`; a class that nothing closes ends the regex."""
    match = _ATOM.match(regex, at)
    if match:
        return match.end()
    depth = 0
    place = at
    while place < len(regex):
        token = _IN_CLASS.match(regex, place)
        if token is None:  # a lone backslash at the end
            break
        place = token.end()
        if token[0] == "[":
            depth += 1
            # A closing bracket that comes first is an ordinary character.
            first = re.compile(r"\^?\]").match(regex, place)
            place = first.end() if first else place
        elif token[0] == "]":
            depth -= 1
            if depth == 0:
                return place
    return len(regex)
