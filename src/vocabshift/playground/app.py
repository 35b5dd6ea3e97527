"""The page's web application (starlette) and its server (uvicorn), on the loopback interface only.

Owns addresses, limits, error messages, and who may send requests. `page` computes the responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from vocabshift.errors import InvalidTokenizerError
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.playground.page import HEADERS, Panel, Playground, page_files, samples_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from vocabshift.tokenizer.formats.load import TokenizerLike


# Access control: only the page itself, on this machine, may send requests.
#
# Any web page open in the user's browser can reach a server on the loopback interface: by a name
# that resolves to 127.0.0.1 (DNS rebinding), by a form, by a script. The checks here prevent this,
# and the headers restrict the page to its own files.

_OWN = ("same-origin", "none")  # "none": typed into the address bar


def hosts_of(port: int) -> frozenset[str]:
    """The allowed Host headers for a server on this port of the loopback interface."""
    names = ("127.0.0.1", "localhost")
    return frozenset(f"{name}:{port}" for name in names) | (
        frozenset(names) if port == 80 else frozenset()
    )


class Guard:
    """Refuses requests that do not come from the page itself; adds HEADERS to every response."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":  # server start and stop
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        reason = self.refusal(scope["method"], Headers(scope=scope), str(scope["path"]))
        app = self.app if reason is None else PlainTextResponse(reason + "\n", 403)
        await app(scope, receive, send_with_headers)

    def refusal(self, method: str, headers: Headers, path: str) -> str | None:
        """Why a request is refused; None if it is allowed."""
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return "this server answers only to its own address on this machine"
        origins = headers.getlist("origin")
        if method not in ("GET", "HEAD") and not origins:
            return "a request that sends something must name its origin"
        if any(origin.removeprefix("http://") not in self.hosts for origin in origins):
            return "this server answers only to its own page"
        site = headers.get("sec-fetch-site", "none")
        if site not in _OWN and path != "/":  # links may lead to the page only
            return "this server answers only to its own page"
        return None


# The application.

TOO_LONG = (
    "the text is too long for this page, which takes {most:,} bytes at most; "
    "for files there is: vocabshift evaluate"
)

BODY_SECONDS = 30.0
"""That a body may take to arrive from the same machine."""

MOST_CLIENTS = 2_000
"""Connections and requests at a time; the next one gets 503."""


def make_app(playground: Playground, *, hosts: frozenset[str]) -> Starlette:
    """The application; `hosts` are the allowed Host headers, such as "127.0.0.1:8017"."""
    return Starlette(
        routes=[
            *(Route(path, _fixed(*file)) for path, file in page_files().items()),
            Route("/api/start", partial(_start, playground)),
            Route("/api/tokenize", partial(_tokenize, playground), methods=["POST"]),
            Route("/api/token", partial(_token, playground)),
        ],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={HTTPException: _error_response},
    )


def _fixed(body: bytes, media_type: str) -> Any:
    async def endpoint(_: Request) -> Response:
        return Response(body, media_type=media_type)

    return endpoint


async def _start(playground: Playground, _: Request) -> Response:
    return JSONResponse(playground.start())


async def _tokenize(playground: Playground, request: Request) -> Response:
    """Handle `{"text": …, "parse_special": true}`."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send JSON")
    try:
        asked = json.loads(await _body(request, playground.most_bytes))
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request is not JSON") from None
    known = {"text": str, "parse_special": bool}
    if not isinstance(asked, dict) or {key: type(value) for key, value in asked.items()} != known:
        raise HTTPException(400, "send an object of text (a string) and parse_special (a boolean)")
    work = partial(playground.tokenize, asked["text"], parse_special=asked["parse_special"])
    try:
        return JSONResponse(await run_in_threadpool(work))
    except InvalidTokenizerError as error:  # a regex of a tokenizer gave up on the text
        raise HTTPException(422, str(error)) from None


async def _token(playground: Playground, request: Request) -> Response:
    """Handle `?tokenizer=0&id=17`."""
    try:
        panel, token_id = (int(request.query_params[name]) for name in ("tokenizer", "id"))
    except (KeyError, ValueError):
        raise HTTPException(400, "name a tokenizer and an id, both whole numbers") from None
    try:
        found = await run_in_threadpool(playground.token, panel, token_id)
    except LookupError as error:
        raise HTTPException(404, str(error.args[0])) from None
    return JSONResponse(found)


async def _body(request: Request, most: int) -> bytes:
    """Read the body; 413 as soon as it exceeds `most`, whatever its headers say.

    408 for a body that takes longer than BODY_SECONDS: it would be held in memory.
    """
    parts = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                parts += part
                if len(parts) > most:
                    raise HTTPException(413, TOO_LONG.format(most=most))
    except TimeoutError:
        raise HTTPException(408, "the request took too long to arrive") from None
    except ClientDisconnect:  # nobody reads the answer
        raise HTTPException(400, "the request ended early") from None
    return bytes(parts)


def _error_response(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


# The server; it cannot bind another interface.

LOOPBACK = "127.0.0.1"

HEADER_SECONDS = 10.0
"""That the headers of a request may take, from the connection or from the answer before it."""

ANSWER_SECONDS = 120.0
"""That an answer may take, with the time in which the client reads it."""


class Connection(H11Protocol):
    """A connection that ends where its client takes too long; uvicorn would wait for ever."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waits_for = "IDLE"  # the client's state, as h11 names it
        self._timer = self.loop.call_later(HEADER_SECONDS, self._end)

    def handle_events(self) -> None:
        """Handle what arrived; what comes next has a time of its own, which no byte renews."""
        super().handle_events()
        state = self.conn.their_state.__name__
        if state != self._waits_for:
            self._waits_for = state
            # The application answers a body that is late, so this waits for it.
            seconds = {"IDLE": HEADER_SECONDS, "SEND_BODY": BODY_SECONDS + 1}
            self._timer.cancel()
            self._timer = self.loop.call_later(seconds.get(state, ANSWER_SECONDS), self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time too."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _end(self) -> None:
        self.transport.abort()  # `close` would wait for a client that does not read its answer


class LocalServer:
    """A page with an address; requests wait until `run` is called."""

    def __init__(self, playground: Playground, port: int = 0) -> None:
        """Bind `port` of 127.0.0.1, or any free port for 0; OSError if it is in use."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((LOOPBACK, port))
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            message = f"port {port} of {LOOPBACK} is not free ({error.strerror}); name another"
            raise OSError(f"{message}, or --port 0 for any that is") from None
        self.port: int = self._socket.getsockname()[1]
        self._app = make_app(playground, hosts=hosts_of(self.port))

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.port}/"

    def run(self, *, open_browser: bool = False) -> None:
        """Serve until Ctrl-C (or SIGTERM)."""
        config = uvicorn.Config(
            self._app,
            http=Connection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CLIENTS,
            timeout_graceful_shutdown=2,
        )
        if open_browser:
            threading.Thread(target=_open, args=(webbrowser.open, self.url), daemon=True).start()
        with self._socket, contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[self._socket])


def _open(open_page: Callable[[str], object], url: str) -> None:
    """Open the page; a browser that fails to start is no error, as the address is printed."""
    with contextlib.suppress(webbrowser.Error, OSError):
        open_page(url)


def open_playground(
    tokenizers: Mapping[str, TokenizerLike],
    samples: Mapping[str, Sequence[str]] | None = None,
    *,
    several: str = "",
    port: int = 0,
) -> LocalServer:
    """Bind a page on 127.0.0.1 that shows how tokenizers split typed text; `run` serves it.

    `tokenizers`: by the name that the page shows; paths and Hub names are loaded. `samples`: lines
    to start from, by language, and `several` a text in several scripts. `port`: 0 for any free
    port. Needs the [serve] extra.

    InvalidTokenizerError for a tokenizer of an unknown kind; OSError if the port is in use.
    """
    panels = [Panel(engine_of(tokenizer), name) for name, tokenizer in tokenizers.items()]
    return LocalServer(Playground(panels, samples_of(samples or {}, several)), port)
