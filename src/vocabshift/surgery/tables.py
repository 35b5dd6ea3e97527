"""Which tensors of a model have one row per token, told by its architecture and nothing else.

Owns the probe: the model is built twice without memory (on torch's meta device), the second time
with a larger vocabulary, and a tensor whose shape differs is such a table. So biases, per-layer
embeddings, MLM heads and `final_logits_bias` are found without a list of architectures. Knows
nothing of checkpoints or tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

VOCAB_KEYS = ("vocab_size", "vocab_size_per_layer_input")
"""Keys of a config that say how many rows there are; each rules tables of its own."""

_STEP = 8  # rows that the probe adds for the first key; 16 for the second


@dataclass(frozen=True)
class TableName:
    """One table: a parameter or buffer, with every name that the model has for it."""

    names: tuple[str, ...]  # the first is the one that the model lists first
    shape: tuple[int, ...]
    dim: int  # which dimension counts tokens
    key: str  # the VOCAB_KEYS entry that rules it
    beyond: int  # rows that it has more than that key says (Mllama's input embeddings: 8)
    role: str  # "input", "head", "bias" or "further"
    head_names: frozenset[str] = frozenset()  # of `names`, those that are the head's
    may_be_absent: bool = False  # from a file: biases and buffers, which then are zeros


def config_parts(config: Any) -> Iterator[Any]:
    """The config, and the text part of a multimodal wrapper's."""
    yield config
    text = config.get_text_config()
    if text is not config:
        yield text


def find_table_names(model_class: Any, config: Any) -> list[TableName]:
    """The tables of a model of this class and config, the input embeddings first.

    ValueError where the architecture cannot be built from its config, or has no such table.
    """
    model = build_empty(model_class, config)
    tensors = named_tensors(model)
    shapes = {}
    for place, key in enumerate(VOCAB_KEYS):
        other, step = copy.deepcopy(config), _STEP * (place + 1)
        if _grow(other, key, step):
            shapes[key, step] = named_tensors(build_empty(model_class, other))
    embeddings, head = input_embeddings(model), output_embeddings(model)
    groups: dict[int, TableName] = {}
    for name, tensor in tensors.items():
        if id(tensor) in groups:
            found = groups[id(tensor)]
            groups[id(tensor)] = replace(found, names=(*found.names, name))
            continue
        for (key, step), others in shapes.items():
            grown = [
                dim
                for dim, (a, b) in enumerate(zip(tensor.shape, others[name].shape, strict=True))
                if b - a == step
            ]
            if grown:
                said = _said(config, key)
                role = _role(tensor, embeddings, head)
                shape = tuple(tensor.shape)
                beyond = shape[grown[0]] - said
                absent = role == "bias"
                groups[id(tensor)] = TableName(
                    (name,), shape, grown[0], key, beyond, role, may_be_absent=absent
                )
    tables = sorted(groups.values(), key=lambda table: table.role != "input")
    tables = [_with_head(table, model, head) for table in tables]
    if not tables or tables[0].role != "input":
        raise ValueError(
            f"{model_class.__name__} has no input embeddings whose rows follow the vocab_size of "
            "its config; its vocabulary cannot be changed"
        )
    return tables


def counts_positions_from_pad(model_class: Any, config: Any) -> bool:
    """Whether the first position is the one behind the pad token's id (RoBERTa and its kin).

    The id of the pad token is then part of the weights and may not move.
    """
    import torch

    modules = dict(build_empty(model_class, config).named_modules())
    return any(
        isinstance(module, torch.nn.Embedding)
        and module.padding_idx is not None
        and "position" in name.rpartition(".")[2]
        for name, module in modules.items()
    )


def build_empty(model_class: Any, config: Any) -> Any:
    """The model without memory for its weights; ValueError where its config does not make one."""
    import torch

    try:
        with torch.device("meta"):
            return model_class._from_config(copy.deepcopy(config))
    except Exception as error:  # whatever a model's own code raises over a config
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{model_class.__name__} cannot be built from its config: {reason}"
        ) from error


def named_tensors(model: Any) -> dict[str, Any]:
    """Every parameter and buffer by every name it has."""
    found = dict(model.named_parameters(remove_duplicate=False))
    return found | dict(model.named_buffers(remove_duplicate=False))


def input_embeddings(model: Any) -> Any:
    """The input embeddings; ValueError for a model that does not say which they are."""
    try:
        return model.get_input_embeddings()
    except NotImplementedError:
        raise ValueError(
            f"{type(model).__name__} has no input embeddings that its code names; its vocabulary "
            "cannot be changed"
        ) from None


def output_embeddings(model: Any) -> Any | None:
    """The head, or None for a model without one."""
    head = model.get_output_embeddings()
    return head if getattr(head, "weight", None) is not None else None


def _grow(config: Any, key: str, step: int) -> bool:
    grown = False
    for part in config_parts(config):
        if isinstance(vars(part).get(key), int):
            setattr(part, key, getattr(part, key) + step)
            grown = True
    return grown


def _said(config: Any, key: str) -> int:
    parts = [vars(part)[key] for part in config_parts(config) if key in vars(part)]
    return int(parts[-1])  # the text part's, where there is one


def _role(tensor: Any, embeddings: Any, head: Any) -> str:
    if tensor is embeddings.weight:
        return "input"
    if head is not None and tensor is head.weight:
        return "head"
    return "bias" if tensor.dim() == 1 or tensor.shape[0] == 1 else "further"


def _with_head(table: TableName, model: Any, head: Any) -> TableName:
    owners = {name: model.get_submodule(name.rpartition(".")[0]) for name in table.names}
    own = frozenset(name for name, owner in owners.items() if owner is head)
    return replace(table, head_names=own if table.role in ("input", "head") else frozenset())
