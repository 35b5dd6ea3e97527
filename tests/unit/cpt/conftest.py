"""A byte tokenizer and a tiny Llama."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

END = 256
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}


@pytest.fixture
def byte_tokenizer() -> Tokenizer:
    """The 256 bytes and one end token."""
    return Tokenizer(
        BpeModel({image: i for i, image in enumerate(byte_level.ALPHABET)}, ()),
        pre_tokenizer=BYTE_LEVEL,
        decoder=BYTE_LEVEL,
        added_tokens=(AddedToken("<|end|>", END),),
    )


@pytest.fixture
def make_model() -> Callable[..., Any]:
    """Make a Llama of two small layers, always with the same weights."""

    def make(**changes: Any) -> Any:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        settings = {
            "vocab_size": 257,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": 64,
            "bos_token_id": END,
            "eos_token_id": END,
            "pad_token_id": None,
            "tie_word_embeddings": False,
        }
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            return LlamaForCausalLM(LlamaConfig(**(settings | changes)))

    return make
