"""What is known of a model before it is loaded: its config, its sizes, what its vocabulary costs.

They are read from `config.json`, and from the headers of safetensors files if there are any. A
config comes from the same place as the model: a small one can ask for more layers, rows or labels
than fit into memory, or for code from the Hub, and is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vocabshift.models.contents import CONFIG, ENCODER, WEIGHTS, WRAPPER_CONFIG
from vocabshift.models.shards import open_checkpoint
from vocabshift.models.tables import build_empty
from vocabshift.storage.hub import download, hub_error

_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "float8_e4m3fn": 1}

MOST = {"layer": 5_000, "layers": 5_000, "depth": 5_000, "labels": 1_000_000}
"""What a config may ask for under a key that ends so: several times what any model has."""

MOST_BUFFERS = 100_000_000
"""Numbers that a model computes for itself, such as masks, before they count as its weights do."""

BIN_INDEX = "pytorch_model.bin.index.json"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model's sizes; parameters are counted, not bytes."""

    name: str
    hidden_size: int
    rows: int  # of its embedding matrix
    is_tied: bool  # the head is the embedding matrix
    bytes_per_parameter: int
    body_parameters: int  # all but embedding and head
    is_estimated: bool  # the body follows from config.json, not from the tensors

    def embedding_parameters(self, rows: int) -> int:
        """Of embedding and head together, with so many rows."""
        return rows * self.hidden_size * (1 if self.is_tied else 2)

    def parameters(self, rows: int) -> int:
        """Of the whole model with so many rows."""
        return self.body_parameters + self.embedding_parameters(rows)

    def bytes_read_per_token(self, rows: int) -> int:
        """To generate one token: body and head; of the input embedding only a row."""
        return (self.body_parameters + rows * self.hidden_size) * self.bytes_per_parameter

    @staticmethod
    def logits_bytes(rows: int, n_tokens: int) -> int:
        """Of the logits of so many positions, in float32."""
        return rows * n_tokens * 4


def model_facts(model: str | Path) -> ModelFacts:
    """The facts of a model folder, or of a Hub name (of which only config.json is fetched).

    ValueError for a config that does not say how large the model is.
    """
    path = Path(model)
    if not path.exists():
        path = _config_from_hub(str(model))
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_bytes())
        text = config.get("text_config") or config
        hidden = _first(text, "hidden_size", "n_embd", "d_model")
        rows = int(text.get("vocab_size") or config["vocab_size"])
        is_tied = bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", True)))
        body = _body_from_tensors(path, rows) if path.is_dir() else None
        estimate = _body_from_config(text, hidden) if body is None else 0
    except (*_DAMAGED, OverflowError) as error:
        raise ValueError(f"{file} does not say how large a model is: {error}") from None
    return ModelFacts(
        name=str(model),
        hidden_size=hidden,
        rows=rows,
        is_tied=is_tied,
        bytes_per_parameter=_BYTES.get(str(text.get("dtype") or text.get("torch_dtype")), 2),
        body_parameters=estimate if body is None else body,
        is_estimated=body is None,
    )


def _body_from_config(text: Mapping[str, Any], hidden: int) -> int:
    """Attention and feed-forward of a LLaMA-like decoder; within some per cent for others."""
    layers = _first(text, "num_hidden_layers", "n_layer", "num_layers")
    heads = _first(text, "num_attention_heads", "n_head", "num_heads")
    size = text.get("head_dim") or hidden // heads
    key_value_heads = text.get("num_key_value_heads") or heads
    inner = text.get("intermediate_size") or text.get("n_inner") or 4 * hidden
    is_gated = "intermediate_size" in text
    attention = 2 * hidden * heads * size + 2 * hidden * key_value_heads * size
    return int(layers * (attention + (3 if is_gated else 2) * hidden * inner + 2 * hidden))


def _body_from_tensors(folder: Path, rows: int) -> int | None:
    """Parameters of all tensors but those with a row per token; None where there are no files."""
    checkpoint = open_checkpoint(folder)
    if checkpoint is None:
        return None
    shapes = [stored.shape for _, stored in checkpoint.tensors.values()]
    return sum(math.prod(each) for each in shapes if not (len(each) == 2 and each[0] >= rows))


def _first(config: Mapping[str, Any], *keys: str) -> int:
    for key in keys:
        if isinstance(config.get(key), int) and config[key] > 0:
            return int(config[key])
    raise KeyError(keys[0])


def _config_from_hub(name: str) -> Path:
    wanted = "give its config"
    folder = download(name, ["config.json"], wanted=wanted)
    if not (folder / "config.json").exists():
        raise hub_error(name, wanted, OSError("it holds no config.json"))
    return folder


def number_of_parameters(folder: Path) -> int | None:
    """As stored (a tied matrix once); None where the weights are not in safetensors."""
    checkpoint = open_checkpoint(folder)
    if checkpoint is None:
        return None
    return sum(math.prod(stored.shape) for _, stored in checkpoint.tensors.values())


def size_of_weights(folder: Path) -> int:
    """Bytes of the files that hold them; of two formats, those of safetensors."""
    checkpoint = open_checkpoint(folder)
    if checkpoint is not None:
        return sum(shard.n_bytes for shard in checkpoint.shards)
    return sum(file.stat().st_size for file in folder.glob(WEIGHTS[1]))


def read_config(source: str | Path, *, trust_remote_code: bool) -> Any:
    """A model's config as transformers reads it; of a wrapper's folder the encoder's.

    ValueError where it asks for more layers or labels than any model has, for weights in another
    file, or for code that is not trusted.
    """
    from transformers import AutoConfig, PretrainedConfig

    file = Path(source) / WRAPPER_CONFIG
    if file.is_file():
        config = _wrapped_config(file)
    else:
        _check_values(PretrainedConfig.get_config_dict(source)[0])
        config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
    return config if trust_remote_code else _without_kernels(config)


def _wrapped_config(file: Path) -> Any:
    """The encoder's config in a wrapper's, with the class that has no head."""
    from transformers import MODEL_MAPPING, AutoConfig

    own = json.loads(file.read_bytes()).get(ENCODER)
    if not isinstance(own, dict) or "model_type" not in own:
        raise ValueError(f"{file.name} has no {ENCODER} with a model_type; save the model again")
    _check_values(own)
    config = AutoConfig.for_model(**own)
    found: Any = MODEL_MAPPING[type(config)]
    config.architectures = [(found[0] if isinstance(found, tuple) else found).__name__]
    return config


def _check_values(config: Mapping[str, Any]) -> None:
    """ValueError for what would mislead transformers while it builds the config."""
    if config.get("transformers_weights") is not None:
        raise ValueError(
            "its config says in transformers_weights that its weights are in another file; rename "
            "that to model.safetensors, and remove the key"
        )
    if not isinstance(config.get("architectures") or [], list):
        raise ValueError("architectures in its config is no list of names")
    check_counts(config)


def check_counts(config: Mapping[str, Any]) -> None:
    """ValueError for more layers or labels than any model has.

    transformers lists them when it reads a config, before there are weights to compare with.
    """
    for key, value in config.items():
        if isinstance(value, Mapping):
            check_counts(value)
        most = MOST.get(key.rpartition("_")[2])
        if most is not None and isinstance(value, int) and value > most:
            raise ValueError(f"its config asks for {key} = {value:,}; no model has {most:,}")


def _without_kernels(config: Any) -> Any:
    """The config; ValueError where it, or a part of it, names a kernel of the Hub (owner/name).

    A kernel is code: transformers downloads and runs it where the package `kernels` is installed.
    """
    for key in ("_attn_implementation", "_experts_implementation"):
        named = str(getattr(config, key, None))
        if "/" in named:
            raise ValueError(
                f"its config asks for {named}, which is code from the Hub; remove that from "
                f"{CONFIG}, or pass --trust-remote-code where a verb has it"
            )
    for key in getattr(config, "sub_configs", None) or ():
        _without_kernels(getattr(config, key, None))
    return config


def check_weights(folder: Path, config: Any, model_class: Any | None) -> None:
    """ValueError where the folder's weights are not all that the config describes.

    That is an adapter beside them, which transformers would apply; an index that names files
    elsewhere; and weights, or buffers, for which the files are far too small: transformers would
    fill the rest with random numbers, in memory. A byte holds at most eight weights. Without a
    `model_class`, since its code is the model's own, sizes are not checked. A folder without
    weights, and a name on the Hub, is the loader's.
    """
    if (folder / "adapter_config.json").is_file():
        raise ValueError(
            "an adapter lies beside its weights (adapter_config.json); merge it with vocabshift "
            "merge, or move it to a folder of its own"
        )
    index = folder / BIN_INDEX
    if index.is_file():
        _check_names(index)
    stored = size_of_weights(folder) if folder.is_dir() else 0
    if model_class is None or not stored:
        return
    model = build_empty(model_class, config)
    weights, buffers = (
        sum(tensor.numel() for tensor in tensors)
        for tensors in (model.parameters(), model.buffers())
    )
    for what, n in (("weights", weights), ("buffers", buffers - MOST_BUFFERS)):
        if n > 8 * stored:
            raise ValueError(
                f"its config describes {n:,} numbers of {what}, and its files of {stored:,} bytes "
                "hold fewer"
            )


def _check_names(index: Path) -> None:
    try:
        names = set(map(str, json.loads(index.read_bytes())["weight_map"].values()))
    except _DAMAGED as error:
        raise ValueError(f"{index.name} is damaged ({error})") from None
    for name in sorted(names):
        if Path(name).name != name or not fnmatch(name, WEIGHTS[1]):
            raise ValueError(f"{index.name} names {name!r}, which is no {WEIGHTS[1]} beside it")
