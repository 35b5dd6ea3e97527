"""The two tables of a saved model that have a row for each token, read block by block.

Owns which tensors of the safetensors files are the input embeddings and the output head (by the
names that causal language models store them under), and their conversion to float32. Nothing else
of the model is read, and never more than a block of rows at a time. Knows nothing of indicators.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import VocabMismatchError
from vocabshift.models.shards import FLOATS, Checkpoint, Shard, StoredTensor, open_checkpoint

Floats = npt.NDArray[np.float32]

_INPUTS = (
    "embed_tokens",
    "wte",
    "word_embeddings",
    "embed_in",
    "tok_embeddings",
    "embeddings",
    "embedding",
    "shared",
)
_HEADS = ("lm_head", "embed_out", "output", "head", "score", "decoder")
_STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_BLOCK_BYTES = 16 << 20  # of a block in float32: what is done with it stays near the caches


@dataclass(frozen=True, eq=False)
class RowTable:
    """One matrix (rows, width) in a file."""

    name: str
    shard: Shard
    stored: StoredTensor

    @property
    def rows(self) -> int:
        """Rows: one for each token, and padding."""
        return self.stored.shape[0]

    @property
    def width(self) -> int:
        """Numbers in a row; 1 for a bias."""
        return self.stored.shape[1] if len(self.stored.shape) > 1 else 1

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """(first row, rows as float32), in order; the blocks may be changed."""
        length = max(1, _BLOCK_BYTES // (4 * max(self.width, 1)))
        for start in range(0, self.rows, length):
            yield start, self._read(start, min(start + length, self.rows))

    def take(self, ids: npt.NDArray[np.int64]) -> Floats:
        """The rows of some ids, (n, width); neighbours are read together."""
        if not len(ids):
            return np.zeros((0, self.width), dtype=np.float32)
        edges = (np.flatnonzero(np.diff(ids) != 1) + 1).tolist()
        runs = zip([0, *edges], [*edges, len(ids)], strict=True)
        return np.concatenate([self._read(int(ids[a]), int(ids[b - 1]) + 1) for a, b in runs])

    def digest(self, into: Any) -> None:
        """Feed the bytes as they are stored to a hash."""
        kind = np.dtype(_STORED[self.stored.dtype])
        with self.shard.file.open("rb") as stream:
            stream.seek(self.stored.start)
            left = self.rows * self.width * kind.itemsize
            while left and (data := stream.read(min(left, _BLOCK_BYTES))):
                into.update(data)
                left -= len(data)

    def _read(self, start: int, stop: int) -> Floats:
        kind = np.dtype(_STORED[self.stored.dtype])
        count = (stop - start) * self.width
        place = self.stored.start + start * self.width * kind.itemsize
        plain = np.fromfile(self.shard.file, dtype=kind, count=count, offset=place)
        if len(plain) != count:
            raise ValueError(f"{self.shard.file} became shorter while it was read")
        if self.stored.dtype == "BF16":  # the upper half of a float32
            plain = (plain.astype(np.uint32) << 16).view(np.float32)
        found = plain.astype(np.float32, copy=False).reshape(stop - start, self.width)
        if not np.isfinite(found).all():
            bad = start + int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
            raise ValueError(
                f"row {bad} of {self.name} in {self.shard.file.name} holds a number that is not "
                "finite: the model is broken there"
            )
        return found


@dataclass(frozen=True, eq=False)
class ModelTables:
    """What a model has for its tokens."""

    folder: Path
    embeddings: RowTable
    head: RowTable  # the embeddings themselves, where these are tied
    bias: RowTable | None  # of the head
    tied: bool

    def hash(self) -> str:
        """Sixteen hex digits of both tables' bytes."""
        digest = hashlib.blake2b(digest_size=8)
        self.embeddings.digest(digest)
        if not self.tied:
            self.head.digest(digest)
        return digest.hexdigest()


def open_tables(model: str | Path, n_tokens: int) -> ModelTables:
    """The tables of a model folder (or Hub name); `n_tokens`: rows that its tokenizer needs.

    ValueError for weights that are no safetensors, damaged, quantized, or without such tables;
    VocabMismatchError where they have fewer rows than the tokenizer has ids.
    """
    folder = local_folder(model)
    checkpoint = open_checkpoint(folder)
    if checkpoint is None:
        raise ValueError(
            f"{folder} holds no safetensors weights, which are read without loading the model; "
            "save it with save_pretrained of transformers first"
        )
    config = _config(folder)
    matrices = {
        name: entry for name, entry in checkpoint.tensors.items() if name.endswith(".weight")
    }
    embeddings = _table(folder, matrices, _INPUTS, "input embeddings", n_tokens)
    assert embeddings is not None
    head = _table(folder, matrices, _HEADS, "output head", n_tokens, like=embeddings)
    if head is None and _says_untied(config):
        raise ValueError(
            f"config.json of {folder} says that the output head is its own, and the weights hold "
            "none: this is no causal language model, or its head is missing"
        )
    tied = head is None or _same_bytes(embeddings, head)
    if tied or head is None:
        head = embeddings
    return ModelTables(folder, embeddings, head, _bias(checkpoint, head), tied)


def local_folder(model: str | Path) -> Path:
    """The folder itself, or the files of a Hub name; FileNotFoundError where there is neither."""
    path = Path(model)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise FileNotFoundError(f"{model} is no model folder: it holds no config.json")
        return path
    if path.exists():
        raise FileNotFoundError(f"{model} is a file; name the folder of a model")
    try:
        from huggingface_hub import snapshot_download

        patterns = ["*.safetensors", "*.json", "*.jinja", "*.model"]
        return Path(snapshot_download(str(model), allow_patterns=patterns, ignore_patterns=["*/*"]))
    except Exception as error:  # whatever the Hub client raises
        reason = " ".join(str(error).split())[:160]
        raise FileNotFoundError(
            f"{model} is no model folder here, and the Hub does not give it: {reason}"
        ) from None


def _table(
    folder: Path,
    tensors: Mapping[str, tuple[Shard, StoredTensor]],
    owners: tuple[str, ...],
    what: str,
    n_tokens: int,
    *,
    like: RowTable | None = None,
) -> RowTable | None:
    """The one matrix with such an owner; None for a head that is not there."""
    named = {
        name: entry
        for name, entry in tensors.items()
        if f".{name}".split(".")[-2] in owners and len(entry[1].shape) == 2
    }
    if like is None and not named:
        raise ValueError(
            f"no tensor of {folder} is called as {what} are ({', '.join(_INPUTS)}): this kind of "
            "model is not known"
        )
    found = {name: entry for name, entry in named.items() if entry[1].shape[0] >= n_tokens}
    if like is not None:
        found = {
            n: e for n, e in found.items() if n != like.name and e[1].shape == like.stored.shape
        }
    if not found:
        if like is not None:
            return None
        rows = max(entry[1].shape[0] for entry in named.values())
        raise VocabMismatchError(
            f"the tokenizer beside the model has ids up to {n_tokens - 1}, and the {what} of "
            f"{folder} have {rows} rows: they are not each other's"
        )
    tables = [RowTable(name, *entry) for name, entry in sorted(found.items())]
    for table in tables:
        if table.stored.dtype not in FLOATS:
            raise ValueError(
                f"{table.name} is stored as {table.stored.dtype}; rows of a quantized model are "
                "not comparable: look at the checkpoint that it was made from"
            )
    if any(not _same_bytes(tables[0], other) for other in tables[1:]):
        raise ValueError(
            f"several tensors of {folder} could be the {what}: "
            f"{', '.join(table.name for table in tables)}; this kind of model is not known"
        )
    return tables[0]


def _bias(checkpoint: Checkpoint, head: RowTable) -> RowTable | None:
    """The bias of the head, where it has one."""
    names = [head.name.removesuffix("weight") + "bias", "lm_head.bias"]
    for name in names:
        entry = checkpoint.tensors.get(name)
        if entry is not None and entry[1].shape == (head.rows,) and entry[1].dtype in FLOATS:
            return RowTable(name, *entry)
    return None


def _same_bytes(one: RowTable, other: RowTable) -> bool:
    if one.stored.shape != other.stored.shape or one.stored.dtype != other.stored.dtype:
        return False
    pairs = zip(one.blocks(), other.blocks(), strict=True)
    return all(np.array_equal(a, b) for (_, a), (_, b) in pairs)


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{folder / 'config.json'} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{folder / 'config.json'} holds no JSON object")
    return config


def _says_untied(config: Mapping[str, Any]) -> bool:
    """Whether the config says so outright; left out, it depends on the architecture."""
    text = config.get("text_config")
    said = [config.get("tie_word_embeddings")]
    said += [text.get("tie_word_embeddings")] if isinstance(text, dict) else []
    return False in said and True not in said
