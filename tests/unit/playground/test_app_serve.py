"""The socket of the page: loopback alone, and a clear word where the port is taken."""

from __future__ import annotations

import socket
import sys

import pytest

pytest.importorskip("uvicorn", reason="needs the [serve] extra")

import vocabshift
from vocabshift.cli import console
from vocabshift.cli.main import main
from vocabshift.playground.app import LocalServer
from vocabshift.playground.page import Playground


def test_it_binds_the_loopback_interface_alone(playground: Playground) -> None:
    """The address of the socket itself, at a port that was free."""
    server = LocalServer(playground)
    try:
        assert ("127.0.0.1", server.port) == server._socket.getsockname()
        assert f"http://127.0.0.1:{server.port}/" == server.url
        assert server.port > 0
    finally:
        server._socket.close()


def test_a_port_that_is_taken_is_told(playground: Playground) -> None:
    """With what to do; the command line makes one line and status 2 of it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 is not free") as found:
            LocalServer(playground, port)
    assert 2 == console.exit_status(found.value)
    assert "--port 0" in console.describe(found.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "70000"], "'70000' is not a port"),
        (["--port", "-1"], "'-1' is not a port"),
        (["--host", "0.0.0.0"], "unrecognized arguments"),
        (["b"] * 12, "the page has room for 12 tokenizers"),
    ],
)
def test_bad_arguments(capsys, words: list[str], message: str) -> None:
    """One line; there is no way to name another interface."""
    assert 2 == main(["serve", "a", *words])
    streams = capsys.readouterr()
    assert message in streams.err
    assert 1 == streams.err.count("\n")


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_which(capsys, monkeypatch, package: str) -> None:
    """The command that installs it."""
    monkeypatch.delitem(vars(vocabshift), "open_playground", raising=False)  # loaded before
    for name in [name for name in sys.modules if name.startswith("vocabshift.playground.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.applications", None)
    assert 2 == main(["serve", "anything"])
    assert "pip install 'vocabshift[serve]'" in capsys.readouterr().err


def test_help_has_two_examples(capsys) -> None:
    """As every verb's."""
    assert 0 == main(["serve", "--help"])
    assert 2 == capsys.readouterr().out.count("\n  vocabshift serve ")


def test_it_is_opened_from_python(playground: Playground, monkeypatch) -> None:
    """With the tokenizers by the names that they are given; nothing is served before `run`."""
    pages: list[Playground] = []
    monkeypatch.setattr("vocabshift.playground.app.make_app", lambda page, **_: pages.append(page))
    named = {f"my {panel.label}": panel.engine.tokenizer for panel in playground.panels}
    server = vocabshift.open_playground(named, {"hin": ["a b"]}, several="mixed")
    server._socket.close()
    start = pages[0].start()
    assert list(named) == [facts["name"] for facts in start["tokenizers"]]
    assert ["Several scripts", "Hindi"] == [sample["name"] for sample in start["samples"]]
    assert server.url.startswith("http://127.0.0.1:")
