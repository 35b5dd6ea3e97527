"""Missing bytes: what they lose, and how they are added."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference import lost as slow
from vocabshift.tokenizer import byte_level, missing_bytes
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.missing_bytes import (
    LostCharacters,
    losing_bytes,
    lost_characters,
    with_missing_bytes,
)
from vocabshift.tokenizer.tokenizer import Tokenizer


def lacking(tokenizer: Tokenizer, *data: int) -> Tokenizer:
    """The tokenizer without the tokens of these bytes, and without what is made of them."""
    spelled = {byte_level.BYTE_IMAGES[byte] for byte in data} if _is_images(tokenizer) else set()
    pieces = {f"<0x{byte:02X}>" for byte in data}
    gone = [
        token_id
        for token, token_id in tokenizer.vocab.items()
        if token in pieces or spelled & set(token)
    ]
    return tokenizer.without(gone)


def _is_images(tokenizer: Tokenizer) -> bool:
    return tokenizer.model.is_byte_level


def test_the_two_sets_of_harmless_bytes() -> None:
    """No assigned character is spelt with one of them, and with every other byte one is."""
    needed = {byte for c in slow.assigned() for byte in chr(c).encode()}
    harmless = missing_bytes.NEVER_IN_UTF8 | missing_bytes.UNASSIGNED
    assert set(range(256)) - needed == harmless
    possible = {
        byte for c in range(0x110000) if not 0xD800 <= c < 0xE000 for byte in chr(c).encode()
    }
    assert set(range(256)) - possible == missing_bytes.NEVER_IN_UTF8


@pytest.mark.parametrize(
    ("gone", "losing", "some_lost"),
    [
        ((), (), set()),
        ((0xC0, 0xC1, 0xF5, 0xFF, 0xF1, 0xF2), (), set()),
        ((0x04, 0xC0, 0xF1), (0x04,), {0x04}),
        ((0xD7, 0xFE), (0xD7,), {0x5D0, 0x5EA}),
        ((0xF3,), (0xF3,), {0xE0041}),
        ((0x90,), (0x90,), {0xD0, 0x410, 0x1400, 0x10400}),
    ],
)
def test_lost_characters_are_those_that_do_not_come_back(
    make_byte_level, gone: tuple[int, ...], losing: tuple[int, ...], some_lost: set[int]
) -> None:
    poor = lacking(make_byte_level("the", "ק"), *gone)
    lost = set(lost_characters(poor).tolist())
    assert losing_bytes(poor) == losing
    assert some_lost <= lost
    assert bool(lost) == bool(some_lost)
    tried = [*some_lost, *slow.assigned()[::331]]
    assert slow.lost(poor.backend, tried) == lost & set(tried)


def test_characters_of_the_vocabulary_need_no_bytes(make_metaspace) -> None:
    """ "A" is a token, so that nothing but "B" is lost with their byte pieces."""
    poor = lacking(make_metaspace(), 0x41, 0x42)
    assert lost_characters(poor).tolist() == [0x42]
    assert losing_bytes(poor) == (0x42,)
    assert slow.lost(poor.backend, [0x41, 0x42, 0x43]) == {0x42}


def test_a_space_needs_no_byte_where_a_token_stands_for_it(make_metaspace) -> None:
    poor = lacking(make_metaspace(), 0x20, 0x42)
    assert lost_characters(poor).tolist() == [0x42]
    assert losing_bytes(poor) == (0x42,)
    ids = poor.backend.encode("a a", add_special_tokens=False).ids
    assert poor.backend.decode(ids) == "a a"


def test_an_added_token_is_not_lost(make_byte_level) -> None:
    poor = lacking(make_byte_level(), 0x09)
    assert lost_characters(poor).tolist() == [0x09]
    added = AddedToken("\t", poor.row_count, special=False)
    assert lost_characters(replace(poor, added_tokens=(added,))).tolist() == []


def test_without_bytes_the_unknown_token_is_meant_to_lose(make_metaspace) -> None:
    """Without even that, all but the vocabulary's own characters are lost."""
    tokenizer = make_metaspace()
    model = replace(tokenizer.model, byte_fallback=False)
    plain = replace(tokenizer, model=model)
    assert lost_characters(plain).tolist() == []
    dropping = replace(plain, model=replace(model, unk_token=None))
    lost = set(lost_characters(dropping).tolist())
    assert {0x42, 0x4E00} <= lost
    assert not {0x41, 0x61} & lost
    with pytest.raises(ValueError, match=r"spells no text in bytes.*leave complete_bytes out"):
        with_missing_bytes(plain)


@pytest.mark.parametrize("make", ["make_byte_level", "make_metaspace"])
def test_missing_bytes_are_added(make: str, request: pytest.FixtureRequest) -> None:
    """Those that text can hold, by ascending byte; nothing that is there moves."""
    whole = request.getfixturevalue(make)("abc")
    poor = lacking(whole, 0x04, 0xC0, 0xD7, 0xF1)
    complete = with_missing_bytes(poor)
    spell = byte_level.BYTE_IMAGES if make == "make_byte_level" else None
    new = [spell[b] if spell else f"<0x{b:02X}>" for b in (0x04, 0xD7, 0xF1)]
    assert complete.model.vocab == {
        **poor.model.vocab,
        **{token: poor.row_count + i for i, token in enumerate(new)},
    }
    assert lost_characters(complete).tolist() == []
    tried = [0x04, 0x5D0, 0x40000, 0x61]
    assert slow.lost(complete.backend, tried) == set()
    assert complete.encode_batch(["a\x04b"])[0].tolist() == (
        complete.backend.encode("a\x04b", add_special_tokens=False).ids
    )
    assert with_missing_bytes(complete) is complete
    found = LostCharacters.between(poor, complete)
    assert (found.after, found.names, found.bytes_added) == (0, (), ("04", "D7", "F1"))
    assert found.before == len(lost_characters(poor)) > 1
    still = LostCharacters.between(poor, poor)
    assert (still.before, still.after, still.bytes_added) == (found.before, found.before, ())
    assert still.names[0] == "U+0004"


def test_missing_bytes_take_free_ids_first(make_byte_level) -> None:
    poor = lacking(make_byte_level(), 0x04, 0x05)
    complete = with_missing_bytes(poor, [700])
    ids = [complete.model.vocab[byte_level.BYTE_IMAGES[byte]] for byte in (0x04, 0x05)]
    assert ids == [700, poor.row_count]


def test_an_added_token_that_spells_a_byte_is_refused(make_byte_level) -> None:
    """ "À" is how the vocabulary spells C0, which no text has, and "Ĉ" how it spells 08."""
    poor = lacking(make_byte_level(), 0x08, 0xC0)
    harmless = replace(poor, added_tokens=(AddedToken("À", poor.row_count),))
    assert lost_characters(with_missing_bytes(harmless)).tolist() == []
    image = byte_level.BYTE_IMAGES[0x08]
    clashing = replace(poor, added_tokens=(AddedToken(image, poor.row_count),))
    with pytest.raises(ValueError, match=f"the added token '{image}' of .* rename that token"):
        with_missing_bytes(clashing)
