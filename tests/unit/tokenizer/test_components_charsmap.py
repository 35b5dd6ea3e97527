"""Character maps that would lead `tokenizers` out of their bounds are refused."""

from __future__ import annotations

import base64
import json
import random
import struct
from pathlib import Path

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.components import check_charsmap
from vocabshift.tokenizer.tokenizer import Tokenizer

MODEL = {"type": "BPE", "vocab": {"a": 0}, "merges": []}


def document(charsmap: bytes, depth: int = 1) -> str:
    normalizer = {
        "type": "Precompiled",
        "precompiled_charsmap": base64.b64encode(charsmap).decode(),
    }
    steps = normalizer
    for _ in range(depth):
        steps = {"type": "Sequence", "normalizers": [steps]}
    return json.dumps({"version": "1.0", "normalizer": steps, "model": MODEL})


@pytest.mark.parametrize(
    "data",
    [
        b"\x00",
        struct.pack("<I", 4096) + b"\x00" * 8,
        struct.pack("<I512I", 2048, 0xFFFFFE00, *[1 << 31] * 511),  # a first unit that is a value
        struct.pack("<II", 4, 0),  # one unit, whose children lie outside
        struct.pack("<I", 1024) + b"\x00" * 1024 + b"\xff",
        struct.pack("<I256I", 1024, 1 << 8, *[0] * 255),  # a value outside the texts
    ],
)
def test_maps_that_lead_outside_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidTokenizerError, match="character map"):
        check_charsmap(data)
    for depth in (1, 2, 3):
        with pytest.raises(InvalidTokenizerError, match="character map"):
            Tokenizer.from_json(document(data, depth))


def test_no_map_that_passes_makes_tokenizers_panic() -> None:
    rng = random.Random(0)
    passed = 0
    for _ in range(400):
        # Values, and steps (offset, label, perhaps a value behind) that mostly stay inside.
        units = [
            rng.randrange(260) << 10 | rng.getrandbits(9)
            if rng.random() < 0.02
            else 1 << 31 | rng.choice([0, 1, 2, 4])
            for _ in range(512)
        ]
        units[0] = rng.randrange(256) << 10
        data = struct.pack("<I512I", 2048, *units) + b"x\x00\xc3\xa9\x00"
        try:
            tokenizer = Tokenizer.from_json(document(data))
        except InvalidTokenizerError:
            continue
        passed += 1
        tokenizer.backend.encode("".join(map(chr, range(1, 1000))))
    assert passed > 0


def test_the_map_of_a_real_model_passes_and_encodes_as_sentencepiece(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    from vocabshift.tokenizer.formats.load import load_tokenizer

    lines = ["the ﬁrst ① of Å  many", "two　words are here", "नमस्ते दुनिया", "e\u0301tude\u00a0no. ½"]
    prefix = tmp_path / "nfkc"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 5),
        model_prefix=str(prefix),
        vocab_size=330,
        model_type="bpe",
        normalization_rule_name="nmt_nfkc",
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    file = prefix.with_suffix(".model")
    processor = sentencepiece.SentencePieceProcessor(str(file))
    backend = load_tokenizer(file).backend
    for text in [*lines, "  ① ½  x ", "", "   "]:
        assert backend.encode(text, add_special_tokens=False).ids == processor.encode(text)
