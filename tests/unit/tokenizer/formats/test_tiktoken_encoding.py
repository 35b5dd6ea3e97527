"""tiktoken's encodings by object and by name."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given

import vocabshift as vs
from strategies import examples, text
from vocabshift.errors import InvalidTokenizerError
from vocabshift.text.regexes import CL100K_POSSESSIVE
from vocabshift.tokenizer.formats.load import as_tokenizer

tiktoken = pytest.importorskip("tiktoken")

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


@pytest.fixture(scope="module", params=[GPT2, CL100K_POSSESSIVE], ids=["gpt2", "cl100k"])
def encoding(request):
    """All bytes, a few merges in order of rank, a special token."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    spaces = b"\n ", b" \n"
    letters = "क".encode()[:2], "क".encode(), "की".encode()
    for token in (b" a", b"ab", b" ab", b"12", b"34", *spaces, *letters, b"ss"):
        ranks[token] = len(ranks)
    special = {"<|end|>": 300}
    return tiktoken.Encoding(
        "tiny", pat_str=request.param, mergeable_ranks=ranks, special_tokens=special
    )


@given(text)
@examples(80)
def test_ids_are_those_of_tiktoken(encoding, line: str) -> None:
    """Special tokens included, every text has the ids that tiktoken gives."""
    encoder = vs.Encoder(encoding)
    for one in (line, f"ab{line}<|end|>की", f"12345{line}\n \n "):
        assert encoding.encode(one, allowed_special="all") == encoder.encode(one).tolist()


def test_a_name_is_asked_of_tiktoken(encoding, monkeypatch) -> None:
    """`tiktoken:NAME` is what `get_encoding` gives, and is told by its name."""
    asked = []
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: asked.append(name) or encoding)
    assert "tiny" == vs.load_tokenizer("tiktoken:tiny").name
    assert ["tiny"] == asked
    results = vs.evaluate(["tiktoken:tiny", encoding], {"x": ["ab"]}, "fertility")
    assert ["tiny", "tiny (2)"] == results.distinct("subject")
    with pytest.raises(InvalidTokenizerError, match="--pattern"):
        vs.load_tokenizer("tiktoken:tiny", pattern="gpt2")


def test_what_cannot_be_had_is_told(monkeypatch) -> None:
    """A name that tiktoken does not know, and no tiktoken at all."""
    with pytest.raises(FileNotFoundError, match="tiktoken does not give 'no_such'"):
        vs.load_tokenizer("tiktoken:no_such")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ImportError, match="pip install tiktoken"):
        vs.load_tokenizer("tiktoken:no_such")


def test_ranks_that_lack_a_byte_are_refused() -> None:
    """With the name of the encoding."""
    encoding = tiktoken.Encoding(
        "gaps", pat_str=r"\w+|\W+", mergeable_ranks={b"a": 0, b"b": 1}, special_tokens={}
    )
    with pytest.raises(InvalidTokenizerError, match=r"tiktoken's gaps: .*lack"):
        as_tokenizer(encoding)
    with pytest.raises(TypeError, match="no tokenizer that can be used"):
        as_tokenizer(SimpleNamespace(_mergeable_ranks={}))
