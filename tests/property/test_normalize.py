"""Normalizers: what runs here is what tokenizer.json says, twice is once, and back is back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models

from strategies import examples
from vocabshift.text.indic_spelling import BRAHMIC, DIGITS, FIFTH_CASE_SCRIPTS
from vocabshift.text.normalize import (
    NAMES,
    inverse_name,
    name_of,
    normalizer_function,
    normalizer_spec,
)

STEPS = [name for name in NAMES if name != "native-digits"]
LONG = [
    "joiners+nfc+nukta+vowel-signs+fifth-case+ascii-digits",
    "native-digits:Telugu",
    "nfkd+nukta",
]

_LETTERS = "".join(chr(script.block + at) for script in BRAHMIC.values() for at in range(0x80))
_OTHERS = "ab 1290٠۵\u200c\u200d\ufe0fی🙂👩♀é e\u0301ꯀ᱐\n"
TEXTS = st.text(st.sampled_from(_LETTERS + _OTHERS), max_size=24) | st.lists(
    # The same few signs of one script again and again: where rules meet each other.
    st.sampled_from("कगङञजदनणमपब\u0902\u094d\u093c\u093eिेोौअआऑएॅ\u200d\u200cक़ज़ड़ऩ़ं"),
    max_size=12,
).map("".join)


def library(name: str) -> Backend:
    """A tokenizer of `tokenizers` with that normalizer, read from JSON."""
    document = json.loads(Backend(models.BPE()).to_str())
    return Backend.from_str(json.dumps({**document, "normalizer": normalizer_spec(name)}))


LIBRARY = {name: library(name).normalizer for name in [*STEPS, *LONG]}
FUNCTION = {name: normalizer_function(name) for name in [*STEPS, *LONG]}


@examples(300)
@given(text=TEXTS)
def test_the_function_is_what_the_file_says(text: str) -> None:
    """Training sees the text that the saved tokenizer sees; twice is once."""
    for name, normalize in FUNCTION.items():
        assert normalize is not None
        normalized = normalize(text)
        assert LIBRARY[name].normalize_str(text) == normalized, name
        assert normalized == normalize(normalized), name


INVERTIBLE = (
    *("fifth-case", "anusvara", "nfc", "nfd"),
    *(f"ascii-digits:{script}" for script in ("Devanagari", "Ol_Chiki", "Arabic")),
    *(f"fifth-case:{script}" for script in FIFTH_CASE_SCRIPTS),
)
INVERSE = {name: normalizer_function(inverse_name(name)) for name in INVERTIBLE}


@examples(200)
@given(text=TEXTS)
def test_the_inverse_brings_the_other_spelling_back(text: str) -> None:
    for name, back in INVERSE.items():
        forth = FUNCTION.get(name) or normalizer_function(name)
        assert forth is not None
        assert back is not None
        assert forth(text) == forth(back(forth(text))), name
        assert back(text) == back(forth(text)), name


@pytest.mark.parametrize("name", [*STEPS, *LONG])
def test_a_saved_normalizer_gets_its_name_back(name: str) -> None:
    again = json.loads(library(name).to_str())["normalizer"]
    assert name == name_of(again)


@given(
    st.lists(st.sampled_from([*STEPS, "native-digits:Tamil", "fifth-case:Gujarati"]), max_size=4)
)
def test_names_of_several_steps(steps: list[str]) -> None:
    """The name that comes back may be another, but never another normalizer."""
    spec = normalizer_spec("+".join(steps) or None)
    found = name_of(spec)
    assert found is not None
    assert normalizer_spec(found) == spec


def test_every_kind_of_digits_is_ten_digits() -> None:
    for zero in DIGITS.values():
        assert [str(value) for value in range(10)] == [str(int(chr(zero + v))) for v in range(10)]
