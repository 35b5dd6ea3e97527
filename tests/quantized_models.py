"""Small checkpoints in the layouts of quantizers: names, dtypes, shapes and configs as they export.

The codes are random where nobody decodes them. Those of "fp8" and "mxfp4", which transformers can
dequantize on the CPU, mean the numbers of the model. `REFUSED` are layouts whose tables are
quantized, with the tensor by which they are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from safetensors.torch import save_file

import small_models
from vocabshift.tokenizer.tokenizer import Tokenizer

Tensors = dict[str, torch.Tensor]
WIDTH = 32
_SIZES = {"hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 2}
_LINEAR = "_proj.weight"
FP8 = torch.float8_e4m3fn


def _ints(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    low, high = (0, 256) if dtype == torch.uint8 else (-128, 128)
    if dtype == torch.int32:
        low, high = -(2**31), 2**31
    return torch.randint(low, high, shape).to(dtype)


def _gptq(name: str, weight: torch.Tensor) -> Tensors:
    """Linear `name` with `weight` (out, in), 4 bits: 8 inputs to an int32."""
    out, width = weight.shape
    return {
        f"{name}.qweight": _ints(width // 8, out),
        f"{name}.qzeros": _ints(1, out // 8),
        f"{name}.scales": torch.rand(1, out).half(),
        f"{name}.g_idx": torch.zeros(width, dtype=torch.int32),
    }


def _awq(name: str, weight: torch.Tensor) -> Tensors:
    """8 outputs to an int32."""
    out, width = weight.shape
    return {
        f"{name}.qweight": _ints(width, out // 8),
        f"{name}.qzeros": _ints(1, out // 8),
        f"{name}.scales": torch.rand(1, out).half(),
    }


def _packed(name: str, weight: torch.Tensor) -> Tensors:
    out, width = weight.shape
    return {
        f"{name}.weight_packed": _ints(out, width // 8),
        f"{name}.weight_scale": torch.rand(out, 1).bfloat16(),
        f"{name}.weight_shape": torch.tensor([out, width]),
    }


def _nvfp4(name: str, weight: torch.Tensor) -> Tensors:
    out, width = weight.shape
    return {
        f"{name}.weight_packed": _ints(out, width // 2, dtype=torch.uint8),
        f"{name}.weight_scale": torch.rand(out, width // 16).to(FP8),
        f"{name}.weight_global_scale": torch.rand(1),
        f"{name}.input_global_scale": torch.rand(1),
    }


def _fp8_by_channel(name: str, weight: torch.Tensor) -> Tensors:
    scale = weight.abs().amax(1, keepdim=True) / 448
    return {f"{name}.weight": (weight / scale).to(FP8), f"{name}.weight_scale": scale.bfloat16()}


def _fbgemm(name: str, weight: torch.Tensor) -> Tensors:
    found = _fp8_by_channel(name, weight)
    return {**found, f"{name}.weight_scale": found[f"{name}.weight_scale"].float()}


def _fp8_by_block(name: str, weight: torch.Tensor) -> Tensors:
    """One block: 128 x 128 covers these."""
    scale = weight.abs().amax() / 448
    return {
        f"{name}.weight": (weight / scale).to(FP8),
        f"{name}.weight_scale_inv": scale.float().reshape(1, 1),
    }


def _modelopt(name: str, weight: torch.Tensor) -> Tensors:
    scale = weight.abs().amax() / 448
    return {
        f"{name}.weight": (weight / scale).to(FP8),
        f"{name}.weight_scale": scale.float(),
        f"{name}.input_scale": torch.tensor(0.5),
    }


def _nf4(name: str, weight: torch.Tensor) -> Tensors:
    """bitsandbytes, 4 bits, with statistics that are quantized too."""
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16"}
    state |= {"shape": list(weight.shape), "nested_blocksize": 256, "nested_dtype": "float32"}
    text = json.dumps({**state, "nested_offset": 0.05}).encode()
    key = f"{name}.weight"
    return {
        key: _ints(weight.numel() // 2, 1, dtype=torch.uint8),
        f"{key}.absmax": _ints(weight.numel() // 64, dtype=torch.uint8),
        f"{key}.nested_absmax": torch.rand(1),
        f"{key}.nested_quant_map": torch.rand(256),
        f"{key}.quant_map": torch.rand(16),
        f"{key}.quant_state.bitsandbytes__nf4": torch.tensor(list(text), dtype=torch.uint8),
    }


def _int8(name: str, weight: torch.Tensor) -> Tensors:
    """bitsandbytes, 8 bits."""
    return {
        f"{name}.weight": _ints(*weight.shape, dtype=torch.int8),
        f"{name}.SCB": torch.rand(len(weight)),
        f"{name}.weight_format": torch.tensor(0, dtype=torch.uint8),
    }


def _torchao(name: str, weight: torch.Tensor) -> Tensors:
    return {
        f"{name}._weight_qdata": _ints(*weight.shape, dtype=torch.int8),
        f"{name}._weight_scale": torch.rand(len(weight), 1),
        f"{name}._weight_zero_point": torch.zeros(len(weight), 1, dtype=torch.int8),
    }


def _quanto(name: str, weight: torch.Tensor) -> Tensors:
    return {
        f"{name}.weight._data": _ints(*weight.shape, dtype=torch.int8),
        f"{name}.weight._scale": torch.rand(len(weight), 1).bfloat16(),
        f"{name}.input_scale": torch.tensor(1.0),
        f"{name}.output_scale": torch.tensor(1.0),
    }


def _mlx(name: str, weight: torch.Tensor) -> Tensors:
    out, width = weight.shape
    return {
        f"{name}.weight": _ints(out, width // 8).view(torch.uint32),
        f"{name}.scales": torch.rand(out, 1).bfloat16(),
        f"{name}.biases": torch.rand(out, 1).bfloat16(),
    }


def _compressed(layout: str, weights: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The config of compressed-tensors."""
    group = {"format": layout, "targets": ["Linear"], "weights": weights}
    group |= {"input_activations": None, "output_activations": None}
    return {
        "config_groups": {"group_0": group},
        "format": layout,
        "global_compression_ratio": None,
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
        "version": "0.12.2",
        **more,
    }


def _bitsandbytes(bits: int) -> dict[str, Any]:
    return {
        "_load_in_4bit": bits == 4,
        "_load_in_8bit": bits == 8,
        "bnb_4bit_compute_dtype": "bfloat16",
        "bnb_4bit_quant_storage": "uint8",
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": bits == 4,
        "llm_int8_enable_fp32_cpu_offload": False,
        "llm_int8_has_fp16_weight": False,
        "llm_int8_skip_modules": None,
        "llm_int8_threshold": 6.0,
        "load_in_4bit": bits == 4,
        "load_in_8bit": bits == 8,
        "quant_method": "bitsandbytes",
    }


_WEIGHTS = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32}
_GPTQ = {
    "bits": 4,
    "checkpoint_format": "gptq",
    "desc_act": True,
    "group_size": WIDTH,
    "lm_head": False,
    "meta": {"quantizer": ["gptqmodel:4.0.0"], "uri": "https://github.com/modelcloud/gptqmodel"},
    "pack_dtype": "int32",
    "quant_method": "gptq",
    "sym": True,
}
_AWQ = {
    "bits": 4,
    "group_size": WIDTH,
    "modules_to_not_convert": None,
    "quant_method": "awq",
    "version": "gemm",
    "zero_point": True,
}
_FP8 = {
    "activation_scheme": "dynamic",
    "fmt": "e4m3",
    "quant_method": "fp8",
    "weight_block_size": [128, 128],
}
_FBGEMM = {
    "activation_scale_ub": 1200.0,
    "modules_to_not_convert": ["lm_head", "model.layers.0.self_attn.q_proj"],
    "quant_method": "fbgemm_fp8",
}
_TORCHAO = {
    "include_input_output_embeddings": False,
    "modules_to_not_convert": None,
    "quant_method": "torchao",
    "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_version": 2}},
    "untie_embedding_weights": False,
}
_MODELOPT = {
    "producer": {"name": "modelopt", "version": "0.23.0"},
    "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]},
}
_MXFP4 = {
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
    "quant_method": "mxfp4",
}

_Layout = tuple[Callable[[str, torch.Tensor], Tensors], dict[str, Any] | None, dict[str, Any]]
LAYOUTS: dict[str, _Layout] = {  # linear layers, quantization_config, further files
    "gptq": (_gptq, _GPTQ, {"quantize_config.json": _GPTQ}),
    "awq": (_awq, _AWQ, {"quant_config.json": {"w_bit": 4, "q_group_size": WIDTH}}),
    "compressed-int4": (_packed, _compressed("pack-quantized", _WEIGHTS), {"recipe.yaml": "a"}),
    "compressed-fp8": (
        _fp8_by_channel,
        _compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}),
        {},
    ),
    "compressed-nvfp4": (_nvfp4, _compressed("nvfp4-pack-quantized", {"num_bits": 4}), {}),
    "fbgemm-fp8": (_fbgemm, _FBGEMM, {}),
    "fp8": (_fp8_by_block, _FP8, {}),
    "bitsandbytes-4": (_nf4, _bitsandbytes(4), {}),
    "bitsandbytes-8": (_int8, _bitsandbytes(8), {}),
    "torchao": (_torchao, _TORCHAO, {}),
    "modelopt": (_modelopt, None, {"hf_quant_config.json": _MODELOPT}),
    "mxfp4": (lambda _, __: {}, _MXFP4, {}),
}
EMBEDDINGS, HEAD = "model.embed_tokens", "lm_head"


class Refused(NamedTuple):
    """A checkpoint with quantized tables."""

    layout: str  # of its layers
    tables: tuple[str, ...]  # modules
    quantize: Callable[[str, torch.Tensor], Tensors]  # these tables
    error: str  # how the first of their tensors is named
    config: dict[str, Any] | None = None  # where it is not that of the layout


_EVERYTHING = (EMBEDDINGS, HEAD)
_NONE_IGNORED = _compressed("float-quantized", {"num_bits": 8}, ignore=[])
REFUSED: dict[str, Refused] = {
    "gptq-head": Refused(
        "gptq", (HEAD,), _gptq, "lm_head.qweight is I32", {**_GPTQ, "lm_head": True}
    ),
    "awq-head": Refused("awq", (HEAD,), _awq, "lm_head.qweight is I32"),
    "bitsandbytes-4-head": Refused("bitsandbytes-4", (HEAD,), _nf4, "lm_head.weight is U8"),
    "bitsandbytes-8-head": Refused("bitsandbytes-8", (HEAD,), _int8, "lm_head.weight is I8"),
    "fp8-head": Refused("fp8", (HEAD,), _fp8_by_block, "lm_head.weight is F8_E4M3"),
    "fp8-embeddings": Refused(
        "fp8",
        (EMBEDDINGS,),
        _fp8_by_block,
        "model.embed_tokens.weight is F8_E4M3",
        {**_FP8, "modules_to_convert": ["embed_tokens"]},
    ),
    "compressed-head": Refused(
        "compressed-fp8", (HEAD,), _fp8_by_channel, "lm_head.weight is F8_E4M3", _NONE_IGNORED
    ),
    "compressed-all": Refused(
        "compressed-int4", _EVERYTHING, _packed, "model.embed_tokens.weight_packed is I32"
    ),
    "torchao-head": Refused("torchao", (HEAD,), _torchao, "lm_head._weight_qdata is I8"),
    "modelopt-head": Refused("modelopt", (HEAD,), _modelopt, "lm_head.weight is F8_E4M3"),
    "quanto-all": Refused(
        "gptq",
        _EVERYTHING,
        _quanto,
        "model.embed_tokens.weight._data is I8",
        {"quant_method": "quanto", "weights": "int8"},
    ),
    "mlx": Refused(
        "gptq",
        _EVERYTHING,
        _mlx,
        "model.embed_tokens.weight is U32",
        {"bits": 4, "group_size": 32},
    ),
}


def plain_tensors(model: Any) -> Tensors:
    """What `save_pretrained` would store: a tied head is stored once."""
    found = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        del found["lm_head.weight"]
    return {name: tensor.contiguous() for name, tensor in found.items()}


def build(layout: str, tokenizer: Tokenizer, *, tied: bool = False) -> Any:
    """The model before it is quantized: gpt-oss for "mxfp4", otherwise a Llama."""
    dtype = torch.float16 if layout in ("gptq", "awq") else torch.bfloat16
    if layout != "mxfp4":
        return small_models.build("llama", tokenizer, **_SIZES, tie_word_embeddings=tied).to(dtype)
    ids = small_models.special_ids(tokenizer)
    config = transformers.AutoConfig.for_model(
        "gpt_oss",
        **{**_SIZES, "intermediate_size": WIDTH, "num_attention_heads": 2, "head_dim": 16},
        num_key_value_heads=1,
        num_local_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=64,
        vocab_size=tokenizer.row_count,
        tie_word_embeddings=tied,
        **{f"{role}_token_id": ids[token] for role, token in _ROLES.items()},
    )
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


_ROLES = {"bos": "<s>", "eos": "</s>", "pad": "<pad>"}


def save(
    layout: str,
    tokenizer: Tokenizer,
    folder: Path,
    *,
    tied: bool = False,
    n_shards: int = 1,
) -> Path:
    """A folder of one of LAYOUTS or REFUSED; `n_shards`: more than one have an index."""
    refused = REFUSED.get(layout)
    linear, said, files = LAYOUTS[refused.layout if refused else layout]
    model = build(layout, tokenizer, tied=tied)
    tensors: Tensors = {}
    for name, tensor in plain_tensors(model).items():
        if name.endswith(_LINEAR) and layout != "mxfp4":
            tensors |= linear(name.removesuffix(".weight"), tensor.float())
        elif layout == "mxfp4" and name.endswith("experts.gate_up_proj"):
            tensors |= _experts(name, 2 * WIDTH)
        elif layout == "mxfp4" and name.endswith("experts.down_proj"):
            tensors |= _experts(name, WIDTH)
        elif refused and name.removesuffix(".weight") in refused.tables:
            tensors |= refused.quantize(name.removesuffix(".weight"), tensor.float())
        else:
            tensors[name] = tensor
    tokenizer.save_pretrained(folder)
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text())
    said = (refused and refused.config) or said
    if said:
        settings["quantization_config"] = said
    (folder / "config.json").write_text(json.dumps(settings))
    for name, data in files.items():
        (folder / name).write_text(data if isinstance(data, str) else json.dumps(data))
    _write(tensors, folder, n_shards, _metadata(layout, tensors))
    return folder


def _experts(name: str, out: int) -> Tensors:
    """Blocks of 16 bytes, 32 numbers each, and one exponent for a block (bias 127)."""
    return {
        f"{name}_blocks": _ints(4, out, WIDTH // 32, 16, dtype=torch.uint8),
        f"{name}_scales": torch.randint(121, 126, (4, out, WIDTH // 32)).to(torch.uint8),
    }


def _metadata(layout: str, tensors: Tensors) -> dict[str, str]:
    """torchao writes how each tensor is put together into the header."""
    found = {"format": "pt"}
    if layout == "torchao":
        whole = {name for name in tensors if "._weight_" not in name}
        found |= dict.fromkeys(whole, '{"_type": "Tensor"}')
    return found


def _write(tensors: Tensors, folder: Path, n_shards: int, metadata: dict[str, str]) -> None:
    if n_shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata=metadata)
        return
    names = sorted(tensors)
    places = {}
    for shard in range(n_shards):
        own = names[shard::n_shards]
        file = f"model-{shard + 1:05}-of-{n_shards:05}.safetensors"
        save_file({name: tensors[name] for name in own}, folder / file, metadata=metadata)
        places |= dict.fromkeys(own, file)
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
