"""Which end of a prompt is taken back, and what may come in its place."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

import small_models
from vocabshift.models.healing import PromptHealer
from vocabshift.tokenizer.tokenizer import Tokenizer

WORDS = (
    *(("o", "n"), ("Ġ", "on"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġon", "Ġthe")),
    *(("l", "y"), ("Ġon", "ly"), ("Ġ", "A"), (":", "ĠA"), ("Ġon", "Ġ")),
)
SUPERWORDS = (*WORDS, ("m", "a"), ("ma", "t"), ("Ġ", "mat"), ("ĠonĠthe", "Ġmat"))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return small_models.joining_tokenizer(*SUPERWORDS)


@pytest.fixture(scope="module")
def healer(tokenizer: Tokenizer) -> PromptHealer:
    return PromptHealer(tokenizer)


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    return [int(i) for i in tokenizer.encode_batch([text])[0]]


@pytest.mark.parametrize(
    ("prompt", "n_back", "tail"),
    [
        ("sat on", 1, b" on"),  # " on the"
        ("sat on the", 1, b" on the"),  # " on the mat"
        ("sat on ", 1, b" on "),
        ("Answer:", 1, b":"),
        ("sat only", 0, b""),
        ("sat on th", 0, b""),  # inside a word: no tokenizer is healed there
        ("sat on the mat", 0, b""),
        ("sat", 0, b""),
        ("", 0, b""),
        (":", 0, b""),  # nothing would be left of the prompt
    ],
)
def test_the_tail_is_the_beginning_of_a_superword_up_to_a_space(
    prompt: str, n_back: int, tail: bytes, tokenizer: Tokenizer, healer: PromptHealer
) -> None:
    assert (n_back, tail) == healer.tail(ids_of(tokenizer, prompt))


def test_a_tail_of_several_tokens(healer: PromptHealer, tokenizer: Tokenizer) -> None:
    """ "on the" spelt in pieces, as after a truncation, is still the beginning of one token."""
    parts = [token for text in (" ", "o", "n", " the") for token in ids_of(tokenizer, text)]
    assert (4, b" on the") == healer.tail([0, *parts])
    end = tokenizer.added_tokens[0].id
    assert (0, b"") == healer.tail([*parts, end])


def test_without_superwords_no_prompt_is_changed() -> None:
    plain = small_models.joining_tokenizer(*WORDS[:5])
    healer = PromptHealer(plain)
    for text in ("sat on", "on the", "Answer:", "x "):
        assert (0, b"") == healer.tail(ids_of(plain, text))


def test_tokens_agree_with_the_tail_and_keep_its_last_word(
    healer: PromptHealer, tokenizer: Tokenizer
) -> None:
    """ " only" begins with " on" too, but the prompt's word was complete."""
    known = tokenizer.token_bytes
    assert {known[i] for i in healer.allowed(b" on")} == {
        *(b" ", b" on", b" on ", b" on the", b" on the mat"),
    }
    assert {known[i] for i in healer.allowed(b" ")} == {
        data for data in known.values() if data.startswith(b" ")
    }


def test_a_token_that_leads_nowhere_may_not_come() -> None:
    """Where the vocabulary lacks the byte "n", nothing could follow " o"."""
    whole = small_models.joining_tokenizer(*SUPERWORDS, ("Ġ", "o"))
    vocab = {token: i for token, i in whole.model.vocab.items() if token != "n"}
    lacking = replace(whole, model=whole.model.unchecked(vocab=vocab))
    found = {
        tokenizer: {tokenizer.token_bytes[i] for i in PromptHealer(tokenizer).allowed(b" on")}
        for tokenizer in (whole, lacking)
    }
    assert {b" o"} == found[whole] - found[lacking]
    assert {b" ", b" on", b" on the"} <= found[lacking]


def test_a_long_tail_needs_no_deep_recursion(healer: PromptHealer) -> None:
    assert healer.allowed(b"x" * (sys.getrecursionlimit() + 100))


def test_what_follows_the_tail_is_kept_to_the_byte(
    healer: PromptHealer, tokenizer: Tokenizer
) -> None:
    known = tokenizer.token_bytes
    for generated in (" on the mat only", " only", " on the", " on", " o"):
        ids = ids_of(tokenizer, generated)
        after = healer.after(b" on", ids)
        assert generated.encode()[3:] == b"".join(known[i] for i in after)
        left = healer.left(b" on", ids)
        assert b" on"[len(generated) :] == left
    assert [7, 8] == healer.after(b"", [7, 8])


def test_the_constraint_masks_each_row_until_its_tail_is_there(
    healer: PromptHealer, tokenizer: Tokenizer
) -> None:
    """Rows of a beam share a tail; afterwards scores come back as they are."""
    tails = [b" on", b":"]
    constraint: Any = healer.constraint(tails, 2)
    scores = torch.arange(float(tokenizer.row_count)).repeat(4, 1)
    found = constraint(torch.zeros((4, 2), dtype=torch.long), scores)
    for row in range(4):
        kept = found[row].isfinite().nonzero()[:, 0].tolist()
        assert sorted(healer.allowed(tails[row // 2])) == kept
        assert torch.equal(found[row, kept], scores[row, kept])
    space, on, colon = (ids_of(tokenizer, text)[0] for text in (" ", " on", ":"))
    ids = torch.tensor([[0, 0, space], [0, 0, on], [0, 0, colon], [0, 0, colon]])
    found = constraint(ids, scores)
    assert sorted(healer.allowed(b"on")) == found[0].isfinite().nonzero()[:, 0].tolist()
    assert torch.equal(found[1:], scores[1:])
    ids = torch.cat([ids, torch.tensor([[on], [0], [0], [0]])], dim=1)
    assert torch.equal(constraint(ids, scores), scores)
    assert constraint(None, scores) is scores
