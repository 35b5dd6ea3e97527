"""Arrow in and out: the ids of a list of str, from the array's own bytes, to lists of the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.text import records as arrow_strings
from vocabshift.tokenizer.any_tokenizer import surround
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer

pa = pytest.importorskip("pyarrow")

TEXTS = ["abc ab", "", "<s>ab<pad> क", "x" * 500, "abab\r\n", "é"]


def plain(encoded: tuple[Any, Any]) -> tuple[list[int], list[int]]:
    return encoded[0].tolist(), encoded[1].tolist()


def forms(texts: list[str]) -> dict[str, Any]:
    """The same strings in every form that a column may have."""
    middle = pa.array(["never seen", *texts, "nor this"]).slice(1, len(texts))
    half = len(texts) // 2
    return {
        "string": pa.array(texts, pa.string()),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts, pa.string_view()),
        "dictionary": pa.array(texts, pa.string()).dictionary_encode(),
        "slice": middle,
        "chunks": pa.chunked_array([texts[:half], [], texts[half:]], pa.string()),
        "large chunks": pa.chunked_array([texts[:half], texts[half:]], pa.large_string()),
        "no chunk": pa.chunked_array([[]] * (not texts) + [texts] * bool(texts), pa.string()),
        "column": pa.table({"text": pa.array(texts, pa.string())})["text"],
    }


@pytest.mark.parametrize("texts", [[], [""], TEXTS[:1], TEXTS, TEXTS[::-1] * 3])
@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}])
def test_every_form_gives_the_ids_of_a_list(
    small: Tokenizer, normalizer: dict[str, str] | None, texts: list[str]
) -> None:
    encoder = Encoder(replace(small, normalizer=normalizer))
    expected = plain(encoder.encode_batch(texts))
    for name, form in forms(texts).items():
        found = encoder.encode_batch(form, threads=2)
        assert expected == plain(found), name
        assert (np.int32, np.int64) == (found[0].dtype, found[1].dtype)


def test_no_str_is_made(small: Tokenizer) -> None:
    """The core sees the memory of the array itself."""
    array = pa.array(TEXTS, pa.string())
    (block,) = arrow_strings.string_blocks(array)
    assert array.buffers()[2].address == np.frombuffer(block[0], np.uint8).ctypes.data


def test_ids_become_lists_without_a_copy(small: Tokenizer) -> None:
    ids, offsets = Encoder(small).encode_batch(pa.array(TEXTS))
    lists = pa.LargeListArray.from_arrays(offsets, ids)
    assert [Encoder(small).encode(text).tolist() for text in TEXTS] == lists.to_pylist()
    assert lists.values.buffers()[1].address == ids.ctypes.data
    shorter = pa.ListArray.from_arrays(offsets.astype(np.int32), ids)  # what `datasets` has
    assert shorter.values.buffers()[1].address == ids.ctypes.data
    assert shorter.to_pylist() == lists.to_pylist()


def test_options_are_those_of_a_list(small: Tokenizer) -> None:
    encoder = Encoder(small)
    for options in ({"parse_special": False}, {"add_special_tokens": True}, {"threads": 3}):
        expected = plain(encoder.encode_batch(TEXTS, **options))
        assert expected == plain(encoder.encode_batch(pa.array(TEXTS), **options))


def test_map_of_datasets(small: Tokenizer) -> None:
    """As docs/datasets.md shows it: tables in, tables out, the ids of a list of str."""
    datasets = pytest.importorskip("datasets")
    encoder = Encoder(small)

    def encode(table: Any) -> Any:
        ids, offsets = encoder.encode_batch(table["text"])
        return pa.table({"input_ids": pa.ListArray.from_arrays(offsets.astype(np.int32), ids)})

    rows = datasets.Dataset.from_dict({"text": TEXTS * 3}).with_format("arrow")
    encoded = rows.map(encode, batched=True, batch_size=4, remove_columns=["text"])
    expected = [encoder.encode(text).tolist() for text in TEXTS * 3]
    assert expected == encoded.with_format(None)["input_ids"][:]


@given(
    parts=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5),
    before=st.lists(st.integers(10, 19), max_size=2),
    after=st.lists(st.integers(20, 29), max_size=3),
)
def test_a_template_stands_around_every_text(
    parts: list[list[int]], before: list[int], after: list[int]
) -> None:
    flat = np.array([i for part in parts for i in part], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, parts)])
    ids, bounds = surround(flat, offsets, np.array(before, np.int32), np.array(after, np.int32))
    found = [ids[bounds[i] : bounds[i + 1]].tolist() for i in range(len(parts))]
    assert [[*before, *part, *after] for part in parts] == found


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: pa.array(["a", None, "b"]), ValueError, "1 of 3 texts are null; leave them out"),
        (lambda: pa.chunked_array([["a"], [None]]), ValueError, "1 of 2 texts are null"),
        (lambda: pa.array([1, 2]), TypeError, "an Arrow int64; give an array of strings"),
        (lambda: pa.array([b"a"]), TypeError, "an Arrow binary; give an array of strings"),
        (lambda: pa.array([["a"]]), TypeError, r"an Arrow list<item: string>"),
        (lambda: pa.table({"text": ["a"]}), TypeError, "an Arrow Table; give an array of strings"),
        (
            lambda: pa.Array.from_buffers(
                pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
            ),
            ValueError,
            "document 0 is not UTF-8: byte 1 of it begins no character",
        ),
    ],
)
def test_what_is_no_text_is_told(small: Tokenizer, made: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Encoder(small).encode_batch(made())
