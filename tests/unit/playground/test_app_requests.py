"""Requests that no browser sends: drawn ones, slow ones, and texts that a tokenizer refuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

pytest.importorskip("starlette", reason="needs the [serve] extra")

from starlette.testclient import TestClient

from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.playground import app
from vocabshift.playground.page import Panel, Playground

HOST = "127.0.0.1:8017"
URL = f"http://{HOST}"
OWN = {"origin": URL, "content-type": "application/json"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
REQUESTS = (
    st.binary(max_size=200)
    | VALUES.map(json.dumps).map(str.encode)
    | st.fixed_dictionaries({"text": st.text() | VALUES, "parse_special": st.booleans() | VALUES})
    .map(json.dumps)
    .map(str.encode)
)
NAMES = st.sampled_from(["origin", "host", "sec-fetch-site", "content-length", "x-forwarded-for"])
HEADERS = st.dictionaries(NAMES, st.text(st.characters(max_codepoint=126, min_codepoint=32)))


@pytest.fixture(scope="module")
def client(playground: Playground) -> Any:
    with TestClient(app.make_app(playground, hosts=frozenset([HOST])), URL) as found:
        yield found


@given(body=REQUESTS)
def test_drawn_bodies(client: Any, body: bytes) -> None:
    """An answer or a reason; an exception of the server would be raised here."""
    answer = client.post("/api/tokenize", content=body, headers=OWN)
    assert answer.status_code in (200, 400)
    told = answer.json()
    if answer.status_code == 400:
        assert {"error"} == set(told)
    else:
        text = json.loads(body)["text"]
        assert len(text) == told["n_characters"]


@given(tokenizer=st.text(), token=st.text())
def test_drawn_tokens(client: Any, tokenizer: str, token: str) -> None:
    """Numbers as Python reads them, or none."""
    parameters = {"tokenizer": tokenizer.encode(errors="replace").decode(), "id": token}
    parameters["id"] = token.encode(errors="replace").decode()
    assert client.get("/api/token", params=parameters).status_code in (200, 400, 404)


@given(path=st.text(st.characters(max_codepoint=126, min_codepoint=33)), headers=HEADERS)
def test_drawn_paths_and_headers(client: Any, path: str, headers: dict[str, str]) -> None:
    """Nothing but the page's own files is served, whatever dots a path has; no other host is."""
    answer = client.get("/" + path.replace("#", "").replace("?", ""), headers=headers)
    is_ours = headers.get("host", HOST) == HOST
    assert answer.status_code in ((200, 403, 404) if is_ours else (403,))
    if answer.status_code == 200:
        assert "content-security-policy" in answer.headers
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(("is_gone", "status"), [(False, 408), (True, 400)])
def test_a_body_that_does_not_arrive(
    playground: Playground, monkeypatch, is_gone: bool, status: int
) -> None:
    """After the first bytes nothing comes, or the client is gone: no traceback."""
    monkeypatch.setattr(app, "BODY_SECONDS", 0.01)
    served = app.make_app(playground, hosts=frozenset([HOST]))
    headers = [(name.encode(), value.encode()) for name, value in {**OWN, "host": HOST}.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/tokenize",
        "headers": headers,
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
    }
    first = [{"type": "http.request", "body": b"{", "more_body": True}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if first:
            return first.pop()
        if is_gone:
            return {"type": "http.disconnect"}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(served(scope, receive, send))  # type: ignore[arg-type]
    assert status == sent[0]["status"]


def test_a_text_that_a_tokenizer_gives_up_on() -> None:
    """A regex without end ends the request alone."""
    backend = Backend(models.WordPiece({"[UNK]": 0, "a": 1, "##a": 2}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"(?<=(a|aa)*)(a+)+!"), "isolated")
    page = Playground([Panel(engine_of(backend), "endless")])
    with TestClient(app.make_app(page, hosts=frozenset([HOST])), URL) as client:
        for text, status in (("a" * 40, 422), ("aa", 200)):
            asked = json.dumps({"text": text, "parse_special": False})
            answer = client.post("/api/tokenize", content=asked, headers=OWN)
            assert status == answer.status_code
