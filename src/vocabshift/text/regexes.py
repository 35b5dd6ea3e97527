"""The regex text of every named pattern: one Split step each, exported verbatim.

It defines how text is cut, and tests compare the core's scanners with it. patterns.py combines the
steps into named patterns. `repair_regex` rewrites any regex so that marks and joiners may follow
the letters of a word.
"""

from __future__ import annotations

import re

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
JOINERS = r"\u200c\u200d"
"""ZWNJ and ZWJ, for use inside a character class."""
_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


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
        rf"{PREFIX}\p{{M}}*(?=\p{{L}})[{_UPPER}{JOINERS}]*[{_LOWER}{JOINERS}]+{contraction}|"
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
QWEN2 = _cl100k(r"\p{N}")
O200K = "|".join((cased_words(CONTRACTION + "?"), NOT_LETTERS))
TEKKEN = "|".join((cased_words(""), _not_letters(r"\p{N}")))
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

INDIC_BOUNDARIES = _boundaries(rf"(?:(?<![\p{{L}}\p{{M}}{JOINERS}&&[^\ufe0f]])|(?![{JOINERS}]))")
"""BOUNDARIES, but no run of punctuation begins with a joiner that follows a letter, a mark or
another such joiner. U+FE0F does not count as a mark, so emoji are split as by BOUNDARIES."""

DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)


def join_words(words: str) -> str:
    r"""A word pattern whose pre-tokens may cross single spaces, its other boundaries kept.

    A pre-token continues over a single space between a letter or mark (not U+FE0F, which emoji
    carry) and a letter. There `words` is matched again, and nothing after it could make it match
    less, so every pre-token is one or more whole pre-tokens of `words`.
    """
    return rf"(?:{words})(?:(?<=[\p{{L}}\p{{M}}&&[^\ufe0f]])(?= \p{{L}})(?:{words}))*"


# The repair: marks and joiners may follow the letters of a word, in any pre-tokenization regex.
#
# Patterns whose words are `\p{L}+` (GPT-2, cl100k and Llama-3, Qwen-2) split every Indian word at
# its vowel signs, which are marks, and no added token can cross such a boundary. The repair keeps
# the pattern and lets marks, ZWNJ and ZWJ *follow* a letter: `\p{L}+` becomes
# `\p{L}[\p{L}\p{M}\u200c\u200d]*`. Both match the same where no mark or joiner follows a letter,
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
