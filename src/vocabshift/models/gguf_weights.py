"""The weights of a GGUF file, as transformers has them.

Owns llama.cpp's names of tensors and what its converter does to their rows (conversion/llama.py,
gemma.py): those of queries and keys are reordered for llama, 1 is added to Gemma's norms. The
package gguf dequantizes rows; it is not given the file, which it would trust. Works in blocks of
rows, so memory does not grow with the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vocabshift.models.gguf_config import GEMMA
from vocabshift.models.shard_writer import NewTensor
from vocabshift.progress import PhaseProgress
from vocabshift.tokenizer.formats.gguf_header import TensorInfo

_PARTS = {  # in llama.cpp -> in transformers, of every architecture
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_NAMES = {
    **dict.fromkeys(("llama", "mistral3", "qwen2", "gemma"), _PARTS),
    "qwen3": {**_PARTS, **_HEAD_NORMS},
    "gemma2": {**_PARTS, **_FOUR_NORMS},
    "gemma3": {**_PARTS, **_FOUR_NORMS, **_HEAD_NORMS},
}

Dtype = Literal["bfloat16", "float16", "float32"]
"""Of weights as numbers."""
_STORED = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
_BLOCK_VALUES = 1 << 22  # dequantized at a time


class Expected(NamedTuple):
    """A tensor that the model has."""

    name: str  # in the folder
    shape: tuple[int, ...]
    n_heads: int = 0  # heads whose rows llama.cpp has reordered; 0 for none
    shift: float = 0.0  # to add to each value


class Weight(NamedTuple):
    """A tensor of the file that was compared with what the model has."""

    info: TensorInfo
    expected: Expected
    kind: Any  # GGMLQuantizationType
    row_bytes: int  # in the file

    @property
    def n_bytes(self) -> int:
        """Its size in the file."""
        return math.prod(self.info.shape[:-1]) * self.row_bytes


def expected_tensors(
    architecture: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, TensorInfo] | None = None,
) -> dict[str, Expected]:
    """What each tensor of a file must be, by its name there.

    ValueError where one of `tensors`, those of a file, is missing, is not one of this model, or has
    another shape.
    """
    hidden, rows, dim = config["hidden_size"], config["vocab_size"], config["head_dim"]
    inner = config["intermediate_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    out_in = {
        "attn_q": (heads * dim, hidden),
        "attn_k": (kv_heads * dim, hidden),
        "attn_v": (kv_heads * dim, hidden),
        "attn_output": (hidden, heads * dim),
        "ffn_gate": (inner, hidden),
        "ffn_up": (inner, hidden),
        "ffn_down": (hidden, inner),
        **dict.fromkeys(_HEAD_NORMS, (dim,)),
    }
    reordered = (
        {"attn_q": heads, "attn_k": kv_heads} if architecture in ("llama", "mistral3") else {}
    )
    shift = -1.0 if architecture in GEMMA else 0.0
    biased = ["attn_q", "attn_k", "attn_v"] if architecture == "qwen2" else []
    if config.get("attention_bias"):
        biased += ["attn_q", "attn_k", "attn_v", "attn_output"]
    if config.get("mlp_bias"):
        biased += ["ffn_gate", "ffn_up", "ffn_down"]
    expected = {
        "token_embd.weight": Expected("model.embed_tokens.weight", (rows, hidden)),
        "output_norm.weight": Expected("model.norm.weight", (hidden,), shift=shift),
    }
    if not config["tie_word_embeddings"]:
        expected["output.weight"] = Expected("lm_head.weight", (rows, hidden))
    for layer in range(config["num_hidden_layers"]):
        for part, own in _NAMES[architecture].items():
            shape, name = out_in.get(part, (hidden,)), f"model.layers.{layer}.{own}"
            lift = shift if part.endswith("norm") else 0.0
            expected[f"blk.{layer}.{part}.weight"] = Expected(
                f"{name}.weight", shape, reordered.get(part, 0), lift
            )
            if part in biased:
                expected[f"blk.{layer}.{part}.bias"] = Expected(
                    f"{name}.bias", shape[:1], reordered.get(part, 0)
                )
    if tensors is not None:
        _compare(architecture, expected, tensors)
    return expected


def _compare(
    architecture: str, expected: Mapping[str, Expected], tensors: Mapping[str, TensorInfo]
) -> None:
    for lacking, wrong in (
        (expected.keys() - tensors.keys(), "lacks tensors that a model of this kind has"),
        (tensors.keys() - expected.keys(), "has tensors that no such model in transformers has"),
    ):
        if lacking:
            names = sorted(lacking)
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ValueError(
                f"the GGUF file ({architecture}) {wrong}: {', '.join(names[:3])}{more}"
            )
    for name, want in expected.items():
        info = tensors[name]
        if info.shape != want.shape:
            raise ValueError(
                f"the tensor {name!r}, described at byte {info.described_at} of the GGUF file, has "
                f"the shape {list(info.shape)}, and the metadata say {list(want.shape)}"
            )


def check_weights(
    tensors: Mapping[str, TensorInfo], expected: Mapping[str, Expected], file_size: int
) -> list[Weight]:
    """The weights in the order of the file; each lies within it, and none upon another."""
    gguf = gguf_package()
    weights: list[Weight] = []
    end, before = 0, ""
    for info in sorted(tensors.values(), key=lambda info: info.start):
        where = f"the tensor {info.name!r}, described at byte {info.described_at},"
        try:
            kind = gguf.GGMLQuantizationType(info.type)
            block, size = gguf.GGML_QUANT_SIZES[kind]
            with np.errstate(all="ignore"):
                gguf.dequantize(np.zeros((1, size), np.uint8), kind)
        except (ValueError, KeyError, NotImplementedError):
            raise ValueError(
                f"{where} is of type {info.type}, which the package gguf cannot dequantize"
            ) from None
        if info.shape[-1] % block:
            raise ValueError(
                f"{where} has rows of {info.shape[-1]} values, and {kind.name} stores blocks of "
                f"{block}; the file is damaged"
            )
        weight = Weight(info, expected[info.name], kind, info.shape[-1] // block * size)
        if info.start + weight.n_bytes > file_size:
            raise ValueError(
                f"{where} is said to take bytes {info.start} to {info.start + weight.n_bytes}, "
                f"and the file ends at byte {file_size}: it is cut short or damaged"
            )
        if info.start < end:
            raise ValueError(
                f"{where} begins at byte {info.start}, inside {before!r}; the file is damaged"
            )
        end, before = info.start + weight.n_bytes, info.name
        weights.append(weight)
    return weights


def new_tensors(
    weights: Sequence[Weight], path: Path, dtype: Dtype, progress: PhaseProgress | None
) -> Iterator[NewTensor]:
    """What to write; the file at `path` is read when the bytes of a tensor are asked for.

    `progress` is called with bytes of the file. The blocks raise ValueError for values that are
    not numbers, with the byte, and for those that `dtype` cannot hold.
    """
    total, done = sum(weight.n_bytes for weight in weights), 0
    for weight in weights:

        def report(n_bytes: int, before: int = done) -> None:
            if progress is not None:
                progress(before + n_bytes, total)

        shape = weight.expected.shape
        n_bytes = math.prod(shape) * (4 if dtype == "float32" else 2)
        blocks = partial(_blocks, weight, path, dtype, report)
        yield NewTensor(weight.expected.name, _STORED[dtype], shape, n_bytes, blocks)
        done += weight.n_bytes


def _blocks(
    weight: Weight, path: Path, dtype: Dtype, report: Callable[[int], None]
) -> Iterator[memoryview]:
    """The tensor in transformers' order of rows, some at a time, as bytes."""
    info, expected = weight.info, weight.expected
    if expected.n_heads:
        n_rows = info.shape[0]
        row_bytes = weight.n_bytes // n_rows
        order = np.arange(n_rows).reshape(expected.n_heads, -1, 2).swapaxes(1, 2).ravel()
        step = n_rows  # a head's rows are spread over it
    else:
        n_rows, row_bytes, order = math.prod(info.shape[:-1]), weight.row_bytes, None
        step = max(1, _BLOCK_VALUES // info.shape[-1])
    for first in range(0, n_rows, step):
        count = min(step, n_rows - first)
        place = info.start + first * row_bytes
        raw = np.fromfile(path, np.uint8, count * row_bytes, offset=place)
        if len(raw) != count * row_bytes:
            raise ValueError("the file became shorter while it was read; convert it again")
        rows = raw.reshape(count, row_bytes)
        values = _dequantize(rows if order is None else rows[order], weight, place)
        yield cast(values, dtype, info.name).data.cast("B")
        report((first + count) * row_bytes)


def _dequantize(rows: NDArray[np.uint8], weight: Weight, place: int) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        values: NDArray[np.float32] = gguf_package().dequantize(rows, weight.kind)
    if not np.isfinite(values).all():
        raise ValueError(
            f"the tensor {weight.info.name!r} holds values that are not numbers, in the rows from "
            f"byte {place} of the GGUF file; it is damaged"
        )
    shift = weight.expected.shift
    return values + np.float32(shift) if shift else values


def cast(values: NDArray[np.float32], dtype: Dtype, name: str) -> NDArray[Any]:
    """The values as stored, rounded to the nearest, ties to even; contiguous."""
    values = np.ascontiguousarray(values, dtype="<f4")
    if dtype == "float32":
        return values
    if dtype == "float16":
        with np.errstate(over="ignore"):
            halves = values.astype("<f2")
        fits = bool(np.isfinite(halves).all())
    else:
        bits = values.view("<u4")
        halves = ((bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16).astype("<u2")
        fits = not bool(((halves & 0x7F80) == 0x7F80).any())
    if not fits:
        raise ValueError(f"the tensor {name!r} has values that {dtype} cannot hold; use float32")
    return halves


def gguf_package() -> Any:
    """The package gguf, an extra; ImportError says how to install it."""
    try:
        import gguf
    except ImportError as error:
        raise ImportError(
            "a GGUF file is converted with the package gguf; install it with: "
            "pip install 'vocabshift[gguf]'"
        ) from error
    return gguf
