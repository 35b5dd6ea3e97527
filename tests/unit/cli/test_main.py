"""main: exit statuses, streams, and a fast start."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import pytest

from vocabshift.cli import main as module
from vocabshift.cli.main import main
from vocabshift.cli.options import add_verb


class FakeVerb:
    """A verb that does as the test says."""

    def __init__(self, action, status: int = 0) -> None:
        self.action, self.status = action, status

    def add_parser(self, subparsers) -> None:
        parser = add_verb(subparsers, "act", "act", "act", "  vocabshift act\n")
        parser.set_defaults(run=self.run, show=self.show, status=lambda *_: self.status)

    def run(self, args: argparse.Namespace) -> dict:
        return self.action()

    def show(self, args, result, console) -> None:
        console.print("for people")


@pytest.fixture
def act(monkeypatch, capsys):
    """Runs `vocabshift act ...`; gives (exit status, stdout, stderr)."""

    def run(action, *words: str, status: int = 0) -> tuple[int, str, str]:
        monkeypatch.setattr(module, "VERBS", (FakeVerb(action, status).add_parser,))
        code = main(["act", *words])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return run


def _raise(error: BaseException):
    def action():
        raise error

    return action


def test_json_is_alone_on_stdout(act) -> None:
    """What a library prints goes to stderr; stdout holds one object."""

    def noisy() -> dict:
        print("loading")  # noqa: T201
        return {"n": 1, "token": "क"}

    assert (0, '{"n": 1, "token": "क"}\n', "loading\n") == act(noisy, "--json")


def test_people_get_a_view(act) -> None:
    """Without --json the verb shows its result."""
    assert (0, "for people\n", "") == act(lambda: {"n": 1})


def test_a_verb_may_choose_its_status(act) -> None:
    """A status other than 0 comes after the object was printed."""
    assert (2, "{}\n", "") == act(dict, "--json", status=2)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("too\nsmall"), "too small"),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), "a.txt: No such file or"),
        (FileExistsError("out exists already"), "out exists already"),
        (IsADirectoryError(21, "Is a directory", "x"), "x: Is a directory"),
        (PermissionError(13, "Permission denied", "x"), "x: Permission denied"),
        (OSError("no such model on the Hub"), "no such model on the Hub"),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "'vocabshift[hf]'"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "position 0"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_bad_input_is_one_line_and_exit_2(act, error, line, words) -> None:
    """stdout stays empty, stderr has one line without a traceback."""
    status, out, err = act(_raise(error), *words)
    assert (2, "") == (status, out)
    assert err.startswith("vocabshift: error: ")
    assert line in err
    assert 1 == err.count("\n")


def test_a_fault_of_ours_is_exit_1(act) -> None:
    """The type, the message and the way to report it stand on one line."""
    status, out, err = act(_raise(KeyError("merges")))
    assert (1, "") == (status, out)
    assert "KeyError: 'merges'" in err
    assert "--traceback" in err
    assert 1 == err.count("\n")


def test_a_missing_module_of_ours_is_a_fault(act) -> None:
    """Only the packages of an extra are the user's to install."""
    error = ModuleNotFoundError("No module named 'vocabshift.x'", name="vocabshift.x")
    assert 1 == act(_raise(error))[0]


def test_traceback_on_demand(act, monkeypatch) -> None:
    """--traceback and VOCABSHIFT_TRACEBACK=1 show where an error arose, on stderr."""
    _, out, err = act(_raise(ValueError("x")), "--traceback")
    assert "Traceback (most recent call last)" in err
    assert err.endswith("vocabshift: error: x\n")
    monkeypatch.setenv("VOCABSHIFT_TRACEBACK", "1")
    assert "Traceback" in act(_raise(ValueError("x")))[2]
    assert "" == out


def test_ctrl_c_is_130(act) -> None:
    """An interrupt is quiet."""
    assert (130, "", "vocabshift: interrupted\n") == act(_raise(KeyboardInterrupt()))


def test_control_characters_in_a_message_are_spelled_out(act) -> None:
    """A hostile file name cannot steer the terminal."""
    assert "a\\x1b[31m" in act(_raise(ValueError("a\x1b[31m")))[2]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["train", "--vocab-size", "many"],
        ["train", "--vocab-size", "0"],
        ["train", "--transition", "1.5"],
        ["train", "--transition", "nan"],
        ["train", "--transition", "-1"],
        ["train", "--corpus"],
        ["train", "--wings", "2"],
        ["train", "--vocab", "300"],
        ["evaluate", "x"],
        ["evaluate", "--text", "x"],
        ["check"],
        ["transfer", "a", "-o", "b"],
        ["transfer", "a", "b", "-o", "c", "--init", "magic"],
        ["evaluate", "x", "--text", "y", "-j", "0"],
    ],
)
def test_bad_arguments_are_one_line_and_exit_2(words: list[str], capsys) -> None:
    """argparse's usage block is left out: --help has it, and the line says so."""
    assert 2 == main(words)
    streams = capsys.readouterr()
    assert "" == streams.out
    assert streams.err.startswith("vocabshift: error: ")
    assert "--help" in streams.err
    assert 1 == streams.err.count("\n")


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["trian"], "; did you mean train? (see: vocabshift --help)\n"),
        (["fly"], ") (see: vocabshift --help)\n"),
        (
            ["train", "--vocab-sise=9"],
            "; did you mean --vocab-size? (see: vocabshift train --help)\n",
        ),
        (["train", "-x"], ": -x (see: vocabshift train --help)\n"),
        (["serve", "--host", "a"], ": --host (see: vocabshift serve --help)\n"),
        (
            ["glitch", "m", "--indicator", "drfit"],
            "; did you mean drift? (see: vocabshift glitch --help)\n",
        ),
    ],
)
def test_a_misspelled_word_is_named_by_its_nearest(words: list[str], end: str, capsys) -> None:
    assert 2 == main(words)
    assert capsys.readouterr().err.endswith(end)


@pytest.mark.parametrize("verb", ["demo", "train", "transfer", "evaluate", "check"])
def test_help_ends_with_examples(verb: str, capsys) -> None:
    """The last lines of a verb's help are commands that its own parser accepts."""
    import shlex

    assert 0 == main([verb, "--help"])
    _, _, examples = capsys.readouterr().out.partition("examples:\n")
    commands = [shlex.split(line) for line in examples.splitlines() if line.strip()]
    assert len(commands) >= 2
    for command in commands:
        assert ["vocabshift", verb] == command[:2]
        assert verb == module.build_parser().parse_args(command[1:]).verb


def test_version(capsys) -> None:
    """--version names the version."""
    from vocabshift import __version__

    assert 0 == main(["--version"])
    assert f"vocabshift {__version__}\n" == capsys.readouterr().out


@pytest.mark.parametrize("command", ["import vocabshift", "import vocabshift.cli.main as m"])
def test_start_imports_nothing_heavy(command: str) -> None:
    """Neither the package nor the command line loads numpy, rich or larger ones.

    The help of a verb whose flags come from a registry loads that registry, and only then.
    """
    code = command + (
        "\nif 'm' in dir(): m.main(['--help']); m.main(['demo', '--help'])"
        "\nimport sys, json"
        "\nheavy = {'numpy', 'torch', 'transformers', 'tokenizers', 'rich', 'datasets'}"
        "\nprint(json.dumps(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [] == json.loads(done.stdout.splitlines()[-1])


@pytest.mark.no_tsan
def test_a_closed_pipe_is_quiet() -> None:
    """`vocabshift --help | head -c 1` leaves nothing on stderr."""
    command = f"{sys.executable} -m vocabshift train --help | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.no_tsan
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_told() -> None:
    """Output that cannot be written is an error, not silence."""
    command = f"PYTHONUNBUFFERED= {sys.executable} -m vocabshift --version > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert 0 != done.returncode
    assert "No space left on device" in done.stderr


def test_a_panic_of_tokenizers_is_one_line(act) -> None:
    """Its exception is no `Exception`; wherever it comes from, nobody sees a traceback."""

    class PanicException(BaseException):
        pass

    def panic() -> dict:
        raise PanicException("index out of bounds")

    code, out, err = act(panic)
    assert (2, "") == (code, out)
    assert err.startswith("vocabshift: error: `tokenizers` gave up on a text: index out of bounds")
    assert 1 == err.count("\n")
