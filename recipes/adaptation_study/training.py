"""One stretch of training of the study: a small Llama, a tokenizer, some text, and its curve.

Owns the model's shape and what a run of the product's own loop is asked to do. Knows nothing of
arms or files.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import vocabshift as vs
from vocabshift.cpt.config import LoopConfig, Phase
from vocabshift.cpt.loop import pretrain

END = "<|end|>"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all arms share."""

    hidden: int
    layers: int
    length: int  # tokens of a training sequence, and of what is seen when text is scored
    step_bytes: int  # of text a step, whatever the tokenizer
    points: int  # of a curve, behind the first


def make(tokenizer: vs.Tokenizer, setting: Setting, seed: int) -> Any:
    """A Llama with random weights, input embeddings and head one tensor."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    end = next(token.id for token in tokenizer.added_tokens if token.content == END)
    config = LlamaConfig(
        vocab_size=tokenizer.row_count,
        hidden_size=setting.hidden,
        intermediate_size=8 * setting.hidden // 3,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.hidden // 32,
        max_position_embeddings=4 * setting.length,
        tie_word_embeddings=True,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=None,
    )
    torch.manual_seed(seed)
    return LlamaForCausalLM(config)


def train(
    model: Any,
    tokenizer: vs.Tokenizer,
    texts: Sequence[str],
    setting: Setting,
    *,
    seed: int,
    learning_rate: float,
    scored: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """One pass over `texts`, in place; its facts, with bits per byte of `scored` on the way.

    A step is `setting.step_bytes` of text, rounded to whole sequences, so that all arms take about
    as many steps: of so few, their number would decide more than anything else.
    """
    n_bytes = sum(len(text.encode("utf-8")) for text in texts)
    _, offsets = vs.Encoder(tokenizer).encode_batch(texts)
    sequence_bytes = n_bytes / int(offsets[-1]) * setting.length
    curve: list[dict[str, Any]] = []
    began = time.process_time()
    scoring = 0.0

    def evaluate(current: Any) -> dict[str, float]:
        nonlocal scoring
        start = time.process_time()
        rows = vs.score(current, tokenizer, scored, context=setting.length)
        scoring += time.process_time() - start
        return {row.language: row.value for row in rows}

    steps = pretrain(
        model,
        tokenizer,
        texts,
        phases=[Phase(n_bytes=n_bytes, learning_rate=learning_rate)],
        config=LoopConfig(
            sequence_length=setting.length,
            batch_size=max(1, round(setting.step_bytes / sequence_bytes)),
            seed=seed,
            spike_factor=0,  # a jump in the loss is a finding here, not a fault
        ),
        evaluate=evaluate,
        evaluate_bytes=math.ceil(n_bytes / setting.points),
        on_evaluation=lambda found: curve.append(
            {"n_bytes": found.run_bytes, "bits_per_byte": dict(found.values)}
        ),
    )
    return {
        "n_bytes": steps[-1].n_bytes,
        "n_tokens": steps[-1].n_tokens,
        "n_steps": len(steps),
        "cpu_seconds": time.process_time() - began - scoring,
        "curve": curve,
    }
