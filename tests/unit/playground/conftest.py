"""Small tokenizers of every kind, and a page of them."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.playground.page import Panel, Playground, Sample
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

KA = "\u0915".encode()  # E0 A4 95


def tiny_bpe() -> Tokenizer:
    """Bytes; the first two bytes of Devanagari, ka, and "a b"; a special token behind."""
    image = byte_level.to_image
    first, second = image(KA[:2]), image(KA)
    space = image(b" ")
    merges = (
        (image(KA[:1]), image(KA[1:2])),
        (first, image(KA[2:])),
        ("a", space),
        (image(b"a "), "b"),
    )
    tokens = [*byte_level.ALPHABET, *("".join(pair) for pair in merges)]
    assert second in tokens
    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return Tokenizer(
        BpeModel({token: number for number, token in enumerate(tokens)}, merges),
        pre_tokenizer={**spec, "use_regex": False},
        decoder={**spec, "use_regex": False},
        added_tokens=(AddedToken("<s>", len(tokens)),),
        name="tiny",
    )


def unigram() -> Backend:
    """Letters and "ab"."""
    return Backend(models.Unigram([("<unk>", 0.0), ("a", -2.0), ("b", -3.0), ("ab", -4.5)], 0))


def wordpiece() -> Backend:
    """Letters, and "b" inside of words."""
    backend = Backend(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return backend


@pytest.fixture(scope="session")
def playground() -> Playground:
    """A page of all three."""
    engines = {"tiny": tiny_bpe(), "unigram": unigram(), "wordpiece": wordpiece()}
    panels = [Panel(engine_of(source), name) for name, source in engines.items()]
    samples = [Sample("Hindi", "hi", "\u0915 a b")]
    return Playground(panels, samples, most_bytes=2_000_000)
