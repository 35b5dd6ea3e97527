"""The spellings of the scripts of India, by hand."""

from __future__ import annotations

import pytest

from vocabshift.text.normalize import inverse_name, normalizer_function, normalizer_spec


def run(name: str, text: str) -> str:
    normalize = normalizer_function(name)
    assert normalize is not None
    return normalize(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("गांधीनगर", "गान्धीनगर"),  # the paper's Figure 3
        ("गंगातट", "गङ्गातट"),
        ("चंद्रवदन", "चन्द्रवदन"),
        ("पंकज", "पङ्कज"),
        ("जगदंबा", "जगदम्बा"),
        ("कुम्भमेला", "कुम्भमेला"),
        ("अंज़ीर", "अञ्ज़ीर"),  # ज़ in one character and in two
        ("अंज\u093cीर", "अञ्ज\u093cीर"),
        ("संसार हंस सिंह अंश", "संसार हंस सिंह अंश"),  # no stop behind: anusvara it stays
        ("अं", "अं"),
        ("সংখ্যা বাংলা", "সঙ্খ্যা বাংলা"),
        ("ਸੰਤ ਸਂਤ", "ਸੰਤ ਸਨ੍ਤ"),  # tippi is how Punjabi spells it
        ("અંત", "અન્ત"),
        ("ଅଂଚଳ", "ଅଞ୍ଚଳ"),
        ("తెలంగాణ", "తెలఙ్గాణ"),
        ("ಬೆಂಗಳೂರು", "ಬೆಙ್ಗಳೂರು"),
        ("സംഘം", "സങ്ഘം"),
        ("தங்கம்", "தங்கம்"),  # Tamil has no anusvara
    ],
)
def test_fifth_case(before: str, after: str) -> None:
    assert after == run("fifth-case", before)


def test_only_the_scripts_that_were_named() -> None:
    assert "गङ्गा తెలంగాణ" == run("fifth-case:Devanagari", "गंगा తెలంగాణ")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\u0958\u093f", "\u0915\u093c\u093f"),  # क़ि
        ("\u0915\u093f\u093c", "\u0915\u093c\u093f"),  # the nukta behind the vowel sign
        ("\u0915\u093c\u093c", "\u0915\u093c"),
        ("\u0928\u093c", "\u0929"),  # NFC has this one in one character
        ("\u09dc\u09dd\u09df", "\u09a1\u09bc\u09a2\u09bc\u09af\u09bc"),
    ],
)
def test_nukta(before: str, after: str) -> None:
    assert after == run("nukta", before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\u0905\u093e", "\u0906"),  # आ
        ("\u09c7\u09be", "\u09cb"),  # ো
        ("\u0bc6\u0bbe", "\u0bca"),  # ொ
        ("\u0cc6\u0cc2\u0cd5", "\u0ccb"),  # ೋ of three parts
        ("\u0a72\u0a3f", "\u0a07"),  # ਇ
        ("\u0d46\u0d46", "\u0d48"),  # ൈ
        ("\u0a85\u0abe\u0ac5", "\u0a91"),  # ઑ of three parts
    ],
)
def test_vowel_signs(before: str, after: str) -> None:
    assert after == run("vowel-signs", before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("അവന്\u200d", "അവൻ"),
        ("ক্\u200dষ র\u200dয", "ক্\u200dষ রয"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("plain\u200d text\u200c", "plain text"),
        ("👩\u200d🚀 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥", "👩\u200d🚀 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥"),
        ("क्\u200d\u200dष", "क्\u200dष"),
    ],
)
def test_joiners(before: str, after: str) -> None:
    assert after == run("joiners", before)
    assert not set("\u200c\u200d") & set(run("no-joiners", before))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("राम|", "राम।"),
        ("राम | राम || राम", "राम । राम ॥ राम"),
        ("राम |||", "राम ॥|"),
        ("a | b a||b ராம்|", "a | b a||b ராம்|"),
        ("ଘର| ఇల్లు|", "ଘର। ఇల్లు|"),  # Telugu ends sentences with a full stop
        ("ঘর৷ ঘর\u09e4 ਘਰ\u0a65", "ঘর। ঘর। ਘਰ॥"),
    ],
)
def test_dandas(before: str, after: str) -> None:
    assert after == run("dandas", before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("दु:ख अत:", "दुःख अत:"),  # at the end of a word a colon is a colon
        ("নি:শ্বাস ৰ:ৰ", "নিঃশ্বাস ৰঃৰ"),
        ("१०:३० a:b क:a", "१०:३० a:b क:a"),
        ("ദു:ഖം", "ദുഃഖം"),
    ],
)
def test_visarga(before: str, after: str) -> None:
    assert after == run("visarga", before)


def test_spaces_and_punctuation() -> None:
    assert "a b c d ef" == run("spaces", "a\u00a0b\u200bc\u3000d e\u00adf\ufeff\u200f")
    assert "\"a\" 'b' - - ... ''" == run("punctuation", "“a” ‘b’ – — … ''")


def test_the_kinds_of_change_of_the_study() -> None:
    """Its example of Figure 3 too."""
    before = "“गांधीनगर”\u00a0— दु:ख| क़\u200d ﮐـ ١"
    assert '"गान्धीनगर" - दुःख। क\u093c ک ۱' == run("indic-study", before)


def test_digits() -> None:
    assert "12 12 12 12 12" == run("ascii-digits", "१२ ১২ ௧௨ ۱۲ ᱑᱒")
    assert "१२ ၁၂" == run("native-digits:Devanagari", "12 ၁၂")  # Burmese is not ours


def test_inverses_are_stated() -> None:
    assert "anusvara:Bengali" == inverse_name("fifth-case:Bengali")
    assert "anusvara+nfd" == inverse_name("nfc+fifth-case")
    assert inverse_name("ascii-digits") is None
    assert inverse_name("nukta") is None
    assert inverse_name("nfkc+fifth-case") is None


def test_a_script_that_a_rule_does_not_know() -> None:
    with pytest.raises(ValueError, match=r"not know 'Tamil'.*Devanagari"):
        normalizer_spec("fifth-case:Tamil")
    with pytest.raises(ValueError, match="needs one script"):
        normalizer_spec("native-digits")
    with pytest.raises(ValueError, match="no normalizer is named 'joiners:Tamil'"):
        normalizer_spec("joiners:Tamil")
