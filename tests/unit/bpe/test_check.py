"""Every invariant of a tokenizer, each found where it is broken and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vocabshift.bpe import byte_level
from vocabshift.bpe.check import check
from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import to_spec


def holding(*tokens: str) -> Tokenizer:
    """A byte-level tokenizer without cuts that holds these tokens and what they are made from."""
    merges: list[tuple[str, str]] = []
    for token in map(byte_level.to_image, (token.encode() for token in tokens)):
        for end in range(2, len(token) + 1):
            pair = (token[: end - 1], token[end - 1])
            if pair not in merges:
                merges.append(pair)
    vocab = dict.fromkeys([*byte_level.ALPHABET, *(left + right for left, right in merges)])
    model = BpeModel({token: i for i, token in enumerate(vocab)}, tuple(merges))
    return Tokenizer(
        model,
        pre_tokenizer=to_spec(()),
        decoder={"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True),
        name="mine",
    )


def test_a_sound_tokenizer() -> None:
    report = check(holding("ab"), Corpus.from_texts(["ab क 😀", "\x00\r\n"]))
    assert "mine" == report.tokenizer
    assert 257 == report.vocab_size
    assert 256 == report.byte_pieces
    assert () == report.unreachable
    assert () == report.unreachable_by_pipeline
    assert () == report.partial_utf8
    assert () == report.superwords
    assert () == report.terminal_spanning
    assert 0 == report.round_trip_failures
    assert report.ok


def test_superwords_hold_text_on_both_sides_of_a_space() -> None:
    report = check(holding("a b", " a", "  ", "a ", "! "))
    assert ("aĠb",) == report.superwords


def test_partial_characters() -> None:
    """ "क" is made from its first two bytes."""
    report = check(holding("क"))
    assert (byte_level.to_image("क".encode()[:2]),) == report.partial_utf8
    assert report.ok


@pytest.mark.parametrize(
    ("token", "spans"),
    [
        ("। क", True),
        ("।क", True),
        ("?a", True),
        ("! a", True),
        ("!) a", True),
        ("?» ", False),
        ("?)", False),
        ("?!", False),
        ("...", False),
        ("। ", False),
        ("a.b", False),
        (". a", True),
        ('." a', True),
        ("3.5", False),
        ("a.", False),
        ("….", False),
        (", a", False),
        ("؟۔", False),
    ],
)
def test_terminal_spanning(token: str, spans: bool) -> None:
    """A terminal, then closing marks and whitespace, then a further character."""
    image = byte_level.to_image(token.encode())
    assert spans == (image in check(holding(token)).terminal_spanning)


def test_half_of_a_further_terminal_spans_nothing() -> None:
    """A run of terminals is one sentence end; its tokens may stop inside a character."""
    assert () == check(holding("?։")).terminal_spanning


def test_unreachable_tokens_are_not_ok() -> None:
    sound = holding("ab")
    size = sound.vocab_size
    broken = replace(sound, model=replace(sound.model, vocab={**sound.model.vocab, "zz": size}))
    report = check(broken)
    assert ("zz",) == report.unreachable
    assert ("zz",) == report.unreachable_by_pipeline
    assert not report.ok


def test_round_trip_failures_are_counted_in_documents() -> None:
    composing = replace(holding("ab"), normalizer={"type": "NFC"})
    corpus = Corpus.from_texts(["plain", "e\u0301", "é", "क\u093c and e\u0301"])
    assert 2 == check(composing, corpus, threads=2).round_trip_failures
    assert not check(composing, corpus).ok
    assert 0 == check(composing).round_trip_failures
