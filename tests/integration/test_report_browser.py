"""Pages in a real browser: quiet, offline, usable with the keyboard, and harmless."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.demo.story import write_split
from vocabshift.evaluation.compare import compare
from vocabshift.evaluation.evaluate import evaluate
from vocabshift.evaluation.lines.views import token_views
from vocabshift.report.html.compare import write_comparison
from vocabshift.report.html.report import write_html
from vocabshift.results import Result, Results

HOSTILE = (
    "</p><script>window.hacked=1</script><img src=http://127.0.0.1:9/x onerror=hacked=1>\u202e"
)
MOST_BYTES = 3_000_000

Open = Callable[..., Any]


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Open]:
    """Opens a file in a page that lets no request out; checks at the end that it kept quiet."""
    contexts, complaints = [], []

    def open_file(path: Path, *, width: int = 1280, scheme: str = "light") -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()

        def refuse(route: Any) -> None:
            if route.request.url == path.as_uri():
                route.continue_()
            else:
                complaints.append(route.request.url)
                route.abort()

        page.route("**/*", refuse)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert [] == complaints


@pytest.fixture(scope="module")
def texts(tmp_path_factory: Any) -> dict[str, list[str]]:
    train, _ = write_split(tmp_path_factory.mktemp("samples"))
    return {
        label: file.read_text(encoding="utf-8").splitlines()
        for label, file in train.items()
        if file.suffix == ".txt"
    }


@pytest.fixture(scope="module")
def tokenizers(texts: dict[str, list[str]]) -> dict[str, Any]:
    """Eight tokenizers, from bytes alone to words."""
    corpus = vs.Corpus.from_texts(texts)
    sizes = (256, 270, 280, 300, 400, 600, 1000, 2000)
    return {f"bpe-{size}": vs.BpeTrainer(vocab_size=size).train(corpus) for size in sizes}


@pytest.fixture(scope="module")
def report(texts: dict[str, list[str]], tokenizers: dict[str, Any], tmp_path_factory: Any) -> Path:
    results = evaluate(tokenizers, texts, ["fertility", "bytes_per_token"])
    results += Results(
        Result(row.subject, row.language, "renyi_efficiency", 1 / (1 + row.value), row.n)
        for row in results.where(metric="fertility")
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_html(results, token_views(tokenizers, texts), path)


def first_column(page: Any) -> list[str]:
    return page.locator("#metric-0 table.heat tbody th").all_inner_texts()


def column(page: Any, number: int) -> list[float]:
    cells = page.locator(f"#metric-0 table.heat tbody tr td:nth-child({number + 1})")
    return [float(cell.get_attribute("data-v")) for cell in cells.all()]


def test_the_report_is_small_enough(report: Path) -> None:
    assert report.stat().st_size < MOST_BYTES


def test_columns_sort_by_the_keyboard(report: Path, open_page: Open) -> None:
    page = open_page(report)
    before = first_column(page)
    head = page.locator("#metric-0 table.heat thead th").nth(2)
    head.locator("button").focus()
    for key, order in (("Enter", "ascending"), ("Space", "descending")):
        page.keyboard.press(key)
        assert order == head.get_attribute("aria-sort")
        values = column(page, 2)
        assert values == sorted(values, reverse=order == "descending")
        assert sorted(values) != column(page, 1)
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert before == first_column(page)


def test_tabs_follow_the_arrow_keys(report: Path, open_page: Open) -> None:
    page = open_page(report)
    assert page.locator("#metric-0").is_visible()
    assert not page.locator("#metric-1").is_visible()
    page.locator("#metric-tab-0").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#metric-1").is_visible()
    assert not page.locator("#metric-0").is_visible()
    assert "true" == page.locator("#metric-tab-1").get_attribute("aria-selected")
    page.keyboard.press("Home")
    assert page.locator("#metric-0").is_visible()


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_light_and_dark_follow_the_system_and_the_button(report: Path, open_page: Open) -> None:
    light, dark = open_page(report), open_page(report, scheme="dark")
    day, night = background(light), background(dark)
    assert day != night
    light.locator("#theme").focus()
    light.keyboard.press("Enter")
    assert night == background(light)
    dark.locator("#theme").click()
    assert day == background(dark)


def test_nothing_runs_over_the_side(report: Path, open_page: Open) -> None:
    page = open_page(report, width=320)
    for width in (320, 375, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        for tab in page.locator("[role=tab]").all():
            tab.dispatch_event("click")
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_token_tells_its_id_and_bytes(
    report: Path, open_page: Open, tokenizers: dict[str, Any], texts: dict[str, list[str]]
) -> None:
    page = open_page(report)
    shown = page.locator("#language-0 .cut").last.locator("p.tl").first
    text = str(shown.inner_text())
    ids = tokenizers["bpe-2000"].backend.encode(text).ids
    shown.focus()
    page.keyboard.press("Home")
    seen = ""
    for _ in range(shown.locator("i").count()):
        tip = str(page.locator(".tip").inner_text())
        seen += " " + " ".join(re.findall(r"id (\d+)", tip))
        page.keyboard.press("ArrowRight")
    found = [int(number) for number in seen.split()]
    # A token in several elements is told in each of them.
    assert list(dict.fromkeys(ids)) == list(dict.fromkeys(found))
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()
    shown.locator("i").first.hover()
    first = bytes(vs_bytes(tokenizers["bpe-2000"], ids[0]))
    assert first.hex(" ").upper() in str(page.locator(".tip").inner_text())


def vs_bytes(tokenizer: Any, token_id: int) -> bytes:
    from vocabshift.evaluation.lines.subject import engine_of

    return engine_of(tokenizer).spelled[token_id]


def test_urdu_runs_from_right_to_left_and_hindi_does_not(report: Path, open_page: Open) -> None:
    page = open_page(report)
    script = "e => getComputedStyle(e).direction"
    for language, direction in (("urd", "rtl"), ("hin", "ltr")):
        line = page.locator(f'p.tl[lang="{language}"]').first
        assert direction == line.evaluate(script)


WIDTHS = """(lines) => {
  const range = document.createRange();
  const width = (node) => {
    range.selectNodeContents(node);
    return range.getBoundingClientRect().width;
  };
  // All copies first: the page, which is long, is laid out once.
  const pairs = lines.map((line) => {
    const copy = line.cloneNode(false);
    for (const node of [line, copy]) node.style.whiteSpace = "nowrap";
    copy.textContent = line.textContent;
    line.after(copy);
    return [line, copy];
  });
  return pairs.map((pair) => pair.map(width));
}"""


def test_marks_do_not_disturb_the_shaping(report: Path, open_page: Open) -> None:
    """A line is as wide with tokens marked in it as without: the same glyphs stand there.

    Two in a thousand are for the fractions of a pixel at which elements begin.
    """
    page = open_page(report)
    page.evaluate("for (const p of document.querySelectorAll('.panel')) p.hidden = false")
    for language in ("hin", "tam", "mal", "tel", "ben", "urd", "sat", "mni-Mtei"):
        widths = page.locator(f'p.tl[lang="{language}"]').evaluate_all(WIDTHS)
        assert len(widths) == 16
        for marked, plain in widths:
            assert 0 < marked == pytest.approx(plain, rel=2e-3), language


def test_hostile_names_and_text_are_shown_and_not_run(
    tokenizers: dict[str, Any], tmp_path: Path, open_page: Open
) -> None:
    chosen = {HOSTILE: tokenizers["bpe-300"], "b": tokenizers["bpe-256"]}
    texts = {"en": [HOSTILE, "\x00 \u2066 \x1b[31m"]}
    results = evaluate(chosen, texts, ["fertility"])
    page = open_page(write_html(results, token_views(chosen, texts), tmp_path / "a.html"))
    page.wait_for_timeout(100)
    assert page.evaluate("window.hacked") is None
    assert (
        "<script>window.hacked=1</script>" in page.locator("#tokens p.tl[dir]").first.inner_text()
    )
    compared = compare(*chosen.values(), texts, names=(HOSTILE, "b"))
    page = open_page(write_comparison(compared, tmp_path / "b.html"))
    page.wait_for_timeout(100)
    assert page.evaluate("window.hacked") is None
    assert HOSTILE[:-1] in page.locator("h1").inner_text()


def test_a_comparison_is_quiet_and_fits_a_phone(
    tokenizers: dict[str, Any], texts: dict[str, list[str]], tmp_path: Path, open_page: Open
) -> None:
    compared = compare(tokenizers["bpe-300"], tokenizers["bpe-2000"], texts)
    path = write_comparison(compared, tmp_path / "compare.html")
    assert path.stat().st_size < MOST_BYTES
    page = open_page(path, width=375)
    for tab in page.locator("[role=tab]").all():
        tab.dispatch_event("click")
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
