r"""Let marks and joiners follow the letters of a word, in any pre-tokenization regex.

Patterns whose words are `\p{L}+` (GPT-2, cl100k and Llama-3, Qwen-2) cut every Indian word at its
vowel signs, for these are marks; no added token can reach over such a wall. The repair keeps the
pattern and lets marks, ZWNJ and ZWJ *follow* a letter: `\p{L}+` becomes
`\p{L}[\p{L}\p{M}\u200c\u200d]*`. Both match the same wherever no letter has a mark or joiner
behind it, so all such text is cut as before; marks and joiners that follow no letter (emoji) too.

Where marks are letters already (o200k, tekken, DeepSeek) only joiners cut words. There a joiner
stays in the word where a letter of the word stands before it. That raises bytes per pre-token by
3.3 % in Kannada, 2.3 in Malayalam, 1.4 in Telugu, 0.2 in Marathi and Nepali, and by nothing in
languages that hardly use joiners.

Owns the rewriting of one regex; knows no pattern by name. Whether the result pays is measured
elsewhere.
"""

from __future__ import annotations

import re

from vocabshift.text.regexes import (
    CONTRACTION,
    JOINERS,
    cased_words,
    cased_words_with_joiners,
)

_WORD = r"\p{L}"
_MARKED = {r"[\p{L}\p{M}]", r"[\p{M}\p{L}]"}
_GOES_ON = rf"[\p{{L}}\p{{M}}{JOINERS}]*"

_ATOM = re.compile(r"\\[pP]\{[^}]*\}|\\.|[^\\\[]", re.DOTALL)
_QUANTIFIER = re.compile(r"\+(?P<suffix>[+?]?)")
_IN_CLASS = re.compile(r"\\.|[\[\]]|[^\\\[\]]+", re.DOTALL)


def repair_regex(regex: str) -> str | None:
    r"""The regex whose words go on over marks and joiners; None where it has no such words.

    Rewritten are `\p{L}+`, `[\p{L}]+`, `[\p{L}\p{M}]+` (possessive ones too) and the words of
    o200k at the start. The first two then match what they did wherever no letter is followed by a
    mark or joiner, the others wherever none is followed, over marks, by a joiner.
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
        return _WORD + _GOES_ON + suffix
    if atom in _MARKED:
        marked = rf"\p{{M}}*{_WORD}{_GOES_ON}|\p{{M}}+"
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
