"""How llama.cpp cuts, by hand; `recipes/smollm2` compares ids with llama.cpp itself."""

from __future__ import annotations

import pytest

from vocabshift.text.llama_cpp import LLAMA_CPP, as_patch
from vocabshift.text.patterns import splitter
from vocabshift.text.regexes import CONTRACTION
from vocabshift.text.splits import Split


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


def test_the_lines_to_paste_are_strings_of_cpp_in_regexes_of_llama_cpp() -> None:
    """Quotes, backslashes and newlines are escaped, and a flag is spelt out in both cases."""
    pattern = (Split('\\s"+[\r\n]'), Split(rf"{CONTRACTION}|\s+"))
    lines = [line.strip() for line in as_patch(pattern, "My Model!", "abc").splitlines()]
    cases = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    assert r'"\\s\"+[\r\n]",' in lines
    assert rf'"{cases}|\\s+",' in lines
    assert 'if chkhsh == "abc":' in lines
    assert 'res = "my-model"' in lines
    assert "LLAMA_VOCAB_PRE_TYPE_MY_MODEL = N," in lines
    assert not any("lack" in line for line in lines)


def test_the_lines_to_paste_say_whether_whole_words_are_taken() -> None:
    line = "ignore_merges = true;"
    assert line in as_patch((Split("a"),), "own", "abc", ignore_merges=True)
    assert line not in as_patch((Split("a"),), "own", "abc")


@pytest.mark.parametrize(
    ("step", "lacking"),
    [
        (Split(r"(?<!a)b"), "lookbehind"),
        (Split(r"\p{Lu}+"), "a kind finer than L, N, M, P and S"),
        (Split("ä"), "characters beyond ASCII"),
        (Split("a", "MergedWithPrevious"), "behavior MergedWithPrevious"),
        (Split("a", invert=True), "behavior Isolated, inverted"),
    ],
)
def test_a_step_that_llama_cpp_cannot_run_is_named(step: Split, lacking: str) -> None:
    last = as_patch((Split("a"), step), "own", "abc").splitlines()[-1]
    assert last.startswith("Regex 2 has what llama.cpp's regexes lack (")
    assert lacking in last
