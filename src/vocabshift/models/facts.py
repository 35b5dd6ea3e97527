"""What a vocabulary costs a model: parameters, memory read per token, size of the logits.

They are read from a model folder without loading it: from `config.json`, and from the headers of
safetensors files if there are any.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vocabshift.models.shards import open_checkpoint
from vocabshift.storage.hub import download, hub_error

_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "float8_e4m3fn": 1}


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
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{file} is no model's config.json, or lacks hidden_size or vocab_size: {error}"
        ) from None
    is_tied = bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", True)))
    body = _body_from_tensors(path, rows) if path.is_dir() else None
    return ModelFacts(
        name=str(model),
        hidden_size=hidden,
        rows=rows,
        is_tied=is_tied,
        bytes_per_parameter=_BYTES.get(str(text.get("dtype") or text.get("torch_dtype")), 2),
        body_parameters=_body_from_config(text, hidden) if body is None else body,
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
