"""What to keep, in the words of the user."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vocabshift.pruning.options import Keep, check_languages, kept_scripts, kept_tokens, parse_keep


def test_values_are_taken_apart(tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text("Ġthe\r\n\n the cat \n", encoding="utf-8")
    keep = parse_keep(
        ["a", f"file:{file}", "script:Deva", "script:Latin", "language:hi", ":", "x:y"]
    )
    assert keep == Keep(("a", "Ġthe", " the cat ", ":", "x:y"), ("Devanagari", "Latin"), ("hi",))


@pytest.mark.parametrize("value", ["", "file:", "script:", "language:"])
def test_empty_values_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        parse_keep([value])


def test_one_string_is_no_list_and_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="give a list"):
        parse_keep("the")
    with pytest.raises(FileNotFoundError):
        parse_keep([f"file:{tmp_path}/none"])


def test_languages_must_be_labels_of_the_corpus() -> None:
    check_languages(Keep(languages=("hi",)), ["en", "hi"])
    with pytest.raises(ValueError, match="the corpus has no 'ta'; it has: en, hi"):
        check_languages(Keep(languages=("ta",)), ["en", "hi"])
    with pytest.raises(ValueError, match="it has: none"):
        check_languages(Keep(languages=("ta",)), [])


def test_tokens_are_found_by_spelling_and_then_by_text() -> None:
    texts = {" the": 1, "Ġthe": 2}
    keep = Keep(tokens=("Ġthe", " the"))
    assert kept_tokens(keep, {"Ġthe": 0}, texts.get, 3).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="keep 'dog': the vocabulary has no such token"):
        kept_tokens(Keep(tokens=("dog",)), {"Ġthe": 0}, texts.get, 3)


def test_scripts_must_have_tokens() -> None:
    names, classes = ["Latin", "Devanagari", "Tamil"], np.array([0, 1, -1, 1])
    kept = kept_scripts(Keep(scripts=("Devanagari",)), names, classes)
    assert kept.tolist() == [False, True, False, True]
    with pytest.raises(ValueError, match="no token is in that script; the vocabulary has Deva"):
        kept_scripts(Keep(scripts=("Tamil",)), names, classes)


def test_every_script_named_is_kept() -> None:
    """Not the last one alone: the tokens of the others would be gone."""
    names, classes = ["Latin", "Devanagari", "Tamil"], np.array([0, 1, 2, 1])
    kept = kept_scripts(Keep(scripts=("Devanagari", "Latin")), names, classes)
    assert kept.tolist() == [True, True, False, True]
