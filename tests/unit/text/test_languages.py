"""The table of languages."""

from __future__ import annotations

import pytest

from vocabshift.text.languages import LANGUAGES, SCHEDULED, find_language


def test_the_schedule_is_whole() -> None:
    """The Eighth Schedule has 22 languages, and no code stands twice."""
    assert 22 == len(SCHEDULED) == sum(language.is_scheduled for language in LANGUAGES)
    codes = [code for language in LANGUAGES for code in (language.code, language.short_code)]
    known = [code for code in codes if code is not None]
    assert len(set(known)) == len(known)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("hin", "Hindi"),
        ("hi", "Hindi"),
        ("npi", "Nepali"),
        ("kok", "Konkani"),
        ("gom_Deva", "Konkani"),
        ("ory", "Odia"),
    ],
)
def test_labels_that_are_known(label: str, name: str) -> None:
    """Codes of either length, and members of macrolanguages."""
    assert name == getattr(find_language(label), "name", None)


@pytest.mark.parametrize(
    ("label", "scripts"),
    [
        ("ks_Arab", ("Arabic",)),
        ("kas-Deva", ("Devanagari",)),
        ("mni", ("Meetei_Mayek", "Bengali")),
        ("hi-Latn", ("Latin",)),
    ],
)
def test_a_label_may_name_its_script(label: str, scripts: tuple[str, ...]) -> None:
    """A script in the label replaces the usual ones."""
    assert scripts == getattr(find_language(label), "scripts", None)


@pytest.mark.parametrize("label", [None, "", "code", "xx", "hi_Zzzz", "HI", "hindi", "hi_Deva_x"])
def test_other_labels_are_nobodys(label: str | None) -> None:
    """A label may be anything; what is not in the table is None."""
    assert find_language(label) is None


def test_scripts_are_those_of_the_core() -> None:
    """Script names are spelt as the core's tables spell them."""
    from vocabshift import _core

    samples = {
        "Arabic": "ا",
        "Bengali": "ক",
        "Devanagari": "क",
        "Meetei_Mayek": "ꯃ",
        "Ol_Chiki": "ᱥ",
        "Oriya": "ଅ",
        "Latin": "a",
        "Tamil": "அ",
    }
    assert samples.keys() == {_core.script(ord(letter)) for letter in samples.values()}
