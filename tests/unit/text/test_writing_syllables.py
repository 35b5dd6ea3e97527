"""Orthographic syllables: what joins, by script, and where a token may end."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from reference import syllables as reference
from strategies import examples
from strategies import text as texts
from vocabshift import _core
from vocabshift.text.languages import SCHEDULED
from vocabshift.text.patterns import NAMED
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.writing import CONJUNCTS, LINKERS, inner_letters, syllable_borders


def borders(text: str) -> list[int]:
    """Where a token may end, after the first character."""
    return [at for at, may_end in enumerate(syllable_borders(text).tolist()) if may_end and at]


def cut(text: str) -> list[str]:
    scanner = compile_pattern(NAMED["syllables"])
    assert scanner is not None
    return scanner.split(text)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("क्षत्रिय", ["क्ष", "त्रि", "य"]),
        (" नमस्ते जग", [" न", "म", "स्ते", " ज", "ग"]),
        ("ज़्यादा", ["ज़्या", "दा"]),
        ("स्त्री", ["स्त्री"]),
        ("র‍্যাব", ["র‍্যা", "ব"]),
        ("অ্যাপ", ["অ্যা", "প"]),
        ("ਪ੍ਰਿਥਵੀ", ["ਪ੍ਰਿ", "ਥ", "ਵੀ"]),
        ("ક્ષમા", ["ક્ષ", "મા"]),
        ("ଶକ୍ତି", ["ଶ", "କ୍ତି"]),
        ("தமிழ்நாடு", ["த", "மி", "ழ்", "நா", "டு"]),
        ("பக்ஷம் ஸ்ரீ ஸ்ர", ["ப", "க்ஷ", "ம்", " ஸ்ரீ", " ஸ்", "ர"]),
        ("శక్తి", ["శ", "క్తి"]),
        ("ಶಕ್ತಿ", ["ಶ", "ಕ್ತಿ"]),
        ("അവൻ്റെ", ["അ", "വ", "ൻ്റെ"]),
        ("ꯃꯅꯤꯄꯨꯔ", ["ꯃ", "ꯅꯤ", "ꯄꯨ", "ꯔ"]),
        ("क्\u200dष क्\u200cष", ["क्\u200dष", " क्\u200c", "ष"]),
        ("ᱥᱟᱱᱛᱟᱲᱤ اردو", ["ᱥᱟᱱᱛᱟᱲᱤ", " اردو"]),
        ("don't (stop) कmixकab", ["don't", " (", "stop", ")", " क", "mix", "क", "ab"]),
        ("क। १२३४!", ["क", "।", " ", "१२३", "४", "!"]),
    ],
)
def test_pieces(text: str, pieces: list[str]) -> None:
    assert pieces == cut(text)


def test_linkers_are_those_of_unicode_and_two_more() -> None:
    found = regex.compile(r"\p{InCB=Linker}")
    if not found.match("\uaaf6"):
        pytest.skip("this regex knows an older Unicode")
    for script, signs in LINKERS.items():
        of_script = regex.compile(rf"\p{{Script={script}}}")
        codes = [c for c in map(chr, range(0x10000)) if of_script.match(c) and found.match(c)]
        assert codes == [c for c in signs if script not in ("Gurmukhi", "Kannada")]


def test_scripts_are_those_of_the_scheduled_languages_that_are_no_alphabets() -> None:
    scripts = {script for language in SCHEDULED for script in language.scripts}
    assert scripts - {"Arabic", "Ol_Chiki"} == set(LINKERS)


def test_borders() -> None:
    assert [] == borders("")
    assert [1, 4, 5, 6, 7] == borders(" क्ष ab")
    assert [2, 4, 6] == borders("किखीगु")
    assert [1, 2, 3] == borders("abc")
    assert [2, 3, 4] == borders("e\u0301 x")
    assert [3] == borders("1\ufe0f\u20e3")


ALPHABET = (
    "".join((*LINKERS.values(), *CONJUNCTS)) + "कतिা়রযਪકକಕకകൻꯀꯥᱚaEا漢1१ \n!।❤\ufe0f\u0301\u200d\u200c"
)


@examples(250)
@given(text=st.one_of(st.text(ALPHABET, max_size=20), texts))
def test_borders_are_those_of_the_reference(text: str) -> None:
    assert reference.borders(text) == borders(text)


@examples(100)
@given(lines=st.lists(st.text(ALPHABET.replace("\n", "/\r"), max_size=9), min_size=1, max_size=4))
def test_lines_may_be_joined(lines: list[str]) -> None:
    joined = syllable_borders("\n".join(lines)).tolist()
    for line in lines:
        of_line, joined = joined[: len(line) + 1], joined[len(line) + 1 :]
        inside = [at for at in range(1, len(line)) if of_line[at]]
        assert borders(line)[:-1] == inside


@examples(250)
@given(text=st.one_of(st.text(ALPHABET, max_size=20), texts))
def test_letters_between_others(text: str) -> None:
    inner = regex.compile(r"(?<=[\pL\pM])[\pL\pM](?=[\pL\pM])")
    places, letters, marks = inner_letters(text)
    assert [match.start() for match in inner.finditer(text)] == places
    assert set(regex.findall(r"\p{L}", text)) == letters
    assert set(regex.findall(r"\p{M}", text)) == marks


@pytest.mark.parametrize(
    ("scripts", "linkers", "conjuncts", "message"),
    [
        (["Klingon"], "", [], "no script named Klingon"),
        (["Unknown"], "", [], "no script named Unknown"),
        (["Tamil"], "க", [], "must be a mark"),
        (["Tamil"], "", [""], "not empty"),
        (["Tamil"], "", ["कक"], "begin with a letter"),
        (["Tamil"], "", ["்க"], "begin with a letter"),
    ],
)
def test_rules_that_make_no_sense_are_refused(
    scripts: list[str], linkers: str, conjuncts: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _core.SyllableRules(scripts, linkers, conjuncts)
