"""What a model is worth: bits per byte by document, held-out continuations, speed.

A text is scored by `vocabshift`'s own scorer, one document at a time. For generation a held-out
line is cut in the middle, after a word; the model writes on greedily, and what it writes is
compared with the rest of the line, cut to the same number of characters.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import vocabshift as vs
from vocabshift.evaluation.scoring.score import score_documents
from vocabshift.models.healing import healer_of
from vocabshift.models.load import load_causal_model

_BATCH = 8  # prompts that are continued together
_GRAM = 3  # words; how often such a run comes again is the repetition


def measure(
    folder: Path, texts: Mapping[str, Sequence[str]], *, continued: int, precision: str = "no"
) -> dict[str, Any]:
    """Every document's bytes and nats by language, tokens, speed; `continued` lines of each.

    `precision` as for `multiplied_in`.
    """
    with multiplied_in(precision):
        return _measure(folder, texts, continued=continued)


def multiplied_in(precision: str) -> torch.autocast:
    """A context in which matrices are multiplied in 16 bits if precision is "bf16"."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=precision == "bf16")


def machine() -> str:
    """The name of the GPU that models run on, or "cpu"."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def _measure(folder: Path, texts: Mapping[str, Sequence[str]], *, continued: int) -> dict[str, Any]:
    model, tokenizer = load_causal_model(folder), vs.load_tokenizer(folder)
    encoder = vs.Encoder(tokenizer)
    began = time.perf_counter()
    documents = score_documents(model, tokenizer, texts)
    seconds = time.perf_counter() - began
    tokens = {name: len(encoder.encode_batch(list(own))[0]) for name, own in texts.items()}
    n_bytes = sum(document.n_bytes for document in documents)
    found: dict[str, Any] = {
        "documents": {
            name: [(d.n_bytes, d.nats) for d in documents if d.language == name] for name in texts
        },
        "tokens": tokens,
        "rows": model.get_input_embeddings().weight.shape[0],
        "reads_tokens_per_second": sum(tokens.values()) / seconds,
        "reads_bytes_per_second": n_bytes / seconds,
    }
    if continued:
        found["continuations"] = {
            name: continuations(model, tokenizer, encoder, spread(own, continued))
            for name, own in texts.items()
        }
    return found


def spread(texts: Sequence[str], n: int) -> list[str]:
    """`n` of the texts, evenly spaced."""
    n = min(n, len(texts))
    return [texts[i * len(texts) // n] for i in range(n)]


def halves(text: str) -> tuple[str, str]:
    """A line as (prompt, rest), cut after the word in its middle; the rest begins with a space."""
    at = text.find(" ", len(text) // 2)
    return (text, "") if at < 1 else (text[:at], text[at:])


def continuations(model: Any, tokenizer: Any, encoder: Any, texts: Sequence[str]) -> dict[str, Any]:
    """chrF by line, lines that go on with the right word, repetition, the speed of writing."""
    pairs = [pair for pair in map(halves, texts) if pair[1].strip()]
    written: list[str] = []
    n_tokens, began = 0, time.perf_counter()
    for at in range(0, len(pairs), _BATCH):
        some = pairs[at : at + _BATCH]
        most = max(len(encoder.encode(rest)) for _, rest in some) + _BATCH
        ids = write_on(model, tokenizer, encoder, [prompt for prompt, _ in some], most)
        n_tokens += sum(map(len, ids))
        written += [encoder.decode(own) for own in ids]
    seconds = time.perf_counter() - began
    rests = [rest for _, rest in pairs]
    cut = [text[: len(rest)] for text, rest in zip(written, rests, strict=True)]
    return {
        "chrf": [chrf(text, rest) for text, rest in zip(cut, rests, strict=True)],
        "right_word": [
            int(text.split()[:1] == rest.split()[:1])
            for text, rest in zip(written, rests, strict=True)
        ],
        "repetition": [repetition(text) for text in written],
        "tokens_per_second": n_tokens / seconds,
        "bytes_per_second": sum(len(text.encode()) for text in written) / seconds,
        "examples": [
            {"prompt": prompt, "rest": rest, "written": text}
            for (prompt, rest), text in zip(pairs[:3], cut, strict=False)
        ],
    }


def write_on(
    model: Any, tokenizer: Any, encoder: Any, prompts: Sequence[str], most: int
) -> list[list[int]]:
    """Up to `most` greedy tokens after each prompt, healed where a superword spans its end."""
    from transformers import LogitsProcessorList

    bos, end = model.config.bos_token_id, model.config.eos_token_id
    ends = set(end if isinstance(end, list) else [end])
    healer = healer_of(tokenizer)
    rows, tails = [], []
    for prompt in prompts:
        ids = ([] if bos is None else [bos]) + encoder.encode(prompt).tolist()
        taken, tail = (0, b"") if healer is None else healer.tail(ids)
        rows.append(ids[: len(ids) - taken])
        tails.append(tail)
    width = max(map(len, rows))
    pad = next(iter(ends - {None}), 0)
    input_ids = [[pad] * (width - len(row)) + row for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    processors = LogitsProcessorList()
    if healer is not None and any(tails):
        processors.append(healer.constraint(tails, width))
    with torch.inference_mode():
        out = model.generate(
            torch.tensor(input_ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            # Documents of the training text are short, so that models end lines early.
            min_new_tokens=most,
            max_new_tokens=most,
            do_sample=False,
            pad_token_id=pad,
            logits_processor=processors,
        )
    found = []
    for row, tail in zip(out[:, width:].tolist(), tails, strict=True):
        stop = next((place for place, token in enumerate(row) if token in ends), len(row))
        own = row[:stop]
        found.append(healer.after(tail, own) if healer is not None and tail else own)
    return found


def chrf(written: str, rest: str) -> float:
    """sacrebleu's chrF of one line, 0 to 1."""
    from sacrebleu import sentence_chrf

    return float(sentence_chrf(written, [rest]).score) / 100


def repetition(text: str) -> float:
    """The share of runs of three words that came before in the same text."""
    words = text.split()
    runs = [tuple(words[i : i + _GRAM]) for i in range(len(words) - _GRAM + 1)]
    return 0.0 if not runs else 1 - len(set(runs)) / len(runs)
