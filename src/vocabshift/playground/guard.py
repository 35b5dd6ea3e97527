"""Who may talk to the page: only itself, on this machine.

A server on the loopback interface can still be reached by any web page that the user's browser
has open: by a name that resolves to 127.0.0.1 (DNS rebinding), by a form, by a script. Owns the
checks against these and the headers that keep the page to its own files. Knows nothing of what is
served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # innerHTML and its kin throw
        "trusted-types 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_OWN = ("same-origin", "none")  # "none": typed into the address bar


def hosts_of(port: int) -> frozenset[str]:
    """What the Host header may say for a server on this port of the loopback interface."""
    names = ("127.0.0.1", "localhost")
    return frozenset(f"{name}:{port}" for name in names) | (
        frozenset(names) if port == 80 else frozenset()
    )


class Guard:
    """Refuses requests that do not come from the page itself; adds HEADERS to every answer."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":  # the server starts and stops
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
        """Why a request is refused; None where it is not."""
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return "this server answers only to its own address on this machine"
        origins = headers.getlist("origin")
        if method not in ("GET", "HEAD") and not origins:
            return "a request that sends something must name its origin"
        if any(origin.removeprefix("http://") not in self.hosts for origin in origins):
            return "this server answers only to its own page"
        site = headers.get("sec-fetch-site", "none")
        if site not in _OWN and path != "/":  # a link may lead to the page; nothing else may
            return "this server answers only to its own page"
        return None
