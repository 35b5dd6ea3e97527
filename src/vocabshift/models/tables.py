"""The tables of a model: the tensors that have one row per token, found by its architecture alone.

The model is built twice without memory (on torch's meta device), the second time with a larger
vocabulary. A tensor whose shape differs is such a table. So biases, per-layer embeddings, MLM heads
and `final_logits_bias` are found without a list of architectures. Owns the tables as values too,
and finding those of a model in memory. torch and transformers are imported when a function runs.
Knows nothing of checkpoints, tokens or new rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from vocabshift.models.quantized import quantization_method, quantized_parts, quantized_table

if TYPE_CHECKING:
    import torch

VOCAB_KEYS = ("vocab_size", "vocab_size_per_layer_input")
"""Keys of a config that say how many rows there are; each rules tables of its own."""

BLOCK_ELEMENTS = 2**20
"""Numbers gathered at a time: 4 MiB in float32, which caches hold (eight times it: 3 x slower)."""

_MOST_MODULES = 500_000  # Kimi-K2 would have 120,000 if its experts were not fused

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


def block_length(width: int) -> int:
    """How many rows of `width` numbers are gathered at a time."""
    return max(1, BLOCK_ELEMENTS // max(width, 1))


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
            if grown and not tensor.is_floating_point():
                raise ValueError(
                    f"{model_class.__name__} has {name}, which holds integers for every token "
                    "and no weights; its vocabulary cannot be changed"
                )
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
    """Whether positions are counted from the pad token's id (RoBERTa and its kin, M2M-100).

    The id of the pad token is then part of the weights, or of the code, and may not move.
    """
    modules = dict(build_empty(model_class, config).named_modules())
    return any(
        getattr(module, "padding_idx", None) is not None and "position" in name.rpartition(".")[2]
        for name, module in modules.items()
    )


def build_empty(model_class: Any, config: Any) -> Any:
    """The model without memory for its weights; ValueError where its config does not make one."""
    import torch

    make = getattr(model_class, "_from_config", None) or model_class.from_config
    n_modules = count()

    def stop(*_: Any) -> None:
        if next(n_modules) > _MOST_MODULES:
            raise ValueError(f"it would have more than {_MOST_MODULES:,} modules")

    hook = torch.nn.modules.module.register_module_module_registration_hook(stop)
    try:
        with torch.device("meta"):
            return make(copy.deepcopy(config))
    except Exception as error:  # whatever a model's own code raises over a config
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{model_class.__name__} cannot be built from its config: {reason}"
        ) from error
    finally:
        hook.remove()


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


# The tables of a model as values; their rows may be in memory or in a file.

_CALLED = {"input": "input embeddings", "head": "output head", "bias": "biases of the head"}


@dataclass(frozen=True, eq=False)
class Table:
    """One tensor with a row per token, under every name that it has."""

    names: tuple[str, ...]
    role: str  # as in TableName
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

    ValueError for models that this cannot change: with quantized tables, on no device, or built
    by code that does not follow the config's vocab_size. TypeError for one not of transformers.
    """
    from transformers import PreTrainedModel

    name = type(model).__name__
    if not isinstance(model, PreTrainedModel):
        raise TypeError(f"{name} is no transformers model; load it with AutoModelForCausalLM")
    known = find_table_names(type(model), model.config)
    tensors = named_tensors(model)
    found: dict[int, Table] = {}
    for table in known:
        _refuse_quantized(model, table, tensors)
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
    embeddings, head = input_embeddings(model), output_embeddings(model)
    tied = head is not None and head.weight.data_ptr() == embeddings.weight.data_ptr()
    if head is not None and not tied and (at := head.weight.data_ptr()) in found:
        found[at] = replace(found[at], role="head")  # two tensors, whatever the config says
    pad_is_fixed = counts_positions_from_pad(type(model), model.config)
    return Matrices(tuple(found.values()), tied, pad_is_fixed)


def as_table(known: TableName, names: tuple[str, ...], tensor: torch.Tensor) -> Table:
    """A tensor as the table that it is; `names`: those of this tensor."""
    weight = tensor.unsqueeze(1) if tensor.dim() == 1 else tensor.movedim(known.dim, 0)
    return Table(
        names=names,
        role=known.role,
        weight=weight,
        dim=known.dim,
        beyond=known.beyond,
        follows_row_0=known.key != VOCAB_KEYS[0],
    )


def _refuse_quantized(model: Any, table: TableName, tensors: dict[str, Any]) -> None:
    """ValueError if a quantized model holds this table in a quantized form."""
    import torch

    method = quantization_method(model.config)
    floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    for alias in table.names if method is not None else ():
        parts = quantized_parts(tensors, alias, is_exact=True) if table.role != "bias" else []
        for name in (*parts, alias):
            data = tensors[name].data if name in tensors else None
            # torchao's tensors say that they are bfloat16, but their class says what they hold.
            held = data.dtype if type(data) is torch.Tensor else type(data).__name__
            if name in parts or held not in floats:
                raise quantized_table(name, held, type(model).__name__, method)
