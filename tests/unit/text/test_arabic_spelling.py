"""The spellings of Urdu, Sindhi and Kashmiri, by hand."""

from __future__ import annotations

import pytest

from vocabshift.text.normalize import inverse_name, name_of, normalizer_function, normalizer_spec


def run(name: str, text: str) -> str:
    normalize = normalizer_function(name)
    assert normalize is not None
    return normalize(text)


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("Urdu", "كتاب", "کتاب"),
        ("Urdu", "ميري على", "میری علی"),
        ("Urdu", "هم یہ ھے گھر", "ہم یہ ھے گھر"),  # doachashmee is another letter
        ("Urdu", "سنة", "سنۃ"),
        ("Urdu", "\u0627\u0653 \u0627\u0654 \u06d2\u0654", "\u0622 \u0623 \u06d3"),
        ("Urdu", "\u0647\u0654 \u06c0", "\u06c2 \u06c2"),  # heh and its hamza meet afterwards
        ("Urdu", "\u06cc\u0654 \u064a\u0654", "\u0626 \u0626"),
        ("Urdu", "٠١٢٣٤٥٦٧٨٩ 12", "۰۱۲۳۴۵۶۷۸۹ 12"),
        ("Urdu", "اـــب", "اب"),
        ("Sindhi", "ھن هن ہن ەن", "هن هن هن هن"),
        ("Sindhi", "سنڌی سنڌى سنڌي", "سنڌي سنڌي سنڌي"),
        ("Sindhi", "ڪتاب کاڌو كتاب", "ڪتاب کاڌو كتاب"),  # k, kh, and one that nobody knows
        ("Kashmiri", "كٲشُر ي ه", "کٲشُر ی ہ"),
        ("Kashmiri", "ؠ ۍ ٲ", "ؠ ۍ ٲ"),  # its own letters
        ("Kashmiri", "\u06cc\u0654 \u064a\u0654", "\u06cc\u0654 \u0626"),
        ("Kashmiri", "ۅ ٳ", "ۄ اٟ"),
        ("Urdu,Kashmiri", "كتاب ي ه ة ۅ", "کتاب ی ہ ة ۅ"),
        ("Urdu,Sindhi", "كتاب ي ی ه ٤", "كتاب ي ی ه ۴"),
    ],
)
def test_letters(language: str, before: str, after: str) -> None:
    assert after == run(f"arabic-letters:{language}", before)


def test_letters_of_no_language_are_those_that_all_agree_on() -> None:
    assert "كي ه \u0622 ۱ ب" == run("arabic-letters", "كي ه \u0627\u0653 ١ بـ")


def test_forms() -> None:
    assert "کتاب لا اللہ ﷺ" == run("arabic-forms+arabic-letters:Urdu", "ﮐﺘﺎﺏ ﻻ ﷲ ﷺ")
    assert "میں ہے" == run("arabic-forms", "ﻣﯿﮟ ﮨﮯ")
    assert "\ufe70\ufc00" == run("arabic-forms", "\ufe70\ufc00")  # with a space, and of recitation


def test_marks() -> None:
    assert "شیر پنجاب موسی" == run("arabic-marks", "شیرِ پنجاب موسیٰ")
    assert "آئؤ ۂ" == run("arabic-marks", "آئؤ ۂ")  # parts of letters


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("می\u200c\u200cخواهم", "می\u200cخواهم"),
        ("کار\u200cخانہ", "کارخانہ"),  # reh joins to nothing
        ("کارِ\u200cخانہ", "کارِخانہ"),
        ("آپ\u200c کی\u200c۔", "آپ کی۔"),
        ("क्\u200cष a\u200cb", "क्\u200cष a\u200cb"),  # no Arabic script
        ("ہ\u200d", "ہ\u200d"),  # ZWJ shows a form
    ],
)
def test_joiners(before: str, after: str) -> None:
    assert after == run("arabic-joiners", before)


def test_names() -> None:
    assert normalizer_spec("arabic-letters") == normalizer_spec(
        "arabic-letters:Kashmiri,Sindhi,Urdu"
    )
    spec = normalizer_spec("arabic-letters:Kashmiri,Urdu")
    assert "arabic-letters:Urdu,Kashmiri" == name_of(spec)
    assert inverse_name("arabic-letters:Urdu") is None
    with pytest.raises(ValueError, match=r"does not know 'Persian'.*Urdu, Sindhi, Kashmiri"):
        normalizer_spec("arabic-letters:Persian")
    with pytest.raises(ValueError, match="no normalizer is named 'indic-study:Tamil'"):
        normalizer_spec("indic-study:Tamil")
