"""One line as HTML: nothing of the text is lost, nothing of it is run, no sign is torn."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.evaluation.lines.views import LineToken, TokenizedLine
from vocabshift.report.tokenized_line import (
    language_tag,
    segments,
    token_css,
    token_js,
    token_line_html,
    visible_html,
)


def line_of(text: str, cuts: list[int], borders: tuple[int, ...] | None = None) -> TokenizedLine:
    """A line whose tokens begin at the bytes `cuts`."""
    edges = sorted({0, *cuts, len(text.encode())})
    characters = {0, *accumulate(len(c.encode()) for c in text)}
    tokens = [
        LineToken(100 + i, "t", a, b, cuts_character=not {a, b} <= characters)
        for i, (a, b) in enumerate(pairwise(edges))
    ]
    return TokenizedLine(text, tuple(tokens), borders=borders)


class Reader(HTMLParser):
    """Text and elements, as a browser would have them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.elements: list[dict[str, str | None]] = []
        self.names: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag == "i":
            self.elements.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


SAMPLES = st.text(st.sampled_from("aन्षि<&>\"'é😀 க்ழ"), max_size=12)


@given(SAMPLES, st.lists(st.integers(0, 60), max_size=8), st.lists(st.integers(0, 12), max_size=6))
def test_text_and_tokens_survive(text: str, cuts: list[int], chosen: list[int]) -> None:
    n_bytes = len(text.encode())
    characters = [0, *accumulate(len(c.encode()) for c in text)]
    borders = tuple(sorted({characters[i % len(characters)] for i in chosen}))
    line = line_of(text, [cut for cut in cuts if cut <= n_bytes], borders)
    found = list(segments(line))
    assert [0, *(s.end for s in found)] == [*(s.start for s in found), n_bytes] or not found
    for segment in found:
        assert {segment.start, segment.end} <= {0, *borders, n_bytes}
        overlapping = [
            i
            for i, token in enumerate(line.tokens)
            if token.start < segment.end and token.end > segment.start
        ]
        assert overlapping == list(segment.tokens)
    reader = Reader(token_line_html(line))
    assert reader.text == text
    assert reader.names <= {"p", "i"}
    data = text.encode()
    for segment, element in zip(found, reader.elements, strict=True):
        assert element["data-i"] == " ".join(str(100 + i) for i in segment.tokens)
        spelled = [data[line.tokens[i].start : line.tokens[i].end].hex() for i in segment.tokens]
        own = data[segment.start : segment.end].hex()
        assert (element.get("data-b") or own).split() == spelled


def test_a_syllable_that_tokens_share_is_one_element_with_their_stripes() -> None:
    text = "कक्ष"  # one syllable, then a conjunct that the second and third token share
    line = line_of(text, [6], borders=(0, 3, 12))
    html = token_line_html(line, language="hi")
    assert html == (
        '<p class="tl" dir="auto" lang="hi"><i class="k0" data-i="100" data-b="e0a495e0a495">क</i>'
        '<i class="x0-2 on cs" data-i="100 101" data-b="e0a495e0a495 e0a58de0a4b7">क्ष</i></p>'
    )


def test_a_cut_character_is_marked_where_it_is_cut_and_nowhere_else() -> None:
    line = line_of("क्षक", [6, 10], borders=(0, 9, 12))  # between characters, then inside of one
    classes = [element["class"] for element in Reader(token_line_html(line)).elements]
    assert classes == ["x0-2 cs", "x1-2 on cc"]


def test_tokens_without_text_and_text_without_tokens_are_shown() -> None:
    tokens = (
        LineToken(1, "▁", 0, 0),
        LineToken(2, "ab", 0, 2),
        LineToken(3, "<s>", 3, 3, special=True),
    )
    html = token_line_html(TokenizedLine("abc", tokens, exact=False))
    assert '<i class="k0 z" data-i="1" data-b="">▁</i>' in html
    assert '<i class="no">c</i>' in html
    spaced = TokenizedLine("a b", (LineToken(1, "a", 0, 1), LineToken(2, "b", 2, 3)), exact=False)
    assert '<i class="ns"> </i>' in token_line_html(spaced)
    assert '<i class="k2 z sp" data-i="3" data-b="">&lt;s&gt;</i></p>' in html


def test_marks_become_classes() -> None:
    tokens = (
        LineToken(1, "of the", 0, 6, superword=True),
        LineToken(0, "<unk>", 6, 7, unknown=True),
    )
    html = token_line_html(TokenizedLine("of the☃"[:7], tokens, exact=False, borders=(0, 6)))
    assert 'class="k0 sw"' in html
    assert " un" in html


@pytest.mark.parametrize(
    "hostile",
    [
        "</p><script>alert(1)</script>",
        '" onmouseover="alert(1)',
        "<!--",
        "\x00\x1b[31m",
        "\u202egnp",
    ],
)
def test_hostile_text_is_shown_and_does_nothing(hostile: str) -> None:
    html = token_line_html(line_of(hostile, [3]))
    assert Reader(html).names <= {"p", "i", "b"}
    assert not set("\x00\x1b\u202e") & set(html)


def test_control_characters_have_names_and_joiners_stay() -> None:
    assert visible_html("\x00\n\u2066") == (
        '<b class="ct">␀</b><b class="ct">↵</b><b class="ct">U+2066</b>'
    )
    assert visible_html("क्\u200dष\u200c") == "क्\u200dष\u200c"


def test_only_labels_that_look_like_languages_become_tags() -> None:
    tags = [language_tag(label) for label in ("hi", "ks_Arab", "mni-Mtei", 'x" y', "code", None)]
    assert tags == ["hi", "ks-Arab", "mni-Mtei", None, None, None]


def test_the_style_sheet_has_every_class_that_is_written() -> None:
    css = token_css()
    for name in ("k0", "k5", "x0-2", "x5-12", "sw", "cs", "cc", "sp", "un", "no", "z", "ct"):
        assert f".{name}" in css, name
    assert "function showTokens(" in token_js()
    long = line_of("👨" * 10, list(range(1, 40)), borders=(0, 40))
    assert "x0-12" in token_line_html(replace(long))


def test_a_long_line_is_shown_in_part() -> None:
    """And says how much is left out; a line that fits is shown as it is."""
    line = line_of("ab" * 500, list(range(0, 1000, 2)))
    page = Reader(token_line_html(line, most=100))
    assert (100, "ab" * 100 + "… 800 more bytes") == (len(page.elements), page.text)
    assert token_line_html(line) == token_line_html(line, most=500)


def test_text_without_tokens_is_no_longer_than_its_part_of_a_page() -> None:
    line = TokenizedLine("x" * 5000, ())
    assert "… 5,000 more bytes" == Reader(token_line_html(line, most=100)).text
