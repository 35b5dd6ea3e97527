"""Every kind of tokenizer that can be judged has the ids of the library that it comes from."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from real_text import eval_lines
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.tokenizer.engine import Engine

TRICKY = [
    *(" lead", "tail  ", "a\tb", "e\u0301 \u200d", "क्षि१२", "ﬁ½…"),
    *("😀\U0001f469\u200d\U0001f467", "<|x|>", "x" * 300),
]


def ids_of(engine: Engine, lines: list[str]) -> list[list[int]]:
    ids, offsets = engine.encode_batch(lines)
    return [ids[offsets[i] : offsets[i + 1]].tolist() for i in range(len(lines))]


@pytest.fixture(scope="session")
def lines(shared_data: Path) -> list[str]:
    """Some lines of every evaluation file, and odd ones."""
    random.seed(1)
    files = eval_lines(shared_data, 60_000)
    chosen = [line for of_file in files.values() for line in random.sample(of_file, 12)]
    return [line for line in (*chosen, *TRICKY) if line]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["llama2/tokenizer.model", "mistral-v1/tokenizer.model.v1"])
def test_sentencepiece(shared_data: Path, lines: list[str], name: str) -> None:
    """SentencePiece BPE models: SentencePiece's own ids."""
    sentencepiece = pytest.importorskip("sentencepiece")
    path = shared_data / "tokenizers" / name
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert [processor.encode(line) for line in lines] == ids_of(engine_of(path), lines)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["cl100k_base"])
def test_tiktoken(shared_data: Path, lines: list[str], name: str) -> None:
    """Rank files, and an `Encoding` made of one: tiktoken's own ids."""
    tiktoken = pytest.importorskip("tiktoken")
    from tiktoken.load import load_tiktoken_bpe

    from vocabshift.text.patterns import get_pattern

    path = shared_data / "tokenizers" / name / f"{name}.tiktoken"
    encoding = tiktoken.Encoding(
        name,
        pat_str=get_pattern(name.removesuffix("_base"))[0].regex,
        mergeable_ranks=load_tiktoken_bpe(str(path)),
        special_tokens={"<|x|>": 300_000},
    )
    expected = [encoding.encode(line, disallowed_special=()) for line in lines if "<|" not in line]
    plain = [line for line in lines if "<|" not in line]
    of_encoding = engine_of(encoding)
    assert expected == ids_of(engine_of(path), plain) == ids_of(of_encoding, plain)
    assert [[300_000]] == ids_of(of_encoding, ["<|x|>"])


@pytest.mark.shared
@pytest.mark.parametrize("name", ["llama3", "mistral7b-v3"])
def test_folders(shared_data: Path, lines: list[str], name: str) -> None:
    """Hugging Face folders: the ids of `tokenizers`."""
    from tokenizers import Tokenizer

    folder = shared_data / "tokenizers-hf" / name
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = [backend.encode(line, add_special_tokens=False).ids for line in lines]
    assert expected == ids_of(engine_of(folder), lines)
