"""How a verb writes its result: a folder that appears whole, with `vocabshift.json` in it.

Owns the order that all verbs keep: the folder must be free, it is taken before the work, files,
id map and provenance are written into it, and it appears when the work has succeeded. The files
themselves are each verb's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vocabshift.storage.output import atomic_folder, check_free
from vocabshift.storage.provenance import write_provenance


class HasPaths(Protocol):
    """What knows the local files that it is read from: a Corpus, a CountFolder."""

    @property
    def paths(self) -> Sequence[Path]:
        """Files and folders."""


class Savable(Protocol):
    """What writes a file of its own into a folder: an id map."""

    def save(self, folder: Path) -> object:
        """Write it."""


@dataclass(frozen=True)
class Outcome:
    """A result that is being written."""

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
        """Write `vocabshift.json` and the id map; returns what the verb reports, `out` first.

        `config` (what was asked for) and `figures` (what came out) are plain JSON values that do
        not depend on time, place or threads.
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
    """Take the folder `out` for the length of the work; it appears whole or not at all.

    `inputs`: what is read, which `out` may not replace: paths, and what has `paths`; Hub names and
    values in memory are passed over. `keep_checkpoints` and `resume`: as for `atomic_folder`.
    FileExistsError where `out` exists, without `force`; ValueError where it is an input.
    """
    target = check_output(out, *inputs, force=force)
    with atomic_folder(
        target, force=force, keep_checkpoints=keep_checkpoints, resume=resume
    ) as folder:
        yield Outcome(operation, target, folder)


def check_output(out: str | Path, *inputs: object, force: bool = False) -> Path:
    """`check_free` against everything that is read; `inputs` as for `outcome`.

    First against what was named itself: where `out` stands among the files of a corpus, that it
    exists says more.
    """
    named = [source for source in inputs if isinstance(source, str | Path)]
    check_free(out, force=force, inputs=local_paths(*named))
    return check_free(out, force=force, inputs=local_paths(*inputs))


def local_paths(*sources: object) -> list[Path]:
    """The local files and folders among `sources`: paths that exist, and `paths` of the others."""
    found: list[Path] = []
    for source in sources:
        if isinstance(source, str | Path):
            with suppress(OSError, ValueError):  # a name too long, or with a zero byte
                found += [Path(source)] if Path(source).exists() else []
        else:
            found += getattr(source, "paths", ())
    return found
