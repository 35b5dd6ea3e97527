"""A language pack on its base: the model again, bit for bit.

Owns the check of a base and of a pack's tensors before anything is written, and the writing: shards
as the model had them, linked or copied where the base has the same file. Runs no code, and needs
neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.models.folder import local_folder
from vocabshift.models.shard_writer import NewTensor, copy_file, write_new_shard
from vocabshift.models.shards import FLOATS, WEIGHTS, Checkpoint, open_checkpoint
from vocabshift.progress import Progress
from vocabshift.storage.outcome import check_output
from vocabshift.storage.output import atomic_folder
from vocabshift.surgery.pack_manifest import (
    MANIFEST,
    TABLES,
    Manifest,
    PackedFile,
    PackedShard,
    PackedTensor,
    facts_of,
    pack_folder,
    read_manifest,
)
from vocabshift.surgery.packed_tables import (
    MAP,
    Place,
    file_blocks,
    hash_tensors,
    key_of,
    merged_rows,
    sha256_of,
)
from vocabshift.surgery.stream import check_space, finish_files

_SHOWN = 3  # tensors that an error names


@dataclass(frozen=True, eq=False)
class _Opened:
    """A pack and its base, both checked."""

    manifest: Manifest
    base: Checkpoint
    own: dict[str, Place]  # the pack's tensors


@dataclass(frozen=True, eq=False)
class _ShardPlan:
    """A file of weights before it is written."""

    shard: PackedShard
    tensors: list[NewTensor]
    same: Path | None  # the base's file, where that is the same

    @property
    def n_bytes(self) -> int:
        """Of its tensors."""
        return sum(tensor.n_bytes for tensor in self.tensors)


def read_language_pack(pack: str | Path) -> dict[str, Any]:
    """What a language pack says of itself: model, base, tables, files and sizes, as JSON values.

    `pack`: a folder or Hub name. Neither the base nor any tensor is read. FileNotFoundError where
    there is no pack, ValueError where it is damaged.
    """
    folder = pack_folder(pack)
    return {"pack": str(pack), **facts_of(read_manifest(folder))}


def apply_language_pack(
    pack: str | Path,
    base: str | Path,
    out: str | Path,
    *,
    force: bool = False,
    hard_links: bool = False,
    resume: bool = True,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the model that a language pack was made of: every tensor and file as it was.

    pack, base: folders or Hub names; neither is changed. out: the folder to write. hard_links:
    link files of weights that the base has too, where the disk can. resume: reuse the finished
    files of a run that was killed. dry_run: check everything, write nothing. progress: in bytes of
    the base that are checked.

    ValueError, before anything is written, if `base` is another model than the pack's (it says
    which tensors differ) or the pack is damaged; FileExistsError if `out` exists, without `force`;
    OSError if the disk is full. Returns the keys of `vocabshift language-pack --apply --json`.
    """
    check_output(out, pack, base, force=force)
    folder = pack_folder(pack)
    manifest = read_manifest(folder)
    base_folder = local_folder(base)
    checkpoint = open_checkpoint(base_folder)
    if checkpoint is None:
        raise ValueError(f"{base} holds no safetensors weights, and the pack's base does")
    _check_base(manifest, checkpoint, str(base), progress)
    opened = _Opened(manifest, checkpoint, _own_tensors(folder, manifest))
    plans = {shard.name: _plan(opened, shard) for shard in manifest.shards}
    files = {name: _place_of(name, at, folder, base_folder) for name, at in manifest.files.items()}
    n_linked = sum(plan.n_bytes for plan in plans.values() if plan.same) if hard_links else 0
    check_space(Path(out), (), hard_links=hard_links, n_bytes=manifest.bytes_of_model - n_linked)
    whole = "link" if hard_links else "copy"
    done = dict.fromkeys(files, "write")
    done |= {name: whole if plan.same else "write" for name, plan in plans.items()}
    if not dry_run:
        key = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()[:16]
        with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as target:
            for name in manifest.folders:
                (target / name).mkdir(parents=True, exist_ok=True)
            for name, file in files.items():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                copy_file(file, target / name)
            writers = {
                name: partial(_write, plan, hard_links=hard_links) for name, plan in plans.items()
            }
            done = dict.fromkeys(files, "written") | finish_files(writers, target, key)
            open_checkpoint(target)  # refuses an index that does not fit
    facts = facts_of(manifest) | {"pack": str(pack), "base": str(base), "files": done}
    return {"out": str(out), **facts, "dry_run": dry_run}


def _write(plan: _ShardPlan, target: Path, *, hard_links: bool) -> str:
    """Write one file of weights; what was done."""
    if plan.same is not None:
        return copy_file(plan.same, target, hard_link=hard_links)
    write_new_shard(plan.tensors, target, plan.shard.metadata)
    return "written"


def _check_base(
    manifest: Manifest, base: Checkpoint, called: str, progress: Progress | None
) -> None:
    """ValueError unless the base has every tensor that the pack needs, bit for bit."""
    wanted = manifest.base_tensors
    lacking = [name for name in wanted if name not in base.tensors]
    there = {name: base.tensors[name] for name in wanted if name in base.tensors}
    shaped = [
        name
        for name, (_, stored) in there.items()
        if (stored.dtype, stored.shape) != (wanted[name].dtype, wanted[name].shape)
    ]
    others: list[str] = []
    if not lacking and not shaped:
        digests: dict[Any, str] = {}
        hash_tensors(there.values(), progress, "base", digests)
        others = [
            name for name, place in there.items() if digests[key_of(place)] != wanted[name].sha256
        ]
    for names, what in (
        (lacking, "lacks {} of its {} tensors"),
        (shaped, "has another shape or dtype in {} of {} tensors"),
        (others, "has other numbers in {} of {} tensors"),
    ):
        if names:
            raise ValueError(
                f"{called} is not the base of this pack, {manifest.base}: it "
                f"{what.format(len(names), len(wanted))}, such as {', '.join(names[:_SHOWN])}. "
                "Give the model that the pack was made on, as it was then: no other version of it, "
                "and not with another pack applied"
            )


def _own_tensors(folder: Path, manifest: Manifest) -> dict[str, Place]:
    """The tensors in the pack; ValueError where their file is not the one that it says."""
    file = folder / TABLES / WEIGHTS
    _check_file(file, manifest.tables)
    checkpoint = open_checkpoint(folder / TABLES)
    assert checkpoint is not None  # the file is there
    for name, (_, stored) in checkpoint.tensors.items():
        if stored.dtype not in (*FLOATS, MAP):
            raise ValueError(
                f"{file} holds {name} as {stored.dtype}; rows are floating-point numbers"
            )
    return checkpoint.tensors


def _place_of(name: str, file: PackedFile, pack: Path, base: Path) -> Path:
    found = (base if file.in_base else pack) / name
    _check_file(found, file)
    return found


def _check_file(file: Path, said: PackedFile) -> None:
    if not file.is_file():
        raise ValueError(f"{file} is missing, and the language pack needs it")
    if file.stat().st_size != said.n_bytes or sha256_of(file) != said.sha256:
        whose = "base" if said.in_base else "pack"
        raise ValueError(f"{file} is not the file of the language pack: the {whose} was changed")


def _plan(opened: _Opened, shard: PackedShard) -> _ShardPlan:
    """ValueError for a source that does not make the tensor that the pack says."""
    tensors = [
        NewTensor(tensor.name, tensor.dtype, tensor.shape, *_blocks(opened, tensor))
        for tensor in shard.tensors
    ]
    return _ShardPlan(shard, tensors, _same_file(opened.base, shard))


def _blocks(
    opened: _Opened, tensor: PackedTensor
) -> tuple[int, Callable[[], Iterator[memoryview]]]:
    source, kind = tensor.source, (tensor.dtype, tensor.shape)
    theirs = _find(opened.base.tensors, opened.manifest.base_tensors, source.base)
    own = _find(opened.own, opened.own, source.own)
    if source.map is None:
        whole = own or theirs
        if whole is None or (whole[1].dtype, whole[1].shape) != kind:
            raise _damaged(tensor)
        file, stored = whole[0].file, whole[1]
        return stored.stop - stored.start, file_blocks(file, stored.start, stored.stop)
    if theirs is None or own is None or not tensor.shape:
        raise _damaged(tensor)
    row_map = _read_map(opened, tensor)
    rows, n_base = tensor.shape[0], theirs[1].shape[0] if theirs[1].shape else 0
    n_own = int((row_map < 0).sum())
    fits = [(tensor.dtype, (n, *tensor.shape[1:])) for n in (n_base, n_own)]
    kinds = [(place[1].dtype, place[1].shape) for place in (theirs, own)]
    if len(row_map) != rows or kinds != fits or not n_base or row_map.max(initial=-1) >= n_base:
        raise _damaged(tensor)
    width = (theirs[1].stop - theirs[1].start) // n_base
    starts = [(place[0].file, place[1].start) for place in (theirs, own)]
    if own[1].stop - own[1].start != n_own * width:
        raise _damaged(tensor)
    return rows * width, merged_rows(row_map, width, starts[0], starts[1])


def _find(tensors: Mapping[str, Place], known: Mapping[str, Any], name: str | None) -> Place | None:
    return tensors[name] if name is not None and name in known else None


def _read_map(opened: _Opened, tensor: PackedTensor) -> npt.NDArray[np.int32]:
    place = _find(opened.own, opened.own, tensor.source.map)
    if place is None or place[1].dtype != MAP or len(place[1].shape) != 1:
        raise _damaged(tensor)
    stored = place[1]
    count = math.prod(stored.shape)
    return np.fromfile(place[0].file, dtype="<i4", count=count, offset=stored.start)


def _damaged(tensor: PackedTensor) -> ValueError:
    return ValueError(
        f"the language pack is damaged: {tensor.name} cannot be made of {tensor.source}"
    )


def _same_file(base: Checkpoint, shard: PackedShard) -> Path | None:
    """The base's file with just these tensors in this order, all from the base."""
    wanted = [(tensor.name, tensor.source.base, tensor.source.map) for tensor in shard.tensors]
    for other in base.shards:
        if dict(other.metadata) == dict(shard.metadata) and wanted == [
            (stored.name, stored.name, None) for stored in other.tensors
        ]:
            return other.file
    return None
