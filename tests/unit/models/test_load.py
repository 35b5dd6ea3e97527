"""Weights from files that nobody vouches for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from vocabshift.models.load import load_causal_model


class _Call:
    """A pickle of this calls `Path.touch` where it is loaded as Python's pickles are."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_calls_nothing(tmp_path: Path) -> None:
    """torch's loader of tensors refuses what is none; without it the file would be there."""
    config = LlamaConfig(
        vocab_size=8,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(tmp_path)
    weights = tmp_path / "pytorch_model.bin"
    torch.save({"model.embed_tokens.weight": _Call(tmp_path / "called")}, weights)
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_causal_model(tmp_path)
    assert not (tmp_path / "called").exists()
    torch.load(weights, weights_only=False)
    assert (tmp_path / "called").exists()
