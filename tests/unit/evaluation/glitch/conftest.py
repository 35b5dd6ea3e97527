"""A small tokenizer, and model folders of any rows for it, written without transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

WriteModel = Callable[..., Path]

MERGES = (
    *(("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "t"), ("c", "at"), ("Ġ", "cat")),
    *(("Ġthe", "Ġcat"), ("m", "at"), ("à", "¤"), ("à¤", "ķ")),
)


@pytest.fixture
def tokenizer() -> Tokenizer:
    """256 bytes, ten merges (one superword, one half character), one special token."""
    tokens = [*byte_level.ALPHABET, *("".join(merge) for merge in MERGES)]
    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return Tokenizer(
        BpeModel({token: i for i, token in enumerate(tokens)}, MERGES),
        pre_tokenizer={**spec, "use_regex": False},
        decoder={**spec, "use_regex": False},
        added_tokens=(AddedToken("<|end|>", len(tokens)),),
        name="tiny",
    )


@pytest.fixture
def write_model(tmp_path: Path) -> WriteModel:
    """Writes rows as the safetensors of a Llama-like model, with a tokenizer beside."""

    def write(
        tokenizer: Tokenizer,
        embeddings: Any,
        head: Any = None,
        *,
        name: str = "model",
        bias: Any = None,
        config: dict[str, Any] | None = None,
    ) -> Path:
        folder = tokenizer.save_pretrained(tmp_path / name)
        tensors = {"model.embed_tokens.weight": np.asarray(embeddings, dtype=np.float32)}
        if head is not None:
            tensors["lm_head.weight"] = np.asarray(head, dtype=np.float32)
        if bias is not None:
            tensors["lm_head.bias"] = np.asarray(bias, dtype=np.float32)
        save_file(tensors, folder / "model.safetensors")
        settings = {"model_type": "llama", "tie_word_embeddings": head is None, **(config or {})}
        (folder / "config.json").write_text(json.dumps(settings))
        return folder

    return write
