"""Hypothesis strategies that several property tests share: text and corpora in many scripts."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from vocabshift.text.patterns import NAMED, Split
from vocabshift.text.writing import TERMINALS

_USUAL_EXAMPLES = 100  # of a test that does not say how many, where nightly tests are run too


def examples(count: int) -> settings:
    """`count` examples, as many times more as the profile asks for (tests/conftest.py)."""
    return settings(max_examples=count * settings().max_examples // _USUAL_EXAMPLES)


LETTERS = (
    "abestzE",
    "AÉßſİKLS",  # capitals, long s, Kelvin sign
    "ǅʰªⅷ",  # title case, modifier, ordinal, letter-like number
    "कखतमरािीुे्ंँ़",
    "কতরািে্ং",
    "தமிழ்ரகா",
    "మతెల్ుగా",
    "ꯃꯅꯤꯄꯨꯔ꯭",
    "ᱥᱟᱱᱛᱟᱲᱤ",
    "اردوپیںٔ",
    "שלוםְ",
    "漢字文语",
    "ひらカナー",
    "한국어",
    "привЕТ",
    "ግዕዝ",
    "𑄇𑄘𑄴𝒜𐐀𐐨",  # outside the basic plane
)
DIGITS = ("0123456789", "०१२३", "٠١٢٣", "௧௨", "𝟎𝟏", "Ⅳ½²", "১২")
SPACES = (
    *("  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n "),
    *("\u00a0", "\u3000", "\u2028", "\u0085", "\u1680", "\u000b", "\u202f"),
)
MARKS = ("\u0301", "्", "़", "\u0bcd", "\ufe0f", "\u20dd", "\u200d", "\u200c", "ः", " ़", " ्")
CONTROLS = (
    "\x00",
    "\x07",
    "\x1c",
    "\x1f",
    "\x7f",
    "\u009f",
    "\u00ad",
    "\u200b",
    "\ufeff",
    "\uffff",
)
PUNCTUATION = ("!", "?", ".", ". ", ",", ":", ";", "/", "//", "-", "...", "!=", ");", '"', "’", "'")
SYMBOLS = (
    "$",
    "€",
    "+",
    "©",
    "▁",
    "Ġ",
    "😀",
    "👩‍👩‍👧",
    "🇮🇳",
    "❤️",
    "👍🏽",
    "#️⃣",
    "\U000e0041",
    "\U0010ffff",
)
CONTRACTIONS = ("'s", "'S", "'ſ", "'t", "'re", "'VE", "'m", "'ll", "'lL", "'d", "'k", "'r", "''s")

words = st.sampled_from(LETTERS).flatmap(lambda letters: st.text(letters, min_size=1, max_size=8))
numbers = st.sampled_from(DIGITS).flatmap(lambda digits: st.text(digits, min_size=1, max_size=7))
terminals = st.text("".join(TERMINALS.values()) + ".", min_size=1, max_size=3)
any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
runs = st.builds(
    lambda unit, times: unit * times,
    st.sampled_from((" ", "\n", "\t", "a", "A", "!", "7", "क", "्", "।", "aa ", "é", "😀", "ab")),
    st.sampled_from((3, 5, 17, 79, 80, 81, 200, 700)),
)
segments = st.one_of(
    words,
    words,
    st.just(" "),
    st.just(" "),
    numbers,
    terminals,
    st.sampled_from(SPACES),
    st.sampled_from(PUNCTUATION),
    st.sampled_from((*MARKS, *CONTROLS, *SYMBOLS, *CONTRACTIONS)),
    any_text,
    runs,
)

text = st.lists(segments, max_size=14).map("".join)
"""Any text: all planes, lone marks, joiners, line ends, controls, digits, terminals, long runs."""


# Emoji with joiners and selectors, marks and joiners where no letter is, contractions, digits.
_PARTS = (
    *("👩‍👩‍👧", "❤️‍🔥", "👁️‍🗨️", "🏴‍☠️", "🧑🏽‍⚕️", "#️⃣", "1️⃣", "🇮🇳", "\ufe0f", "\u20e3"),
    *("\u0301", " ्", "!़", "7ि", "\u200d", "\u200c", "\n\u0301", "\u00a0\u200d"),
    *("it's", "DON'T", "'ſ", "we'Ll", "'", "a", "Bc", "क", "ی", "ǅ", "ʰ", "漢字", "カ"),
    *(" ", "  ", "\t", "\r\n", "\n", "12345", "१२३", "½", "!", "?!", "/", "।", "."),
)
emoji_and_marks = st.lists(st.sampled_from(_PARTS), max_size=10).map("".join)


@st.composite
def documents(draw: st.DrawFn, max_documents: int = 6) -> list[str]:
    """A small corpus whose words come back, so that there is something to merge."""
    vocabulary = draw(
        st.lists(st.one_of(words, words, words, numbers, segments), min_size=1, max_size=7)
    )
    glue = st.sampled_from(
        (" ", " ", " ", " ", "", "\n", "  ", "। ", ". ", ", ", ".", "!", "\u00a0")
    )
    parts = st.tuples(st.sampled_from(vocabulary), glue).map("".join)
    document = st.lists(parts, min_size=1, max_size=20).map("".join)
    return draw(st.lists(document, min_size=1, max_size=max_documents))


# Every named pattern, one regex without a name, another one that only `tokenizers` can run, and
# whole documents as words.
PATTERNS = {
    **NAMED,
    "a regex": (Split(r"\s+|[a-k]+"),),
    "a back reference": (Split(r"\s+|([a-k])\1*[a-k]*"),),
    "no cut": (),
}
patterns = st.sampled_from(sorted(PATTERNS)).map(PATTERNS.__getitem__)

# Languages that share words, as related ones do: a merge for one of them shortens the others.
shared_words = st.lists(
    st.sampled_from(("abba", "ab", "bab", "cab", "राम", "राजा", "काम", "नाम", "a", "aaaa", "é")),
    min_size=1,
    max_size=12,
).map(" ".join)
texts_by_language = st.lists(
    st.one_of(documents(max_documents=2), st.lists(shared_words, min_size=1, max_size=3)),
    min_size=2,
    max_size=5,
).map(lambda lists: {f"l{i}": texts for i, texts in enumerate(lists)})
