"""`language_pack.json`: what a language pack says of itself, and reading it without trust.

A pack is a folder: `language_pack.json`; the tensors that its base does not have, in
`tables/model.safetensors`; and the model's small files under their own names, so that a pack opens
as a tokenizer. Owns the format. A pack may come from anybody: names, numbers and files are checked
here, tensors against the base in `apply_pack`, both before anything is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from vocabshift.models.contents import may_be_packed
from vocabshift.models.shards import INDEX
from vocabshift.storage import hub
from vocabshift.storage.output import CHECKPOINTS
from vocabshift.tokenizer.pretrained_folder import CLASS_FILE, CLASS_TEXT

MANIFEST = "language_pack.json"
TABLES = "tables"
"""Folder of the pack's own tensors."""

_KIND = "vocabshift language pack"
_FORMAT = 1
_MAX_BYTES = 256 << 20  # of language_pack.json: a hundred bytes for each of two million tensors

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """Where the bytes of a tensor come from.

    Only `base`: all of that tensor of the base. Only `own`: all of that tensor of the pack. All
    three: row i is row `map[i]` of `base`, or the next row of `own` where `map[i]` is -1.
    """

    base: str | None = None
    own: str | None = None
    map: str | None = None


@dataclass(frozen=True)
class PackedTensor:
    """A tensor of the model."""

    name: str
    dtype: str  # as safetensors spells it
    shape: tuple[int, ...]
    source: Source


@dataclass(frozen=True)
class PackedShard:
    """A file of the model's weights."""

    name: str
    metadata: Mapping[str, str]
    tensors: tuple[PackedTensor, ...]  # in file order


@dataclass(frozen=True)
class BaseTensor:
    """A tensor that the base must have."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class PackedFile:
    """A file of the model other than its weights."""

    sha256: str
    n_bytes: int
    in_base: bool = False  # and not in the pack: the base has the same


@dataclass(frozen=True)
class Manifest:
    """Everything that a pack says."""

    made_by: str  # version of vocabshift
    model: str  # names, for people
    base: str
    bytes_of_model: int
    base_tensors: Mapping[str, BaseTensor]
    shards: tuple[PackedShard, ...]
    files: Mapping[str, PackedFile]  # path below the model's folder, with "/"
    folders: tuple[str, ...]
    tables: PackedFile  # the file of the pack's own tensors

    def write(self, folder: Path) -> None:
        """Write `language_pack.json`."""
        document = {"kind": _KIND, "format": _FORMAT, **asdict(self)}
        text = json.dumps(document, ensure_ascii=False, indent=1)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def pack_folder(pack: str | Path) -> Path:
    """The folder of a pack, downloaded if it has a Hub name; FileNotFoundError where it is none."""
    folder = Path(pack)
    if not hub.is_there(pack):
        folder = hub.download(str(pack), ["*"], wanted="give the language pack")
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(
            f"{pack} is no language pack: it holds no {MANIFEST}; make one with "
            "vocabshift language-pack MODEL --base BASE -o DIR"
        )
    return folder


def read_manifest(folder: Path) -> Manifest:
    """What the pack in `folder` says; ValueError where that is damaged, or no name to be written.

    Only `language_pack.json` is read.
    """
    file = folder / MANIFEST
    if file.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{file} is damaged: it is larger than {_MAX_BYTES >> 20} MiB")
    try:
        document = json.loads(file.read_bytes())
        if document["kind"] != _KIND:
            raise ValueError(f"its kind is not {_KIND!r}")
        if document["format"] != _FORMAT:
            raise ValueError(f"its format is {document['format']!r}, and this reads {_FORMAT}")
        return _manifest(document)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{file} is damaged, or of another version: {reason[:300]}") from None


def facts_of(manifest: Manifest) -> dict[str, Any]:
    """What a pack is, as JSON values."""
    own = sum(file.n_bytes for file in manifest.files.values() if not file.in_base)
    return {
        "model": manifest.model,
        "base": manifest.base,
        "n_base_tensors": len(manifest.base_tensors),
        "bytes_of_model": manifest.bytes_of_model,
        "bytes_of_pack": manifest.tables.n_bytes + own,
        "files": {
            name: "in the base" if file.in_base else "packed"
            for name, file in manifest.files.items()
        },
    }


def is_writable(name: str) -> bool:
    """Whether a file of a model may have this path in a pack and below an output folder."""
    parts = PurePosixPath(name).parts
    is_plain = PurePosixPath(name).as_posix() == name and not name.startswith("/")
    is_hidden = any(part.startswith(".") for part in parts)  # ".." too
    is_taken = not parts or parts[0] in (MANIFEST, TABLES, CHECKPOINTS)
    return is_plain and not is_hidden and not is_taken and "\\" not in name and name.isprintable()


def is_allowed(name: str, file: PackedFile) -> bool:
    """Whether a pack may name this file: no code but the class that `transfer` itself writes beside
    some tokenizers, no pickles, and nothing outside of the folder."""
    own_class = hashlib.sha256(CLASS_TEXT.encode()).hexdigest()
    is_own_class = name == CLASS_FILE and file.sha256 == own_class
    return is_writable(name) and (
        file.in_base or name == INDEX or may_be_packed(name) or is_own_class
    )


def _manifest(document: Mapping[str, Any]) -> Manifest:
    shards = tuple(map(_shard, document["shards"]))
    names = [tensor.name for shard in shards for tensor in shard.tensors]
    files = _table(document["files"], _file)
    _distinct("tensors", names)
    _distinct("files", [*(shard.name for shard in shards), *files])
    for name, file in files.items():
        if not is_allowed(name, file):
            raise ValueError(f"{name!r} is no file that a pack may bring")
    folders = tuple(map(_text, document["folders"]))
    for name in folders:
        if not is_writable(name):
            raise ValueError(f"{name!r} is no folder that a pack may bring")
    return Manifest(
        made_by=_text(document["made_by"]),
        model=_text(document.get("model")),
        base=_text(document["base"]),
        bytes_of_model=_count(document["bytes_of_model"]),
        base_tensors=_table(document["base_tensors"], _base_tensor),
        shards=shards,
        files=files,
        folders=folders,
        tables=_file(document["tables"]),
    )


def _shard(value: Mapping[str, Any]) -> PackedShard:
    name = _text(value["name"])
    if not name.endswith(".safetensors") or "/" in name or not is_writable(name):
        raise ValueError(f"{name!r} is no name of a file of weights")
    metadata = _table(value["metadata"], _text)
    return PackedShard(name, metadata, tuple(map(_tensor, value["tensors"])))


def _tensor(value: Mapping[str, Any]) -> PackedTensor:
    given = {key: None if name is None else _text(name) for key, name in value["source"].items()}
    source = Source(**given)
    if (source.map is None) != (source.base is None or source.own is None):
        raise ValueError(f"the source of {value['name']!r} is no source: {given}")
    if source.base is None and source.own is None:
        raise ValueError(f"{value['name']!r} has no source")
    return PackedTensor(_text(value["name"]), _text(value["dtype"]), _shape(value["shape"]), source)


def _base_tensor(value: Mapping[str, Any]) -> BaseTensor:
    return BaseTensor(_text(value["dtype"]), _shape(value["shape"]), _hash(value["sha256"]))


def _file(value: Mapping[str, Any]) -> PackedFile:
    in_base = value["in_base"]
    if not isinstance(in_base, bool):
        raise ValueError(f"in_base is {in_base!r}")
    return PackedFile(_hash(value["sha256"]), _count(value["n_bytes"]), in_base)


def _table(value: Mapping[str, Any], read: Callable[[Any], T]) -> dict[str, T]:
    return {_text(name): read(each) for name, each in value.items()}


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no shape")
    return tuple(map(_count, value))


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{value!r} is no count")
    return value


def _hash(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise ValueError(f"{value!r} is no sha256")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    value.encode()  # no lone surrogates: a UnicodeEncodeError is a ValueError
    return value


def _distinct(what: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"two {what} have one name")
