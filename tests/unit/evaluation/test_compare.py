"""compare: changes of spans add up, against a plain definition; views lose nothing."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tokenizers import Tokenizer as HfTokenizer
from tokenizers import models, pre_tokenizers

from vocabshift.errors import CorpusError
from vocabshift.evaluation.compare import (
    TokenizerComparison,
    compare,
    spans_between,
    to_dict,
    total,
)
from vocabshift.report.compare_text import ASCII, UNICODE, to_rich, tokens_text
from vocabshift.report.html.compare import comparison_html

TEXTS = {
    "en": ["the old mill and the river", "a mill", "the mill of the river"],
    "hi": ["नदी के पास मिल है", "मिल क्षण"],
}


def byte_level(*merges: tuple[str, str]) -> HfTokenizer:
    """A byte-level tokenizer with these merges, in our spelling of bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(alphabet)}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    tokenizer = HfTokenizer(models.BPE(vocab, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    from tokenizers import decoders

    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


A = byte_level(("m", "i"), ("l", "l"), ("mi", "ll"), ("t", "h"))
B = byte_level(("t", "h"), ("th", "e"), ("Ġ", "the"), ("o", "f"), ("of", "Ġthe"), ("à", "¤"))


@pytest.fixture(scope="module")
def comparison() -> TokenizerComparison:
    return compare(A, B, TEXTS, names=("a", "b"))


def test_totals_are_the_tokenizers_own_counts(comparison: TokenizerComparison) -> None:
    for row in comparison.languages:
        lines = TEXTS[row.language]
        assert row.n_lines == len(lines)
        assert row.n_bytes == sum(len(line.encode()) for line in lines)
        assert row.tokens_a == sum(len(A.encode(line).ids) for line in lines)
        assert row.tokens_b == sum(len(B.encode(line).ids) for line in lines)
    everything = total(comparison.languages)
    assert everything.tokens_b == sum(row.tokens_b for row in comparison.languages)


def test_changes_add_up_to_the_change_of_the_text(comparison: TokenizerComparison) -> None:
    everything = total(comparison.languages)
    changes = [*comparison.shorter, *comparison.longer]
    assert sum(change.change for change in changes) == everything.tokens_b - everything.tokens_a
    assert all(change.change < 0 for change in comparison.shorter)
    assert all(change.change > 0 for change in comparison.longer)
    by_text = {change.text: change for change in changes}
    assert (by_text["of the"].count, by_text["of the"].tokens_a, by_text["of the"].tokens_b) == (
        *(1, 5, 1),
    )
    assert (by_text["mill"].tokens_a, by_text["mill"].tokens_b) == (3, 12)
    assert comparison.shorter == tuple(sorted(comparison.shorter, key=lambda c: (c.change, c.text)))


def test_the_lines_that_changed_most_are_shown_first() -> None:
    (line, *_) = (x for x in compare(A, B, TEXTS, n_lines=1).lines if x.language == "en")
    changes = [len(B.encode(x).ids) - len(A.encode(x).ids) for x in TEXTS["en"]]
    assert abs(line.change) == max(map(abs, changes))
    assert line.a.text == line.b.text == TEXTS["en"][line.number - 1]
    assert [token.id for token in line.a.tokens] == A.encode(line.a.text).ids


def test_json_has_all_of_it(comparison: TokenizerComparison) -> None:
    found = json.loads(json.dumps(to_dict(comparison)))
    assert ["en", "hi"] == [row["language"] for row in found["languages"]]
    for line in found["lines"]:
        assert line["ids_b"] == B.encode(line["text"]).ids


def test_an_empty_language_is_an_error() -> None:
    with pytest.raises(CorpusError, match="no line of text for ta"):
        compare(A, B, {"hi": ["x"], "ta": [" "]})


CUTS = st.lists(st.integers(0, 40), max_size=10)


@given(st.text("aé क😀", max_size=10), CUTS, CUTS)
def test_spans_between_lie_between_shared_borders(text: str, a: list[int], b: list[int]) -> None:
    data = text.encode()
    starts_a = sorted({0, *(cut for cut in a if cut < len(data))}) if data else []
    starts_b = sorted({0, *(cut for cut in b if cut < len(data))}) if data else []
    found = list(spans_between(data, starts_a, starts_b))
    assert b"".join(data[start:end] for start, end, _, _ in found) == data
    assert sum(n for _, _, n, _ in found) == len(starts_a)
    assert sum(n for _, _, _, n in found) == len(starts_b)
    characters = {len(text[:i].encode()) for i in range(len(text))}
    shared = set(starts_a) & set(starts_b) & characters
    assert [start for start, *_ in found] == sorted(shared)


def test_plain_text_tells_tokens_apart(comparison: TokenizerComparison) -> None:
    (line,) = (x for x in comparison.lines if x.a.text == "the mill of the river")
    assert "th|e| |mill| |o|f| |th|e| |r|i|v|e|r" == tokens_text(
        line.a, plain=True, marks=ASCII
    ).plain.replace("\n", "")
    assert (
        "the| |m|i|l|l| |of_the| |r|i|v|e|r" == tokens_text(line.b, plain=True, marks=ASCII).plain
    )
    (line,) = (x for x in comparison.lines if x.a.text == "मिल क्षण")
    assert "<मि>6|<ल>3| |<क्ष>9|<ण>3" == tokens_text(line.a, plain=True, marks=ASCII).plain


def test_colours_change_nothing_of_the_text(comparison: TokenizerComparison) -> None:
    for line in comparison.lines:
        assert tokens_text(line.a).plain == line.a.text
        assert len(tokens_text(line.b).spans) > 1


def test_hostile_text_reaches_neither_terminal_nor_page() -> None:
    hostile = "[bold]x[/bold] <script>alert(1)</script>\x1b[31m\u202e \u200b"
    found = compare(A, B, {"\x1b[0m": [hostile]}, names=("<b>", "[red]"))
    console = Console(force_terminal=True, color_system=None, width=200, no_color=True)
    with console.capture() as capture:
        for part in to_rich(found, plain=True):
            console.print(part)
    shown = capture.get()
    assert not {"\u202e"} & set(shown)
    assert "\x1b[31m" not in shown
    assert "[red]" in shown
    html = comparison_html(found)
    assert "<script>alert" not in html
    assert not {"\x1b", "\u202e", "\u200b"} & set(html)
    assert 1 == html.count("<script>")


def test_a_tokenizer_that_loses_text_is_marked_everywhere() -> None:
    """Its few tokens are no merit: the terminal, the page and the JSON say so."""
    model = models.WordPiece({"[UNK]": 0, "the": 1, "mill": 2}, unk_token="[UNK]")
    lossy = HfTokenizer(model)
    lossy.pre_tokenizer = pre_tokenizers.Whitespace()
    found = compare(A, lossy, {"en": ["the mill", "the wheel of"]}, names=("a", "lossy"))
    assert (0, 1) == (found.languages[0].lost_a, found.languages[0].lost_b)
    assert 1 == to_dict(found)["languages"][0]["lost_b"]
    for marks, sign in ((UNICODE, "†"), (ASCII, "!")):
        written = io.StringIO()
        Console(width=200, file=written).print(*to_rich(found, plain=True, marks=marks))
        assert f"{sign} not valid" in written.getvalue()
    assert "† not valid" in comparison_html(found)
    assert "not valid" not in comparison_html(compare(A, B, TEXTS))
