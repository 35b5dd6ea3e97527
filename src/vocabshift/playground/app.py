"""The page's web application (starlette): three files of JSON, and the files beside this one.

Owns addresses, limits and how errors are told. What is answered is `page`'s, who may ask `guard`'s.
"""

from __future__ import annotations

import json
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vocabshift.playground.guard import Guard
from vocabshift.playground.page import Playground
from vocabshift.report.token_html import token_css

TOO_LONG = (
    "the text is too long for this page, which takes {most:,} bytes at most; "
    "for files there is: vocabshift evaluate"
)

TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def make_app(playground: Playground, *, hosts: frozenset[str]) -> Starlette:
    """The application; `hosts` is what the Host header may say, such as "127.0.0.1:8017"."""
    return Starlette(
        routes=[
            *(_file_route(path, name) for path, name in _files().items()),
            Route("/token_view.css", _fixed(token_css().encode(), "text/css")),
            Route("/api/start", partial(_start, playground)),
            Route("/api/tokenize", partial(_tokenize, playground), methods=["POST"]),
            Route("/api/token", partial(_token, playground)),
        ],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={HTTPException: _tell},
    )


def _files() -> dict[str, str]:
    """Names of the files of the page by their address."""
    names = (file.name for file in (files(__package__) / "static").iterdir())
    kept = sorted(name for name in names if name.rpartition(".")[2] in TYPES)
    return {"/" if name == "index.html" else f"/{name}": name for name in kept}


def _file_route(path: str, name: str) -> Route:
    body = (files(__package__) / "static" / name).read_bytes()
    return Route(path, _fixed(body, TYPES[name.rpartition(".")[2]]))


def _fixed(body: bytes, media_type: str) -> Any:
    async def endpoint(_: Request) -> Response:
        return Response(body, media_type=media_type)

    return endpoint


async def _start(playground: Playground, _: Request) -> Response:
    return JSONResponse(playground.start())


async def _tokenize(playground: Playground, request: Request) -> Response:
    """`{"text": …, "parse_special": true}`."""
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
    return JSONResponse(await run_in_threadpool(work))


async def _token(playground: Playground, request: Request) -> Response:
    """`?tokenizer=0&id=17`."""
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
    """The body; 413 as soon as it is more than `most`, whatever its headers say."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > most:
            raise HTTPException(413, TOO_LONG.format(most=most))
    return bytes(parts)


def _tell(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
