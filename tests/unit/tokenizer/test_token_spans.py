"""Engines of every kind, the spans of their tokens in text, and the pieces of a view."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

import vocabshift as vs
from real_text import vendor_engine
from vocabshift.evaluation.lines.placing import flat_spans
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.views import tokenized_lines
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.token_spans import iter_token_spans, token_spans

TEXT = [
    "the cat sat on the mat and the dog sat too",
    "नमस्ते दुनिया, यह क्षेत्र हमारा है",
    "கடல் நீலமாக இருக்கிறது",
    "café naïve 12,345 🙂",
]


def byte_level_bpe() -> Backend:
    """A small byte-level BPE that knows English better than Hindi."""
    return vs.BpeTrainer(vocab_size=300).train(vs.Corpus.from_texts({"all": TEXT * 3})).backend


def metaspace_bpe() -> Backend:
    """SentencePiece-like BPE with byte fallback and a dummy prefix."""
    backend = Backend(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback()])
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=pieces, show_progress=False, limit_alphabet=40
    )
    backend.train_from_iterator(TEXT[:1] * 3, trainer)
    data = json.loads(backend.to_str())
    data["added_tokens"] = data["added_tokens"][:1]  # byte pieces are ordinary tokens
    return Backend.from_str(json.dumps(data))


def unigram() -> Backend:
    """Unigram behind NFKC and Metaspace, as T5 has it."""
    backend = Backend(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=90, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    backend.train_from_iterator(TEXT * 3, trainer)
    return backend


def word_piece() -> Backend:
    """WordPiece behind BERT's normalizer, which lowers and strips accents."""
    backend = Backend(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=90, special_tokens=["[UNK]"], show_progress=False
    )
    backend.train_from_iterator(TEXT[:2] * 3, trainer)
    return backend


KINDS = {
    "byte-level": byte_level_bpe,
    "metaspace": metaspace_bpe,
    "Unigram": unigram,
    "WordPiece": word_piece,
}
ENGINES = {name: engine_of(make()) for name, make in KINDS.items()}
LINES = st.text(
    st.sampled_from("the catsonmdogu नमस्तेदुियक्षரடல்éÉﬁ²🙂\u200d1,<>"), min_size=0, max_size=20
)


@pytest.mark.parametrize("name", ENGINES)
@given(line=LINES)
def test_spans_ascend_and_stay_inside_the_line(name: str, line: str) -> None:
    """No span overlaps another or leaves the line; the ids are those of `tokenizers`."""
    engine = ENGINES[name]
    (spans,) = token_spans(engine, [line])
    assert engine.tokenizer.backend.encode(line, add_special_tokens=False).ids == spans.ids.tolist()
    edges = [0, *(edge for span in zip(spans.starts, spans.ends, strict=True) for edge in span)]
    assert edges == sorted(edges)
    assert edges[-1] <= len(line.encode())
    if name == "byte-level":
        assert spans.exact
        pieces = [
            line.encode()[start:end] for start, end in zip(spans.starts, spans.ends, strict=True)
        ]
        assert pieces == [engine.spelled[token_id] for token_id in spans.ids]


@pytest.mark.parametrize("name", ["metaspace", "Unigram"])
@pytest.mark.parametrize("line", ["the cat", " the  cat", "dog नम 🙂 too"])
def test_the_dummy_prefix_belongs_to_no_byte(name: str, line: str) -> None:
    """A space that SentencePiece puts in front takes no part of the line."""
    engine = ENGINES[name]
    (spans,) = token_spans(engine, [line])
    covered = b"".join(
        line.encode()[start:end] for start, end in zip(spans.starts, spans.ends, strict=True)
    )
    assert covered == line.encode()
    assert spans.starts[0] == 0


def test_word_piece_leaves_spaces_out_and_changed_text_keeps_its_place() -> None:
    """Accents that the normalizer drops still belong to their token; spaces belong to none."""
    line = "Thé cat"
    (spans,) = token_spans(ENGINES["WordPiece"], [line])
    data = line.encode()
    covered = [data[start:end] for start, end in zip(spans.starts, spans.ends, strict=True)]
    assert b"".join(covered) == "Thécat".encode()
    assert not spans.exact


def test_bytes_of_tokens_by_kind() -> None:
    """ "##" is no text, "▁" is a space, a byte piece is its byte, the unknown token nothing."""
    word = ENGINES["WordPiece"]
    assert {word.token_bytes[i] for i, t in word.tokens.items() if t == "##at"} <= {b"at"}
    assert word.unknown_id is not None
    assert word.unknown_id not in word.token_bytes
    spaced = ENGINES["Unigram"]
    assert all(b"\xe2\x96\x81" not in data for data in spaced.token_bytes.values())
    fallback = ENGINES["metaspace"]
    byte_piece = next(i for i, token in fallback.tokens.items() if token == "<0xE0>")
    assert fallback.token_bytes[byte_piece] == b"\xe0"


def test_a_view_says_what_a_token_cuts() -> None:
    """क्ष is one syllable of three characters of three bytes: each kind of cut is told apart."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    ka, virama, ssa = (byte_level.to_image(character.encode()) for character in "क्ष")
    vocab = {token: number for number, token in enumerate(alphabet)}
    merges = []
    for whole in (ka, virama, ssa):
        merges += [(whole[0], whole[1]), (whole[:2], whole[2])]
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    backend = Backend(models.BPE(vocab=vocab, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    (line,) = tokenized_lines(engine_of(backend), ["aक्षद"])
    cuts = [(token.cuts_character, token.cuts_syllable) for token in line.tokens]
    # "a" | क ् ष, each with an end inside the syllable | द, of which two bytes join as in क
    assert cuts == [(False, False), *[(False, True)] * 3, *[(True, False)] * 2]


def test_superwords_and_special_tokens_are_told() -> None:
    """A token with text on both sides of a space, and a special token written in the text."""
    corpus = vs.Corpus.from_texts({"all": ["on the mat on the mat on the mat"] * 20})
    trainer = vs.SuperwordTrainer(vocab_size=290, transition=0.95, special_tokens=["<s>"])
    engine = engine_of(trainer.train(corpus))
    (line,) = tokenized_lines(engine, ["on the mat<s>"])
    assert [token.special for token in line.tokens][-1]
    assert any(token.superword for token in line.tokens)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["llama3", "mistral7b-v1", "qwen25"])
def test_vendor_tokens_lie_end_to_end(shared_data: Path, name: str) -> None:
    """On real text of several scripts the tokens of these tokenizers cover every byte."""
    engine = vendor_engine(shared_data / "tokenizers-hf" / name)
    for language in ("hi", "ta", "en", "ur", "sat"):
        path = shared_data / "eval" / "sib200-flores" / f"{language}.txt"
        lines = path.read_text(encoding="utf-8").splitlines()[:200]
        for line, spans in zip(lines, token_spans(engine, lines), strict=True):
            assert spans.ends[-1] == len(line.encode())
            assert (spans.starts[1:] == spans.ends[:-1]).all()


@pytest.mark.parametrize("make", [byte_level_bpe, metaspace_bpe, unigram, word_piece])
def test_special_tokens_are_read_or_not(make: Callable[[], Backend]) -> None:
    """As `tokenizers` does with its own switch, which is afterwards as it was before."""
    backend = make()
    backend.add_special_tokens(["<dog>"])
    engine = engine_of(Backend.from_str(backend.to_str()))
    line = "the cat <dog> e\u0301"
    for parse_special in (False, True, False):
        backend.encode_special_tokens = not parse_special
        expected = backend.encode(line, add_special_tokens=False).ids
        ids, _ = engine.encode_batch([line], parse_special=parse_special)
        assert expected == ids.tolist()
        (spans,) = iter_token_spans(engine, [line], parse_special=parse_special)
        assert expected == spans.ids.tolist()
        special = backend.token_to_id("<dog>")
        assert parse_special == (special in expected)
        assert engine.kind == "BPE" or not engine.tokenizer.backend.encode_special_tokens


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("is_known", [False, True])
def test_spans_of_all_lines_at_once_are_those_of_each_line(name: str, is_known: bool) -> None:
    """`flat_spans` gives what `token_spans` gives, whether it is told the ids or not."""
    engine = ENGINES[name]
    lines = [*TEXT, "", " a space in front, and  two", "É² ﬁ, ELEVEN"]
    slow = token_spans(engine, lines)
    encoded = engine.encode_batch(lines) if is_known else None
    spans = flat_spans(engine, lines, encoded=encoded)
    assert [len(line.ids) for line in slow] == np.diff(spans.offsets).tolist()
    for part in ("ids", "starts", "ends"):
        expected = [value for line in slow for value in getattr(line, part).tolist()]
        assert expected == getattr(spans, part).tolist()
