"""The real command: its socket, its end, and its page in a real browser with hostile text."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.demo.story import beginnings

pytest.importorskip("uvicorn", reason="needs the [serve] extra")

HOSTILE = (
    '<img src=x onerror="window.ran=1"><script>window.ran=1</script>\n'
    "<!--</textarea>&lt;b&gt;]]> javascript:window.ran=1\n"
    "\u202eright to left\u202c \u2066\u0000\u0007\u001b[31m\ufeff\u2028<s>\n"
    "क्ष\u200dि 🙂\u0301\u0301 \u0958\u093c\n"
)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two small ones; a special token of the second is HTML."""
    folder = tmp_path_factory.mktemp("serve")
    texts = beginnings(12)
    paths = []
    for name, languages, special in (
        ("indic", ("hin", "tam", "urd"), "<s>"),
        ("english", ("eng", "deu"), "<img src=x onerror=window.ran=1>"),
    ):
        corpus = vs.Corpus.from_texts({language: texts[language] for language in languages})
        trainer = vs.BpeTrainer(vocab_size=600, special_tokens=[special])
        trainer.train(corpus).save_pretrained(folder / name)
        paths.append(folder / name)
    return paths


Running = tuple[dict[str, Any], subprocess.Popen[str]]


@contextmanager
def running(
    tokenizers: list[Path], program: Sequence[str] = ("-m", "vocabshift")
) -> Iterator[Running]:
    """The command with --json, when it has told its address."""
    words = [sys.executable, *program, "serve", *map(str, tokenizers), "--json"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline()), process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def url(tokenizers: list[Path]) -> Iterator[str]:
    """Of one server for the tests that leave it as it is."""
    with running(tokenizers) as (told, _):
        yield told["url"]


def listening(pid: int) -> set[str]:
    """Addresses at which a process listens, in hex, as Linux tells."""
    opened = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {name[8:-1] for name in opened if name.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for row in path.read_text().splitlines()[1:] if path.exists() else []:
            cells = row.split()
            if cells[3] == "0A" and cells[9] in sockets:
                found.add(cells[1])
    return found


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs Linux's /proc")
def test_one_socket_on_loopback_and_a_clean_end(tokenizers: list[Path]) -> None:
    """The kernel's word for the address; Ctrl-C gives status 0 and says nothing."""
    with running(tokenizers) as (told, process):
        assert {"url", "pid", "tokenizers"} == set(told)
        assert ["indic", "english"] == told["tokenizers"]
        assert process.pid == told["pid"]
        port = int(told["url"].rstrip("/").rpartition(":")[2])
        with urllib.request.urlopen(told["url"], timeout=30) as answer:
            assert "vocabshift" in answer.read().decode()
        assert {f"0100007F:{port:04X}"} == listening(process.pid)  # 127.0.0.1
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (0, "", "") == (process.returncode, out, err)


def test_another_host_is_refused_over_the_wire(url: str) -> None:
    """As in the unit tests, through the real server."""
    request = urllib.request.Request(url + "api/start", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as found:
        urllib.request.urlopen(request, timeout=30)
    with found.value:
        assert 403 == found.value.code


IMPATIENT = """
from vocabshift.cli.main import main
from vocabshift.playground import app
app.HEADER_SECONDS, app.BODY_SECONDS, app.ANSWER_SECONDS = 1.0, 0.0, 1.0
raise SystemExit(main())
"""

GET = "GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n"


def drip(connection: socket.socket, byte: bytes) -> bytes:
    """Send one byte after the other until the server ends the connection; what it said by then."""
    said = b""
    connection.settimeout(0.02)
    for _ in range(3_000):
        try:
            connection.sendall(byte)
            part = connection.recv(1 << 16)
        except TimeoutError:
            continue
        except ConnectionError:
            return said
        if not part:
            return said
        said += part
    raise AssertionError("a minute of single bytes, and the server waits for more")


def test_a_client_that_never_ends_its_request_is_cut_off(tokenizers: list[Path]) -> None:
    """Single bytes of a header, also after an answer, and of a body that nobody reads; meanwhile
    others are answered."""
    with running(tokenizers, ("-c", IMPATIENT)) as (told, process):
        port = int(told["url"].rstrip("/").rpartition(":")[2])
        get = GET.format("/", port)
        refused = get.replace("GET", "POST", 1)[:-2] + "Content-Length: 1000000\r\n\r\n"
        for first, answer in (
            ("GET / HT", b""),
            (get, b"HTTP/1.1 200"),
            (refused, b"HTTP/1.1 403"),
        ):
            with (
                socket.create_connection(("127.0.0.1", port)) as slow,
                socket.create_connection(("127.0.0.1", port)) as silent,
            ):
                slow.sendall(first.encode())
                with urllib.request.urlopen(told["url"], timeout=30) as good:
                    assert 200 == good.status
                said = drip(slow, b"a")
                assert said.startswith(answer)
                assert (b"" == said) == (b"" == answer)
                silent.settimeout(60)
                assert b"" == silent.recv(1)
        assert process.poll() is None


def test_a_client_that_does_not_read_its_answer_is_cut_off(tokenizers: list[Path]) -> None:
    """Answers to many requests at once, more than the sockets hold."""
    with running(tokenizers, ("-c", IMPATIENT)) as (told, _):
        port = int(told["url"].rstrip("/").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as deaf:
            deaf.settimeout(60)
            with pytest.raises(ConnectionError):
                for _ in range(1_000):
                    deaf.sendall(GET.format("/page.js", port).encode() * 1_000)
        with urllib.request.urlopen(told["url"], timeout=30) as good:
            assert 200 == good.status


Page = Any


@pytest.fixture(scope="module")
def open_page(url: str, chromium: Any) -> Iterator[Callable[..., Page]]:
    """Opens the page in Chromium; afterwards nothing may have gone wrong in any."""
    troubles: list[str] = []
    requests: list[str] = []

    def open_it(**options: Any) -> Page:
        page = chromium.new_page(**options)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_it
    for context in chromium.contexts:
        context.close()
    assert [] == troubles
    assert requests
    assert [] == [one for one in requests if not one.startswith(url)]


def paste(page: Page, text: str) -> None:
    """As `page.fill`, which takes minutes for a megabyte."""
    page.locator("#text").evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", text
    )


def type_in(page: Page, text: str) -> None:
    """Put a text into the field, and wait until it is shown."""
    before = page.get_attribute("body", "data-ready")
    paste(page, text)
    page.wait_for_function("before => document.body.dataset.ready !== before", arg=before)


def drawn(page: Page, panel: int = 0) -> str:
    """The text of a panel's tokens, hidden characters by their names."""
    lines = page.locator(".view").nth(panel).locator("p.tl").all_text_contents()
    return "\n".join(lines)


def test_hostile_text_is_shown_and_never_run(open_page: Callable[..., Page]) -> None:
    """Not as text, not as a token, not in the tree of a token."""
    page = open_page()
    type_in(page, HOSTILE)
    for panel in (0, 1):
        shown = drawn(page, panel)
        assert '<img src=x onerror="window.ran=1"><script>window.ran=1</script>↵' in shown
        assert "U+202Eright to left" in shown
        assert "␀␇␛[31mU+FEFF↵<s>" in shown
        assert "क्ष\u200dि 🙂\u0301\u0301" in shown
    type_in(page, "a <img src=x onerror=window.ran=1> b")
    page.locator(".view").nth(1).locator("i.sp").click()
    page.wait_for_selector(".panel:nth-child(2) .about")
    assert "<img␣src=x␣onerror=window.ran=1>" == page.locator(".about .chip").first.text_content()
    assert page.evaluate("window.ran") is None
    assert 0 == page.locator("main img").count()
    page.close()


def test_tokens_counts_ids_and_the_tree(
    open_page: Callable[..., Page], tokenizers: list[Path]
) -> None:
    """What the page says is what the tokenizer says; by keyboard alone."""
    page = open_page()
    text = "नदी के किनारे the river"
    type_in(page, text)
    encoder = vs.Encoder.from_pretrained(tokenizers[0])
    ids = encoder.encode(text).tolist()
    assert str(len(ids)) == page.locator(".total").first.text_content()
    words = f"{len(text)} characters · {len(text.encode())} bytes · 5 words"
    assert words == page.text_content("#counts")
    page.locator(".ids summary").first.click()
    page.wait_for_function(
        "ids => document.querySelector('.id-list').value === ids", arg=", ".join(map(str, ids))
    )
    view = page.locator(".view").first
    view.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "id => document.querySelector('.about code')?.textContent === id", arg=str(ids[2])
    )
    page.keyboard.press("Escape")
    page.wait_for_selector(".about", state="detached")
    page.check("#differences")
    assert page.locator("i.same").count() > 0
    page.close()


def test_bytes_of_half_a_character_are_hex(open_page: Callable[..., Page]) -> None:
    """Ol Chiki, which the English tokenizer has no merges for: three bytes, three tokens."""
    page = open_page()
    type_in(page, "\u1c5f")
    assert "cc" in page.locator(".view").nth(1).locator("i").get_attribute("class")
    view = page.locator(".view").nth(1)
    view.focus()
    page.keyboard.press("Home")
    page.wait_for_selector(".about .raw")
    assert "E1" == page.locator(".about .raw").first.text_content()
    page.close()


def test_elements_of_unchanged_lines_stay(open_page: Callable[..., Page]) -> None:
    """Typing draws the line that is typed in, and the page says the same as when drawn at once."""
    page = open_page()
    lines = [f"line {number} of नदी के किनारे" for number in range(50)]
    type_in(page, "\n".join(lines))
    page.evaluate("() => document.querySelectorAll('.view p').forEach((p) => { p.old = true; })")
    lines[20] += "!"
    lines.insert(30, "a new one")
    type_in(page, "\n".join(lines))
    per_view = "view => [...view.querySelectorAll('p')].filter((p) => !p.old).length"
    assert 0 < page.locator(".view").first.evaluate(per_view) <= 12
    typed = page.locator(".view").first.inner_html()
    type_in(page, "")
    type_in(page, "\n".join(lines))
    assert typed == page.locator(".view").first.inner_html()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(open_page: Callable[..., Page], scheme: str) -> None:
    """No sideways scrolling at 375 px; Urdu runs from the right."""
    page = open_page(viewport={"width": 375, "height": 800}, color_scheme=scheme)
    page.select_option("#sample", label="Urdu")
    page.wait_for_function("() => !document.querySelector('.view').textContent.includes('morning')")
    page.wait_for_selector(".view[lang=ur] p:dir(rtl)")
    page.locator(".view i").nth(4).click()
    page.wait_for_selector(".about")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.close()


def test_too_long_a_text_is_told(open_page: Callable[..., Page]) -> None:
    """Without a request that would be refused; a megabyte is counted."""
    page = open_page()
    type_in(page, "नदी है\n" * 50_000)
    assert "350,000 characters · 850,000 bytes" in page.text_content("#counts")
    assert "all are counted" in page.text_content("#counts")
    paste(page, ("\x01" * 50 + "\n") * 8_000)  # six bytes of JSON for each
    page.wait_for_selector("#message:not([hidden])")
    assert "too long for this page" in page.text_content("#message")
    page.close()
