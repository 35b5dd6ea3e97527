"""The embedding matrices of a model under a new vocabulary: checked, filled, put in place.

Owns which tensors of a model have one row per token (input embeddings, output head, its bias),
what is refused, and the writing of rows: kept rows are copied bit for bit, others come from an
initializer, block by block. Knows nothing of tokenizers or configs.

transformers' `resize_token_embeddings` is not used: it would initialize every row once more, does
not grow the bias of a tied head, and follows the config's idea of tying instead of the tensors'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import initialize
from vocabshift.surgery.token_map import TokenMap

if TYPE_CHECKING:
    import torch

MAX_ALIGNMENT = 128
"""Rows of a padded model stay a multiple of what they were, up to this."""


@dataclass(frozen=True)
class Matrices:
    """The modules of a model that have one row per token."""

    embeddings: Any  # torch.nn.Embedding
    head: Any | None  # torch.nn.Linear (or Embedding); None for a model without a head
    tied: bool  # one tensor for both; the tensors decide, not the config

    @property
    def rows(self) -> int:
        """Rows of the input embeddings."""
        return int(self.embeddings.weight.shape[0])


def find_matrices(model: Any) -> Matrices:
    """The input embeddings and the head of a model.

    ValueError for models that this cannot change: quantized, on no device, with a vocabulary
    table of another kind (per-layer embeddings, final_logits_bias).
    """
    name = type(model).__name__
    _refuse_kinds(model, name)
    embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
    tables = [module for module in (embeddings, head) if module is not None]
    for weight in (module.weight for module in tables):
        if weight.is_meta or not weight.is_floating_point() or weight.element_size() < 2:
            raise ValueError(
                f"the embeddings of {name} are {weight.dtype} on {weight.device}; load the model "
                "whole, as float32, float16 or bfloat16"
            )
    tied = head is not None and head.weight.data_ptr() == embeddings.weight.data_ptr()
    return Matrices(embeddings, head, tied)


def _refuse_kinds(model: Any, name: str) -> None:
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
    own = type(model).resize_token_embeddings is not PreTrainedModel.resize_token_embeddings
    if own or model.config.is_encoder_decoder:
        raise ValueError(
            f"{name} keeps further tables with one row per token, which are not handled; "
            "decoder-only models with one embedding matrix and one head are"
        )


def check_rows(matrices: Matrices, token_map: TokenMap, needed: int) -> None:
    """VocabMismatchError for too few rows, or for a row that is not finite."""
    import torch

    for what, weight in _weights(matrices):
        if weight.shape[0] < needed:
            raise VocabMismatchError(
                f"the {what} of the model: {weight.shape[0]} rows, but its tokenizer needs "
                f"{needed}; give the tokenizer that belongs to the model"
            )
    for what, weight in _weights(matrices):
        used = torch.from_numpy(token_map.old_ids).to(weight.device)
        for ids in torch.split(used, initialize.block_length(weight.shape[1])):
            finite = torch.isfinite(weight.index_select(0, ids)).all(1)
            if not bool(finite.all()):
                bad = ids[~finite].tolist()
                raise VocabMismatchError(
                    f"row {bad[0]} of the {what} of the model holds NaN or infinity (and "
                    f"{len(bad) - 1} more near it); the checkpoint is damaged, repair it first"
                )


def padded_rows(matrices: Matrices, old_rows: int, new_rows: int, multiple: int | None) -> int:
    """Rows that the model gets: the tokenizer's, padded to `multiple`.

    `None`: as the model was padded before (to its largest power of two up to 128, if at all).
    """
    if multiple is None:
        rows = matrices.rows
        multiple = 1 if rows == old_rows else min(rows & -rows, MAX_ALIGNMENT)
    return -(-new_rows // multiple) * multiple


def move_rows(
    matrices: Matrices,
    token_map: TokenMap,
    init: str,
    n_rows: int,
    *,
    seed: int = 0,
    head_map: TokenMap | None = None,
) -> None:
    """Give the model matrices of `n_rows` rows, made as `token_map` and `init` say.

    `head_map`: the map of an untied head and its bias, where their pieces or weights are others.
    """
    import torch

    head_map = head_map or token_map
    make = initialize.initializer(init)
    modules = [matrices.embeddings, *([] if matrices.head is None else [matrices.head])]
    with torch.no_grad():
        for place, module in enumerate(modules):
            if place == 0 or not matrices.tied:
                of_module = head_map if place else token_map
                weight = new_matrix(module.weight.data, of_module, make, n_rows, seed + place)
                put_parameter(module, "weight", weight)
            else:
                module.weight = modules[0].weight
            if getattr(module, "bias", None) is not None:
                column = module.bias.data.unsqueeze(1)
                bias = new_matrix(column, head_map, make, n_rows, seed + len(modules))
                put_parameter(module, "bias", bias.squeeze(1))
            for count in ("num_embeddings", "out_features"):
                if hasattr(module, count):
                    setattr(module, count, n_rows)


def put_parameter(module: Any, name: str, data: torch.Tensor) -> None:
    """Give the module a new parameter of another shape.

    Subtle: `.data = …` under a living parameter would break every autograd graph that knows it.
    """
    import torch

    old = getattr(module, name)
    setattr(module, name, torch.nn.Parameter(data, requires_grad=old.requires_grad))


def new_matrix(
    old: torch.Tensor,
    token_map: TokenMap,
    init: initialize.Initializer,
    n_rows: int,
    seed: int,
) -> torch.Tensor:
    """A matrix (n_rows, hidden) of the dtype and device of `old` (old rows, hidden).

    Every row is written once and by its id. Rows of no token (padding, holes) get the mean of the
    old rows of no token, or of all where there are none: a head never prefers them.
    """
    import torch

    device, hidden = old.device, old.shape[1]
    new = torch.empty((n_rows, hidden), dtype=old.dtype, device=device)
    used = torch.from_numpy(token_map.old_ids).to(device)

    length = initialize.block_length(hidden)
    source = torch.from_numpy(token_map.copied_from).to(device)
    target = torch.from_numpy(token_map.copied_to).to(device)
    for from_ids, to_ids in zip(
        torch.split(source, length), torch.split(target, length), strict=True
    ):
        new.index_copy_(0, to_ids, old.index_select(0, from_ids))

    if token_map.n_made:
        make_rows = init(old, used, seed)
        made = torch.from_numpy(token_map.made).to(device)
        pieces = torch.from_numpy(token_map.pieces).to(device)
        offsets = torch.from_numpy(token_map.offsets).to(device)
        by_piece = token_map.weights
        weights = None if by_piece is None else torch.from_numpy(by_piece).to(device)
        for start, stop in initialize.blocks(token_map.offsets, hidden):
            ends = offsets[start : stop + 1]
            first, last = token_map.offsets[start], token_map.offsets[stop]
            own = None if weights is None else weights[first:last]
            rows = make_rows(pieces[first:last], ends, own)
            new.index_copy_(0, made[start:stop], rows.to(old.dtype))

    empty = torch.ones(n_rows, dtype=torch.bool, device=device)
    empty[target] = False
    empty[torch.from_numpy(token_map.made).to(device)] = False
    if bool(empty.any()):
        new[empty] = _padding_row(old, used)
    return new


def _padding_row(old: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    import torch

    idle = torch.ones(len(old), dtype=torch.bool, device=old.device)
    idle[used] = False
    idle_ids = idle.nonzero().squeeze(1)
    row, _ = initialize.mean_and_std(old, idle_ids if len(idle_ids) else used)
    if not bool(torch.isfinite(row).all()):  # padding may never have been written
        row, _ = initialize.mean_and_std(old, used)
    return row.to(old.dtype)


def _weights(matrices: Matrices) -> Iterator[tuple[str, torch.Tensor]]:
    yield "input embeddings", matrices.embeddings.weight.data
    head = matrices.head
    if head is not None:
        if not matrices.tied:
            yield "output head", head.weight.data
        if getattr(head, "bias", None) is not None:
            yield "biases of the head", head.bias.data.unsqueeze(1)
