"""Language packs: what a model has and its base has not, where that is tables and tokenizer alone.

Training new rows, or all embeddings, leaves the body of a model as it was (relearnt embeddings on a
frozen body: Artetxe et al., 1910.11856). Owns the comparison of a model with its base, which files
belong to the model, and the order of writing. `packed_tables` compares rows, `pack_manifest` is the
format, `apply_pack` the way back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vocabshift import __version__
from vocabshift.models.contents import (
    CHAT_TEMPLATES,
    OF_OLD_IDS,
    WRITTEN,
    read_contents,
)
from vocabshift.models.folder import check_folder
from vocabshift.models.saved import SavedModel, open_saved
from vocabshift.models.shard_writer import copy_file, write_new_shard
from vocabshift.models.shards import INDEX, WEIGHTS, Shard
from vocabshift.progress import Progress
from vocabshift.storage.hub import is_there
from vocabshift.storage.outcome import check_output
from vocabshift.storage.output import atomic_folder
from vocabshift.surgery.pack_manifest import (
    TABLES,
    BaseTensor,
    Manifest,
    PackedFile,
    PackedShard,
    PackedTensor,
    Source,
    facts_of,
    is_allowed,
)
from vocabshift.surgery.packed_tables import (
    Key,
    PackedTable,
    Place,
    hash_tensors,
    key_of,
    pack_table,
    sha256_of,
)
from vocabshift.tokenizer.pretrained_folder import CLASS_FILE

_SHOWN = 5  # tensors that an error names
_NOT_SAFE = "no file that a language pack may bring"


def make_language_pack(
    model: str | Path,
    base: str | Path,
    out: str | Path,
    *,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write what `model` has and `base` has not as a language pack: tables and tokenizer.

    model, base: folders or Hub names, with safetensors weights. All tensors but the tables (input
    embeddings, head, its bias, per-layer embeddings) must be the same in both, bit for bit; their
    names and files may differ. out: the folder to write. dry_run: compare, and write nothing.
    progress: in bytes compared.

    `apply_language_pack` makes the model of base and pack again, bit for bit. ValueError where
    other tensors differ (it names some, and says what to do), for quantized tables, and for weights
    that are no safetensors; FileExistsError if `out` exists, without `force`. Returns the keys of
    `vocabshift language-pack --json`.
    """
    check_output(out, model, base, force=force)
    ours, theirs = _open(model), _open(base)
    digests: dict[Key, str] = {}
    for phase, saved in (("base", theirs), ("model", ours)):
        hash_tensors(saved.checkpoint.tensors.values(), progress, phase, digests)
    sources = _same_tensors(ours, theirs, digests)
    tables = [table for table in ours.matrices.tables if table.names[0] not in sources]
    # Names of one table have equal numbers, but 0 and -0 are other bytes.
    own = {name: digests[key_of(place)] for name, place in ours.checkpoint.tensors.items()}
    held = {name for table in tables for name in table.names if own[name] == own[table.names[0]]}
    _refuse_other_bodies(ours, theirs, held.union(sources))
    candidates = [
        theirs.checkpoint.tensors[table.names[0]]
        for table in theirs.matrices.tables
        if table.dim == 0
    ]
    packed = [
        pack_table(ours.checkpoint.tensors[table.names[0]], table, candidates) for table in tables
    ]
    for each in packed:
        sources = dict.fromkeys(each.table.names, each.source) | sources
    files, folders, left_out = _files(ours, theirs.folder)
    taken = {source.base for source in sources.values()}
    manifest = Manifest(
        made_by=__version__,
        model=_name(model),
        base=_name(base),
        bytes_of_model=sum(shard.n_bytes for shard in ours.checkpoint.shards)
        + sum(file.n_bytes for file in files.values()),
        base_tensors={
            name: BaseTensor(place[1].dtype, place[1].shape, digests[key_of(place)])
            for name, place in theirs.checkpoint.tensors.items()
            if name in taken
        },
        shards=tuple(_shard(shard, sources) for shard in ours.checkpoint.shards),
        files=files,
        folders=folders,
        tables=PackedFile("", sum(each.n_stored for each in packed)),
    )
    if not dry_run:
        with atomic_folder(out, force=force) as partial:
            manifest = _write(ours.folder, packed, manifest, partial)
    result = {"out": str(out), "tables": [each.about() for each in packed]}
    return result | facts_of(manifest) | {"left_out": left_out, "dry_run": dry_run}


def _write(folder: Path, packed: list[PackedTable], manifest: Manifest, partial: Path) -> Manifest:
    """Write the pack; what it says, with the hash of its tables."""
    for name in manifest.folders:
        (partial / name).mkdir(parents=True, exist_ok=True)
    for name, file in manifest.files.items():
        if not file.in_base:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            copy_file(folder / name, partial / name)
    written = partial / TABLES / WEIGHTS
    written.parent.mkdir()
    n_bytes = write_new_shard([new for each in packed for new in each.tensors()], written)
    manifest = replace(manifest, tables=PackedFile(sha256_of(written), n_bytes))
    manifest.write(partial)
    return manifest


def _open(source: str | Path) -> SavedModel:
    check_folder(source)
    saved = open_saved(source)
    if saved is None:
        raise ValueError(
            f"{source} holds no safetensors weights, and only these are compared; save it with "
            "save_pretrained of transformers first"
        )
    return saved


def _name(source: str | Path) -> str:
    """Of a folder its own name: a pack should not say where its maker keeps models."""
    return Path(source).resolve().name if is_there(source) else str(source)


def _same_tensors(
    ours: SavedModel, theirs: SavedModel, digests: Mapping[Key, str]
) -> dict[str, Source]:
    """The tensors of the model that the base has too; of several equal ones that of its name."""

    def content(place: Place) -> tuple[Any, ...]:
        return place[1].dtype, place[1].shape, digests[key_of(place)]

    by_name = {name: content(place) for name, place in theirs.checkpoint.tensors.items()}
    by_content = {what: name for name, what in by_name.items()}
    found = {}
    for name, place in ours.checkpoint.tensors.items():
        what = content(place)
        same = name if by_name.get(name) == what else by_content.get(what)
        if same is not None:
            found[name] = Source(base=same)
    return found


def _refuse_other_bodies(ours: SavedModel, theirs: SavedModel, held: set[str]) -> None:
    """ValueError if the model has tensors besides those in `held`."""
    lacking = []
    for name, (_, stored) in ours.checkpoint.tensors.items():
        there = theirs.checkpoint.tensors.get(name)
        if name in held:
            continue
        if there is None:
            why = "not in the base"
        elif (there[1].dtype, there[1].shape) != (stored.dtype, stored.shape):
            kinds = [f"{each.dtype} {list(each.shape)}" for each in (stored, there[1])]
            why = f"{kinds[0]}, in the base {kinds[1]}"
        else:
            why = "other numbers"
        lacking.append(f"{name} ({why})")
    if lacking:
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        raise ValueError(
            f"{len(lacking)} tensors of {ours.folder} besides its embeddings and head differ from "
            f"{theirs.folder}: {', '.join(lacking[:_SHOWN])}{more}. A language pack holds no part "
            "of the body. Name the base that this model was trained from, in the same dtype; if "
            "the body was trained too, pass on its LoRA adapter or the whole model"
        )


def _shard(shard: Shard, sources: Mapping[str, Source]) -> PackedShard:
    tensors = (
        PackedTensor(stored.name, stored.dtype, stored.shape, sources[stored.name])
        for stored in shard.tensors
    )
    return PackedShard(shard.file.name, shard.metadata, tuple(tensors))


def _files(
    ours: SavedModel, base: Path
) -> tuple[dict[str, PackedFile], tuple[str, ...], dict[str, str]]:
    """The files of the model other than its weights, its folders, and what is left out and why."""
    weights = [shard.file.name for shard in ours.checkpoint.shards]
    index = [] if ours.checkpoint.index is None else [INDEX]
    contents = read_contents(ours.folder, (*weights, *index))
    left_out = dict(contents.left_out)
    names = [name for name in WRITTEN if (ours.folder / name).is_file()]
    names += [*index, *contents.configs, *contents.copied]
    templates = sorted((ours.folder / CHAT_TEMPLATES).glob("*.jinja"))
    names += [f"{CHAT_TEMPLATES}/{file.name}" for file in templates]
    left_out.pop(f"{CHAT_TEMPLATES}/", None)
    for name, reason in contents.left_out.items():
        if reason in OF_OLD_IDS or name == CLASS_FILE:
            del left_out[name]
            names.append(name)
    files = {}
    for name in names:
        file, there = ours.folder / name, base / name
        own = PackedFile(sha256_of(file), file.stat().st_size)
        # The tokenizer and the configs are packed in any case: a pack opens as a tokenizer.
        may_be_there = name in contents.copied and there.is_file()
        own = replace(own, in_base=may_be_there and sha256_of(there) == own.sha256)
        if is_allowed(name, own):
            files[name] = own
        else:
            left_out[name] = _NOT_SAFE
    return files, contents.folders, left_out
