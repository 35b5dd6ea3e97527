"""Matching tokens: copied by bytes, made of the old model's pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vocabshift.surgery.matching import match
from vocabshift.surgery.overrides import Overrides
from vocabshift.surgery.row_sources import RowSources
from vocabshift.tokenizer import byte_level


def _made(mapping: RowSources) -> dict[int, list[int]]:
    return {
        int(new_id): mapping.pieces[mapping.offsets[i] : mapping.offsets[i + 1]].tolist()
        for i, new_id in enumerate(mapping.made)
    }


def test_same_strings_are_copied_and_others_made(make_byte_level) -> None:
    """Ids may differ; every new id is in exactly one of the two groups."""
    old = make_byte_level("the")
    new = make_byte_level("ab", "then", "thx")
    a, b, n, x = (old.model.vocab[text] for text in "abnx")
    mapping = match(old, new, {})
    assert {**{i: i for i in range(256)}, 256: 257, 257: 258} == mapping.old_to_new
    assert {256: [a, b], 259: [257, n], 260: [256, x]} == _made(mapping)
    every = np.concatenate([mapping.copied_to, mapping.made])
    assert list(range(261)) == sorted(every.tolist())
    assert 0 == mapping.n_removed
    assert 3 == match(new, old, {}).n_removed  # "ab", "then", "thx"


def test_the_lowest_of_several_copies_is_the_new_id() -> None:
    """By it config.json names special tokens; which one must not depend on the order."""
    ids = [np.array(values, dtype=np.int64) for values in ([5, 3, 5], [1, 2, 4], [], [], [0])]
    mapping = RowSources(*ids, old_ids=np.arange(6))
    assert {5: 1, 3: 2} == mapping.old_to_new
    assert 4 == mapping.n_removed


def test_overrides_go_first_and_a_map_goes_before_bytes(make_byte_level) -> None:
    """What the user says stands above special tokens; what `extend` wrote stands above spelling."""
    old = make_byte_level("ab", specials=("<s>", "<t>"))
    new = make_byte_level("ab", specials=("<s>",))
    assert 257 == match(old, new, {257: 257}).copied_from[257]
    said = Overrides(same={257: 258})
    assert 258 == match(old, new, {257: 257}, overrides=said).copied_from[257]
    mapped = match(old, new, {257: 257}, kept={256: 5})
    assert 5 == mapped.copied_from[256]  # by its bytes it would be 256


def test_superwords_and_half_characters(make_byte_level) -> None:
    """A token with spaces inside, or that is not UTF-8, has pieces like any other."""
    old = make_byte_level(" a")
    vocab = old.model.vocab
    mapping = match(old, make_byte_level(" a", "b a", b"\xe0\xa4"), {})
    made = _made(mapping)
    assert {257: [vocab["b"], vocab["Ġ"]], 258: [vocab["b"], 256]} == {
        new_id: made[new_id] for new_id in (257, 258)
    }
    assert [vocab["à"], vocab["¤"]] == made[259]


def test_byte_level_onto_metaspace(make_byte_level, make_metaspace) -> None:
    """Both spell the same bytes: the space, lone bytes, and pieces are found."""
    old, new = make_metaspace("▁a", "bc"), make_byte_level(" a", "abc")
    mapping = match(old, new, {})
    vocab = old.model.vocab
    copied = dict(zip(mapping.copied_to.tolist(), mapping.copied_from.tolist(), strict=True))
    assert vocab["▁a"] == copied[256]
    assert vocab["<0xE0>"] == copied[new.model.vocab["à"]]
    assert vocab["A"] == copied[new.model.vocab["A"]]
    assert {257: [vocab["a"], vocab["b"]], 258: [vocab["a"], vocab["bc"]]} == _made(mapping)


def test_metaspace_onto_byte_level(make_byte_level, make_metaspace) -> None:
    """The other way round, byte pieces and characters share the row of their byte."""
    old, new = make_byte_level(" a"), make_metaspace("▁ab")
    mapping = match(old, new, {0: 0, 1: 0, 2: 0})
    copied = dict(zip(mapping.copied_to.tolist(), mapping.copied_from.tolist(), strict=True))
    assert 256 == copied[new.model.vocab["▁a"]]
    assert copied[new.model.vocab["A"]] == copied[new.model.vocab["<0x41>"]]
    assert {new.model.vocab["▁ab"]: [256, old.model.vocab["b"]]} == _made(mapping)


def test_equal_strings_go_before_equal_bytes(make_metaspace) -> None:
    """Between two SentencePiece vocabularies "A" stays "A" and "<0x41>" stays "<0x41>"."""
    old = make_metaspace()
    mapping = match(old, make_metaspace("ab"), {0: 0, 1: 1, 2: 2})
    assert {old.model.vocab[t] for t in ("A", "<0x41>")} <= set(mapping.copied_from.tolist())
    assert 0 == mapping.n_removed


def test_new_special_token_is_made_of_its_text(make_byte_level) -> None:
    """A special token that matches nothing has at least its name."""
    old, new = make_byte_level(), make_byte_level(specials=("ab",))
    vocab = old.model.vocab
    assert {256: [vocab["a"], vocab["b"]]} == _made(match(old, new, {}))


def test_token_without_any_piece_has_none(make_byte_level, make_metaspace) -> None:
    """Bytes that the old tokenizer cannot express have no old tokens, and nothing is refused."""
    tokenizer = make_metaspace()
    vocab = {t: i for t, i in tokenizer.model.vocab.items() if not t.startswith("<")}
    model = replace(tokenizer.model, vocab=vocab, byte_fallback=False, unk_token=None)
    old, new = replace(tokenizer, model=model, added_tokens=()), make_byte_level()
    sources = match(old, new, {})
    missing = [new.model.vocab[byte_level.to_image(data)] for data in (b"\4", b"\xc0", b"\xff")]
    assert set(missing) <= set(sources.without_pieces.tolist())
    assert all([] == _made(sources)[token_id] for token_id in missing)
