"""Words of scripts without spaces: found by ICU, or withheld."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest

from small_models import old_tokenizer
from vocabshift.evaluation.evaluate import evaluate
from vocabshift.evaluation.lines import words
from vocabshift.evaluation.lines.words import (
    cut_words,
    cuts_of,
    inner_words,
    is_unspaced,
    lay_out,
    no_words,
)

THAI = "ภาษาไทยเป็นภาษา"


def by_pairs(run: str) -> Iterable[str]:
    """Stands for a dictionary: letters two by two, everything else alone."""
    return re.findall(r"\w{1,2}|\W", run)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([THAI], True),
        (["ພາສາລາວ"], True),
        (["ភាសាខ្មែរ"], True),
        (["မြန်မာစာ"], True),
        (["中文没有空格。"], True),
        (["日本語のテキスト"], True),
        (["한국어는 띄어 씁니다", "हिन्दी भी", "and English, 12 中"], False),
        (["123 ...", ""], False),
        (["Thai is " + THAI], True),  # most letters are Thai
        (["Thai for language: ภาษา, and so on and on"], False),
        (["eight letters ที่ ที่ ที่ ที่ ที่ ที่"], False),  # marks are no letters
        (["x" * 200_000, "中" * 900_000], False),  # the beginning decides
    ],
)
def test_which_text_has_no_spaces(lines: list[str], expected: bool) -> None:
    assert expected == is_unspaced(lines)


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("中文没有空格", ["中文", "没有", "空格"]),
        ("「中文」没有。", ["「中文」", "没有。"]),  # punctuation belongs to a word
        ("中文 … 没有空", ["中文", "…", "没有", "空"]),  # and alone between spaces it is one
        ("中文。。", ["中文。。"]),
        ("a 🙂中文没", ["a", "🙂中文", "没"]),
    ],
)
def test_words_inside_of_runs(line: str, pieces: list[str]) -> None:
    data = line.encode()
    starts = [len(line[: match.start()].encode()) for match in re.finditer(r"\S+", line)]
    ends = [len(line[: match.end()].encode()) for match in re.finditer(r"\S+", line)]
    begins = sorted([*starts, *inner_words(line, by_pairs)])
    edges = [*begins[1:], len(data)]
    found = [
        data[begin : min([edge, *(end for end in ends if end > begin)])].decode()
        for begin, edge in zip(begins, edges, strict=True)
    ]
    assert pieces == found


def test_tokens_that_cut_such_words() -> None:
    """A token border at the begin of a word cuts nothing; one inside of it does."""
    layout = lay_out(["中文没有", "空格"], by_pairs)
    assert [0, 2, 3] == layout.line_words.tolist()
    assert [0, 0] == cut_words(layout, np.array([0, 6, 12])).tolist()
    assert [1, 1] == cut_words(layout, np.array([0, 9, 12, 13])).tolist()


def test_fertility_is_withheld_without_icu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "find_spec", lambda name: None)
    assert {"th": no_words} == cuts_of({"th": [THAI], "en": ["a b"]})
    notes: list[str] = []
    metrics = ["fertility", "word_fragmentation_rate", "fertility_bin_1_10", "bytes_per_token"]
    texts = {"th": [THAI, THAI], "en": ["a b", "c d"]}
    found = evaluate(old_tokenizer(), texts, metrics, note=notes.append)
    assert {"en"} == {row.language for row in found if row.metric != "bytes_per_token"}
    assert {"en", "th"} == set(found.where(metric="bytes_per_token").distinct("language"))
    assert [metric for metric in metrics if found.where(metric=metric)] == metrics
    (note,) = notes
    assert note.startswith("fertility, word_fragmentation_rate, fertility_bin_1_10: no rows of th")
    assert "vocabshift[words]" in note
    assert evaluate(old_tokenizer(), texts, "bytes_per_token", note=notes.append)
    assert 1 == len(notes)


def test_fertility_by_the_words_that_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "find_spec", lambda name: True)
    monkeypatch.setattr(words, "_icu", by_pairs)
    notes: list[str] = []
    line = "中文没有空格"
    metrics = ["fertility", "fertility_bin_1_10", "bytes_per_token"]
    found = evaluate(old_tokenizer(), {"zh": [line], "en": ["a b"]}, metrics, note=notes.append)
    n_tokens = len(line.encode()) / found.value(found[0].subject, "zh", "bytes_per_token")
    assert n_tokens / 3 == found.value(found[0].subject, "zh", "fertility")
    assert ["en"] == found.where(metric="fertility_bin_1_10").distinct("language")
    assert [] == notes


def test_icu_finds_words() -> None:
    pytest.importorskip("icu4py")
    (cut,) = cuts_of({"x": [THAI]}).values()
    for line, n_words in (
        (THAI, 4),
        ("我爱北京天安门。", 4),
        ("ខ្ញុំស្រឡាញ់ភាសាខ្មែរ", 3),
        ("🙂ไทยไทย", 2),
    ):
        assert n_words == 1 + len(list(inner_words(line, cut)))
        assert line == "".join(cut(line))
