"""How a verb writes its result: a folder that appears whole, with `vocabshift.json` in it.

Owns the order common to all verbs: the output path must be free, it is locked before the work,
files, id map and provenance are written, and the folder appears once the work has succeeded. Each
verb writes its own files.

`vocabshift.json` says how the folder was made, in one format for every operation. It does not
depend on time, place or thread count, so equal runs write equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vocabshift.storage.hub import is_hub_name, is_there
from vocabshift.storage.output import atomic_folder, check_free

FILE = "vocabshift.json"

_ON_HUB = "hub"


def config_hash(config: Mapping[str, Any]) -> str:
    """Sixteen hex digits that identify a configuration of plain JSON values."""
    text = json.dumps(config, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """The contents of a folder's `vocabshift.json`; None if there is none.

    ValueError for a file that does not say which operation was run, with what, and to what effect.
    """
    file = folder / FILE
    if not file.exists():
        return None
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        kinds = {key: type(document[key]) for key in ("operation", "config", "figures")}
    except (ValueError, KeyError, TypeError, RecursionError):
        kinds = {}
    if kinds != {"operation": str, "config": dict, "figures": dict}:
        raise ValueError(
            f"{file} does not say how the folder was made: it is damaged, or of another program; "
            "remove it, or make the folder again"
        )
    return document


def read_history(folder: Path) -> Iterator[dict[str, Any]]:
    """The `vocabshift.json` of a model's folder, then that of the model it was made of, and so on.

    Ends at a model that has none, or that was read before.
    """
    seen: set[Path] = set()
    source: str | None = str(folder)
    while source is not None and Path(source).resolve() not in seen:
        seen.add(Path(source).resolve())
        record = read_provenance(Path(source))
        if record is None:
            return
        yield record
        source = model_before(record)


def model_before(record: Mapping[str, Any]) -> str | None:
    """The model that a recorded step began with, a folder or Hub name; None if it names none."""
    source = record["config"].get("base" if record["operation"] == "merge" else "model")
    return source if isinstance(source, str) else None


def is_model_before_on_hub(record: Mapping[str, Any]) -> bool:
    """Whether the model that a recorded step began with has a Hub name, not that of a folder.

    A folder may be gone, and its relative path look like a Hub name: so the step has recorded it.
    """
    return record.get("model_before") == _ON_HUB


def write_provenance(
    folder: Path,
    operation: str,
    config: Mapping[str, Any],
    figures: Mapping[str, Any],
    *,
    corpus_fingerprint: str | None = None,
) -> None:
    """Write `vocabshift.json` into a folder."""
    from vocabshift import __version__

    document: dict[str, Any] = {
        "version": __version__,
        "operation": operation,
        "config": config,
        "config_hash": config_hash(config),
        "corpus_fingerprint": corpus_fingerprint,
        "figures": figures,
    }
    source = model_before(document)
    if source is not None:
        is_on_hub = is_hub_name(source) and not is_there(source)
        document["model_before"] = _ON_HUB if is_on_hub else "folder"
    text = json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")


class Savable(Protocol):
    """An object that writes its own file into a folder: an id map."""

    def save(self, folder: Path) -> object:
        """Write the file."""


@dataclass(frozen=True)
class Outcome:
    """A result that is being written to its folder."""

    operation: str
    """Name of the verb, for `vocabshift.json`."""
    out: Path
    """Where the folder will appear."""
    folder: Path
    """Where to write until then."""

    def record(
        self,
        config: Mapping[str, Any],
        figures: Mapping[str, Any],
        *,
        corpus_fingerprint: str | None = None,
        id_map: Savable | None = None,
    ) -> dict[str, Any]:
        """Write `vocabshift.json` and the id map; return the verb's result, `out` first.

        `config` (the request) and `figures` (the results) are plain JSON values that do not depend
        on time, place or threads.
        """
        if id_map is not None:
            id_map.save(self.folder)
        write_provenance(
            self.folder, self.operation, config, figures, corpus_fingerprint=corpus_fingerprint
        )
        return {"out": str(self.out), **figures}


@contextmanager
def outcome(
    operation: str,
    out: str | Path,
    *,
    inputs: Iterable[object] = (),
    force: bool = False,
    keep_checkpoints: bool = False,
    resume: bool = True,
) -> Iterator[Outcome]:
    """Lock the folder `out` during the work; it appears whole or not at all.

    `inputs`: inputs that `out` may not replace: paths, and objects with `paths`; Hub names and
    values in memory are ignored. `keep_checkpoints` and `resume`: as for `atomic_folder`.
    FileExistsError if `out` exists, without `force`; ValueError if it is an input.
    """
    target = check_output(out, *inputs, force=force)
    with atomic_folder(
        target, force=force, keep_checkpoints=keep_checkpoints, resume=resume
    ) as folder:
        yield Outcome(operation, target, folder)


def check_output(out: str | Path, *inputs: object, force: bool = False) -> Path:
    """`check_free` against all inputs; `inputs` as for `outcome`.

    The inputs named by the caller are checked first: if `out` is one of the files of a corpus,
    the error that it exists is the more helpful one.
    """
    named = [source for source in inputs if isinstance(source, str | Path)]
    check_free(out, force=force, inputs=local_paths(*named))
    return check_free(out, force=force, inputs=local_paths(*inputs))


def local_paths(*sources: object) -> list[Path]:
    """The local files and folders among `sources`: existing paths, and `paths` of objects."""
    found: list[Path] = []
    for source in sources:
        if isinstance(source, str | Path):
            with suppress(OSError, ValueError):  # the name is too long, or has a zero byte
                found += [Path(source)] if Path(source).exists() else []
        else:
            found += getattr(source, "paths", ())
    return found
