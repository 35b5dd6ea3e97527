"""The demo's model: a Llama small enough to pre-train on a laptop in a minute.

Owns its shape, its thread and how it is saved. The only file of the demo that touches transformers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import vocabshift as vs


def make(
    tokenizer: vs.Tokenizer, end_token: str, *, hidden_size: int, n_layers: int, context: int
) -> Any:
    """A Llama with random weights, always the same, whose BOS and EOS are `end_token`.

    Input embeddings and head are two tensors, as in most models of 3B parameters and more.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    end = next(token.id for token in tokenizer.added_tokens if token.content == end_token)
    config = LlamaConfig(
        vocab_size=tokenizer.row_count,
        hidden_size=hidden_size,
        intermediate_size=8 * hidden_size // 3,
        num_hidden_layers=n_layers,
        num_attention_heads=hidden_size // 32,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work in one thread for the length of the block.

    Matrices this small gain little from a second one, and on a busy machine the threads wait for
    each other, which took three times as long. Nor do the figures depend on the number of cores.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def save(model: Any, tokenizer: vs.Tokenizer, folder: Path) -> None:
    """Write both as one folder that `AutoTokenizer` and `AutoModelForCausalLM` load."""
    from transformers.utils import logging

    bars: Any = logging  # untyped
    tokenizer.save_pretrained(folder)
    shows_progress = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # a bar for a file of four megabytes
    try:
        model.save_pretrained(folder)
    finally:
        if shows_progress:
            bars.enable_progress_bar()
