"""Windows of documents: stretches that fit a causal model, and batches of them.

A document longer than the context is cut into windows that overlap; a later window repeats the last
tokens of the one before as context, and each begins with the BOS, which may be the wrong one. Knows
nothing of what is measured.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import VocabshiftWarning
from vocabshift.models.load import positions_of
from vocabshift.tokenizer.added_tokens import role_text
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer

MOST_CONTEXT = 4096
"""Tokens of context unless asked otherwise, where a model has more positions: what a batch of one
window needs grows with it, and few documents are longer."""

_BATCH_COST = 32  # of a CPU, in tokens

_ROLE = r"(system|user|assistant|\S{0,20}\brole)\b"  # in a chat template


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a document that fits the model; its first `n_context` ids are not scored."""

    document: int
    ids: NDArray[np.int64]
    n_context: int
    start: int  # token of the document that it begins with, after the BOS


def window_sizes(
    model: Any, context: int | None, overlap: int | None, *, n_prefix: int
) -> tuple[int, int]:
    """The context and the overlap to use; ValueError for impossible ones.

    `n_prefix`: tokens that each window begins with, 1 for a BOS.
    """
    positions = positions_of(model)
    if context is None:
        context = min(positions or MOST_CONTEXT, MOST_CONTEXT)
    if positions is not None and context > positions:
        raise ValueError(
            f"context is {context} and the model has {positions} positions; choose a shorter one"
        )
    if overlap is None:
        overlap = context // 2
    if not 1 <= overlap < context - n_prefix:
        raise ValueError(
            f"overlap is {overlap}; it must be at least 1 and leave room in a context of {context}"
        )
    return context, overlap


def window_starts(n_tokens: int, context: int, overlap: int, *, n_prefix: int) -> range:
    """The tokens of a document with which its windows begin."""
    return range(0, max(n_tokens - overlap, 1), context - n_prefix - overlap)


def windows_of(
    document: int,
    ids: NDArray[np.int32],
    bos: int | None,
    context: int,
    overlap: int,
    *,
    starts: Iterable[int] | None = None,
) -> Iterator[Window]:
    """The windows of a document, each after the BOS if there is one; `ids` (n,) of its tokens.

    `starts`: only those that begin with these tokens, of `window_starts`.
    """
    prefix = np.array([] if bos is None else [bos], dtype=np.int64)
    room = context - prefix.size
    if starts is None:
        starts = window_starts(len(ids), context, overlap, n_prefix=prefix.size)
    for at in starts:
        stretch = np.concatenate([prefix, ids[at : at + room].astype(np.int64)])
        if stretch.size > 1:  # a lone token without BOS has no probability
            yield Window(document, stretch, prefix.size + (overlap if at else 0), at)


def warn_of_chat_start(model: Any, tokenizer: AnyTokenizer) -> None:
    """Warn where the model's BOS begins a message in the chat template, with a role after it.

    Then another token may have begun documents in pre-training. VocabshiftWarning.
    """
    bos = model.config.get_text_config().bos_token_id
    text = next((token.content for token in tokenizer.added_tokens if token.id == bos), None)
    if text is None or not tokenizer.chat_template:
        return
    is_named = text == role_text(tokenizer.config, "bos")
    names = rf"({re.escape(text)}{'|bos_token' if is_named else ''})"
    # No further than a comment or another token, and in time linear in the template.
    if re.search(rf"{names}[^\w<#]{{0,20}}{_ROLE}", tokenizer.chat_template):
        warnings.warn(
            f"documents begin with {text!r}, the BOS of the model's config.json. In its chat "
            "template a role follows this token, so the model may expect one, and plain text looks "
            "harder than it is; if another token separated documents in its pre-training, set "
            "bos_token_id and eos_token_id to that one in a copy of the model",
            VocabshiftWarning,
            stacklevel=3,
        )


def batches_of(
    windows: Sequence[Window], batch_tokens: int, device: str = "cpu"
) -> list[list[Window]]:
    """Windows in batches by `padded_batches`, on a `device` of this type; the longest come first.

    So a lack of memory shows at once. Windows of one length are ordered by their ids, so that the
    batches do not depend on the order of the documents.
    """
    ordered = sorted(windows, key=lambda window: (window.ids.size, window.ids.tobytes()))
    lengths = [window.ids.size for window in ordered]
    batches = padded_batches(lengths, batch_tokens, batch_cost(device, batch_tokens))
    return [[ordered[place] for place in batch] for batch in batches]


def batch_cost(device: str, n_tokens: int) -> int:
    """Tokens that a device of this type multiplies in the time that a batch takes beyond its own.

    A CPU reads all weights for each batch. A GPU is hardly faster with fewer than `n_tokens`.
    """
    return _BATCH_COST if device == "cpu" else n_tokens


def padded_batches(lengths: Sequence[int], n_tokens: int, cost: int) -> list[list[int]]:
    """Places in `lengths`, in batches that are padded to their longest, the longest first.

    A batch has at most `n_tokens` tokens with padding, or one place. Of all ways to cut the sorted
    places it is that with the least work: tokens with padding, and `cost` tokens for each batch.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    longest = np.array([lengths[place] for place in order], dtype=np.int64)
    least = np.zeros(len(order) + 1, dtype=np.int64)  # work of the first n places
    begins = np.zeros(len(order) + 1, dtype=np.int64)  # where the last batch of these begins
    first = 0  # where it can begin; the more places, the later
    for end in range(1, len(order) + 1):
        while first < end - 1 and (end - first) * longest[first] > n_tokens:
            first += 1
        work = least[first:end] + np.arange(end - first, 0, -1) * longest[first:end]
        best = int(work.argmin())
        least[end], begins[end] = work[best] + cost, first + best
    batches, end = [], len(order)
    while end:
        batches.append(order[begins[end] : end])
        end = int(begins[end])
    return batches[::-1]


def padded(batch: Sequence[Window], model: Any) -> tuple[Any, Any]:
    """Ids and attention mask of windows for a model, int64 tensors (len(batch), longest).

    Padding is on the right, where a causal model cannot see it.
    """
    import torch

    width = max(window.ids.size for window in batch)
    ids = np.zeros((len(batch), width), dtype=np.int64)
    for row, window in enumerate(batch):
        ids[row, : window.ids.size] = window.ids
    lengths = np.array([window.ids.size for window in batch])
    mask = (np.arange(width) < lengths[:, None]).astype(np.int64)
    device = model.get_input_embeddings().weight.device
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
