"""Do the runtimes give the ids that we give? Each is run in a process of its own, and evaluated.

Owns the texts, what the runtimes open, and the verdicts. Knows no runtime by name: `runtimes` lists
them.
"""

from __future__ import annotations

import math
import shlex
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from vocabshift.checks.runtime_process import Ending, encode_apart
from vocabshift.checks.runtimes import RUNTIMES, TIME_LIMIT, Runtime
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import excerpt, script_texts
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import (
    TokenizerLike,
    encoding_name,
    local_path,
    open_tokenizer,
    tokenizer_file,
)

TEXT_BYTES = 1 << 16
"""Bytes that are read of each language of a corpus."""

Status = Literal["wrong ids", "lost text", "not installed"] | Ending
"""Of a runtime. `wrong ids` are other tokens of the same text. `lost text`: not even the text comes
back. `refuses`: it raises an error, on opening the tokenizer or on a text."""

FAULTS: frozenset[Status] = frozenset(("wrong ids", "lost text", "crashes", "times out"))
"""What nobody should serve a model with. A refusal is safe: it is seen at once."""

_ADDED = 8  # added tokens that are tried inside a text
_SHOWN_IDS = 6
_SHOWN_CHARACTERS = 40
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Difference:
    """Where the ids of a runtime first differ from ours."""

    language: str  # label of the text
    text: str  # from a few characters before the place
    at: int  # characters before the first token that differs
    token: int  # its index
    ours: tuple[tuple[int, str], ...]  # ids from there on, each with its text
    theirs: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class RuntimeReport:
    """The verdict on one runtime and one tokenizer."""

    runtime: str  # a name in `RUNTIMES`
    status: Status  # the worst that was found
    version: str | None = None  # of the runtime; None if not installed
    texts: int = 0  # that it gave ids for
    differing: int = 0  # of these, with other ids than ours
    lost: int = 0  # of these, whose ids do not even spell the text
    reason: str = ""  # the error, or what was being done
    first: Difference | None = None  # the first text of the worst kind

    @property
    def ok(self) -> bool:
        """Whether nothing is amiss: a refusal, or a runtime that is not there, is not."""
        return self.status not in FAULTS

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def choose(runtimes: str | Sequence[str] = "all") -> tuple[Runtime, ...]:
    """The runtimes of these names ("kitoken,morpheme"), or all, in the order of the registry.

    ValueError for a name that is not known, ImportError for a named runtime that is not installed.
    """
    names = runtimes.split(",") if isinstance(runtimes, str) else list(runtimes)
    if names == ["all"]:
        return tuple(RUNTIMES.values())
    if unknown := [name for name in names if name not in RUNTIMES]:
        raise ValueError(
            f"{', '.join(map(repr, unknown))}: no such runtime; known are {', '.join(RUNTIMES)}, "
            "and all"
        )
    chosen = tuple(runtime for runtime in RUNTIMES.values() if runtime.name in names)
    if missing := [runtime for runtime in chosen if not runtime.is_installed]:
        words = dict.fromkeys(word for runtime in missing for word in runtime.install.split())
        raise ImportError(
            f"not installed: {', '.join(runtime.name for runtime in missing)} "
            f"(pip install {' '.join(map(shlex.quote, words))})"
        )
    return chosen


def check_runtimes(
    tokenizer: TokenizerLike,
    runtimes: str | Sequence[str] = "all",
    *,
    corpus: Corpus | None = None,
    time_limit: float = TIME_LIMIT,
) -> tuple[RuntimeReport, ...]:
    """Compare the ids of every runtime with ours, on texts in all scripts.

    `tokenizer`: as for `check`; a folder or a file is opened by the runtimes as it is, anything
    else as `save_pretrained` writes it. `runtimes`: "all", or names of `RUNTIMES`, in a list or
    with commas. The texts are ours, in 50 languages, with code, emoji, white space and the first
    added tokens of the tokenizer; `corpus`: further ones, the first 64 KiB of each language.
    `time_limit`: seconds that each runtime may take, in a process of its own.

    One report for each runtime, also for those that are not installed. ValueError for an unknown
    name, ImportError for a named runtime that is not installed; otherwise as `check`.
    """
    chosen = choose(runtimes)
    value = open_tokenizer(tokenizer)
    source = tokenizer if isinstance(tokenizer, str | Path) else None
    return compare_runtimes(value, source, chosen, corpus=corpus, time_limit=time_limit)


def compare_runtimes(
    tokenizer: AnyTokenizer,
    source: str | Path | None,
    runtimes: Sequence[Runtime],
    *,
    corpus: Corpus | None = None,
    time_limit: float = TIME_LIMIT,
) -> tuple[RuntimeReport, ...]:
    """The same for a tokenizer that is read already, and the path or name it came from, if any."""
    if not 0 < time_limit < math.inf:
        raise ValueError(f"time_limit is {time_limit}; give a number of seconds above 0")
    texts = _texts(tokenizer, corpus)
    with _folder_of(tokenizer, source) as folder:
        return tuple(
            _report(runtime, tokenizer, folder, texts, time_limit)
            if runtime.is_installed
            else RuntimeReport(runtime.name, "not installed")
            for runtime in runtimes
        )


Texts = Sequence[tuple[str, str]]
"""Labels and texts."""

_ADDED_LABEL = "added tokens"


def _texts(tokenizer: AnyTokenizer, corpus: Corpus | None) -> Texts:
    texts = script_texts()
    for token in tokenizer.added_tokens[:_ADDED]:
        texts.append((_ADDED_LABEL, f"{token.content}Hello {token.content} नमस्ते{token.content}\n"))
    if corpus is not None:
        for label, documents in excerpt(corpus, TEXT_BYTES).items():
            texts += [(label, document) for document in documents]
    return texts


@contextmanager
def _folder_of(tokenizer: AnyTokenizer, source: str | Path | None) -> Iterator[Path]:
    """The folder that the runtimes open; for anything but such a folder, one that is made for it.

    A file is put into it as it is, under the name that runtimes look for.
    """
    file = None if source is None or encoding_name(source) else tokenizer_file(local_path(source))
    if file is not None and file.name == "tokenizer.json" and local_path(str(source)).is_dir():
        yield file.parent
        return
    with tempfile.TemporaryDirectory(prefix="vocabshift-") as scratch:
        folder = Path(scratch) / "tokenizer"
        tokenizer.save_pretrained(folder)
        if file is not None:
            with file.open("rb") as stream:
                head = stream.read(4)
            if head == b"GGUF":
                (folder / "model.gguf").symlink_to(file.resolve())
            elif head[:1] == b"\n":
                shutil.copyfile(file, folder / "tokenizer.model")
            elif file.name == "tokenizer.json":
                shutil.copyfile(file, folder / "tokenizer.json")
        yield folder


def _report(
    runtime: Runtime, tokenizer: AnyTokenizer, folder: Path, texts: Texts, time_limit: float
) -> RuntimeReport:
    if not runtime.parses_special:
        texts = [(label, text) for label, text in texts if label != _ADDED_LABEL]
    answers = encode_apart(runtime, folder, [text for _, text in texts], time_limit)
    verdict = _compare(tokenizer, texts, answers.ids)
    status: Status = answers.status
    reason = answers.reason.replace(f"{folder.resolve()}/", "")  # it may be one that we made
    if verdict["differing"]:
        status = "lost text" if verdict["lost"] else "wrong ids"
    return RuntimeReport(runtime.name, status, runtime.version, reason=_one_line(reason), **verdict)


def _compare(
    tokenizer: AnyTokenizer, texts: Texts, answers: list[list[int] | None]
) -> dict[str, Any]:
    """The counts, and the first difference of the worst kind."""
    flat, offsets = tokenizer.encode_batch([text for _, text in texts])
    spelt = {token.id: token.content.encode() for token in tokenizer.added_tokens}
    spelt |= tokenizer.token_bytes
    counts = {"texts": 0, "differing": 0, "lost": 0}
    first: Difference | None = None
    for place, theirs in enumerate(answers[: len(texts)]):
        if theirs is None:
            continue
        ours = flat[offsets[place] : offsets[place + 1]].tolist()
        counts["texts"] += 1
        if ours == theirs:
            continue
        is_lost = _normal(ours, spelt) != _normal(theirs, spelt)
        if first is None or (is_lost and not counts["lost"]):
            first = _difference(texts[place], ours, theirs, spelt)
        counts["differing"] += 1
        counts["lost"] += is_lost
    return {**counts, "first": first}


def _normal(ids: Sequence[int], spelt: Mapping[int, bytes]) -> str:
    """The text of ids. In NFC: a runtime without the tokenizer's normalizer loses no text by it."""
    data = b"".join(spelt.get(token_id, b"\xff") for token_id in ids)
    return unicodedata.normalize("NFC", data.decode("utf-8", errors="replace"))


def _difference(
    text: tuple[str, str], ours: list[int], theirs: list[int], spelt: Mapping[int, bytes]
) -> Difference:
    pairs = zip(ours, theirs, strict=False)
    token = next(
        (i for i, (own, other) in enumerate(pairs) if own != other), min(len(ours), len(theirs))
    )
    before = b"".join(spelt.get(token_id, b"") for token_id in ours[:token])
    at = min(len(before.decode("utf-8", errors="ignore")), len(text[1]))

    def named(ids: list[int]) -> tuple[tuple[int, str], ...]:
        return tuple(
            (token_id, spelt.get(token_id, b"").decode("utf-8", errors="backslashreplace"))
            for token_id in ids[token : token + _SHOWN_IDS]
        )

    start = max(at - _SHOWN_CHARACTERS // 4, 0)
    shown = text[1][start : start + _SHOWN_CHARACTERS]
    return Difference(text[0], shown, at, token, named(ours), named(theirs))


def _one_line(text: str) -> str:
    """Safe to print: the words of a library about an untrusted file."""
    line = " ".join(text.split())
    line = "".join(character if character.isprintable() else "�" for character in line)
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"
