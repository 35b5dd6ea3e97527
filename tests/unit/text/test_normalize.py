"""Normalizers by name: what training applies is what the file says."""

from __future__ import annotations

import pytest
from tokenizers import normalizers

from vocabshift.text.normalize import FORMS, normalizer_function, normalizer_spec

TEXTS = ["plain ASCII 1/2", "e\u0301 é ﬁ ① Å", "क़ क\u093c ड़", "", "한글 각", "が か\u3099"]


@pytest.mark.parametrize("name", FORMS)
def test_the_function_is_the_component(name: str) -> None:
    spec = normalizer_spec(name)
    normalize = normalizer_function(name)
    assert spec == {"type": name.upper()}
    assert normalize is not None
    library = getattr(normalizers, name.upper())()
    assert [library.normalize_str(text) for text in TEXTS] == [normalize(text) for text in TEXTS]


def test_known_results() -> None:
    nfc, nfkc = normalizer_function("nfc"), normalizer_function("nfkc")
    assert nfc is not None
    assert nfkc is not None
    assert "é" == nfc("e\u0301")
    assert "ﬁ" == nfc("ﬁ")
    assert "fi1" == nfkc("ﬁ①")


@pytest.mark.parametrize("name", [None, "none"])
def test_none_leaves_text_alone(name: str | None) -> None:
    assert normalizer_spec(name) is None
    assert normalizer_function(name) is None


@pytest.mark.parametrize("name", ["NFC", "lowercase", ""])
def test_unknown_names(name: str) -> None:
    with pytest.raises(ValueError, match="the names are none, nfc"):
        normalizer_spec(name)
