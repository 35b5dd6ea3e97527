"""Text columns of Arrow batches as ids: those of `tokenizers`, in any process."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

import small_models
from strategies import examples
from vocabshift.engines import EncodeTexts
from vocabshift.engines import encode as module

pa = pytest.importorskip("pyarrow")

END = "</s>"
TEXTS = ["the cat", None, "", f"a {END} b", "नदी लंबी है"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer with an EOS."""
    return small_models.old_tokenizer().save_pretrained(tmp_path_factory.mktemp("engines") / "it")


@pytest.fixture(scope="module")
def peer(folder: Path) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def expected(peer: Any, texts: list[str | None], end: list[int] | None = None) -> list[Any]:
    return [
        None if text is None else peer.encode(text, add_special_tokens=False).ids + (end or [])
        for text in texts
    ]


def batch(texts: list[str | None], **columns: list[Any]) -> Any:
    return pa.record_batch({"text": pa.array(texts, pa.string()), **columns})


def test_a_record_batch(folder: Path, peer: tokenizers.Tokenizer) -> None:
    """Other columns pass through; a null stays a null."""
    found = EncodeTexts(folder)(batch(TEXTS, number=[1, 2, 3, 4, 5]))
    found.validate(full=True)
    assert {"number": [1, 2, 3, 4, 5], "input_ids": expected(peer, TEXTS)} == found.to_pydict()
    assert pa.list_(pa.int32()) == found.schema.field("input_ids").type
    assert isinstance(found, pa.RecordBatch)


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "null"])
def test_strings_as_engines_pass_them(folder: Path, peer: tokenizers.Tokenizer, kind: str) -> None:
    """Of any Arrow type, and a slice of a longer column."""
    given = [None] * 5 if kind == "null" else TEXTS
    texts = pa.array(given, "string" if kind == "dictionary" else kind)
    texts = texts.dictionary_encode() if kind == "dictionary" else texts
    found = EncodeTexts(folder)(pa.record_batch({"text": texts.slice(1, 3)}))
    found.validate(full=True)
    assert {"input_ids": expected(peer, given[1:4])} == found.to_pydict()


@examples(30)
@given(texts=st.lists(st.none() | st.text(max_size=20), max_size=12), data=st.data())
def test_tables_and_iterators(
    folder: Path, peer: tokenizers.Tokenizer, texts: list[str | None], data: st.DataObject
) -> None:
    """However a column is cut and sliced, and whatever its string type."""
    start = data.draw(st.integers(0, len(texts)))
    cut = data.draw(st.integers(start, len(texts)))
    kind = data.draw(st.sampled_from((pa.string(), pa.large_string())))
    table = pa.table({"text": pa.array(texts, kind)})
    table = pa.concat_tables([table.slice(start, cut - start), table.slice(cut)])
    encode = EncodeTexts(folder, eos=END, threads=2)
    wanted = expected(peer, texts[start:], [peer.token_to_id(END)])
    found = encode(table)
    found.validate(full=True)
    assert wanted == found["input_ids"].to_pylist()
    assert isinstance(found, pa.Table)
    assert encode.schema(table.schema) == found.schema
    stream = encode(iter(table.to_batches()))
    assert isinstance(stream, Iterator)
    assert wanted == [row for part in stream for row in part.column("input_ids").to_pylist()]


def test_options(folder: Path, peer: tokenizers.Tokenizer) -> None:
    rows = pa.record_batch({"q": ["the cat", END], "a": ["mat", ""]})
    ids = {name: expected(peer, rows.column(name).to_pylist()) for name in ("q", "a")}
    found = EncodeTexts(folder, ["q", "a"])(rows)
    assert {"q_ids": ids["q"], "a_ids": ids["a"]} == found.to_pydict()
    found = EncodeTexts(folder, {"a": "answer"}, keep_text=True)(rows)
    assert ["q", "a", "answer"] == found.schema.names
    assert ids["a"] == found.column("answer").to_pylist()
    as_text = EncodeTexts(folder, {"q": "ids"}, parse_special=False)(rows).column("ids").to_pylist()
    assert [peer.token_to_id(END)] == ids["q"][1] != as_text[1]
    assert END == peer.decode(as_text[1], skip_special_tokens=False)


def test_the_template(folder: Path, tmp_path: Path) -> None:
    """It surrounds the text, and the EOS follows it."""
    other = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    mark = other.token_to_id(END)
    other.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, mark)]
    )
    found = EncodeTexts(other, eos=END, add_special_tokens=True)(batch(["the cat"]))
    assert [[*other.encode("the cat").ids, mark]] == found.column("input_ids").to_pylist()
    assert mark == found.column("input_ids")[0][0].as_py()


def test_one_encoder_in_a_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None before the first batch, one for all copies of a callable; objects travel with it."""
    made: list[Any] = []
    make = module.Encoder
    monkeypatch.setattr(module, "Encoder", lambda tokenizer: made.append(1) or make(tokenizer))
    module._compiled.cache_clear()
    tokenizer = small_models.old_tokenizer()
    encode = EncodeTexts(tokenizer)
    wanted = encode(batch(TEXTS)).to_pydict()
    for _ in range(3):
        copy = pickle.loads(pickle.dumps(encode))
        assert wanted == copy(batch(TEXTS)).to_pydict()
    assert [1] == made
    encode = pickle.loads(pickle.dumps(EncodeTexts(folder / "tokenizer.json")))
    assert wanted == encode(batch(TEXTS)).to_pydict()


def test_a_tokenizer_that_was_replaced(folder: Path, tmp_path: Path) -> None:
    """Workers that live long take the new one, once the callable is sent again."""
    place = tmp_path / "tokenizer"
    shutil.copytree(folder, place)
    first = EncodeTexts(place)(batch(["the cat"])).to_pydict()
    deletes = {"type": "Replace", "pattern": {"String": "the "}, "content": ""}
    other = replace(small_models.old_tokenizer(), normalizer=deletes)
    (place / "tokenizer.json").write_text(other.to_json(), encoding="utf-8")
    os.utime(place / "tokenizer.json", ns=(1, 1))
    second = EncodeTexts(place)(batch(["the cat"])).to_pydict()
    assert first != second == EncodeTexts(folder)(batch(["cat"])).to_pydict()


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no column 'text' to encode; present: number"):
        EncodeTexts(folder)(pa.record_batch({"number": [1]}))
    with pytest.raises(TypeError, match="an Arrow int64"):
        EncodeTexts(folder, "number")(pa.record_batch({"number": [1]}))
    with pytest.raises(ValueError, match="there is a column 'input_ids' already"):
        EncodeTexts(folder)(batch(["a"], input_ids=[1]))
    with pytest.raises(ValueError, match="each text needs a column of its own"):
        EncodeTexts(folder, {"a": "ids", "b": "ids"})
    with pytest.raises(ValueError, match="each text needs a column of its own"):
        EncodeTexts(folder, [])
    with pytest.raises(ValueError, match="eos is '<none>', no token of it"):
        EncodeTexts(folder, eos="<none>")(batch(["a"]))
    with pytest.raises(TypeError, match="int is no tokenizer"):
        EncodeTexts(5)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        EncodeTexts(tmp_path / "nowhere")(batch(["a"]))
