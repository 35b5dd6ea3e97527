"""What callers see of the encoder: shapes, types, batches, templates, special tokens, errors."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

_BYTE_LEVEL = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
TEXTS = ["abc ab", "", "<s>ab<pad> क", "x" * 5000, "abab\r\n"]


def peer(tokenizer: Tokenizer, text: str, *, add_special_tokens: bool = False) -> list[int]:
    return list(tokenizer.backend.encode(text, add_special_tokens=add_special_tokens).ids)


def with_template(tokenizer: Tokenizer) -> Tokenizer:
    ids = {token.content: token.id for token in tokenizer.added_tokens}
    special = {
        content: {"id": content, "ids": [token_id], "tokens": [content]}
        for content, token_id in ids.items()
    }
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "<pad>", "type_id": 0}},
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": special,
    }
    return replace(tokenizer, post_processor=template)


def test_shapes_and_types(small: Tokenizer) -> None:
    encoder = Encoder(small)
    ids = encoder.encode("abc ab")
    assert (2,) == ids.shape
    assert np.int32 == ids.dtype
    flat, offsets = encoder.encode_batch(TEXTS)
    assert np.int32 == flat.dtype
    assert np.int64 == offsets.dtype
    assert (len(TEXTS) + 1,) == offsets.shape
    assert (0, len(flat)) == (offsets[0], offsets[-1])


def test_nothing_in_nothing_out(small: Tokenizer) -> None:
    encoder = Encoder(small)
    assert [] == encoder.encode("").tolist()
    flat, offsets = encoder.encode_batch([])
    assert ([], [0]) == (flat.tolist(), offsets.tolist())
    assert [] == encoder.decode_batch(flat, offsets)
    assert "" == encoder.decode([])
    flat, offsets = encoder.encode_batch(["", ""])
    assert ([], [0, 0, 0]) == (flat.tolist(), offsets.tolist())


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_batch_is_its_texts(small: Tokenizer, threads: int) -> None:
    encoder = Encoder(small)
    flat, offsets = encoder.encode_batch(iter(TEXTS), threads=threads)
    expected = [peer(small, text) for text in TEXTS]
    assert expected == [flat[offsets[i] : offsets[i + 1]].tolist() for i in range(len(TEXTS))]
    assert TEXTS == encoder.decode_batch(flat, offsets)


def spans(texts: list[str]) -> tuple[bytes, np.ndarray, np.ndarray]:
    """Texts as bytes with something between them, and where each begins and ends."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([1, *(len(text) + 1 for text in encoded[:-1])])
    return b"\xff" + b"\xff".join(encoded), starts, starts + [len(text) for text in encoded]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}])
def test_documents_are_a_batch(small: Tokenizer, threads: int, normalizer: dict[str, str]) -> None:
    encoder = Encoder(replace(small, normalizer=normalizer))
    data, starts, ends = spans(TEXTS)
    expected, bounds = encoder.encode_batch(TEXTS)
    for buffer in (data, bytearray(data), memoryview(data)):
        flat, offsets = encoder.encode_documents(buffer, starts, ends, threads=threads)
        assert (expected.tolist(), bounds.tolist()) == (flat.tolist(), offsets.tolist())
        assert (np.int32, np.int64) == (flat.dtype, offsets.dtype)
    flat, offsets = encoder.encode_documents(data, starts[:0], ends[:0], threads=threads)
    assert ([], [0]) == (flat.tolist(), offsets.tolist())
    text = "<s>"
    flat, _ = encoder.encode_documents(*spans([text]), threads=threads, parse_special=False)
    assert encoder.encode(text, parse_special=False).tolist() == flat.tolist()


@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}])
def test_bad_documents(small: Tokenizer, normalizer: dict[str, str]) -> None:
    encoder = Encoder(replace(small, normalizer=normalizer))
    zero = np.zeros(1, dtype=np.int64)
    for data in (b"ab\xff", "क".encode()[:2], b"\xf7\xbf\xbf\xbf", b"\xed\xa0\x80"):
        with pytest.raises(ValueError, match=r"document 0 is not UTF-8"):
            encoder.encode_documents(data, zero, zero + len(data), threads=2)
    for start, end in ((0, 4), (-1, 2), (2, 1)):
        with pytest.raises(ValueError, match="outside"):
            encoder.encode_documents(b"abc", zero + start, zero + end)
    with pytest.raises(ValueError, match="same length"):
        encoder.encode_documents(b"abc", zero, zero[:0])
    with pytest.raises(ValueError, match="give at least 1"):
        encoder.encode_documents(b"abc", zero, zero, threads=0)


def test_one_encoder_serves_many_threads(small: Tokenizer) -> None:
    encoder = Encoder(small)
    texts = [f"abc {n} ab" * 50 for n in range(40)]
    found: dict[int, list[int]] = {}

    def work(start: int) -> None:
        for n in range(start, len(texts), 4):
            found[n] = encoder.encode(texts[n]).tolist()

    workers = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [peer(small, text) for text in texts] == [found[n] for n in range(len(texts))]


def test_special_tokens_in_the_text(small: Tokenizer) -> None:
    """Recognised as `tokenizers` does, or read as text; others are found either way."""
    encoder = Encoder(small)
    start, pad = (token.id for token in small.added_tokens)
    assert [start, *peer(small, "ab"), pad] == encoder.encode("<s>ab<pad>").tolist()
    as_text = encoder.encode("<s>ab<pad>", parse_special=False).tolist()
    assert start not in as_text
    assert pad == as_text[-1]
    assert "<s>ab<pad>" == encoder.decode(as_text)
    flat, _ = encoder.encode_batch(["<s>", "<pad>"], parse_special=False)
    assert 4 == len(flat)


def test_template(small: Tokenizer) -> None:
    tokenizer = with_template(small)
    encoder = Encoder(tokenizer)
    for text in TEXTS:
        expected = peer(tokenizer, text, add_special_tokens=True)
        assert expected == encoder.encode(text, add_special_tokens=True).tolist()
        assert peer(tokenizer, text) == encoder.encode(text).tolist()
    flat, offsets = encoder.encode_batch(TEXTS, add_special_tokens=True, threads=2)
    expected_batch = [peer(tokenizer, text, add_special_tokens=True) for text in TEXTS]
    assert [i for ids in expected_batch for i in ids] == flat.tolist()
    assert [0, *np.cumsum([len(ids) for ids in expected_batch])] == offsets.tolist()


def test_without_a_template_nothing_is_added(small: Tokenizer) -> None:
    encoder = Encoder(small)
    assert peer(small, "ab") == encoder.encode("ab", add_special_tokens=True).tolist()


def test_decode(small: Tokenizer) -> None:
    encoder = Encoder(small)
    start = small.added_tokens[0].id
    ids = np.array([start, *peer(small, "abc")], dtype=np.int32)
    assert "<s>abc" == encoder.decode(ids)
    assert "<s>abc" == encoder.decode(ids.tolist())
    assert "abc" == encoder.decode(ids, skip_special_tokens=True)
    half = peer(small, "क")[:1]
    assert "\ufffd" == encoder.decode(half)


def test_id_to_token(small: Tokenizer) -> None:
    encoder = Encoder(small)
    assert "Ġab" == encoder.id_to_token(small.model.vocab["Ġab"])
    assert "<s>" == encoder.id_to_token(small.added_tokens[0].id)
    with pytest.raises(KeyError, match="no token has the id 99999"):
        encoder.id_to_token(99999)


def test_from_pretrained_folder_and_file(small: Tokenizer, tmp_path: Path) -> None:
    folder = small.save_pretrained(tmp_path / "out")
    for source in (folder, folder / "tokenizer.json", str(folder)):
        encoder = Encoder.from_pretrained(source)
        assert peer(small, "abc ab <s>") == encoder.encode("abc ab <s>").tolist()


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_first_bad_document_is_reported(small: Tokenizer, threads: int) -> None:
    """A message that depends on the number of threads sends people to another document each time.

    Documents 1 and 30 fall to different threads.
    """
    documents = [b"ab"] * 40
    for number in (1, 6, 12, 30):
        documents[number] = b"a" * number + b"\xff"
    ends = np.cumsum([len(document) for document in documents])
    starts = ends - [len(document) for document in documents]
    with pytest.raises(ValueError, match="document 1 is not UTF-8: byte 1 of it"):
        Encoder(small).encode_documents(b"".join(documents), starts, ends, threads=threads)


def test_the_first_lone_surrogate_is_reported(small: Tokenizer) -> None:
    """Though another thread finds a later one long before: it has some milliseconds to begin."""
    texts = ["abc क " * 2_000_000 + "\ud801", "\ud802"]
    for threads in (1, *[2] * 10):
        with pytest.raises(UnicodeEncodeError, match=r"\\ud801"):
            Encoder(small).encode_batch(texts, threads=threads)


def test_lone_surrogates_are_no_text(small: Tokenizer) -> None:
    encoder = Encoder(small)
    with pytest.raises(UnicodeEncodeError):
        encoder.encode("a\ud800")
    with pytest.raises(UnicodeEncodeError):
        encoder.encode_batch(["a", "\udfff"])


def test_engines(small: Tokenizer) -> None:
    assert "core" == Encoder(small).engine
    behind = replace(small, normalizer={"type": "NFKC"})
    assert "core behind tokenizers" == Encoder(behind).engine
    single = AddedToken("bc", small.row_count, single_word=True)
    word = replace(small, added_tokens=(*small.added_tokens, single))
    assert "tokenizers" == Encoder(word).engine
    for tokenizer in (behind, word):
        for text in (*TEXTS, "bc abc <bc>bc", "e\u0301"):
            assert peer(tokenizer, text) == Encoder(tokenizer).encode(text).tolist()


@pytest.mark.parametrize(
    "component",
    [
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}},
        {"pre_tokenizer": {**_BYTE_LEVEL, "add_prefix_space": True}},
        {"pre_tokenizer": None},
        {"normalizer": {"type": "Lowercase"}},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"}},
        {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": ""}},
        {"normalizer": {"type": "Prepend", "prepend": "x"}},
        {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}},
        {"normalizer": {"type": "Sequence", "normalizers": []}},
    ],
)
@pytest.mark.parametrize("normalized", [False, True])
def test_components_of_all_kinds(
    small: Tokenizer, component: dict[str, object], normalized: bool
) -> None:
    first, second = small.added_tokens
    added = (replace(first, normalized=normalized), second)
    tokenizer = replace(small, **component, added_tokens=added)
    encoder = Encoder(tokenizer)
    texts = [*TEXTS, "AB  ab <S> <s>Ab", " <s> ab", "ab <s>", "  ", "a b c ▁ab"]
    assert [peer(tokenizer, text) for text in texts] == [
        encoder.encode(text).tolist() for text in texts
    ]


def test_a_sentence_step_with_marks_runs_in_the_library(small: Tokenizer) -> None:
    """The core's sentence cut takes no letters or marks; a user's pattern may."""
    step = {
        "type": "Split",
        "pattern": {"Regex": "[ि]+"},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    first, *_, last = small.pre_tokenizer["pretokenizers"]  # type: ignore[index]
    spec = {"type": "Sequence", "pretokenizers": [first, step, last]}
    tokenizer = replace(small, pre_tokenizer=spec)
    assert peer(tokenizer, "किकि ab") == Encoder(tokenizer).encode("किकि ab").tolist()


def test_ids_with_holes() -> None:
    model = BpeModel({"a": 7, "b": 3, "ab": 100_000}, (("a", "b"),))
    assert [100_000, 7] == Encoder(Tokenizer(model)).encode("aba").tolist()


def test_an_unk_token_that_is_an_added_token_only(small: Tokenizer) -> None:
    """Byte-level vendors name one; no text ever meets it."""
    with_unk = replace(small, model=replace(small.model, unk_token="<s>"))
    text = "abc नमस्ते\x00 abc"
    assert Encoder(with_unk).encode(text).tolist() == Encoder(small).encode(text).tolist()
    assert Encoder(with_unk).encode(text).tolist() == with_unk.backend.encode(text).ids


def test_an_encoder_goes_to_other_processes(small: Tokenizer) -> None:
    """Pickled, it is the same bytes before and after use: what `datasets` keeps results by."""
    encoder = Encoder(small)
    before = pickle.dumps(encoder)
    expected = encoder.encode_batch(TEXTS, add_special_tokens=True)
    assert TEXTS == encoder.decode_batch(*encoder.encode_batch(TEXTS))
    assert before == pickle.dumps(encoder)
    found = pickle.loads(before).encode_batch(TEXTS, add_special_tokens=True)
    assert [part.tolist() for part in expected] == [part.tolist() for part in found]
