"""One runtime encodes texts in a process of its own, within a time limit.

A library that crashes, hangs or takes all memory over an untrusted file ends its own process and
nothing else. Owns both sides of that process: `encode_apart` starts it, `main` runs in it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vocabshift.checks.runtimes import DoesNotApplyError, Encode, Runtime

Ending = Literal["ok", "refuses", "crashes", "times out", "does not apply"]
"""What became of it. `refuses`: it raised an error, on opening the tokenizer or on some text."""

_CHILD = "import sys; from vocabshift.checks.runtime_process import main; main(sys.argv[1:])"
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True)
class Answers:
    """What a runtime answered."""

    ids: list[list[int] | None]  # of each text that it came to; None: it raised an error
    status: Ending
    reason: str  # empty if ok


def encode_apart(
    runtime: Runtime, folder: Path, texts: Sequence[str], time_limit: float
) -> Answers:
    """The ids that the runtime gives for the texts with the tokenizer in `folder`.

    `time_limit`: seconds for everything, imports included. What a library raises, prints or
    breaks is part of the answer; OSError only if no process can be started.
    """
    with tempfile.TemporaryDirectory(prefix="vocabshift-") as scratch:
        given, answers = Path(scratch) / "texts.json", Path(scratch) / "answers.jsonl"
        given.write_text(json.dumps(texts), encoding="ascii")
        opener = (runtime.open.__module__, runtime.open.__name__)
        words = [*opener, str(folder.resolve()), str(given), str(answers)]
        ending = _run([sys.executable, "-P", "-c", _CHILD, *words], time_limit)
        lines = answers.read_text(encoding="ascii").split("\n") if answers.exists() else [""]
    # The last line is empty, or was being written when the process ended.
    return _read([json.loads(line) for line in lines[:-1]], texts, ending)


def _run(command: list[str], time_limit: float) -> tuple[Ending, str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TOKENIZERS_PARALLELISM": "false",
        **dict.fromkeys(("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"), "1"),
    }
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "times out", f"not done after {time_limit:g} s"
    cause = f"exit status {done.returncode}"
    with suppress(ValueError):
        cause = signal.Signals(-done.returncode).name if done.returncode < 0 else cause
    return "crashes", cause


def _read(lines: list[list[Any]], texts: Sequence[str], ending: tuple[Ending, str]) -> Answers:
    """The answers; `ending` is how the process ended, which counts if it was not done by then."""
    kind, value = lines[0] if lines else ("", "")
    if kind == "not applicable":
        return Answers([], "does not apply", value)
    if kind == "refused":
        return Answers([], "refuses", value)
    answers = lines[1:]
    ids = [value if kind == "ids" else None for kind, value in answers]
    if len(ids) < len(texts) or not lines:
        status, cause = ending
        place = "while opening the tokenizer"
        if kind == "opened":
            shown = texts[len(ids)][:_SHOWN_CHARACTERS]
            place = f"at text {len(ids) + 1} of {len(texts)}, {shown!r}"
        return Answers(ids, status, f"{cause}, {place}")
    if refusals := [value for kind, value in answers if kind == "refused"]:
        return Answers(ids, "refuses", f"{len(refusals)} of {len(texts)} texts: {refusals[0]}")
    return Answers(ids, "ok", "")


def main(words: Sequence[str]) -> None:
    """Encode with one runtime and write its answers line by line, for `encode_apart`.

    `words`: module and function that open the folder, the folder, a JSON file with a list of texts,
    and the file to write: a kind and a value in each line. The first line is "opened", "refused" or
    "not applicable"; after "opened" follows one for each text, "ids" or "refused".
    """
    module, function, folder, texts, answers = words
    with suppress(OSError):  # if memory is short, this process is to be ended, not the caller's
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    with Path(answers).open("w", encoding="ascii") as out:

        def answer(kind: str, value: Any) -> None:
            out.write(json.dumps([kind, value]) + "\n")
            out.flush()

        try:
            encode: Encode = getattr(importlib.import_module(module), function)(Path(folder))
        except DoesNotApplyError as error:
            answer("not applicable", str(error))
            return
        except BaseException as error:  # Rust's panics are no Exception in Python
            answer("refused", _said(error))
            return
        answer("opened", None)
        for text in json.loads(Path(texts).read_bytes()):
            try:
                answer("ids", [int(token_id) for token_id in encode(text)])
            except BaseException as error:
                answer("refused", _said(error))


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
