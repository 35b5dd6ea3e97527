"""Serve the page on the loopback interface until it is interrupted (uvicorn).

Owns the socket, its address and a clean end. There is no way to bind another interface.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from vocabshift.playground.app import make_app
from vocabshift.playground.guard import hosts_of
from vocabshift.playground.page import Playground

LOOPBACK = "127.0.0.1"


class LocalServer:
    """A page with an address; requests wait until `run` is called."""

    def __init__(self, playground: Playground, port: int = 0) -> None:
        """Bind `port` of 127.0.0.1, 0 for any that is free; OSError where it is taken."""
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
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.port}/"

    def run(self, *, open_browser: bool = False) -> None:
        """Serve until Ctrl-C (or SIGTERM) ends it."""
        config = uvicorn.Config(
            self._app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        if open_browser:
            threading.Thread(target=_open, args=(webbrowser.open, self.url), daemon=True).start()
        with self._socket, contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[self._socket])


def _open(open_page: Callable[[str], object], url: str) -> None:
    """A browser that cannot be started is no fault: the address is printed."""
    with contextlib.suppress(webbrowser.Error, OSError):
        open_page(url)
