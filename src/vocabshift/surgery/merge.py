"""Merge a LoRA adapter into its base model: which stored tensors change, and writing them.

Owns which stored tensor an adapter's module is, which changes are made to it, and their refusal
where the merged model could not compute what base and adapter compute. A weight is read and written
in blocks of rows; beside these blocks only the change of one weight is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.models.adapter import ROWS, Adapter, change, is_transposed, plain_bytes
from vocabshift.models.load import load_configs, model_class
from vocabshift.models.quantized import quantization_method
from vocabshift.models.saved import open_saved
from vocabshift.models.shard_writer import NewTable, layout, write_all
from vocabshift.models.shards import FLOATS, Checkpoint, Shard, StoredTensor
from vocabshift.models.tables import build_empty, named_tensors
from vocabshift.surgery.stream import ShardPlan

if TYPE_CHECKING:
    import torch

_BLOCK_BYTES = 16 << 20  # of a weight in float32


@dataclass
class Change:
    """What happens to one stored tensor, in this order."""

    whole: torch.Tensor | None = None  # replaces it
    added: list[Callable[[], torch.Tensor]] = field(default_factory=list)  # made when it is needed
    rows: dict[int, torch.Tensor] = field(default_factory=dict)  # replace rows


def find_changes(
    adapter: Adapter, folder: Path, checkpoint: Checkpoint
) -> tuple[dict[str, Change], dict[str, Any]]:
    """The changes by stored name, and how many there are of each kind.

    ValueError (VocabMismatchError) for what cannot be merged into the model of this folder.
    """
    config, _ = load_configs(folder)
    model = build_empty(model_class(config), config)
    known = dict(model.named_modules())
    embeddings = next(name for name, each in known.items() if each is model.get_input_embeddings())
    head = [name for name, each in known.items() if each is model.get_output_embeddings()]
    names = _Names(checkpoint, named_tensors(model), quantization_method(config), head)
    changes: dict[str, Change] = {}
    figures = {"n_lora": 0, "n_rows": 0, "n_replaced": 0}
    touched: dict[str, set[str]] = {}
    ids: dict[str, list[int]] = {}  # of trained tokens, by module
    for module, parts in adapter.modules.items():
        if module not in known:
            raise ValueError(
                f"the adapter changes {module}, which {type(model).__name__} does not have: it "
                "belongs to another base model, or to another class of it"
            )
        for part in ("weight", "bias"):
            if part in parts:
                name = names.stored(module, part, tuple(parts[part].shape))
                changes.setdefault(name, Change()).whole = parts[part]
                touched.setdefault(name, set()).add(f"{module}.{part}")
                figures["n_replaced"] += 1
        _add_lora(adapter, module, known[module], names=names, changes=changes, touched=touched)
        figures["n_lora"] += any(part.startswith("lora_") for part in parts)
        if ROWS in parts:
            ids[module] = _add_rows(adapter, module, embeddings, names, changes)
            figures["n_rows"] += len(ids[module])
    names.check_ties(touched, ids, embeddings)
    return changes, figures


def _add_lora(
    adapter: Adapter,
    module: str,
    layer: Any,
    *,
    names: _Names,
    changes: dict[str, Change],
    touched: dict[str, set[str]],
) -> None:
    """The changes to a layer's weight and bias."""
    import torch

    parts, scaling = adapter.modules[module], adapter.scaling(module)
    is_table = "lora_embedding_A" in parts
    if not is_table and "lora_A.weight" not in parts:
        return
    kind = torch.nn.Embedding if is_table else torch.nn.Linear
    is_turned = is_table or is_transposed(layer)
    if not (isinstance(layer, kind) or (is_turned and not is_table)):
        raise ValueError(
            f"the adapter changes {module}, a {type(layer).__name__}, as {kind.__name__}: only "
            "linear layers and embeddings are merged; let PEFT do it (merge_and_unload)"
        )
    a, b = (parts[f"lora_embedding_{x}" if is_table else f"lora_{x}.weight"] for x in "AB")
    shape = (*b.shape[:-1], *a.shape[1:])  # one dimension too many if A or B is no matrix
    name = names.stored(module, "weight", shape[::-1] if is_turned else shape)
    make = partial(change, a, b, scaling, is_transposed=is_turned)
    changes.setdefault(name, Change()).added.append(make)
    touched.setdefault(name, set()).add(f"{module}.weight")
    if "lora_B.bias" in parts:
        bias = parts["lora_B.bias"]
        name = names.stored(module, "bias", tuple(bias.shape))
        changes.setdefault(name, Change()).added.append(lambda: bias.float() * scaling)


def _add_rows(
    adapter: Adapter, module: str, embeddings: str, names: _Names, changes: dict[str, Change]
) -> list[int]:
    """The rows of trained tokens; which tokens they are."""
    rows = adapter.modules[module][ROWS]
    ids = adapter.row_ids(module, embeddings)
    stored = names.copies(module, "weight", (None, *rows.shape[1:]))
    n_rows = min(names.checkpoint.tensors[name][1].shape[0] for name in stored)
    if ids and not 0 <= min(ids) <= max(ids) < n_rows:
        raise VocabMismatchError(
            f"the adapter has a row for token {max(ids)} and {module} of the base has {n_rows}: "
            "it was trained with another vocabulary; see: vocabshift transfer ADAPTER MODEL"
        )
    for name in stored:
        found = changes.setdefault(name, Change()).rows
        for token_id, row in zip(ids, rows, strict=True):
            if not bool((found.setdefault(token_id, row) == row).all()):
                raise ValueError(
                    f"the adapter has two rows for token {token_id} in the one matrix {name}"
                )
    return ids


class _Names:
    """Which stored tensor a parameter of the model is."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        tensors: Mapping[str, Any],
        method: str | None,
        head: Sequence[str],
    ) -> None:
        """`method`: how the model is quantized; `head`: the head's module, if it has one."""
        self.checkpoint, self._tensors = checkpoint, tensors
        self._method, self._head = method, head

    def stored(self, module: str, part: str, shape: tuple[int | None, ...]) -> str:
        """Its stored name; ValueError where it is not stored so that it can be changed."""
        wanted = f"{module}.{part}"
        found = next(filter(None, map(self._find, self._tied(wanted))), None)
        if found is None and module in self._head and part == "weight":
            found = self._stored_head()
        folder = self.checkpoint.folder
        if found is None:
            quantized = f", being quantized ({self._method})" if self._method else ""
            raise ValueError(
                f"the adapter changes {wanted}, which {folder} does not store as one "
                f"tensor{quantized}; merge it with PEFT (merge_and_unload)"
            )
        stored = self.checkpoint.tensors[found][1]
        if stored.dtype not in FLOATS:
            raise ValueError(
                f"{found} of {folder} is quantized ({stored.dtype}): merge the adapter into the "
                "unquantized model, and quantize the result"
            )
        if any(a not in (None, b) for a, b in zip(shape, stored.shape, strict=False)) or len(
            shape
        ) != len(stored.shape):
            raise VocabMismatchError(
                f"the adapter's {wanted} is {list(shape)} and the base's {list(stored.shape)}: it "
                "was trained on another base, or with another vocabulary"
            )
        return found

    def copies(self, module: str, part: str, shape: tuple[int | None, ...]) -> list[str]:
        """All its stored names: some checkpoints store a tied head once more."""
        places = (name.rpartition(".") for name in self._tied(f"{module}.{part}"))
        return sorted({self.stored(owner, last, shape) for owner, _, last in places})

    def _tied(self, wanted: str) -> list[str]:
        """The name of a parameter, then the others that it has in the model."""
        tensor = self._tensors.get(wanted)
        others = (name for name, other in self._tensors.items() if other is tensor)
        return list(dict.fromkeys((wanted, *others)))

    def _stored_head(self) -> str | None:
        """Its name where that is not the model's: GPT-NeoX's head is stored as `embed_out`."""
        saved = open_saved(self.checkpoint.folder)
        tables = () if saved is None else saved.matrices.tables
        return next((table.names[0] for table in tables if table.role == "head"), None)

    def _find(self, wanted: str) -> str | None:
        """The name itself, or the only one with the longest common ending and most other parts."""
        if wanted in (known := self.checkpoint.tensors):
            return wanted
        parts = wanted.split(".")
        for length in range(len(parts) - 1, 1, -1):
            ending = ".".join(parts[-length:])
            fitting = [name for name in known if f".{name}".endswith(f".{ending}")]
            if fitting:
                alike = [len({*parts} & {*name.split(".")}) for name in fitting]
                return fitting[alike.index(max(alike))] if alike.count(max(alike)) == 1 else None
        return None

    def check_ties(
        self, touched: Mapping[str, set[str]], ids: Mapping[str, list[int]], embeddings: str
    ) -> None:
        """ValueError where tied parameters would change apart; `ids`: of rows, by module.

        PEFT gives the rows of the embeddings to a tied head too, but not the other way round.
        """
        for name, wanted in touched.items():
            tied = self._tied(min(wanted))
            if len(tied) > 1:
                raise ValueError(
                    f"{' and '.join(sorted(tied))} are one tensor in the base ({name}), and the "
                    f"adapter changes {' and '.join(sorted(wanted))} as if they were several "
                    "(modules_to_save, or as a target). PEFT's merge_and_unload changes all, or "
                    "unties them; rows of trainable_token_indices can be merged"
                )
        for module, own in ids.items():
            tied = self._tied(f"{module}.weight")
            if len(tied) > 1 and {*own} != {*ids.get(embeddings, ())}:
                raise ValueError(
                    f"{' and '.join(sorted(tied))} are one tensor in the base, and the adapter "
                    f"has rows of {module} for other tokens than of {embeddings}"
                )


def plan_changes(checkpoint: Checkpoint, changes: Mapping[str, Change]) -> list[ShardPlan]:
    """The plan for every shard of the base."""
    plans = []
    for shard in checkpoint.shards:
        new = {
            stored.name: NewTable(
                stored.shape,
                stored.stop - stored.start,
                partial(_write, shard, stored, changes[stored.name]),
            )
            for stored in shard.tensors
            if stored.name in changes
        }
        size = layout(shard, new).n_bytes if new else shard.n_bytes
        plans.append(ShardPlan(shard, new, size))
    return plans


def _write(shard: Shard, stored: StoredTensor, what: Change, descriptor: int, start: int) -> None:
    """Write the changed tensor at byte `start`."""
    added = [make() for make in what.added]
    for first, block in _blocks(shard, stored, what.whole):
        last = first + len(block)
        result = block
        if added:
            result = block.float()
            for each in added:
                result += each[first:last]
        for token_id, row in what.rows.items():
            if first <= token_id < last:
                result[token_id - first] = row.to(result.dtype)
        final = result.to(block.dtype)
        if not final.isfinite().all():
            raise ValueError(
                f"{stored.name} would hold numbers that are not finite: base or adapter is broken, "
                f"or the sum is too large for {stored.dtype}"
            )
        data = plain_bytes(final)
        write_all(descriptor, memoryview(data), start + first * (len(data) // len(block)))


def _blocks(
    shard: Shard, stored: StoredTensor, whole: torch.Tensor | None
) -> Iterator[tuple[int, torch.Tensor]]:
    """(first row, rows) in the stored dtype; `whole` stands in for what is stored."""
    import torch

    kind = getattr(torch, FLOATS[stored.dtype])
    n_rows, width = stored.shape[0], max(1, int(np.prod(stored.shape[1:])))
    length = max(1, _BLOCK_BYTES // (4 * width))
    size = torch.empty((), dtype=kind).element_size()
    for first in range(0, n_rows, length):
        count = min(length, n_rows - first)
        if whole is not None:
            yield first, whole[first : first + count].to(kind)
            continue
        plain = np.fromfile(
            shard.file,
            dtype=np.uint8,
            count=count * width * size,
            offset=stored.start + first * width * size,
        )
        if len(plain) != count * width * size:
            raise ValueError(f"{shard.file} became shorter while it was read")
        yield first, torch.from_numpy(plain).view(kind).view(count, *stored.shape[1:])
