"""Who gets an answer, and what is refused; without a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the [serve] extra")
from starlette.testclient import TestClient

from vocabshift.playground.app import hosts_of, make_app
from vocabshift.playground.page import HEADERS, Playground
from vocabshift.report import tokenized_line as token_html

HOST = "127.0.0.1:8017"
OWN = {"Origin": f"http://{HOST}"}
ASKED = {"text": "a b", "parse_special": True}


@pytest.fixture
def client(playground: Playground) -> Iterator[Any]:
    """A browser at the page's own address."""
    with TestClient(
        make_app(playground, hosts=hosts_of(8017)),
        base_url=f"http://{HOST}",
        raise_server_exceptions=False,
    ) as found:
        yield found


def test_the_page_and_its_files(client: Any) -> None:
    """All from here: no address of another server in any of them."""
    types = {
        "/": "text/html; charset=utf-8",
        "/page.css": "text/css; charset=utf-8",
        "/token_view.css": "text/css; charset=utf-8",
        "/page.js": "text/javascript; charset=utf-8",
        "/tokens.js": "text/javascript; charset=utf-8",
        "/tree.js": "text/javascript; charset=utf-8",
        "/icon.svg": "image/svg+xml",
    }
    for path, content_type in types.items():
        answer = client.get(path)
        assert (200, content_type) == (answer.status_code, answer.headers["content-type"]), path
        assert "https://" not in answer.text
        assert "http://" not in answer.text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "innerHTML" not in answer.text


def test_every_answer_keeps_the_page_to_itself(client: Any) -> None:
    """Refusals and errors too; nothing allows other origins."""
    answers = [
        client.get("/"),
        client.get("/nothing"),
        client.get("/", headers={"Host": "evil.example"}),
        client.post("/api/tokenize", json=ASKED, headers=OWN),
    ]
    assert [200, 404, 403, 200] == [answer.status_code for answer in answers]
    for answer in answers:
        assert HEADERS == {name: answer.headers[name] for name in HEADERS}
        assert not [name for name in answer.headers if name.startswith("access-control")]
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8017", "127.0.0.1", "127.0.0.1:8018", "127.0.0.1.evil:8017", ""],
)
def test_another_name_for_this_machine_is_refused(client: Any, host: str) -> None:
    """DNS rebinding: the browser believes that it talks to the attacker's own server."""
    for path in ("/", "/api/start", "/page.js"):
        assert 403 == client.get(path, headers={"Host": host}).status_code
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert 403 == client.post("/api/tokenize", json=ASKED, headers=headers).status_code


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "http://evil.example",
        "https://127.0.0.1:8017",
        "http://127.0.0.1:9000",
        "http://127.0.0.1:8017.evil.example",
    ],
)
def test_only_the_page_itself_may_send(client: Any, origin: str | None) -> None:
    """Another page in the same browser may not, and no request without an origin."""
    headers = {} if origin is None else {"Origin": origin}
    assert 403 == client.post("/api/tokenize", json=ASKED, headers=headers).status_code


def test_other_sites_get_nothing_but_a_link(client: Any) -> None:
    """A script tag elsewhere may not load what the page loads; a link may lead to the page."""
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site}
        assert 200 == client.get("/", headers=headers).status_code
        for path in ("/api/start", "/api/token?tokenizer=0&id=65", "/page.js"):
            assert 403 == client.get(path, headers=headers).status_code


def test_no_web_socket(client: Any) -> None:
    """There is none to hijack."""
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/tokenize"):
        raise AssertionError("accepted")


def test_what_the_page_begins_with(client: Any, playground: Playground) -> None:
    """Names, kinds, sizes, samples and the limit."""
    found = client.get("/api/start").json()
    assert {"name": "tiny", "kind": "BPE", "vocab_size": 261} == found["tokenizers"][0]
    assert ["BPE", "Unigram", "WordPiece"] == [one["kind"] for one in found["tokenizers"]]
    assert [{"name": "Hindi", "language": "hi", "text": "\u0915 a b"}] == found["samples"]
    assert 2_000_000 == found["most_bytes"]


def test_a_text_and_a_token(client: Any, playground: Playground) -> None:
    """The answers are the page's values."""
    answer = client.post("/api/tokenize", json=ASKED, headers=OWN)
    expected = json.loads(json.dumps(playground.tokenize("a b", parse_special=True)))
    assert (200, expected) == (answer.status_code, answer.json())
    answer = client.get("/api/token", params={"tokenizer": 0, "id": 257})
    assert (200, playground.token(0, 257)) == (answer.status_code, answer.json())


def test_lone_surrogates_from_a_browser(client: Any) -> None:
    r"""JSON.stringify writes them as \ud800."""
    body = r'{"text": "\ud800<b>\u0000\u202e", "parse_special": false}'
    headers = {**OWN, "Content-Type": "application/json"}
    found = client.post("/api/tokenize", content=body, headers=headers).json()
    assert "\ufffd<b>\0\u202e" == found["shown"]


@pytest.mark.parametrize(
    ("body", "content_type", "status", "message"),
    [
        ("{}", "application/json", 400, "send an object of text"),
        ("[1]", "application/json", 400, "send an object of text"),
        ('{"text": 1, "parse_special": true}', "application/json", 400, "send an object of text"),
        ('{"text": "a", "parse_special": 1}', "application/json", 400, "send an object of text"),
        ("{", "application/json", 400, "the request is not JSON"),
        ("\xff", "application/json", 400, "the request is not JSON"),
        ("[" * 100_000, "application/json", 400, "the request is not JSON"),
        (json.dumps(ASKED), "text/plain", 415, "send JSON"),
        (json.dumps(ASKED | {"text": "a" * 2_000_001}), "application/json", 413, "2,000,000 bytes"),
    ],
)
def test_bad_requests_are_told(
    client: Any, body: str, content_type: str, status: int, message: str
) -> None:
    """In one line of JSON."""
    headers = {**OWN, "Content-Type": content_type}
    answer = client.post("/api/tokenize", content=body.encode("latin-1"), headers=headers)
    assert status == answer.status_code
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("?tokenizer=0", 400),
        ("?tokenizer=x&id=1", 400),
        ("?tokenizer=0&id=" + "9" * 5000, 400),
        ("?tokenizer=0&id=9999", 404),
        ("?tokenizer=9&id=0", 404),
        ("?tokenizer=-1&id=0", 404),
    ],
)
def test_bad_tokens_are_told(client: Any, query: str, status: int) -> None:
    """Not found, or not understood."""
    answer = client.get("/api/token" + query)
    assert status == answer.status_code
    assert answer.json()["error"]


def test_a_megabyte_fits(client: Any) -> None:
    """Counted whole, shown in part."""
    asked = {"text": "<b>x</b>\n" * 110_000, "parse_special": True}
    answer = client.post("/api/tokenize", json=asked, headers=OWN)
    assert (200, 990_000) == (answer.status_code, answer.json()["n_bytes"])
    assert len(answer.content) < 1_000_000


@pytest.mark.parametrize("port", [80, 8017])
def test_hosts(port: int) -> None:
    """The port is left out where it is the usual one."""
    assert ("localhost" in hosts_of(port)) == (port == 80)
    assert {f"127.0.0.1:{port}", f"localhost:{port}"} <= hosts_of(port)


def test_the_script_draws_as_the_report_does(client: Any) -> None:
    """One style sheet for both: as many colours, as many stripes."""
    script = client.get("/tokens.js").text
    assert f"const N_COLOURS = {token_html.N_COLOURS};" in script
    assert f"const MOST_STRIPES = {token_html.MOST_STRIPES};" in script
    styles = client.get("/token_view.css").text
    assert f".x0-{token_html.MOST_STRIPES}" in styles
