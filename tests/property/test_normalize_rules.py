"""Every rule is its slow reference, on the characters of every script."""

from __future__ import annotations

import unicodedata
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import normalize as reference
from strategies import examples
from vocabshift.text.arabic_spelling import LANGUAGES
from vocabshift.text.indic_spelling import BRAHMIC
from vocabshift.text.normalize import NAMES, normalizer_function

_BLOCKS = [
    "".join(chr(script.block + at) for at in range(0x80)) + "\u0964\u0965"
    for script in BRAHMIC.values()
]
_ARABIC = (
    "".join(map(chr, range(0x600, 0x700)))
    + "".join(map(chr, range(0xFB50, 0xFC10)))
    + "".join(map(chr, range(0xFE70, 0xFEFD)))
    + "ﷲﷺ"
)
_ANY = " |||:::…—“’\u00a0\u200b\u200c\u200d\ufeff\u202aab1\n"
# Few letters again and again, where rules meet each other.
_HEH = "یىيےہھهۀۂەۃة\u0654\u0655\u0653اأآٳكکڪـ٠۰\u200c\u064e"
TEXTS = st.one_of(
    *(st.text(st.sampled_from(block + _ANY * 3), max_size=16) for block in (*_BLOCKS, _ARABIC)),
    st.text(st.sampled_from(_HEH + " "), max_size=10),
    st.text(st.sampled_from("هہەیى\u0654 "), max_size=6),
    st.text(st.sampled_from("कि।| :"), max_size=10),
)
RULES = {
    "fifth-case": reference.fifth_case,
    "anusvara": reference.anusvara,
    "dandas": reference.dandas,
    "spaces": reference.spaces,
    "punctuation": reference.punctuation,
    "arabic-forms": reference.arabic_forms,
    "arabic-marks": reference.arabic_marks,
    "arabic-letters": partial(reference.arabic_letters, languages=LANGUAGES),
    "arabic-letters:Urdu,Kashmiri": partial(
        reference.arabic_letters, languages=("Urdu", "Kashmiri")
    ),
    **{
        f"arabic-letters:{language}": partial(reference.arabic_letters, languages=[language])
        for language in LANGUAGES
    },
}
FUNCTION = {name: normalizer_function(name) for name in (*RULES, *NAMES) if name != "native-digits"}


def is_usual(one: str) -> bool:
    """Assigned, and of our time."""
    return unicodedata.category(one) != "Cn" and one not in reference.ARCHAIC


VISARGA = FUNCTION["visarga"] or str


@examples(500)
@given(text=TEXTS)
def test_every_rule_is_its_reference(text: str) -> None:
    for name, slow in RULES.items():
        fast = FUNCTION[name]
        assert fast is not None
        assert fast(text) == slow(text), name
    usual = "".join(filter(is_usual, text))
    assert VISARGA(usual) == reference.visarga(usual)


# What has forms in Unicode, which say how it joins; "ء" joins to nothing.
_JOINED = "ابپتٹثجچحخدڈرڑزسشعغفقکگلمنوہھیےئؤآ" + "ء \u064e\u064f، a1"


@examples(300)
@given(text=st.text(st.sampled_from(_JOINED + "\u200c" * 20), max_size=12))
def test_zwnj_stays_where_letters_would_join(text: str) -> None:
    fast = FUNCTION["arabic-joiners"]
    assert fast is not None
    assert fast(text) == reference.arabic_joiners(text)


@examples(200)
@given(text=TEXTS)
def test_twice_is_once(text: str) -> None:
    for name, normalize in FUNCTION.items():
        assert normalize is not None
        assert normalize(text) == normalize(normalize(text)), name


@examples(200)
@given(lines=st.lists(TEXTS.map(lambda text: text.replace("\n", " ")), max_size=4))
def test_no_rule_looks_beyond_its_line(lines: list[str]) -> None:
    """Text may be read line by line or in blocks of lines, with the same result."""
    for name, normalize in FUNCTION.items():
        assert normalize is not None
        assert "\n".join(map(normalize, lines)) == normalize("\n".join(lines)), name


@pytest.mark.parametrize("block", _BLOCKS)
def test_every_character_of_a_script(block: str) -> None:
    """Every character before and after many others of its script."""
    usual = list(filter(is_usual, block))
    for one in usual:
        text = " ".join(f"{one}{two}{two}{one}:{two}{one}" for two in (*usual[::6], "|", ":"))
        assert VISARGA(text) == reference.visarga(text)
        for name in ("fifth-case", "dandas"):
            fast = FUNCTION[name]
            assert fast is not None
            assert fast(text) == RULES[name](text)
