"""Move a LoRA adapter to the vocabulary of a transferred model.

Owns what of an adapter has a row per token: the rows of `trainable_token_indices`, embeddings and
head in `modules_to_save`, and their LoRA matrices. The rest passes unchanged, because `transfer`
leaves all other weights of a model as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import VocabMismatchError
from vocabshift.models.adapter import ROWS, Adapter
from vocabshift.models.load import model_class
from vocabshift.models.saved import open_saved
from vocabshift.models.tables import build_empty, find_table_names
from vocabshift.tokenizer.id_map import GONE, TokenIdMap

if TYPE_CHECKING:
    import torch

_AS_THEY_ARE = ("lora_A.weight", "lora_embedding_B")  # of a table, without a row per token


@dataclass(frozen=True, eq=False)
class MovedAdapter:
    """An adapter under the new ids, and what became of its rows."""

    adapter: Adapter
    n_moved: int  # trained rows of trainable_token_indices that were kept
    n_dropped: int  # of those, whose tokens are gone
    tables: tuple[str, ...]  # modules whose matrices have other rows now


def move_adapter(adapter: Adapter, model: Path, id_map: TokenIdMap) -> MovedAdapter:
    """The adapter of a model before its transfer, for `model`, the folder after it.

    Rows of kept tokens move to their new ids. A new token has the model's own row, unchanged by the
    adapter. ValueError (VocabMismatchError) for rows that cannot be moved.
    """
    saved = open_saved(model)
    if saved is None:
        raise ValueError(f"{model} holds no safetensors weights; save it with save_pretrained")
    empty = build_empty(model_class(saved.config), saved.config)
    names = {id(module): name for name, module in empty.named_modules()}
    embeddings = names[id(empty.get_input_embeddings())]
    head = names.get(id(empty.get_output_embeddings()))
    own = {table.role: table.weight for table in saved.matrices.tables}
    own.setdefault("head", own["input"])  # tied
    roles = {embeddings: "input"} | ({} if head in (None, embeddings) else {head: "head"})
    known = find_table_names(type(empty), saved.config)
    others = {name.rpartition(".")[0] for table in known for name in table.names} - set(roles)
    mover = _Mover(id_map, saved.matrices.rows)
    modules: dict[str, dict[str, torch.Tensor]] = {}
    config, moved, dropped, tables = dict(adapter.config), 0, 0, []
    for module, parts in adapter.modules.items():
        if module in others:
            raise ValueError(
                f"the adapter changes {module}, which has a row per token and is neither input "
                "embeddings nor head: it cannot be moved; merge it into the old model first"
            )
        if module not in roles:
            modules[module] = dict(parts)
            continue
        weights = {"weight": own[roles[module]], "bias": own.get("bias")}
        kept = {name: part for name, part in parts.items() if name != ROWS}
        modules[module] = {
            name: mover.part(module, name, part, weights) for name, part in kept.items()
        }
        tables += [module] if set(kept) - set(_AS_THEY_ARE) else []
        if ROWS in parts:
            ids = adapter.row_ids(module, embeddings)
            rows = mover.rows(ids, parts[ROWS])
            moved, dropped = moved + len(rows), dropped + len(ids) - len(rows)
            if len(rows):
                modules[module][ROWS] = rows
    given = config.get("trainable_token_indices")
    if given:
        config["trainable_token_indices"] = _renamed(given, roles, mover)
    modules = {module: parts for module, parts in modules.items() if parts}
    return MovedAdapter(Adapter(config, modules), moved, dropped, tuple(tables))


def _renamed(given: Any, tables: Iterable[str], mover: _Mover) -> Any:
    """`trainable_token_indices` under the new ids; None where none is left.

    Also of a tied head that it names beside the embeddings, and whose rows are in the file once:
    PEFT takes it for tied only while both have the same ids.
    """
    if not isinstance(given, Mapping):
        return mover.ids(given) or None
    left = {
        name: mover.ids(ids) if any(f".{table}".endswith(f".{name}") for table in tables) else ids
        for name, ids in given.items()
    }
    return {name: ids for name, ids in left.items() if ids} or None


class _Mover:
    """Moves rows by a token map."""

    def __init__(self, id_map: TokenIdMap, n_rows: int) -> None:
        import torch

        kept = (id_map.old_to_new != GONE).nonzero()[0]
        self._from, self._to = torch.from_numpy(kept), torch.from_numpy(id_map.old_to_new[kept])
        self._map, self._n_rows = id_map, n_rows

    def ids(self, ids: list[int]) -> list[int]:
        """New ids of the trained tokens that are kept, ascending."""
        return [new_id for new_id, _ in self._places(ids)]

    def rows(self, ids: list[int], rows: torch.Tensor) -> torch.Tensor:
        """Rows of the trained tokens that are kept, in the order of `ids`."""
        return rows[[place for _, place in self._places(ids)]]

    def _places(self, ids: list[int]) -> list[tuple[int, int]]:
        if ids and max(ids) >= self._map.old_size:
            raise VocabMismatchError(
                f"the adapter has a row for token {max(ids)}, and the model's vocabulary before "
                f"its transfer had {self._map.old_size} ids: it belongs to another model"
            )
        new = self._map.old_to_new[ids].tolist() if ids else []
        return sorted((new_id, place) for place, new_id in enumerate(new) if new_id != GONE)

    def part(
        self, module: str, name: str, part: torch.Tensor, weights: Mapping[str, Any]
    ) -> torch.Tensor:
        """A part of embeddings or head under the new ids."""
        import torch

        if name in _AS_THEY_ARE:
            return part
        if name.startswith("lora_magnitude_vector"):
            raise ValueError(
                f"the adapter is a DoRA of {module}, whose magnitudes belong to all tokens of the "
                "old vocabulary together; merge it into the old model first"
            )
        dim = 1 if name == "lora_embedding_A" else 0
        if part.shape[dim] < self._map.old_size:
            raise VocabMismatchError(
                f"the adapter's {module}.{name} has {part.shape[dim]} rows, and the model's "
                f"vocabulary before its transfer had {self._map.old_size} ids: it belongs to "
                "another model"
            )
        shape = list(part.shape)
        shape[dim] = self._n_rows
        if name in weights:
            own = weights[name]
            if own is None:
                raise ValueError(f"the adapter has a bias of {module}, and the model has none")
            ids = torch.arange(self._n_rows)
            new: torch.Tensor = own.index_select(0, ids).to(part.dtype).reshape(shape)
        else:
            new = part.new_zeros(shape)
        return new.index_copy(dim, self._to, part.index_select(dim, self._from))
