"""The core's class and script tables are those of the installed `tokenizers`."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from tokenizers import Regex, pre_tokenizers

from vocabshift import _core

CLASSES = {
    r"[\p{Lu}\p{Lt}]": 1,
    r"\p{Ll}": 2,
    r"[\p{Lm}\p{Lo}]": 4,
    r"\p{M}": 8,
    r"\p{N}": 16,
    r"\s": 32,
    r"[\r\n]": 64,
}
BLOCKS = (
    *(range(0x600), range(0x600, 0x780), range(0x900, 0xE00), range(0x1680, 0x1800)),
    *(range(0x1C50, 0x1C80), range(0x2000, 0x2200), range(0x3000, 0x3200), range(0xA640, 0xAC00)),
    *(range(0xFE00, 0x10000), range(0x11000, 0x11200), range(0x1D7C0, 0x1D800)),
)
SCALARS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def some() -> list[int]:
    """Every code point of a few blocks and one in a hundred of the rest."""
    sample = random.Random(0).sample(SCALARS, len(SCALARS) // 100)
    return sorted({*(code for block in BLOCKS for code in block), *sample})


def members(regex: str, codes: Iterable[int]) -> set[int]:
    """Those that the engine inside `tokenizers` says are in a class."""
    split = pre_tokenizers.Split(Regex(regex), "removed", invert=True)
    pieces = split.pre_tokenize_str("".join(map(chr, codes)))
    return {ord(character) for piece, _ in pieces for character in piece}


def assert_classes(codes: list[int]) -> None:
    bits = {code: _core.char_class(code) for code in codes}
    for regex, bit in CLASSES.items():
        assert members(regex, codes) == {code for code in codes if bits[code] & bit}, regex


def assert_scripts(codes: list[int]) -> None:
    """A code point has one script, so it is enough that each is in the one we name."""
    by_script: dict[str, list[int]] = {}
    for code in codes:
        by_script.setdefault(_core.script(code), []).append(code)
    unknown = by_script.pop("Unknown", [])
    for script, own in by_script.items():
        assert members(rf"\p{{{script}}}", own) == set(own), script
    any_script = "".join(rf"\p{{{script}}}" for script in by_script)
    assert set() == members(rf"[{any_script}\p{{L}}\p{{M}}\p{{N}}]", unknown)


def test_classes_of_some_code_points() -> None:
    assert_classes(some())


def test_scripts_of_some_code_points() -> None:
    assert_scripts(some())


def test_of_the_planes_with_characters() -> None:
    codes = [code for code in SCALARS if code < 0x40000 or 0xE0000 <= code < 0xF0000]
    assert_classes(codes)
    assert_scripts(codes)


@pytest.mark.nightly
@pytest.mark.slow
def test_of_all_code_points() -> None:
    assert_classes(SCALARS)
    assert_scripts(SCALARS)


@pytest.mark.parametrize(
    ("character", "bits", "script"),
    [
        ("A", 1, "Latin"),
        ("ǅ", 1, "Latin"),
        ("z", 2, "Latin"),
        ("ʰ", 4, "Latin"),
        ("क", 4, "Devanagari"),
        ("्", 8, "Devanagari"),
        ("\u0301", 8, "Inherited"),
        ("५", 16, "Devanagari"),
        ("½", 16, "Common"),
        ("\u00a0", 32, "Common"),
        ("\n", 96, "Common"),
        ("।", 0, "Common"),
        ("ᱚ", 4, "Ol_Chiki"),
        ("ꯃ", 4, "Meetei_Mayek"),
        ("\u200d", 0, "Inherited"),
        ("\u0378", 0, "Unknown"),
    ],
)
def test_known_characters(character: str, bits: int, script: str) -> None:
    assert bits == _core.char_class(ord(character))
    assert script == _core.script(ord(character))


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF])
def test_what_is_no_code_point_is_refused(code: int) -> None:
    with pytest.raises(ValueError, match="not a code point"):
        _core.char_class(code)
    with pytest.raises(ValueError, match="not a code point"):
        _core.script(code)
