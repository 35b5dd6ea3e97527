"""Small Llamas for the glitch experiments: text from files, a model that has seen it, its report.

Owns the shape of the model, how it is trained, and asking `vocabshift glitch` about it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.cpt.loop import LoopConfig, Phase, pretrain
from vocabshift.evaluation.glitch.find import find_glitch_tokens
from vocabshift.evaluation.glitch.summary import summary, token_rows
from vocabshift.evaluation.lines.subject import checksum_of
from vocabshift.results import sha256_of
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer

END = "<|end|>"


def arguments(description: str | None) -> argparse.Namespace:
    """The command line of an experiment: files of text, where to write, how much."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("files", nargs="+")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    return parser.parse_args()


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of everything."""

    n_bytes: int  # of text to learn from
    vocab_size: int
    hidden_size: int
    rounds: float  # times the text
    n_dummies: int = 50
    n_layers: int = 2
    sequence_length: int = 128
    learning_rate: float = 3e-3


def read_lines(files: Sequence[str], n_bytes: int, seed: int) -> list[str]:
    """Lines of the files, as many bytes of each, shuffled, `n_bytes` in all."""
    random = np.random.default_rng(seed)
    chosen: list[str] = []
    for file in files:
        lines = [line for line in Path(file).read_text(encoding="utf-8").split("\n") if line]
        left = n_bytes // len(files)
        for i in random.permutation(len(lines)).tolist():
            left -= len(lines[i].encode()) + 1
            if left < 0:
                break
            chosen.append(lines[i])
    return [chosen[i] for i in random.permutation(len(chosen)).tolist()]


def counts_of(tokenizer: Tokenizer, lines: list[str]) -> Any:
    """(rows,) how often the lines have each id."""
    ids, _ = Encoder(tokenizer).encode_batch(lines)
    return np.bincount(ids, minlength=tokenizer.row_count)


def checksums(tokenizer: Tokenizer, lines: list[str]) -> dict[str, str]:
    """SHA-256 of a tokenizer and of the lines that a model learned, as results name them."""
    return {"tokenizer_sha256": checksum_of(tokenizer), "text_sha256": sha256_of(lines)}


def trained_model(
    tokenizer: Tokenizer, lines: list[str], size: Size, folder: Path, *, tied: bool, seed: int
) -> Path:
    """A folder with a model that learned the lines; one that is there is not made again."""
    if (folder / "model.safetensors").exists():
        return folder
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    end = next(token.id for token in tokenizer.added_tokens if token.content == END)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=tokenizer.row_count,
            hidden_size=size.hidden_size,
            intermediate_size=3 * size.hidden_size,
            num_hidden_layers=size.n_layers,
            num_attention_heads=4,
            max_position_embeddings=512,
            tie_word_embeddings=tied,
            bos_token_id=end,
            eos_token_id=end,
        )
    )
    n_bytes = int(size.rounds * sum(len(line.encode()) for line in lines))
    phase = Phase(n_bytes=n_bytes, learning_rate=size.learning_rate)
    config = LoopConfig(sequence_length=size.sequence_length, batch_size=8, seed=seed)
    steps = pretrain(model, tokenizer, lines, phases=[phase], config=config)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    last = [step.bits_per_byte for step in steps[-20:]]
    (folder / "training.json").write_text(
        json.dumps({"steps": len(steps), "bits_per_byte": sum(last) / len(last)})
    )
    return folder


def report_of(folder: Path, indicator: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What `vocabshift glitch FOLDER --indicator INDICATOR` says: summary and rows by id."""
    report = find_glitch_tokens(folder, indicator=indicator)
    rows = token_rows(report)
    return summary(report, rows), sorted(rows, key=lambda row: int(row["id"]))
