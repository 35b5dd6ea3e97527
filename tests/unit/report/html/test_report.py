"""The HTML report: every section for what Results hold, all text escaped, the same bytes again."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from vocabshift.evaluation.lines.views import (
    LanguageView,
    LineToken,
    TokenizedLine,
    TokenViews,
    VocabularyPart,
)
from vocabshift.report.html.report import report_html, write_html
from vocabshift.results import Result, Results

HOSTILE = "</script><img src=x onerror=alert(1)>\x00\u202e"


class Page(HTMLParser):
    """Elements and text of a page."""

    VOID = frozenset({"meta", "link", "rect", "path", "circle", "br"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.contents = {"style": "", "script": ""}
        self.feed(html)
        assert [] == self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert tag == self.open.pop(), f"{tag} is not what is open"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.contents:
            self.contents[self.open[-1]] += data
        else:
            self.text.append(data)

    def having(self, tag: str, **attrs: str) -> list[dict[str, str | None]]:
        return [
            found
            for name, found in self.elements
            if name == tag and all(found.get(key) == value for key, value in attrs.items())
        ]


def rows(metric: str, values: dict[tuple[str, str], float]) -> Results:
    return Results(
        Result(subject, language, metric, value, 4, value - 0.1, value + 0.1)
        for (subject, language), value in values.items()
    )


FERTILITY = rows(
    "fertility", {("a", "hi"): 2.0, ("b", "hi"): 1.5, ("a", "ta"): 9.0, ("b", "ta"): 3.0}
)
RENYI = rows(
    "renyi_efficiency", {("a", "hi"): 0.2, ("b", "hi"): 0.4, ("a", "ta"): 0.3, ("b", "ta"): 0.5}
)


def views(text: str = "नदी", name: str = "a") -> TokenViews:
    data = text.encode()
    tokens = (LineToken(7, text, 0, len(data)),)
    lines = {name: (TokenizedLine(text, tokens),), "b": (TokenizedLine(text, tokens),)}
    vocabularies = {name: (VocabularyPart("Devanagari", 90, 5), VocabularyPart("digits", 10))}
    return TokenViews((LanguageView("hi", "Hindi", lines),), vocabularies, "4 lines")


def ids(html: str) -> list[str | None]:
    return [attrs["id"] for attrs in Page(html).having("section")]


def test_there_is_a_section_for_what_there_is_and_for_nothing_else() -> None:
    assert ids(report_html(FERTILITY, TokenViews())) == ["summary", "figures"]
    assert ids(report_html(Results(), views())) == ["summary", "vocabulary", "tokens"]
    whole = rows("vocab_size", {("a", "all"): 400.0, ("b", "all"): 800.0})
    everything = report_html(FERTILITY + RENYI + whole, views())
    assert ids(everything) == ["summary", "figures", "renyi", "whole", "vocabulary", "tokens"]
    with pytest.raises(ValueError, match="nothing to report"):
        report_html(Results(), TokenViews())


def test_the_first_of_every_headline_is_named() -> None:
    gini = rows("gini", {("a", "all"): 0.25, ("b", "all"): 0.5})
    html = report_html(FERTILITY + gini, TokenViews())
    assert "<h3>Lowest fertility</h3>" in html
    assert "b, mean over languages; then a with 5.50" in html
    assert "<h3>Lowest Gini coefficient</h3>" in html
    assert "a; then b with 0.500" in html
    lost = rows("loss_rate", {("b", "ta"): 0.5})
    assert '<p class="of">a, mean over languages</p>' in report_html(FERTILITY + lost, TokenViews())


def test_figures_of_text_without_a_label_are_no_figures_of_whole_tokenizers() -> None:
    unlabelled = rows("fertility", {("a", "all"): 2.0, ("b", "all"): 3.0})
    assert ids(report_html(unlabelled, TokenViews())) == ["summary", "figures"]


def test_every_value_is_printed_with_its_interval_and_the_best_is_marked() -> None:
    html = report_html(FERTILITY, views())
    cells = re.findall(r'<td class="(h\d)( best)?" data-v="([\d.]+)">(.*?)</td>', html)
    assert [(float(v), bool(best)) for _, best, v, _ in cells] == [
        *((2.0, False), (1.5, True), (9.0, False), (3.0, True))
    ]
    assert [level for level, *_ in cells] == ["h1", "h0", "h8", "h3"]  # by ratio: 9 is 6 x 1.5
    assert "<small>8.90–9.10</small>" in html
    assert '<th scope="row">mean</th><td>5.50</td><td>2.25</td>' in html


def test_a_language_without_a_value_has_a_dash_and_the_subject_no_mean() -> None:
    partial = Results(row for row in FERTILITY if (row.subject, row.language) != ("b", "ta"))
    html = report_html(partial, TokenViews())
    assert '<td class="none">–</td>' in html
    assert '<th scope="row">mean</th><td>5.50</td><td>–</td>' in html


def test_where_text_is_lost_compression_is_marked_and_not_ranked() -> None:
    loss = rows("loss_rate", {("b", "hi"): 0.25, ("a", "hi"): 0.0})
    html = report_html(FERTILITY + RENYI + loss, TokenViews())
    assert "1.50†" in html
    assert 'class="none" data-v="1.5"' in html
    assert "loses text" in html
    assert "Text is lost" in html
    assert '<th scope="row">mean</th><td>5.50</td><td>–</td>' in html
    assert "†" not in report_html(FERTILITY, TokenViews())


def test_hostile_names_and_texts_are_only_text() -> None:
    results = rows("fertility", {(HOSTILE, HOSTILE): 2.0, ("b", "hi"): 1.0})
    results += rows(HOSTILE, {(HOSTILE, "hi"): 2.0})
    hostile = views(HOSTILE, HOSTILE)
    page = Page(report_html(results, hostile))
    assert [] == page.having("img")
    assert 1 == len(page.having("script"))
    assert not {"onerror"} & {key for _, attrs in page.elements for key in attrs}
    whole = report_html(results, hostile)
    assert not {"\x00", "\u202e"} & set(whole)
    assert "<img src=x onerror=alert(1)>" in "".join(page.text)


def test_nothing_is_fetched_and_only_our_style_and_script_run() -> None:
    page = Page(report_html(FERTILITY + RENYI, views()))
    for _, attrs in page.elements:
        for key in ("src", "href", "action", "data", "srcset", "style"):
            value = attrs.get(key) or ""
            assert value in ("", "data:,") or value.startswith("#"), (key, value)
    (policy,) = (
        str(attrs["content"])
        for attrs in page.having("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    for name, content in page.contents.items():
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "url(" not in page.contents["style"]


def test_ids_are_unique_and_what_is_named_is_there() -> None:
    page = Page(report_html(FERTILITY + RENYI, views()))
    found = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(found) == len(set(found))
    for _, attrs in page.elements:
        for key in ("aria-controls", "aria-labelledby"):
            assert attrs.get(key, found[0]) in found
        if (attrs.get("href") or "").startswith("#"):
            assert str(attrs["href"])[1:] in found


def test_the_same_input_gives_the_same_bytes_and_the_file_appears_whole(tmp_path: Path) -> None:
    first = write_html(FERTILITY, views(), tmp_path / "a.html").read_bytes()
    assert first == write_html(FERTILITY, views(), tmp_path / "b.html").read_bytes()
    assert ["a.html", "b.html"] == sorted(path.name for path in tmp_path.iterdir())


def test_vocabularies_keep_every_token() -> None:
    many = tuple(VocabularyPart(f"script {i}", i + 1, 1) for i in range(30))
    html = report_html(FERTILITY, TokenViews(vocabularies={"a": many}))
    assert "465 tokens, 30 superwords" in html
    assert "all others" in html
    bar = html[html.index('<svg class="stacked"') :]
    widths = re.findall(r'<rect class="v\d+" x="[\d.]+" y="0" width="([\d.]+)"', bar)
    assert 800 == pytest.approx(sum(map(float, widths)), abs=1)
    assert 16 == len(widths)
