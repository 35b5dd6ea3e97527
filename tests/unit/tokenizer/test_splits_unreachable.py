"""STT: which tokens can the merges rebuild?"""

from __future__ import annotations

from dataclasses import replace

from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.token_bytes import byte_pieces
from vocabshift.tokenizer.tokenizer import Tokenizer


def with_tokens(small: Tokenizer, *tokens: str, **changes: object) -> Tokenizer:
    """`small` with further tokens that no merge makes."""
    size = len(small.model.vocab)
    vocab = {**small.model.vocab, **{token: size + i for i, token in enumerate(tokens)}}
    added = tuple(replace(token, id=token.id + len(tokens)) for token in small.added_tokens)
    model = replace(small.model, vocab=vocab, **changes)
    return replace(small, model=model, added_tokens=added)


def test_a_trained_model_is_clean(small: Tokenizer) -> None:
    assert () == unreachable_tokens(small)


def test_tokens_that_no_merge_makes_are_told_by_id(small: Tokenizer) -> None:
    assert ("zz", "abz") == unreachable_tokens(with_tokens(small, "zz", "abz"))


def test_merge_skipping_does_not_help(small: Tokenizer) -> None:
    """It is a way around the merges, and the test is about these."""
    assert ("zz",) == unreachable_tokens(with_tokens(small, "zz", ignore_merges=True))


def test_a_merge_that_another_forestalls(small: Tokenizer) -> None:
    """(a, bc) makes "abc", but "ab" is always merged first."""
    tokens = [*byte_level.ALPHABET, "ab", "bc", "abc"]
    model = BpeModel(
        {token: i for i, token in enumerate(tokens)}, (("a", "b"), ("b", "c"), ("a", "bc"))
    )
    assert ("abc",) == unreachable_tokens(replace(small, model=model, added_tokens=()))


def test_another_token_with_the_same_spelling_does_not_count() -> None:
    """The result must be that very id."""
    model = BpeModel({"▁": 0, "a": 1, "▁a": 2, "a▁": 3}, (("▁", "a"),))
    assert ("a▁",) == unreachable_tokens(Tokenizer(model))


def test_parts_of_characters_are_tokens_like_others(small: Tokenizer) -> None:
    part = byte_level.to_image("क".encode()[:2])
    assert part in small.model.vocab
    assert part not in unreachable_tokens(small)
    assert (byte_level.to_image(b"\xa4\x95"),) == unreachable_tokens(
        with_tokens(small, byte_level.to_image(b"\xa4\x95"))
    )


def test_added_tokens_are_not_counted(small: Tokenizer) -> None:
    inside = with_tokens(small, "<pad2>")
    token_id = inside.model.vocab["<pad2>"]
    added = (*inside.added_tokens, AddedToken("<pad2>", token_id))
    assert ("<pad2>",) == unreachable_tokens(inside)
    assert () == unreachable_tokens(replace(inside, added_tokens=added))


def test_byte_pieces_and_the_unknown_token_are_not_counted() -> None:
    vocab = {"<unk>": 0, "<0x41>": 1, "<0xE0>": 2, "▁": 3, "é": 4, "<0x4>": 5}
    tokenizer = Tokenizer(BpeModel(vocab, (), byte_fallback=True, unk_token="<unk>"))
    assert ("<0x41>", "<0xE0>") == byte_pieces(tokenizer)
    assert ("<0x4>",) == unreachable_tokens(tokenizer)


def test_byte_pieces_of_a_byte_level_model(small: Tokenizer) -> None:
    assert set(byte_level.ALPHABET) == set(byte_pieces(small))


def test_a_model_of_nothing_but_bytes(small: Tokenizer) -> None:
    model = BpeModel({image: i for i, image in enumerate(byte_level.ALPHABET)}, ())
    assert () == unreachable_tokens(replace(small, model=model, added_tokens=()))
