"""Bits per byte: what a causal language model pays for text, whatever its tokenizer.

Owns log-probabilities of documents and their sums. Knows nothing of training or tokenizers'
own metrics. A document is scored by itself, after the model's BOS where its config has one, with
no EOS appended or scored; its bytes are those of the raw text, never of its tokens. So models
with different tokenizers stand on one scale (loss per token does not).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.evaluation.counts import ALL, encode_lines
from vocabshift.evaluation.metrics import estimate
from vocabshift.results import Result, Results

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus


@dataclass(frozen=True, slots=True)
class DocumentScore:
    """One document's price."""

    language: str
    n_bytes: int
    nats: float  # minus the sum of its tokens' log-probabilities


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of a document that fits the model; its first `n_context` ids are not scored."""

    document: int
    ids: NDArray[np.int64]
    n_context: int


def score(
    model: Any,
    tokenizer: Any,
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
    *,
    subject: str = "model",
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
) -> Results:
    """Bits per byte of `model` on `texts`, one row a language, n = documents.

    The value is the ratio of sums (bits of all documents over bytes of all documents); the 95 %
    interval is that of `metrics.estimate`, over documents, and is left out where a language has a
    single one. The other arguments are those of `score_documents`.
    """
    documents = score_documents(
        model, tokenizer, texts, context=context, overlap=overlap, batch_tokens=batch_tokens
    )
    rows = []
    for language in dict.fromkeys(document.language for document in documents):
        own = [document for document in documents if document.language == language]
        bits = np.array([document.nats for document in own]) / math.log(2)
        sizes = np.array([document.n_bytes for document in own], dtype=np.float64)
        terms: Any = (bits, sizes)  # `estimate` takes any numbers
        found = estimate([terms])[0]
        rows.append(
            Result(subject, language, "bits_per_byte", found.value, len(own), found.low, found.high)
        )
    return Results(rows)


def score_documents(
    model: Any,
    tokenizer: Any,
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
) -> list[DocumentScore]:
    """The price of every document that is not blank, in order: for paired comparisons.

    A document longer than `context` tokens (default: the model's positions) is scored in windows,
    each beginning with the BOS again; a later window repeats the last `overlap` tokens (default:
    half the context) of the one before as context and scores only what follows them. Without a
    BOS the first token of a document has no probability: it costs nothing, and its bytes count.
    Windows of like length are padded together to at most `batch_tokens` tokens a batch.

    Raises CorpusError where there is no document, VocabMismatchError where tokenizer and model do
    not fit, ValueError for an impossible context or overlap.
    """
    from vocabshift.bpe.load import as_tokenizer

    ours = as_tokenizer(tokenizer)
    bos = _check_fit(model, ours.row_count)
    context, overlap = _window_sizes(model, context, overlap, n_prefix=0 if bos is None else 1)
    labelled = [pair for pair in _labelled(texts) if pair[1].strip()]
    if not labelled:
        raise CorpusError("there is no text to score; name files that are not empty")
    ids, offsets = encode_lines(ours, [text for _, text in labelled])
    windows = [
        window
        for document, (start, end) in enumerate(pairwise(offsets))
        for window in _windows(document, ids[start:end], bos, context, overlap)
    ]
    nats = np.zeros(len(labelled))
    was_training = model.training
    model.eval()
    try:
        for batch in _batches(windows, batch_tokens):
            for window, value in zip(batch, _window_nats(model, batch), strict=True):
                nats[window.document] += value
    finally:
        model.train(was_training)
    return [
        DocumentScore(language, len(text.encode("utf-8")), float(value))
        for (language, text), value in zip(labelled, nats, strict=True)
    ]


def _check_fit(model: Any, n_rows: int) -> int | None:
    """The model's BOS id or None; VocabMismatchError where ids lie beyond the model's rows."""
    rows = model.get_input_embeddings().weight.shape[0]
    if n_rows > rows:
        raise VocabMismatchError(
            f"the tokenizer needs {n_rows} embedding rows and the model has {rows}; "
            "score a model with its own tokenizer"
        )
    bos: int | None = model.config.get_text_config().bos_token_id
    if bos is not None and not 0 <= bos < rows:
        raise VocabMismatchError(
            f"the model's config names bos_token_id {bos} but the model has {rows} rows; "
            "set it to an id of its tokenizer, or to None"
        )
    return bos


def _window_sizes(
    model: Any, context: int | None, overlap: int | None, *, n_prefix: int
) -> tuple[int, int]:
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if context is None:
        context = positions or 2048
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


def _labelled(
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
) -> Iterator[tuple[str, str]]:
    from vocabshift.text.corpus import Corpus

    corpus = texts if hasattr(texts, "texts") else Corpus.from_texts(texts)
    for language, text in corpus.texts():
        yield ALL if language is None else language, text


def _windows(
    document: int, ids: NDArray[np.int32], bos: int | None, context: int, overlap: int
) -> Iterator[_Window]:
    prefix = np.array([] if bos is None else [bos], dtype=np.int64)
    room = context - prefix.size
    at = 0
    while at == 0 or at + overlap < len(ids):
        stretch = np.concatenate([prefix, ids[at : at + room].astype(np.int64)])
        if stretch.size > 1:  # a lone token without BOS has no probability
            yield _Window(document, stretch, prefix.size + (overlap if at else 0))
        at += room - overlap


def _batches(windows: list[_Window], batch_tokens: int) -> Iterator[list[_Window]]:
    """Windows by falling length, so that padding is short and a lack of memory shows at once."""
    batch: list[_Window] = []
    for window in sorted(windows, key=lambda window: -window.ids.size):
        if batch and (len(batch) + 1) * batch[0].ids.size > batch_tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _window_nats(model: Any, batch: list[_Window]) -> list[float]:
    import torch

    device = model.get_input_embeddings().weight.device
    width = max(window.ids.size for window in batch)
    ids = np.zeros((len(batch), width), dtype=np.int64)
    for row, window in enumerate(batch):
        ids[row, : window.ids.size] = window.ids
    lengths = np.array([window.ids.size for window in batch])
    mask = np.arange(width) < lengths[:, None]
    with torch.inference_mode():
        input_ids = torch.from_numpy(ids).to(device)
        # Padding stands on the right, where a causal model cannot see it.
        logits = model(
            input_ids=input_ids,
            attention_mask=torch.from_numpy(mask).to(device, torch.int64),
            use_cache=False,
        ).logits
        nats = []
        for row, window in enumerate(batch):
            first, last = max(window.n_context, 1), window.ids.size
            cost = torch.nn.functional.cross_entropy(
                logits[row, first - 1 : last - 1].float(),
                input_ids[row, first:last],
                reduction="none",
            )
            nats.append(float(cost.double().sum()))
    return nats
