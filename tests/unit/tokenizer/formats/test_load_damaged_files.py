"""Damaged files of every format are refused or loaded, and nothing else happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from damage import damage_bytes
from strategies import examples
from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json

KINDS = ("json", "ranks", "tekken", "sentencepiece", "gguf")


@pytest.fixture
def sound(
    kind: str,
    small: Tokenizer,
    ranks_file: bytes,
    tekken_file: dict[str, Any],
    sentencepiece_file: Callable[..., bytes],
    gguf_file: Callable[..., bytes],
    gguf_metadata: dict[str, Any],
) -> bytes:
    """A file of this kind, as it should be."""
    return {
        "json": to_json(small).encode(),
        "ranks": ranks_file,
        "tekken": json.dumps(tekken_file).encode(),
        "sentencepiece": sentencepiece_file(extra=(("aa", -3.0, 1),)),
        "gguf": gguf_file(gguf_metadata),
    }[kind]


def is_loaded(content: bytes, kind: str, folder: Path) -> bool:
    """Whether a tokenizer comes of it; otherwise it was refused in one line."""
    file = folder / "tokenizer"
    file.write_bytes(content)
    try:
        tokenizer = load_tokenizer(file, pattern="gpt2" if kind == "ranks" else None)
        tokenizer.backend.encode("abc ab <s>")
    except InvalidTokenizerError as error:
        assert "\n" not in str(error)
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
# What a kind of file is, is the same for all examples, and each writes the file anew.
@settings(
    examples(150),
    suppress_health_check=[
        *settings().suppress_health_check,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(data=st.data())
def test_damage_is_refused_or_survived(
    kind: str, sound: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    damaged = damage_bytes(sound, data)
    assert is_loaded(damaged, kind, tmp_path) or damaged != sound


@pytest.mark.parametrize("kind", KINDS)
def test_some_damage_does_not_matter(kind: str, sound: bytes, tmp_path: Path) -> None:
    """So the drawn test looks at both: what is refused, and what goes on with a damaged file."""
    found = set()
    for place in range(0, len(sound), len(sound) // 45):
        other = 65 if sound[place] != 65 else 66
        damaged = sound[:place] + bytes([other]) + sound[place + 1 :]
        found.add(is_loaded(damaged, kind, tmp_path))
    assert {True, False} == found
