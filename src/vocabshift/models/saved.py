"""A saved model as a value: its configs, its checkpoint, its tables over the mapped shards.

Owns the names under which a checkpoint stores the tables, and the checkpoints that are refused.
Memory does not grow with the model: rows are read on demand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import VocabMismatchError
from vocabshift.models import tables
from vocabshift.models.contents import WRAPPER_CONFIG
from vocabshift.models.folder import local_folder
from vocabshift.models.load import load_configs, model_class
from vocabshift.models.quantized import quantization_method, quantized_parts, quantized_table
from vocabshift.models.shards import FLOATS, INDEX, WEIGHTS, Checkpoint, open_checkpoint
from vocabshift.models.tables import Matrices, Table, as_table, block_length
from vocabshift.storage.hub import is_hub_name

if TYPE_CHECKING:
    import torch

    from vocabshift.models.mapped_tensor import FileMapping


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model folder, read as far as a transfer needs it."""

    folder: Path
    checkpoint: Checkpoint
    config: Any
    generation_config: Any | None
    matrices: Matrices  # tables over the mapped shards, by their names in the shards
    has_head: bool


def open_saved(source: str | Path) -> SavedModel | None:
    """The model of a folder (or Hub name), or None if its weights are not in safetensors.

    ValueError for what cannot be transferred: quantized tables, unknown architectures, damage;
    FileNotFoundError where a download fails.
    """
    if not Path(source).is_dir() and not is_hub_name(source):
        return None  # transformers says what is wrong with it
    folder = local_folder(source)
    checkpoint = open_checkpoint(folder)
    if checkpoint is None:
        return None
    config, generation = load_configs(folder)
    found_class = model_class(config)
    known = tables.find_table_names(found_class, config)
    matrices = replace(
        _stored_tables(checkpoint, known, quantization_method(config)),
        pad_is_fixed=tables.counts_positions_from_pad(found_class, config),
    )
    has_head = matrices.tied or any(table.role == "head" for table in matrices.tables)
    return SavedModel(folder, checkpoint, config, generation, matrices, has_head)


def check_whole(source: str | Path, dtype: Any = None) -> None:
    """ValueError if a model that is to be loaded and saved whole is quantized, or a GGUF file.

    transformers may dequantize it, and what is saved would be another model. `dtype`: what it is
    to be converted to, if that is the reason why it is loaded.
    """
    if (Path(source) / WRAPPER_CONFIG).is_file():
        raise ValueError(
            f"{source} is a model of GLiNER, of which {WEIGHTS} is needed (and no other dtype can "
            "be had); write it with save_pretrained(DIR, safe_serialization=True)"
        )
    method = quantization_method(load_configs(source)[0])
    if method is not None and dtype is not None:
        raise ValueError(
            f"{source} is quantized ({method}), and cannot be converted to {dtype}: leave dtype "
            "out, or transfer the unquantized checkpoint and quantize the result"
        )
    files = {file.suffix: file.name for file in sorted(Path(source).glob("*"))}
    is_gguf = ".gguf" in files and not files.keys() & {".safetensors", ".bin"}
    if method is not None or is_gguf:
        what = f"is quantized ({method})" if method is not None else f"holds {files['.gguf']}"
        raise ValueError(
            f"{source} {what} and has no {WEIGHTS} or {INDEX}. Only from these can the tables be "
            "moved and the rest be copied byte for byte; save it in this form, or transfer the "
            "unquantized checkpoint and quantize the result"
        )


def _stored_tables(
    checkpoint: Checkpoint, known: list[tables.TableName], method: str | None
) -> Matrices:
    """The tables as they are stored; aliases of one table are one where their bytes are equal.

    `method`: how the model is quantized, if its config says so.
    """
    mappings: dict[Path, FileMapping] = {}
    found: list[Table] = []
    lacking: list[str] = []
    tied = False
    places = _names_in_files(checkpoint, known, method)
    taken = {name for names in places for name in names.values()}
    for table, names in zip(known, places, strict=True):
        own: list[Table] = []
        for alias, name in names.items():
            role = "head" if table.role == "input" and alias in table.head_names else table.role
            tensor = _mapped(checkpoint, name, table, mappings)
            new = replace(as_table(table, (name,), tensor), role=role)
            same = next((each for each in own if are_equal(each, new)), None)
            if same is None:
                own.append(new)
            else:
                own[own.index(same)] = replace(same, names=(*same.names, name))
        own = [_with_copies(checkpoint, table, each, taken, mappings) for each in own]
        if not own and not table.may_be_absent:
            lacking.append(table.names[0])
        if table.role == "input":
            # Two tensors under a tied config: transformers does not tie them, and neither do we.
            tied = bool(table.head_names) and len(own) == 1
            own = [replace(each, role="input") if tied else each for each in own]
        found += own
    if lacking:
        raise ValueError(
            f"the checkpoint {checkpoint.folder} lacks {len(lacking)} tensors of the model, such "
            f"as {lacking[0]}; they would be random, unless transformers stores them under other "
            "names: then load the model and use vs.transfer"
        )
    found.sort(key=lambda table: table.role != "input")
    return Matrices(tuple(found), tied)


def _with_copies(
    checkpoint: Checkpoint,
    known: tables.TableName,
    table: Table,
    taken: set[str],
    mappings: dict[Path, FileMapping],
) -> Table:
    """The table under the names of its copies in the checkpoint, too; these are then `taken`.

    DeepSeek-V3 and others store embeddings and head again in their layer for multi-token
    prediction, which transformers leaves out and other programs read.
    """
    stored = checkpoint.tensors[table.names[0]][1]
    for name, (_, other) in checkpoint.tensors.items():
        if name in taken or table.role == "bias":
            continue
        if (other.dtype, other.shape) == (stored.dtype, stored.shape):
            copy = as_table(known, (name,), _mapped(checkpoint, name, known, mappings))
            if are_equal(copy, table):
                taken.add(name)
                table = replace(table, names=(*table.names, name))
    return table


def _names_in_files(
    checkpoint: Checkpoint, known: list[tables.TableName], method: str | None
) -> list[dict[str, str]]:
    """Of every table alias -> name in the shards, of the aliases that are stored.

    Names differ where a checkpoint was saved from another class (with or without a prefix) or by
    another transformers (wrappers; GPT-NeoX's `embed_out`): then the longest common ending
    decides, and at last the shape, where a single tensor that is nothing else has it. ValueError
    for a quantized table.
    """
    places = [_same_ending(checkpoint, table) for table in known]
    for table, names in zip(known, places, strict=True):
        if table.role != "bias":
            _refuse_quantized(checkpoint, table, names, method)
    taken = {name for names in places for name in names.values()}
    for table, names in zip(known, places, strict=True):
        if not names and not table.may_be_absent:
            fitting = [
                name
                for name, (_, stored) in checkpoint.tensors.items()
                if stored.shape == table.shape and name not in taken
            ]
            if len(fitting) == 1:
                names[table.names[0]] = fitting[0]
                taken.add(fitting[0])
    return places


def _same_ending(checkpoint: Checkpoint, table: tables.TableName) -> dict[str, str]:
    stored = checkpoint.tensors
    found = {alias: alias for alias in table.names if alias in stored}
    if found:
        return found
    for alias in table.names:
        parts = alias.split(".")
        for length in range(len(parts) - 1, 1, -1):
            ending = ".".join(parts[-length:])
            fitting = [name for name in stored if f".{name}".endswith(f".{ending}")]
            if len(fitting) == 1:
                found[alias] = fitting[0]
                break
    return found


def _refuse_quantized(
    checkpoint: Checkpoint, table: tables.TableName, names: dict[str, str], method: str | None
) -> None:
    """ValueError for a table in another dtype, or with tensors of its quantized form beside it.

    A model that does not say that it is quantized may hold anything beside a table that is there.
    """
    for alias in table.names:
        stored = names.get(alias)
        parts = [] if stored is None else [stored]
        if method is not None or not names:
            parts += quantized_parts(
                checkpoint.tensors, stored or alias, is_exact=stored is not None
            )
        for part in parts:
            dtype = checkpoint.tensors[part][1].dtype
            if part != stored or dtype not in FLOATS:
                raise quantized_table(part, dtype, checkpoint.folder, method)


def _mapped(
    checkpoint: Checkpoint,
    name: str,
    table: tables.TableName,
    mappings: dict[Path, FileMapping],
) -> torch.Tensor:
    import torch

    from vocabshift.models.mapped_tensor import FileMapping

    shard, stored = checkpoint.tensors[name]
    if stored.dtype not in FLOATS:
        raise quantized_table(name, stored.dtype, checkpoint.folder, None)
    if stored.shape != table.shape:
        raise VocabMismatchError(
            f"{name} has {stored.shape[table.dim]} rows and config.json says {table.key} "
            f"{table.shape[table.dim] - table.beyond} (shapes {stored.shape}, {table.shape}); "
            "correct config.json first"
        )
    if shard.file not in mappings:
        mappings[shard.file] = FileMapping(shard.file)
    dtype = getattr(torch, FLOATS[stored.dtype])
    return mappings[shard.file].tensor(dtype, stored.shape, stored.start)


def are_equal(one: Table, other: Table) -> bool:
    """Whether two tables hold the same numbers in the same dtype."""
    import torch

    first, second = one.weight, other.weight
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    length = block_length(first.shape[1])
    return all(
        torch.equal(first.index_select(0, ids), second.index_select(0, ids))
        for ids in torch.split(torch.arange(len(first)), length)
    )
