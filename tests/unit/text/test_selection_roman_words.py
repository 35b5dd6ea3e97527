"""Roman words: what they are, whose lines are concerned, and that nothing else is touched."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import regex

from vocabshift.text import selection as roman_words
from vocabshift.text.corpus import Corpus
from vocabshift.text.selection import count_roman_words


@pytest.mark.parametrize(
    ("line", "n"),
    [
        ("यह एक वाक्य है।", 0),
        ("the quick, (brown) fox", 4),
        ("यह WhatsApp पर है", 1),
        ("COVID-19 कोvid naïve 42", 2),
        ("https://example.org/a?b=ख https://example.org/a", 1),
        ("a\u2003b\tc", 3),
        ("", 0),
    ],
)
def test_what_a_roman_word_is(line: str, n: int) -> None:
    assert n == count_roman_words(line)


def test_lines_of_many_roman_words_go() -> None:
    """Of languages known to be written otherwise; a document of several lines keeps the others."""
    texts = {
        "hi": ["क", "one two", "one two three", "ख\none two three\nग one", "a b c\nd e f"],
        "hi_Latn": ["yah ek vaakya hai"],
        "en": ["one two three four"],
        "code": ["if a then b else c"],
    }
    corpus = Corpus.from_texts(texts)
    kept = corpus.limit_roman_words(2)
    assert ["क", "one two", "ख\nग one"] == [t for label, t in kept.texts() if label == "hi"]
    others = [pair for pair in corpus.texts() if pair[0] != "hi"]
    assert others == [pair for pair in kept.texts() if pair[0] != "hi"]
    assert texts["hi"] == [text for label, text in corpus.texts() if label == "hi"]
    assert [text for _, text in kept.select("hi").limit_roman_words(0).texts()] == ["क", "ख"]


@pytest.mark.parametrize("documents", ["line", "file"])
def test_blocks_give_what_lines_give_one_by_one(tmp_path: Path, documents: str) -> None:
    """Random lines in Latin, Cyrillic and Telugu letters, against the rule told slowly."""
    chance = random.Random(0)
    words = ["క", "ж", "é", "a", "zß", "ａ", "क1", "7", "-"]
    lines = [" ".join(chance.choices(words, k=chance.randrange(1, 9))) for _ in range(400)]
    (tmp_path / "te.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = Corpus.from_files({"te": tmp_path / "te.txt"}, documents=documents)

    def is_roman(word: str) -> bool:
        letters = regex.findall(r"\p{L}", word)
        return bool(letters) and all(regex.match(r"\p{Latin}", letter) for letter in letters)

    expected = [line for line in lines if sum(map(is_roman, line.split())) <= 2]
    found = "\n".join(text for _, text in corpus.limit_roman_words(2).texts())
    assert expected == found.removesuffix("\n").split("\n")
    assert 0 < len(expected) < len(lines)


def test_the_first_bytes_of_all_latin_letters() -> None:
    """Of Unicode as `regex` has it; a line is looked at only where they stand."""
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    firsts = {character.encode()[0] for character in regex.findall(r"\p{Latin}", every)}
    assert firsts <= set(roman_words._MAY_BEGIN_LATIN.nonzero()[0].tolist())


def test_refused() -> None:
    with pytest.raises(ValueError, match="-1 Roman words"):
        Corpus.from_texts({"hi": ["क"]}).limit_roman_words(-1)
    with pytest.raises(ValueError, match=r"other than Latin; its languages: en, x; .* hi=PATH"):
        Corpus.from_texts({"en": ["a"], "x": ["b"]}).limit_roman_words(10)
