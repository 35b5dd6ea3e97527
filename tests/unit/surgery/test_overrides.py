"""Overrides: the file, whose word goes first, and what is no token."""

from __future__ import annotations

import json

import pytest

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import overrides
from vocabshift.surgery.matching import match
from vocabshift.surgery.row_sources import RowSources
from vocabshift.surgery.special_ids import match_specials


def _pieces(mapping: RowSources, new_id: int) -> list[int]:
    place = mapping.made.tolist().index(new_id)
    return mapping.pieces[mapping.offsets[place] : mapping.offsets[place + 1]].tolist()


def _copied(mapping: RowSources) -> dict[int, int]:
    return dict(zip(mapping.copied_to.tolist(), mapping.copied_from.tolist(), strict=True))


def test_overrides_go_before_bytes(make_byte_level) -> None:
    """A token may take another's row, or be made of named pieces though it is known."""
    old, new = make_byte_level("ab", " cd"), make_byte_level("ab", " cd", "xyz")
    table = {"ab": " cd", "xyz": ["ab", "Ġcd", 97], " c": ["id:0"]}
    found = overrides.resolve(table, old, new)
    ab, cd, c = (old.model.vocab[token] for token in ("ab", "Ġcd", "Ġc"))
    assert 3 == len(found)
    mapping = match(old, new, {}, overrides=found)
    assert cd == _copied(mapping)[new.model.vocab["ab"]]
    assert [ab, cd, 97] == _pieces(mapping, new.model.vocab["xyz"])
    assert [0] == _pieces(mapping, c)
    assert c not in _copied(mapping)
    every = [*mapping.copied_to.tolist(), *mapping.made.tolist()]
    assert sorted(every) == list(range(new.row_count))


def test_a_special_token_under_another_name(make_byte_level) -> None:
    """The old token is not appended, configs follow, and the template says the new name."""
    old = make_byte_level(specials=("<a>", "<b>"), chat_template="{{ messages }}<b>")
    new = make_byte_level("ab", specials=("<z>",))
    found = overrides.resolve({"<z>": "<b>"}, old, new)
    specials = match_specials(old, new, None, found.same)
    ids = {token.content: token.id for token in specials.tokenizer.added_tokens}
    assert {"<z>": 257, "<a>": 258} == ids
    assert {256: 258, 257: 257} == specials.old_to_new
    assert "{{ messages }}<z>" == specials.tokenizer.chat_template
    mapping = match(old, specials.tokenizer, specials.new_to_old, overrides=found)
    assert 257 == _copied(mapping)[257]


def test_a_special_token_of_both_keeps_its_row(make_byte_level) -> None:
    old = make_byte_level(specials=("<a>", "<b>"))
    new = make_byte_level(specials=("<a>", "<c>"))
    for table in ({"<a>": "<b>"}, {"<c>": "<a>"}):
        with pytest.raises(VocabMismatchError, match="both tokenizers have a special token '<a>'"):
            match_specials(old, new, None, overrides.resolve(table, old, new).same)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"nothing": "a"}, "the new tokenizer has no token 'nothing'"),
        ({"a": "nothing"}, "the old tokenizer has no token 'nothing'"),
        ({"a": 9999}, "the old tokenizer has no id 9999"),
        ({"id:9999": "a"}, "the new tokenizer has no id 9999"),
        ({"a": ["b", None]}, "None is no token"),
        ({"a": True}, "True is no token"),
        ({"a": []}, "no old token"),
        ({"a": "b", "id:64": "c"}, "twice"),
    ],
)
def test_what_is_no_token(make_byte_level, table, said) -> None:
    """The message names the entry and what to write instead."""
    tokenizer = make_byte_level()
    assert 64 == tokenizer.model.vocab["a"]
    with pytest.raises(VocabMismatchError, match=said):
        overrides.resolve(table, tokenizer, tokenizer)


def test_files(tmp_path) -> None:
    """JSON and TOML say the same; anything else is refused by name."""
    table = {"क": "k", "xyz": ["x", 5]}
    (tmp_path / "o.json").write_text(json.dumps(table), encoding="utf-8")
    (tmp_path / "o.toml").write_text('"क" = "k"\nxyz = ["x", 5]\n', encoding="utf-8")
    assert table == overrides.read(tmp_path / "o.json") == overrides.read(tmp_path / "o.toml")
    for text, said in (("[1]", "holds a list"), ("{", "is not JSON"), ("\x00", "is not JSON")):
        (tmp_path / "o.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            overrides.read(tmp_path / "o.json")
    (tmp_path / "o.toml").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="is not TOML"):
        overrides.read(tmp_path / "o.toml")


def test_ambiguous_tokens_are_told(make_byte_level, make_metaspace) -> None:
    """The byte "A" of a byte-level tokenizer fits both "A" and "<0x41>"; most tokens fit one."""
    old, new = make_metaspace(), make_byte_level()
    mapping = match(old, new, {})
    a = new.model.vocab["A"]
    both = (old.model.vocab["<0x41>"], old.model.vocab["A"])
    assert (a, both) in mapping.ambiguous
    assert len("▁abcA") == len(mapping.ambiguous)
    assert () == match(new, make_byte_level("ab"), {}).ambiguous


def test_tokens_of_the_same_use_begin_with_its_row(make_byte_level) -> None:
    """A new turn end begins as the old one, a reserved token as a reserved one; both stay."""
    old = make_byte_level(
        specials=("<|eot_id|>", "<|reserved_special_token_0|>", "<|python_tag|>", "<|odd|>")
    )
    new = make_byte_level(specials=("<|im_end|>", "<unused7>", "<unused8>", "<tool_call>", "<x>"))
    found = match_specials(old, new)
    names = {token.content: token.id for token in found.tokenizer.added_tokens}
    assert [256, 257, 257, 258] == [
        found.new_to_old[names[name]]
        for name in ("<|im_end|>", "<unused7>", "<unused8>", "<tool_call>")
    ]
    assert names["<x>"] not in found.new_to_old
    assert {256, 257, 258, 259} == set(found.old_to_new)
    assert [names[token.content] for token in old.added_tokens] == list(found.old_to_new.values())
