"""Whatever the text or the damage: the same ids, or an InvalidTokenizerError."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strategies import examples
from vocabshift.errors import InvalidTokenizerError
from vocabshift.text import patterns
from vocabshift.tokenizer import byte_level, tokenizer_json
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

TOKENS = [*byte_level.ALPHABET, "ab", "abc", "Ġab"]
SMALL = Tokenizer(
    BpeModel(
        {token: token_id for token_id, token in enumerate(TOKENS)},
        (("a", "b"), ("ab", "c"), ("Ġ", "ab")),
    ),
    normalizer={"type": "NFC"},
    pre_tokenizer=patterns.to_spec(patterns.get_pattern("o200k")),
    decoder={"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True),
    added_tokens=(AddedToken("<s>", len(TOKENS)),),
)
TEXT = tokenizer_json.to_json(SMALL)
AGAIN = Tokenizer.from_json(TEXT)
# Without its alphabet, so that damage often hits something that matters.
BRIEF = json.dumps(
    {
        "version": "1.0",
        "added_tokens": json.loads(TEXT)["added_tokens"][:0],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
    }
).encode()


@given(st.text(max_size=80))
def test_written_and_read_again_encodes_the_same(text: str) -> None:
    assert AGAIN.backend.encode(text).ids == SMALL.backend.encode(text).ids


def load_or_refuse(data: bytes, source: bytes) -> None:
    """Damage is loaded or refused in one line; what means the same as the source is loaded."""
    try:
        tokenizer = Tokenizer.from_json(data)
        tokenizer.backend.encode("ab <s> x")
    except InvalidTokenizerError as error:
        assert "\n" not in str(error)
        assert not means_the_same(data, source), error


def means_the_same(data: bytes, source: bytes) -> bool:
    try:
        return bool(json.loads(data) == json.loads(source))
    except (ValueError, RecursionError):
        return False


HARMLESS = {
    "nothing": lambda document: None,
    "an unknown key": lambda document: document.update(unknown=[1]),
    "no version": lambda document: document.pop("version"),
    "no truncation": lambda document: document.update(truncation=None),
    "another normalizer": lambda document: document.update(normalizer={"type": "NFKC"}),
    "no merges": lambda document: document["model"].update(merges=[]),
    "an unknown key of the model": lambda document: document["model"].update(unknown=None),
    "a longer vocabulary": lambda document: document["model"]["vocab"].update(zz=3),
    "merges as text": lambda document: document["model"].update(merges=["a b"]),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_changes_that_do_no_harm_are_loaded(change: str) -> None:
    """Whoever refuses all damage fails here."""
    document = json.loads(BRIEF)
    HARMLESS[change](document)
    tokenizer = Tokenizer.from_json(json.dumps(document).encode())
    merged = [0, 1] if change == "no merges" else [2]
    assert merged == tokenizer.backend.encode("ab", add_special_tokens=False).ids[-len(merged) :]


@examples(300)
@example(text=True, flips=[])
@example(text=False, flips=[])
@given(
    text=st.booleans(), flips=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4)
)
def test_flipped_bytes_are_refused_or_loaded(text: bool, flips: list[tuple[int, int]]) -> None:
    source = TEXT.encode() if text else BRIEF
    data = bytearray(source)
    for at, byte in flips:
        data[at % len(data)] = byte
    load_or_refuse(bytes(data), source)


@examples(200)
@example(9, 9)
@given(st.integers(0, len(BRIEF)), st.integers(0, len(BRIEF)))
def test_cut_out_stretches_are_refused_or_loaded(start: int, end: int) -> None:
    load_or_refuse(BRIEF[: min(start, end)] + BRIEF[max(start, end) :], BRIEF)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@examples(300)
@given(st.data())
def test_wrong_types_anywhere_are_refused_or_loaded(data: st.DataObject) -> None:
    document = json.loads(TEXT)
    document["model"]["vocab"] = {"a": 0, "b": 1, "ab": 2}
    document["model"]["merges"] = [["a", "b"]]
    document["added_tokens"][0]["id"] = 3
    source = json.dumps(document).encode()
    at = document
    while True:
        key = data.draw(st.sampled_from(range(len(at)) if isinstance(at, list) else sorted(at)))
        if isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
            at = at[key]
        else:
            break
    at[key] = data.draw(json_values)
    load_or_refuse(json.dumps(document).encode("utf-8", "surrogatepass"), source)


@examples(150)
@given(
    st.lists(st.integers(0, 12), unique=True, min_size=1, max_size=5),
    st.lists(
        st.tuples(st.sampled_from("abcdefgxyz"), st.integers(0, 14)),
        max_size=5,
        unique_by=(lambda t: t[0], lambda t: t[1]),
    ),
)
def test_added_ids_are_as_stated_or_refused(ids: list[int], added: list[tuple[str, int]]) -> None:
    vocab = dict(zip("abcde", ids, strict=False))
    tokens = tuple(AddedToken(content, token_id) for content, token_id in added)
    tokenizer = Tokenizer(BpeModel(vocab, ()), added_tokens=tokens)
    try:
        text = tokenizer_json.to_json(tokenizer)
    except InvalidTokenizerError:
        clash = any(
            vocab.get(content, token_id) != token_id
            or (token_id in ids and vocab.get(content) != token_id)
            for content, token_id in added
        )
        assert clash
        return
    backend = tokenizer.backend  # raises where an id is not as stated
    assert {content: backend.token_to_id(content) for content, _ in added} == dict(added)
    assert Tokenizer.from_json(text).row_count == tokenizer.row_count


@given(
    st.lists(st.integers(0, 12), unique=True, min_size=1, max_size=5),
    st.permutations("abxyz"),
)
def test_a_file_is_read_with_the_ids_that_tokenizers_gives(
    ids: list[int], order: list[str]
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    vocab = dict(zip("abcde", ids, strict=False))
    flags = dict.fromkeys(("special", "normalized", "single_word", "lstrip", "rstrip"), False)
    entries = [{"content": content, "id": 0, **flags} for content in order]
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    document = {"version": "1.0", "added_tokens": entries, "model": model}
    backend = tokenizers.Tokenizer.from_str(json.dumps(document))
    for entry in entries:
        entry["id"] = backend.token_to_id(entry["content"])
    clash = any(
        entry["id"] in ids and vocab.get(entry["content"]) != entry["id"] for entry in entries
    )
    if clash:
        with pytest.raises(InvalidTokenizerError, match=r"cannot have id|shares its"):
            Tokenizer.from_json(document)
    else:
        assert len(Tokenizer.from_json(document).added_tokens) == len(order)
