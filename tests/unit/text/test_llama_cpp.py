"""How llama.cpp cuts, by hand; `recipes/smollm2` compares ids with llama.cpp itself."""

from __future__ import annotations

import pytest

from vocabshift.text.llama_cpp import LLAMA_CPP
from vocabshift.text.patterns import splitter


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt-2", "It's 123", ["It", "'s", " 123"]),
        ("smollm", "It's 123", ["It", "'s", " ", "1", "2", "3"]),
        ("llama-bpe", "IT'S 1234", ["IT", "'S", " ", "123", "4"]),
        ("qwen2", "कि 12", ["क", "ि", " ", "1", "2"]),
        ("qwen35", "कि 12", ["कि", " ", "1", "2"]),
        # Capitals count in ASCII alone, and marks end a word, whatever the name promises.
        ("gpt-4o", "HelloWorld ПриВет", ["Hello", "World", " ПриВет"]),
        ("gpt-4o", "It's कि", ["It's", " क", "ि"]),
        ("tekken", "It's 12", ["It", "'s", " ", "1", "2"]),
        ("granite-embed-multi-97m", "aB कि's 1234", ["a", "B", " कि's", " ", "123", "4"]),
        ("tiny_aya", "HelloWorld कि", ["HelloWorld", " कि"]),
        ("tiny_aya", "12345", ["12", "345"]),
        # `…_custom_afmoe` leaves the first digits with what stands before them.
        ("afmoe", "a 1234", ["a", " ", "1", "234"]),
        ("superbpe", "two words 1234567", ["two words ", "1", "234", "567"]),
        ("exaone-moe", "two words, 12", ["two words", ",", " ", "1", "2"]),
        ("ufakzeka", "It's", ["It", "'s"]),
        ("laguna", "a \n\nb", ["a", " ", "\n\n", "b"]),
        ("minicpm5", "a 1234", ["a", " ", "123", "4"]),
        ("jais-2", "a" + 7 * " " + "b", ["a", 4 * " ", 2 * " ", " b"]),
        ("deepseek-coder", "a\u2003 b", ["a", "\u2003", " b"]),
    ],
)
def test_cuts(name: str, text: str, pieces: list[str]) -> None:
    assert pieces == splitter(LLAMA_CPP[name].pattern)(text)


def test_each_way_to_cut_stands_there_once() -> None:
    assert len(set(LLAMA_CPP.values())) == len(LLAMA_CPP)
