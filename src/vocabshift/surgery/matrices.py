"""The tables of a model as values: tensors with a row per token, and which of them are one.

Owns what a table is and finding those of a model in memory. Which tensors are tables `tables`
finds; whether their rows lie in memory or over a file makes no difference. Knows nothing of new
rows, tokenizers or configs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vocabshift.surgery import tables

if TYPE_CHECKING:
    import torch

_CALLED = {"input": "input embeddings", "head": "output head", "bias": "biases of the head"}


@dataclass(frozen=True, eq=False)
class Table:
    """One tensor with a row per token, under every name that it has."""

    names: tuple[str, ...]
    role: str  # as in tables.TableName
    weight: torch.Tensor  # (rows, width), tokens first whatever the tensor's own order is
    dim: int = 0  # which dimension of the tensor itself counts tokens
    beyond: int = 0  # rows that the architecture adds to the vocabulary's
    follows_row_0: bool = False  # tokens without a row share the first (Gemma 3n, per layer)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return int(self.weight.shape[0])

    @property
    def called(self) -> str:
        """What messages call it."""
        return _CALLED.get(self.role, self.names[0])


@dataclass(frozen=True, eq=False)
class Matrices:
    """The tables of a model; the input embeddings are the first."""

    tables: tuple[Table, ...]
    tied: bool  # one tensor for embeddings and head; the tensors decide, not the config
    pad_is_fixed: bool = False  # positions are counted from the id of the pad token

    @property
    def rows(self) -> int:
        """Rows for tokens in the input embeddings."""
        return self.tables[0].rows - self.tables[0].beyond


def find_matrices(model: Any) -> Matrices:
    """The tables of a model in memory.

    ValueError for models that this cannot change: quantized, on no device, or built by code that
    does not follow the config's vocab_size.
    """
    name = type(model).__name__
    refuse_kinds(model, name)
    known = tables.find_table_names(type(model), model.config)
    tensors = tables.named_tensors(model)
    found: dict[int, Table] = {}
    for table in known:
        for alias in table.names:
            tensor = tensors[alias].data
            if tensor.is_meta or not tensor.is_floating_point() or tensor.element_size() < 2:
                raise ValueError(
                    f"the embeddings of {name} are {tensor.dtype} on {tensor.device}; load the "
                    "model whole, as float32, float16 or bfloat16"
                )
            if tensor.data_ptr() in found:
                same = found[tensor.data_ptr()]
                found[tensor.data_ptr()] = replace(same, names=(*same.names, alias))
            else:
                found[tensor.data_ptr()] = as_table(table, (alias,), tensor)
    embeddings, head = tables.input_embeddings(model), tables.output_embeddings(model)
    tied = head is not None and head.weight.data_ptr() == embeddings.weight.data_ptr()
    pad_is_fixed = tables.counts_positions_from_pad(type(model), model.config)
    return Matrices(tuple(found.values()), tied, pad_is_fixed)


def as_table(known: tables.TableName, names: tuple[str, ...], tensor: torch.Tensor) -> Table:
    """A tensor as the table that it is; `names`: those of this tensor."""
    weight = tensor.unsqueeze(1) if tensor.dim() == 1 else tensor.movedim(known.dim, 0)
    return Table(
        names=names,
        role=known.role,
        weight=weight,
        dim=known.dim,
        beyond=known.beyond,
        follows_row_0=known.key != tables.VOCAB_KEYS[0],
    )


def refuse_kinds(model: Any, name: str) -> None:
    """ValueError for a quantized model, TypeError for none of transformers."""
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        raise TypeError(f"{name} is no transformers model; load it with AutoModelForCausalLM")
    if getattr(model, "hf_quantizer", None) is not None or getattr(
        model.config, "quantization_config", None
    ):
        raise ValueError(
            f"{name} is quantized, and rows of a quantized model cannot be averaged; transfer the "
            "unquantized checkpoint and quantize the result"
        )
