"""Damaged files of every format are refused or loaded, and nothing else happens."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from damage import damage_bytes, damage_json
from strategies import examples
from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer, open_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json

KINDS = ("json", "ranks", "tekken", "sentencepiece", "gguf")

# What a kind of file is, is the same for all examples, and each writes the file anew.
DRAWN = settings(
    examples(150),
    suppress_health_check=[
        *settings().suppress_health_check,
        HealthCheck.function_scoped_fixture,
    ],
)


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
@DRAWN
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


@cache
def documents() -> dict[str, dict[str, Any]]:
    """A `tokenizer.json` of each kind of model, made by `tokenizers`, with sequences of steps."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

    lone = [f"<0x{byte:02X}>" for byte in range(256)]
    made = {
        "byte-level": (Backend(models.BPE()), trainers.BpeTrainer),
        "metaspace": (
            Backend(models.BPE(unk_token="<s>", byte_fallback=True)),
            trainers.BpeTrainer,
        ),
        "unigram": (Backend(models.Unigram()), trainers.UnigramTrainer),
        "wordpiece": (Backend(models.WordPiece(unk_token="<s>")), trainers.WordPieceTrainer),
    }
    found = {}
    for kind, (backend, trainer) in made.items():
        options: dict[str, Any] = {"special_tokens": ["<s>"], "show_progress": False}
        if kind == "byte-level":
            steps = [pre_tokenizers.Digits(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
            backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
            backend.decoder = decoders.ByteLevel()
            options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
        elif kind == "metaspace":
            backend.pre_tokenizer = pre_tokenizers.Metaspace()
            backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
            options["special_tokens"] = ["<s>", *lone]
        else:
            backend.pre_tokenizer = pre_tokenizers.Metaspace()
        replace = normalizers.Replace("aa", "a")
        backend.normalizer = normalizers.Sequence([normalizers.NFC(), replace])
        backend.train_from_iterator(TEXTS, trainer(vocab_size=400, **options))
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", backend.token_to_id("<s>"))]
        )
        found[kind] = json.loads(backend.to_str())
    return found


TEXTS = ["the cat sat on the mat", "नमस्ते दुनिया 12", "aab  ab<s>b\n"]


@pytest.mark.parametrize("kind", ["byte-level", "metaspace", "unigram", "wordpiece"])
@DRAWN
@given(data=st.data())
def test_what_is_read_has_the_ids_of_tokenizers(
    kind: str, tmp_path: Path, data: st.DataObject
) -> None:
    """With another value around vocabulary and merges: refused in one line, or the same ids.

    Of Unigram and WordPiece, which `tokenizers` encodes itself, only that it is read or refused.
    """
    from tokenizers import Tokenizer as Backend

    document = copy.deepcopy(documents()[kind])
    long = {
        key: document["model"].pop(key) for key in ("vocab", "merges") if key in document["model"]
    }
    damaged = damage_json(document, data)
    if isinstance(damaged.get("model"), dict):
        damaged["model"] |= long
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(damaged), encoding="utf-8")
    try:
        tokenizer = open_tokenizer(file)
    except InvalidTokenizerError as error:
        assert "\n" not in str(error)
        return
    if not isinstance(tokenizer, Tokenizer):
        return
    try:
        backend = Backend.from_file(str(file))
    except Exception:  # it checks more than what decides ids
        return
    backend.no_padding()
    backend.no_truncation()
    for text in TEXTS:
        wanted = backend.encode(text, add_special_tokens=False).ids
        assert Encoder(tokenizer).encode(text).tolist() == wanted
