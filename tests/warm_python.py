"""Many starts of Python for the price of one: a process that has imported the package forks.

`WarmPython` starts this file as that process. A start is a fork of it, with its own arguments,
environment, working directory and files, and dies alone; it is no new interpreter, so a test that
is about the start itself needs a real one. `WarmPython.executable` stands in for `python` where
others start it, as in a shell script.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# What stands in for python: passes on its arguments and files, and ends as the fork did.
_CLIENT = """#!{python} -IS
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
start = {{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}
socket.send_fds(connection, [json.dumps(start).encode() + b"\\n"], [0, 1, 2])
with connection.makefile("rb") as answers:
    answers.readline()
    status = json.loads(answers.readline())["status"]
sys.exit(status if status >= 0 else 128 - status)
"""


class WarmProcess:
    """A start: what `subprocess.Popen` is to a real one, as far as tests need it."""

    def __init__(self, connection: socket.socket, outputs: tuple[Any, Any]) -> None:
        self._connection, self._outputs = connection, outputs
        self._answers = connection.makefile("rb", buffering=0)
        self.pid: int = json.loads(self._answers.readline())["pid"]
        self.returncode: int | None = None
        self.cpu_seconds = 0.0  # once it has ended

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        """The exit status, or minus the signal; None while it runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self._read()
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """Wait for the end; standard output and standard error."""
        self._read()
        texts = []
        for file in self._outputs:
            with file:
                file.seek(0)
                texts.append(file.read().decode())
        return texts[0], texts[1]

    def _read(self) -> None:
        if self.returncode is None:
            with self._connection, self._answers:
                end = json.loads(self._answers.readline())
            self.returncode, self.cpu_seconds = end["status"], end["cpu"]


class WarmPython:
    """A process that has imported vocabshift, all of it, and `modules`; and forks of it."""

    def __init__(self, folder: Path, *modules: str) -> None:
        # The address of a socket has room for a hundred bytes: not for every temporary folder.
        self._folder = tempfile.TemporaryDirectory(prefix="warm")
        self._address = str(Path(self._folder.name) / "socket")
        self.executable = folder / "python"
        client = _CLIENT.format(python=sys.executable, address=self._address)
        self.executable.write_text(client, encoding="utf-8")
        self.executable.chmod(0o755)
        command = [sys.executable, __file__, self._address, *modules]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"

    def start(self, argv: Sequence[str], env: Mapping[str, str]) -> WarmProcess:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        outputs = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        start = {"argv": list(argv), "env": dict(env), "cwd": str(Path.cwd())}
        with Path(os.devnull).open("rb") as nothing:
            files = [nothing.fileno(), *(file.fileno() for file in outputs)]
            socket.send_fds(connection, [json.dumps(start).encode() + b"\n"], files)
        return WarmProcess(connection, outputs)

    def close(self) -> None:
        self._server.communicate()  # it ends where its input does
        self._folder.cleanup()


def _serve(address: str, modules: Sequence[str]) -> None:
    for module in (*modules, "tokenizers", "rich.progress", "rich.table"):
        importlib.import_module(module)
    package = importlib.import_module("vocabshift")
    for name in package.__all__:  # which are imported where they are used
        getattr(package, name)
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    for source in (listener, wake, 0):
        selector.register(source, selectors.EVENT_READ)
    running: dict[int, socket.socket] = {}
    print("ready", flush=True)  # noqa: T201
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:  # whoever started us is done, or gone
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                return
            if key.fileobj == wake:
                os.read(wake, 1000)
                _report_ends(running)
                continue
            connection = listener.accept()[0]
            data, files, *_ = socket.recv_fds(connection, 1 << 16, 3)
            while not data.endswith(b"\n"):
                data += connection.recv(1 << 16)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number, file in enumerate(files):
                    os.dup2(file, number)
                os.closerange(3, max(files) + 1)
                _run(json.loads(data))
            for file in files:
                os.close(file)
            running[pid] = connection
            with contextlib.suppress(BrokenPipeError):
                connection.send(json.dumps({"pid": pid}).encode() + b"\n")


def _report_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if pid == 0:
            return
        end = {
            "status": os.waitstatus_to_exitcode(status),
            "cpu": usage.ru_utime + usage.ru_stime,
        }
        with running.pop(pid) as connection, contextlib.suppress(BrokenPipeError):
            connection.send(json.dumps(end).encode() + b"\n")


def _run(start: Mapping[str, Any]) -> None:
    """In the fork: what the interpreter does with its arguments."""
    status = 1
    try:
        os.chdir(start["cwd"])
        os.environ.clear()
        os.environ.update(start["env"])
        first, *rest = start["argv"]
        if first in ("-c", "-"):
            source = rest.pop(0) if first == "-c" else sys.stdin.read()
            sys.argv = [first, *rest]
            sys.path[0] = ""
            exec(compile(source, "<string>", "exec"), {"__name__": "__main__"})
        elif first == "-m":
            sys.argv = rest
            sys.path[0] = start["cwd"]
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = start["argv"]
            sys.path[0] = str(Path(first).resolve().parent)
            runpy.run_path(first, run_name="__main__")
        status = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            sys.stderr.write(error.code + "\n")
        else:
            status = error.code or 0
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2:])
