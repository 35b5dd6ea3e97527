"""`excerpt`: the first bytes of each language, and nothing read beyond them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vocabshift.errors import CorpusError
from vocabshift.evaluation.scoring.choice import FEWEST_DOCUMENTS
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import drawn_excerpt, excerpt, most_of_one


def test_each_language_has_its_own_room() -> None:
    """Documents in order, the last one cut behind a whole character, blank ones left out."""
    corpus = Corpus.from_texts({"en": ["one", " ", "two", "three"], "hi": ["राम", "घर"]})
    assert excerpt(corpus, 8) == {"en": ["one", "two", "t"], "hi": ["रा"]}
    assert excerpt(corpus, 100) == {"en": ["one", "two", "three"], "hi": ["राम", "घर"]}


def test_text_without_a_label() -> None:
    """It is called as in Results; two sources of one label share its room."""
    corpus = Corpus([*Corpus.from_texts(["abc"]).parts, *Corpus.from_texts(["def"]).parts])
    assert excerpt(corpus, 4) == {"all": ["abc", "d"]}


def test_no_more_is_read_than_needed() -> None:
    """A second source of a language that is full is not opened."""
    corpus = Corpus.from_texts({"en": ["abcdef"]})

    class Unread:
        name, n_bytes_hint = "unread", None

        def read(self) -> Iterator[None]:
            raise AssertionError

    whole = Corpus([*corpus.parts, type(corpus.parts[0])(Unread(), "en")])  # type: ignore[arg-type]
    assert excerpt(whole, 6) == {"en": ["abcdef"]}


def test_nothing_at_all() -> None:
    """An error rather than an empty excerpt; and a size that is none."""
    with pytest.raises(CorpusError, match="there is no text in"):
        excerpt(Corpus.from_texts({"en": [" "]}), 5)
    with pytest.raises(ValueError, match="n_bytes is 0"):
        excerpt(Corpus.from_texts({"en": ["a"]}), 0)


def test_drawn_documents_come_from_all_of_the_text() -> None:
    corpus = Corpus.from_texts({"en": [f"text {n:03}" for n in range(200)], "hi": [" ", "x" * 50]})
    found = drawn_excerpt(corpus, ["en", "hi"], 160, seed=1)
    assert max(found["en"]) > "text 100"
    assert sum(map(len, found["en"])) <= 160
    assert found == drawn_excerpt(corpus, ["en", "hi"], 160, seed=1)
    assert drawn_excerpt(corpus, ["hi"], 5) == {"hi": ["x" * 4]}  # after the blank one
    with pytest.raises(CorpusError, match="the held-out text lacks de"):
        drawn_excerpt(corpus, ["de"], 9)
    with pytest.raises(CorpusError, match="the held-out text of en is blank"):
        drawn_excerpt(Corpus.from_texts({"en": [" "]}), ["en"], 9)


@pytest.mark.parametrize("n_bytes", [20_000, 3_000, 90])
def test_long_documents_are_cut_so_that_enough_are_drawn(n_bytes: int) -> None:
    """At the end of a word; where there is none near, or no space at all, between characters."""
    words = {"en": "word " * 700, "hi": "शब्द " * 300, "zh": "字" * 1500, "ta": f"a {'க' * 900}"}
    whole = {name: [f"{n:02} {text}" for n in range(40)] for name, text in words.items()}
    found = drawn_excerpt(Corpus.from_texts(whole), list(whole), n_bytes, seed=3)
    most = most_of_one(n_bytes)
    for name, texts in found.items():
        sizes = [len(text.encode()) for text in texts]
        assert FEWEST_DOCUMENTS <= len(texts)
        assert sum(sizes) <= n_bytes
        assert most // 2 <= min(sizes) <= max(sizes) <= most
        assert all(any(each.startswith(text) for each in whole[name]) for text in texts)
    if n_bytes > 90:
        assert {"word", "शब्द"} == {
            text.split()[-1] for name in ("en", "hi") for text in found[name]
        }
