"""token_bytes: both spellings mean bytes, and bytes find their pieces again."""

from __future__ import annotations

from dataclasses import replace

from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.added_tokens import AddedToken


def test_byte_level_tokens_are_bytes(make_byte_level) -> None:
    """Half a character and a space are bytes like others."""
    tokenizer = make_byte_level(" a", specials=("<s>",))
    by_id = token_bytes.token_bytes(tokenizer)
    assert b" a" == by_id[256]
    assert {bytes([byte]) for byte in range(256)} == set(list(by_id.values())[:256])
    assert 257 not in by_id  # special


def test_metaspace_tokens_are_bytes(make_metaspace) -> None:
    """The visible space is a space and a byte piece is its byte."""
    tokenizer = make_metaspace("▁a")
    by_id = token_bytes.token_bytes(tokenizer)
    vocab = tokenizer.model.vocab
    assert b" a" == by_id[vocab["▁a"]]
    assert b"\xe0" == by_id[vocab["<0xE0>"]]
    assert 1 not in by_id  # <s>


def test_plain_characters_come_after_byte_pieces(make_metaspace) -> None:
    """Of two tokens with the same bytes the character is preferred."""
    tokenizer = make_metaspace()
    known = {data: i for i, data in token_bytes.token_bytes(tokenizer).items()}
    assert tokenizer.model.vocab["A"] == known[b"A"]


def test_added_tokens_that_are_not_special_are_text(make_byte_level) -> None:
    """They stand in text as they are written, whatever the model's spelling."""
    spaces = AddedToken("  ", 256, special=False)
    tokenizer = make_byte_level(added_tokens=(spaces,))
    assert b"  " == token_bytes.token_bytes(tokenizer)[256]


def test_byte_level_pieces(make_byte_level) -> None:
    """The model is run on bytes, half characters and superwords included."""
    tokenizer = make_byte_level("न", "th", " a")
    find = token_bytes.piece_finder(tokenizer)
    assert [257] == find("न".encode())
    assert [256] == find("न".encode()[:2])
    assert [258, *find(b"e"), 259] == find(b"the a")


def test_metaspace_pieces(make_metaspace) -> None:
    """Text goes through the merges, unknown characters and bad bytes through byte pieces."""
    tokenizer = make_metaspace("▁ab")
    vocab = tokenizer.model.vocab
    find = token_bytes.piece_finder(tokenizer)
    assert [vocab["▁ab"]] == find(b" ab")
    assert [vocab["a"], vocab["▁ab"]] == find(b"a ab")
    assert [vocab["<0xC3>"], vocab["<0xB5>"]] == find("õ".encode())
    assert [vocab["▁a"], vocab["<0xE0>"], vocab["b"]] == find(b" a\xe0b")


def test_pieces_of_bytes_that_cannot_be_expressed(make_metaspace) -> None:
    """Without byte pieces the unknown token stands in; without that, nothing does."""
    tokenizer = make_metaspace()
    vocab = {t: i for t, i in tokenizer.model.vocab.items() if not t.startswith("<0x")}
    known = replace(tokenizer.model, vocab=vocab, byte_fallback=False)
    find = token_bytes.piece_finder(replace(tokenizer, model=known))
    assert [vocab["<unk>"]] == find(b"\xff")
    silent = replace(known, unk_token=None)
    assert [] == token_bytes.piece_finder(replace(tokenizer, model=silent))(b"\xff")


def test_spelling_is_told_by_the_pipeline(make_byte_level, make_metaspace) -> None:
    """Not by the vocabulary: a bare model is byte-level only where it has all images."""
    assert token_bytes.is_byte_level(make_byte_level())
    assert token_bytes.is_byte_level(make_byte_level(pre_tokenizer=None, decoder=None))
    assert not token_bytes.is_metaspace(make_byte_level())
    assert not token_bytes.is_byte_level(make_metaspace())
    assert token_bytes.is_metaspace(make_metaspace())
