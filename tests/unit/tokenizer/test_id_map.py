"""`token_map.json`: written and read alike, joined into chains, refused where it does not fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.byte_level import ALPHABET
from vocabshift.tokenizer.id_map import GONE, TokenIdMap
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint

BASE = Tokenizer(
    BpeModel({**{token: i for i, token in enumerate(ALPHABET)}, "ab": 256}, (("a", "b"),)),
    added_tokens=(AddedToken("<s>", 259),),
)
SMALLER = replace(
    BASE,
    model=BpeModel({token: i for i, token in enumerate(ALPHABET)}, ()),
    added_tokens=(AddedToken("<s>", 256),),
)
KEPT = {**{i: i for i in range(256)}, 259: 256}


def test_the_file_has_the_keys_of_the_contract(tmp_path: Path) -> None:
    TokenIdMap.between(BASE, SMALLER, KEPT).save(tmp_path)
    document = json.loads((tmp_path / "token_map.json").read_text(encoding="utf-8"))
    assert document == {
        "version": 1,
        "old": fingerprint(BASE),
        "new": fingerprint(SMALLER),
        "old_size": 260,
        "new_size": 257,
        "old_to_new": [*range(256), None, None, None, 256],
        "gone": {"ab": 256},
    }


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    saved = TokenIdMap.between(BASE, SMALLER, KEPT)
    saved.save(tmp_path)
    for source in (tmp_path, tmp_path / "token_map.json"):
        read = id_map.load(source)
        assert (read.old, read.new, read.new_size) == (saved.old, saved.new, 257)
        assert read.old_to_new.tolist() == saved.old_to_new.tolist()
    assert (read.old_size, read.n_kept) == (260, 257)
    assert read.gone == {"ab": 256}
    assert read.new_to_old()[256] == 259


def test_without_ids_every_token_keeps_its_id() -> None:
    table = TokenIdMap.between(BASE, BASE).old_to_new.tolist()
    assert table == [*range(257), GONE, GONE, 259]


def test_a_chain_begins_at_its_first_tokenizer() -> None:
    first = TokenIdMap.of_ids("a", "b", {0: 1, 1: 0, 3: 2}, 4, 3)
    second = TokenIdMap.of_ids("b", "c", {0: 5, 2: 0}, 3, 6)
    joined = first.then(second)
    assert (joined.old, joined.new, joined.new_size) == ("a", "c", 6)
    assert joined.old_to_new.tolist() == [GONE, 5, GONE, 0]


def test_what_is_learned_again_is_kept() -> None:
    """Taken out in one step and learned in a later one: the old id is known, whatever the new."""
    again = replace(BASE, model=replace(BASE.model, vocab={**SMALLER.model.vocab, "ab": 257}))
    again = replace(again, added_tokens=SMALLER.added_tokens)
    joined = TokenIdMap.between(BASE, SMALLER, KEPT).then(TokenIdMap.between(SMALLER, again))
    assert (joined.old_to_new[256], joined.gone) == (GONE, {"ab": 256})
    known = joined.with_learned_again(again.model.vocab)
    assert (known.old_to_new[256], known.gone) == (257, {})
    assert known.n_kept == joined.n_kept + 1
    known.check(BASE, again)


def test_a_chain_on_the_disk_knows_what_is_learned_again(tmp_path: Path) -> None:
    """`extend` after `prune`: the model still has the row of a token that went and came back."""
    again = replace(BASE, model=replace(BASE.model, vocab={**SMALLER.model.vocab, "ab": 257}))
    again = replace(again, added_tokens=SMALLER.added_tokens)
    TokenIdMap.between(BASE, SMALLER, KEPT).save(tmp_path)
    step = TokenIdMap.between(SMALLER, again)
    known = id_map.chained(tmp_path, step, again.model.vocab)
    assert (known.old_to_new[256], known.gone) == (257, {})
    assert id_map.chained(tmp_path / "elsewhere", step) is step


def test_a_name_is_that_of_the_first_tokenizer() -> None:
    """What a later step takes out is named by its first id; what came between has none."""
    first = TokenIdMap.of_ids("a", "b", {0: 1, 2: 0}, 3, 3, vocab={"x": 0, "y": 1, "z": 2})
    second = TokenIdMap.of_ids("b", "c", {1: 0}, 3, 1, vocab={"z": 0, "x": 1, "new": 2})
    assert first.then(second).gone == {"y": 1, "z": 2}


def test_a_token_with_an_old_id_is_not_another_one() -> None:
    """An id that a kept token has is not given to one of the same name that is gone."""
    mapped = TokenIdMap.of_ids("a", "b", {0: 0}, 2, 1, vocab={"x": 0, "y": 1})
    assert mapped.with_learned_again({"y": 0}) is mapped


def test_a_chain_of_strangers_is_refused() -> None:
    first = TokenIdMap.of_ids("a", "b", {0: 0}, 1, 1)
    with pytest.raises(VocabMismatchError, match="leads to the tokenizer b, and the input is x"):
        first.then(TokenIdMap.of_ids("x", "c", {0: 0}, 1, 1))


def test_a_map_is_found_beside_a_folder_or_a_file(tmp_path: Path) -> None:
    step = TokenIdMap.of_ids("b", "c", {0: 0}, 1, 1)
    assert id_map.find(tmp_path) is None
    assert id_map.find(BASE) is None
    assert id_map.find("no/such/folder") is None
    assert id_map.chained(tmp_path, step) is step
    TokenIdMap.of_ids("a", "b", {1: 0}, 2, 1).save(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    for source in (tmp_path, str(tmp_path / "tokenizer.json")):
        assert id_map.chained(source, step).old == "a"


def test_a_map_of_other_tokenizers_is_refused() -> None:
    mapped = TokenIdMap.of_ids("a", "b", {}, 1, 1)
    mapped.require("a", "b")
    with pytest.raises(VocabMismatchError, match="leads from the tokenizer a, and this one is x"):
        mapped.require("x", "b")
    with pytest.raises(VocabMismatchError, match="leads to the tokenizer b, and this one is x"):
        mapped.require("a", "x")


SOUND: dict[str, Any] = {
    "version": 1,
    "old": "a",
    "new": "b",
    "old_size": 3,
    "new_size": 2,
    "old_to_new": [1, None, 0],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "its version is 2"),
        ({"old": 7}, "of the wrong kind"),
        ({"old_to_new": None}, "of the wrong kind"),
        ({"old_to_new": [1, None]}, "old_size is 3, and 2 ids are listed"),
        ({"old_to_new": [1, None, True]}, "no id"),
        ({"old_to_new": [1, None, 0.5]}, "no id"),
        ({"old_to_new": [1, None, 2]}, "outside 0 to 1"),
        ({"old_to_new": [1, None, -1]}, "outside 0 to 1"),
        ({"old_to_new": [1, None, 10**30]}, "outside 0 to 1"),
        ({"old_to_new": [1, 1, 0]}, "the same new id"),
        ({"new_size": -1}, "new_size is -1"),
        ({"old_size": 10**12}, "old_size is 1000000000000"),
        ({"old_size": True}, "old_size is True"),
        ({"gone": ["x"]}, "gone is no object"),
        ({"gone": {"x": 0}}, "which is not gone"),
        ({"gone": {"x": 3}}, "which is not gone"),
        ({"gone": {"x": "1"}}, "which is not gone"),
        ({"gone": {"x": 1, "y": 1}}, "gone names an id twice"),
    ],
)
def test_damaged_maps_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = tmp_path / "token_map.json"
    file.write_text(json.dumps({**SOUND, **change}), encoding="utf-8")
    with pytest.raises(InvalidTokenizerError, match=message):
        id_map.load(file)


@pytest.mark.parametrize("text", ["", "[1]", "{}", "\udcff", "[" * 100_000, '{"version": 1}'])
def test_what_is_no_map_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token_map.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidTokenizerError):
        id_map.load(tmp_path)
