"""A tokenizer.json whose model the core reads is what the general reader makes of it, or the same
error: of every form that JSON has, and of damaged ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import model as model_strings
from vocabshift.tokenizer.model import BpeModel, compile_model, images_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer

CHARACTERS = st.sampled_from('aĠ"\\/\b\n\t\x1f\x7fकé\u2028\U0001f600#v ')


@contextmanager
def general_reader_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_strings, "read_json", lambda *_: None)
        yield


def outcome(data: bytes) -> tuple[Any, ...]:
    try:
        read = Tokenizer.from_json(data)
    except InvalidTokenizerError as error:
        return (str(error),)
    merges = [tuple(merge) for merge in read.model.merges]
    return dict(read.model.vocab), merges, read.added_tokens, read.decoder, read.model.unk_token


def same_both_ways(data: bytes) -> tuple[Any, ...]:
    found = outcome(data)
    with general_reader_only():
        assert outcome(data) == found
    return found


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Token strings of awkward characters, with merges of any two whose product is a token."""
    tokens = draw(st.lists(st.text(CHARACTERS, min_size=1, max_size=3), min_size=1, unique=True))
    pairs = [(left, right) for left in tokens for right in tokens]
    pairs = draw(st.lists(st.sampled_from(pairs), max_size=8))
    tokens = list(dict.fromkeys([*tokens, *(left + right for left, right in pairs)]))
    is_old = draw(st.booleans()) and not any(" " in "".join(pair) for pair in pairs)
    merges = [" ".join(pair) for pair in pairs] if is_old else pairs
    ids = draw(st.permutations(range(len(tokens))))
    vocab = dict(zip(tokens, ids, strict=True))
    model = {"type": "BPE", "unk_token": None, "vocab": vocab, "merges": merges}
    rest = {"added_tokens": [], "decoder": None, 'a "key"'[draw(st.integers(0, 2)) :]: [{"{": "]"}]}
    entries = draw(st.permutations([*rest.items(), ("model", model)]))
    return dict(entries)


@given(documents(), st.booleans(), st.sampled_from([None, 0, 2]))
def test_every_form_is_read_alike(
    document: dict[str, Any], ensure_ascii: bool, indent: int | None
) -> None:
    data = json.dumps(document, ensure_ascii=ensure_ascii, indent=indent).encode()
    merges = document["model"]["merges"]
    found = same_both_ways(data)
    if len(found) == 5:
        pairs = [tuple(m.split(" ")) if isinstance(m, str) else m for m in merges]
        assert found[:2] == (document["model"]["vocab"], pairs)
    if not any(isinstance(merge, str) and merge.startswith("#version") for merge in merges):
        read = model_strings.read_json(data, 99)
        assert (read is None) == (len(found) == 1)  # nothing plain is left to the general reader


@given(documents(), st.randoms(use_true_random=False))
def test_damage_is_told_alike(document: dict[str, Any], rng: random.Random) -> None:
    data = bytearray(json.dumps(document, ensure_ascii=rng.random() < 0.5).encode())
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        new = rng.choice([b"", b'"', b"\\", b"{", b"]", b",", b"0", b"\xff", b"\x00", b"e", b" "])
        data[at : at + rng.randint(0, 2)] = new
    same_both_ways(bytes(data))


MODEL = '{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"a": 0', '"a": -1'),
        ('"a": 0', '"a": 007'),
        ('"a": 0', '"a": 0.0'),
        ('"a": 0', '"a": 1e2'),
        ('"a": 0', '"a": 1' + "0" * 12),
        ('"a": 0', '"a": 1' + "0" * 5000),
        ('"a": 0', '"a": 1'),
        ('"a": 0', '"a": NaN'),
        ('"a": 0', '"a": 7, "a": 0'),
        ('"a": 0', '"a": 0,'),
        ('"a": 0', '"\\ud800": 0'),
        ('"a": 0', '"\\ud800\\u0041": 0'),
        ('"a": 0', '"\\u00e9\\ud83d\\ude00\\uD83D\\uDE01": 9, "a": 0'),
        ('"a": 0', '"\\u00g9": 9, "a": 0'),
        ('"a": 0', '"a\n": 9, "a": 0'),
        ('["a", "b"]', '"a b"'),
        ('["a", "b"]', '"#version: 0.2", "a b"'),
        ('["a", "b"]', '"a  b"'),
        ('["a", "b"]', '["a", "b"], "a b"'),
        ('["a", "b"]', '["a", "b", "a"]'),
        ('["a", "b"]', '["b", "a"]'),
        ('["a", "b"]', '["a", 1]'),
        ('["a", "b"]', ""),
        ('"merges"', '"m\\u0065rges"'),
        ('"merges"', '"merges": [], "merges"'),
        ('"merges"', '"continuing_subword_prefix": "#", "merges"'),
        ('"type"', '"vocab": {}, "type"'),
        ('"type"', '"merges": [], "type"'),
        ("}", "} x"),
        ("]]}", "]]}, 0"),
        ('{"type"', '[{"type"'),
    ],
)
def test_what_is_not_plain_is_read_or_told_as_ever(old: str, new: str) -> None:
    assert old in MODEL
    for layout in ('{"model": %s}', '{"added_tokens": [], "model": %s, "model": %s}', "%s"):
        changed = MODEL.replace(old, new, 1)
        same_both_ways(layout.replace("%s", changed).encode())
        same_both_ways(b"\xef\xbb\xbf" + layout.replace("%s", changed).encode() + b" \n")
        same_both_ways(layout.replace("%s", changed).encode("utf-16"))


@pytest.mark.parametrize("token", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80"])
def test_a_token_that_is_not_utf8(token: bytes) -> None:
    data = MODEL.encode().replace(b'"ab": 2', b'"ab": 2, "%s": 3' % token)
    assert 1 == len(same_both_ways(b'{"model": %s}' % data))


def test_the_rest_of_the_text_is_json_too() -> None:
    for text in ('{"model": %s} x', '{"model": %s', '{"x": [}, "model": %s}', '{"model" %s}'):
        assert "not JSON" in same_both_ways((text % MODEL).encode())[0]
    deep = '{"x": ' + "[" * 100_000 + "]" * 100_000 + f', "model": {MODEL}}}'
    assert "recursion" in same_both_ways(deep.encode())[0]


@given(documents())
def test_an_encoder_of_what_was_read_is_that_of_what_was_given(document: dict[str, Any]) -> None:
    data = json.dumps(document).encode()
    if len(outcome(data)) == 1:
        return
    read = Tokenizer.from_json(data).model
    given_model = BpeModel(dict(read.vocab), tuple(read.merges))
    for byte_level in (False, True):
        encoders = [compile_model(model, byte_level=byte_level) for model in (read, given_model)]
        assert encoders[0].last_merges().tolist() == encoders[1].last_merges().tolist()


@given(documents())
def test_the_core_writes_what_python_writes(document: dict[str, Any]) -> None:
    data = json.dumps(document).encode()
    if len(outcome(data)) == 1:
        return
    read = Tokenizer.from_json(data)
    given_model = read.model.unchecked(
        vocab=dict(read.model.vocab), merges=tuple(read.model.merges)
    )
    assert replace(read, model=given_model).to_json() == read.to_json()


@given(documents(), st.integers(0, 3), st.booleans())
def test_a_model_is_extended_as_its_vocabulary_and_merges_are(
    document: dict[str, Any], n_new: int, merges_first: bool
) -> None:
    data = json.dumps(document).encode()
    if len(outcome(data)) == 1:
        return
    model = Tokenizer.from_json(data).model
    tokens = sorted(model.vocab, key=model.vocab.__getitem__)
    pairs = [(left, right) for left in tokens for right in tokens]
    new = [pair for pair in pairs if "".join(pair) not in model.vocab][:n_new]
    vocab = {text: model.size + i for i, text in enumerate(dict.fromkeys(map("".join, new)))}
    longer = model.extended(vocab, new, merges_first=merges_first)
    both = (*new, *model.merges) if merges_first else (*model.merges, *new)
    assert (longer.vocab, longer.merges) == ({**model.vocab, **vocab}, both)
    assert longer.strings.are_merges(pairs) == [pair in set(both) for pair in pairs]
    names = sorted(longer.vocab, key=longer.vocab.__getitem__)
    assert longer.strings.names_by_id() == names
    parts = {part for merge in both for part in merge}
    assert longer.strings.parts_by_id() == [i for i, name in enumerate(names) if name in parts]
    assert longer.strings.bytes_by_id(True) == images_bytes(names)
    if tokens:
        with pytest.raises(InvalidTokenizerError):
            model.extended({tokens[0] + "\x7f": model.vocab[tokens[0]]}, [])
        with pytest.raises(InvalidTokenizerError, match="is not in the vocabulary"):
            model.extended({}, [(tokens[0], "\x7f\x7f")])
