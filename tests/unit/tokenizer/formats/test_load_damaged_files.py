"""Damaged files of every format are refused or loaded, and nothing else happens."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json

ROUNDS = 200


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flip up to three bytes near a random place, and sometimes cut the end off."""
    out = bytearray(data)
    near = rng.choice([rng.randrange(min(200, len(out))), rng.randrange(len(out))])
    for _ in range(rng.randint(0, 3)):
        out[min(near + rng.randrange(8), len(out) - 1)] = rng.choice(
            [0, 9, 10, 65, 66, 127, 128, 255]
        )
    return bytes(out[: rng.randrange(len(out))] if rng.random() < 0.3 else out)


@pytest.mark.parametrize("kind", ["json", "ranks", "tekken", "sentencepiece", "gguf"])
def test_damage_is_refused_or_survived(
    kind: str,
    small: Tokenizer,
    ranks_file: bytes,
    tekken_file: dict[str, Any],
    sentencepiece_file: Callable[..., bytes],
    gguf_file: Callable[..., bytes],
    gguf_metadata: dict[str, Any],
    tmp_path: Path,
) -> None:
    sources = {
        "json": to_json(small).encode(),
        "ranks": ranks_file,
        "tekken": json.dumps(tekken_file).encode(),
        "sentencepiece": sentencepiece_file(extra=(("aa", -3.0, 1),)),
        "gguf": gguf_file(gguf_metadata),
    }
    rng = random.Random(0)
    file = tmp_path / "tokenizer"
    loaded = refused = 0
    for _ in range(ROUNDS):
        damaged = damage(sources[kind], rng)
        file.write_bytes(damaged)
        try:
            tokenizer = load_tokenizer(file, pattern="gpt2" if kind == "ranks" else None)
            tokenizer.backend.encode("abc ab <s>")
            loaded += damaged != sources[kind]
        except InvalidTokenizerError as error:
            assert "\n" not in str(error)
            assert damaged != sources[kind], "nothing was damaged, and it is refused"
            refused += 1
    # Some damage does not matter, and most does; some rounds change nothing.
    assert 0 < loaded < ROUNDS // 2 < refused, (loaded, refused)
    assert loaded + refused < ROUNDS
