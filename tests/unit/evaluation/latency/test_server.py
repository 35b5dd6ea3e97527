"""A server's answers: a stub that speaks server-sent events as vLLM does, and ones that do not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from vocabshift.evaluation.latency.server import ServedModel

USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 4}}


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text}]}


class Server:
    """Answers a request with events; `pause` seconds before each."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.whole: dict[str, Any] = {}  # the answer to a request without a stream
        self.pause = 0.0
        self.status = 200
        self.asked: list[tuple[str, dict[str, Any]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                outer.asked.append((self.path, json.loads(self.rfile.read(size))))
                self.send_response(outer.status)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                if not outer.asked[-1][1]["stream"]:
                    self.wfile.write(json.dumps(outer.whole).encode())
                    return
                for event in outer.events:
                    time.sleep(outer.pause)
                    data = event if isinstance(event, str) else json.dumps(event)
                    self.wfile.write(f": a comment\ndata: {data}\n\n".encode())
                    self.wfile.flush()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1/"


@pytest.fixture
def server() -> Iterator[Server]:
    own = Server()
    thread = threading.Thread(target=own.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield own
    own.http.shutdown()
    thread.join()
    own.http.server_close()


def test_tokens_that_the_stream_does_not_count_are_asked_for_once(server: Server) -> None:
    """As of llama-cpp-python's server: one more request a prompt, without a stream."""
    server.events = [said("a"), said("b"), "[DONE]"]
    server.whole = {**said("ab"), "usage": USAGE["usage"]}
    model = ServedModel(server.url, "ist", max_new_tokens=4)
    for _ in range(2):
        answer = model.ask("prompt")
        assert (7, 4, b"a", b"b") == (
            *(answer.input_tokens, answer.output_tokens),
            *(answer.first, answer.rest),
        )
    assert [True, False, True] == [wish["stream"] for _, wish in server.asked]
    assert "stream_options" not in server.asked[1][1]


def test_a_stream_is_timed(server: Server) -> None:
    server.pause = 0.05
    server.events = [said(""), said("यह"), said(" a"), said("b"), USAGE, "[DONE]", "not read"]
    answer = ServedModel(server.url, "ist", max_new_tokens=4).ask("prompt")
    assert (7, 4, "यह".encode(), b" ab") == (
        *(answer.input_tokens, answer.output_tokens),
        *(answer.first, answer.rest),
    )
    # Two pauses, and two more until the last text. A reader that comes late to the first text
    # waits less for the rest.
    assert 0.1 <= answer.first_token_seconds < answer.seconds
    assert 0.2 <= answer.seconds
    [(path, wish)] = server.asked
    assert "/v1/completions" == path
    assert ("ist", "prompt", 4, 0, True, True) == tuple(
        wish[key]
        for key in ("model", "prompt", "max_tokens", "temperature", "ignore_eos", "stream")
    )
    assert {"include_usage": True} == wish["stream_options"]


BAD: list[tuple[str, Callable[[Server], None]]] = [
    ("no JSON", lambda own: own.events.append("{broken")),
    ("no JSON", lambda own: own.events.append("[1]")),
    ("out of memory", lambda own: own.events.append({"error": {"message": "out of memory"}})),
    ("without text", lambda own: own.events.append({"choices": [{"message": "chat"}]})),
    ("without text", lambda own: own.events.append({"choices": [7]})),
    ("without text", lambda own: own.events.append({"choices": {"a": 1}})),
    ("no text", lambda own: own.events.append(USAGE)),
    ("no usage", lambda own: own.events.append(said("a"))),
    ("no usage", lambda own: own.events.extend([said("a"), {"usage": {"prompt_tokens": "7"}}])),
    ("status 404: data", lambda own: (setattr(own, "status", 404), own.events.append("none"))[0]),
]


@pytest.mark.parametrize(("message", "spoil"), BAD, ids=range(len(BAD)))
def test_what_is_no_answer_is_told(
    server: Server, message: str, spoil: Callable[[Server], None]
) -> None:
    spoil(server)
    words = message.replace("status 404: data", "status 404: : a comment data: none")
    with pytest.raises(ValueError, match=words):
        ServedModel(server.url, "ist").ask("prompt")


def test_addresses_that_lead_nowhere() -> None:
    with pytest.raises(ValueError, match="no address"):
        ServedModel("localhost:8000", "ist")
    with pytest.raises(ValueError, match="no address"):
        ServedModel("file:///etc/passwd", "ist")
    with pytest.raises(OSError, match="cannot be reached"):
        ServedModel("http://127.0.0.1:9/v1", "ist").ask("prompt")
