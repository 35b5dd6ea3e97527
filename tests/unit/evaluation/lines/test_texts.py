"""The lines that are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.texts import blank_lines, check_parallel, files_of, read_lines
from vocabshift.text.corpus import Corpus


def test_lines_lose_their_ending_and_blank_ones_are_skipped() -> None:
    """A document is cut at newlines only; CRLF goes with the line, other separators stay."""
    text = "ab\r\n\n \t\ncd\u2028e\r\n"
    assert {"x": ["ab", "cd\u2028e", "f"]} == read_lines({"x": [text, "\n", "f\n"]})
    assert {"x": ["a\r", "b\r"]} == read_lines({"x": ["a\r\r\nb\r"]})  # one ending, and none


def test_a_corpus_is_read_by_its_labels() -> None:
    """A Corpus gives its labels; text without a label is called "all"."""
    assert {"hi": ["a b"], "ta": ["c"]} == read_lines(
        Corpus.from_texts({"hi": ["a b"], "ta": ["c"]})
    )
    assert {"all": ["a b"]} == read_lines(Corpus.from_texts(["a b"]))
    assert {"all": ["a b"]} == read_lines({None: ["a b"]}) == read_lines(["a b"])


def test_a_language_without_text_is_refused() -> None:
    """Each language needs a line that is not blank."""
    with pytest.raises(CorpusError, match="no line of text for ta"):
        read_lines({"hi": ["a"], "ta": ["\n", " "]})
    with pytest.raises(CorpusError, match="texts are empty"):
        read_lines({})


@pytest.mark.parametrize("texts", ["text", {"hi": "text"}, {"hi": [b"text"]}, {"hi": 3}, [b"text"]])
def test_texts_of_another_kind_are_refused(texts) -> None:
    """A bare string would be read character by character: it is refused, as are bytes."""
    with pytest.raises(TypeError, match="str"):
        read_lines(texts)


def test_half_a_surrogate_pair_is_refused() -> None:
    """A lone surrogate is not text."""
    with pytest.raises(CorpusError, match="surrogate"):
        read_lines({"hi": ["a\ud800"]})


def test_parallel_texts_have_one_length(tmp_path: Path) -> None:
    """Other numbers of lines are refused, with the languages, files and numbers."""
    (tmp_path / "hi.txt").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "ta.txt").write_text("a\n\n", encoding="utf-8")
    corpus = Corpus.from_specs([f"{name}={tmp_path / name}.txt" for name in ("hi", "ta")])
    with pytest.raises(CorpusError, match=r"gini needs parallel.*hi \(.*hi.txt\) has 2.*ta.*has 1"):
        check_parallel(read_lines(corpus), "gini", files_of(corpus))
    check_parallel({"hi": ["a"], "ta": ["b"]}, "gini")
    assert {} == files_of({"hi": ["a"]})


def test_blank_lines_of_parallel_texts_are_the_same(tmp_path: Path) -> None:
    """In files and lists, with any line end; blank lines at the end are none."""
    for name, text in (("hi", "a\n\nb\r\nc\n\n"), ("ta", "a\nb\r\n \t\r\nc")):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
    corpus = Corpus.from_specs([f"{name}={tmp_path / name}.txt" for name in ("hi", "ta")])
    assert {"hi": (2,), "ta": (3,)} == blank_lines(corpus)
    lines, files, blank = read_lines(corpus), files_of(corpus), blank_lines(corpus)
    wrong = r"line 2 is blank in hi \(.*hi\.txt\) alone and line 3 .* in ta \(.*ta\.txt\) alone"
    with pytest.raises(CorpusError, match=f"gini needs parallel.*{wrong}"):
        check_parallel(lines, "gini", files, blank)
    for of_hindi in ((), (3,), (2, 3)):  # a blank line more shifts none
        check_parallel(lines, "gini", files, {"hi": of_hindi, "ta": (3,)})
    once = iter(["a", "", "b"])
    lists = {"hi": ["a", "", "b\n\nc"], None: ("a",), "ta": once}
    assert {"hi": (2, 4), "all": ()} == blank_lines(lists)
    assert "a" == next(once)
    assert {"all": (1,)} == blank_lines(["", "a"])
