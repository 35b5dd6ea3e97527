"""Bits per byte: the negative log-likelihood of text under a causal language model, by byte.

A document is scored by itself, after the model's BOS if its config has one; no EOS is appended or
scored. Its bytes are those of the raw text, never of its tokens. So models with different
tokenizers can be compared (unlike by loss per token).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.placing import is_same
from vocabshift.evaluation.lines.subject import checksum_of, engine_of
from vocabshift.evaluation.metrics.metric import LOSS, estimate
from vocabshift.evaluation.metrics.registry import BITS_PER_BYTE
from vocabshift.models.load import check_causal, check_fit, lack_of_memory
from vocabshift.models.token_loss import token_nats
from vocabshift.models.windows import (
    Window,
    batches_of,
    padded,
    warn_of_chat_start,
    window_sizes,
    windows_of,
)
from vocabshift.progress import Progress
from vocabshift.results import UNLABELLED, Result, Results, with_sources

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.formats.load import TokenizerLike

METRIC = BITS_PER_BYTE.name


@dataclass(frozen=True, slots=True)
class DocumentScore:
    """One document and its negative log-likelihood."""

    language: str
    n_bytes: int
    nats: float  # minus the sum of its tokens' log-probabilities
    is_lost: bool = False  # the text does not round-trip: the nats are of another text


def score(
    model: PreTrainedModel,
    tokenizer: TokenizerLike,
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
    *,
    subject: str = "model",
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
    progress: Progress | None = None,
) -> Results:
    """Bits per byte of a causal language model on texts, one row a language.

    The value of a language is the bits of all its documents over their bytes of UTF-8, `n` the
    number of documents; the 95 % interval is a bootstrap over documents. Lower is better.

    Parameters:
        model: a causal language model of transformers, on any device and in any dtype; it keeps
            its mode.
        tokenizer: its tokenizer, of any kind that `evaluate` takes.
        texts: a `Corpus`, {language: documents}, or documents without a label ("all").
        subject: the name that the rows carry.
        context: tokens that the model sees at once, BOS included; default: the model's positions,
            at most 4,096. Longer documents are scored in windows.
        overlap: tokens of the window before that a window repeats as context; default: half of
            `context`.
        batch_tokens: tokens of a batch, padding included.
        progress: called with the phase "score", tokens done, and all tokens.

    Raises CorpusError for a language without text, VocabMismatchError where tokenizer and model do
    not fit, and ValueError for an impossible context or overlap, a model that sees what follows (a
    masked one), one that gives no finite number, and too little memory.
    """
    engine, read = engine_of(tokenizer), read_documents(texts)
    documents = score_documents(
        model,
        engine,
        read,
        context=context,
        overlap=overlap,
        batch_tokens=batch_tokens,
        progress=progress,
    )
    rows = score_rows(subject, documents)
    return with_sources(rows, read, {subject: checksum_of(engine.tokenizer)})


def score_rows(subject: str, documents: Sequence[DocumentScore]) -> Results:
    """Bits per byte of each language: bits of all its documents over bytes of all of them.

    The 95 % interval is a bootstrap over documents, left out where a language has a single one. A
    row `loss_rate` (share of documents) follows where the tokenizer does not give some text back:
    what it drops or calls unknown costs little, so that the value is not one of this text.
    """
    rows, losses = [], []
    for language in dict.fromkeys(document.language for document in documents):
        own = [document for document in documents if document.language == language]
        found = estimate([(bits_of(own), bytes_of(own))])[0]
        rows.append(Result(subject, language, METRIC, found.value, len(own), found.low, found.high))
        n_lost = sum(document.is_lost for document in own)
        if n_lost:
            losses.append(Result(subject, language, LOSS, n_lost / len(own), len(own)))
    return Results([*rows, *losses])


def bits_of(documents: Sequence[DocumentScore]) -> NDArray[np.float64]:
    """The negative log-likelihood of each document in bits, (n_documents,)."""
    return np.array([document.nats for document in documents], dtype=np.float64) / math.log(2)


def bytes_of(documents: Sequence[DocumentScore]) -> NDArray[np.float64]:
    """The UTF-8 bytes of each document, (n_documents,)."""
    return np.array([document.n_bytes for document in documents], dtype=np.float64)


def score_documents(
    model: Any,
    tokenizer: Any,
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
    progress: Progress | None = None,
) -> list[DocumentScore]:
    """The negative log-likelihood of every document that is not blank, in order.

    A document longer than `context` tokens (default: the model's positions, at most 4,096)
    is scored in windows, each beginning with the BOS again; a later window repeats the last
    `overlap` tokens (default: half the context) of the one before as context and scores only what
    follows them. Without a BOS the first token of a document has no probability: it costs
    nothing, and its bytes count. Windows of like length are padded together to at most
    `batch_tokens` tokens a batch. Arguments and errors are those of `score`.
    """
    engine = engine_of(tokenizer)
    bos = check_fit(model, engine.row_count)
    warn_of_chat_start(model, engine.tokenizer)
    context, overlap = window_sizes(model, context, overlap, n_prefix=0 if bos is None else 1)
    pairs = list(labelled(texts))
    ids, offsets = engine.encode_batch([text for _, text in pairs])
    windows = [
        window
        for document, (start, end) in enumerate(pairwise(offsets))
        for window in windows_of(document, ids[start:end], bos, context, overlap)
    ]
    nats = _document_nats(model, windows, len(pairs), batch_tokens, progress)
    if not np.isfinite(nats).all():
        raise ValueError(
            f"the model gives {np.count_nonzero(~np.isfinite(nats))} of {len(nats)} documents no "
            "finite likelihood: its weights are broken, or too large for their dtype (try float32)"
        )
    back = engine.decode_batch(ids, offsets)
    return [
        DocumentScore(language, len(text.encode()), float(value), not is_same(text, again))
        for (language, text), value, again in zip(pairs, nats, back, strict=True)
    ]


def _document_nats(
    model: Any,
    windows: Sequence[Window],
    n_documents: int,
    batch_tokens: int,
    progress: Progress | None,
) -> NDArray[np.float64]:
    """Negative log-likelihoods of the documents, (n_documents,); the model keeps its mode."""
    nats = np.zeros(n_documents)
    done, total = 0, sum(window.ids.size for window in windows)
    report = progress or (lambda *_: None)
    kind = model.get_input_embeddings().weight.device.type
    was_training = model.training
    model.eval()
    advice = (
        f"no memory for a batch of {batch_tokens} tokens (or for one window of the context): "
        "lower the batch tokens or the context, or choose a smaller dtype"
    )
    try:
        with lack_of_memory(advice):
            report("score", 0, total)
            check_causal(model)
            for batch in batches_of(windows, batch_tokens, kind):
                for window, value in zip(batch, _window_nats(model, batch), strict=True):
                    nats[window.document] += value
                done += sum(window.ids.size for window in batch)
                report("score", done, total)
    finally:
        model.train(was_training)
    return nats


def read_documents(
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
) -> dict[str, list[str]]:
    """The documents by language that are not blank, read once: standard input cannot be read for
    each model. CorpusError where there is none, or none of a language."""
    found: dict[str, list[str]] = {}
    for language, text in labelled(texts):
        found.setdefault(language, []).append(text)
    return found


def labelled(
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
) -> Iterator[tuple[str, str]]:
    """(language, document) of all that are not blank; text without a label is of "all".

    CorpusError, at the end, where there is none, or none of a language that was named.
    """
    from vocabshift.text.corpus import Corpus

    corpus = texts if isinstance(texts, Corpus) else Corpus.from_texts(texts)
    lacking = dict.fromkeys(corpus.languages)
    is_empty = True
    for label, text in corpus.texts():
        if text.strip():
            is_empty = False
            language = UNLABELLED if label is None else label
            lacking.pop(language, None)
            yield language, text
    if lacking:
        raise CorpusError(f"no text to score for {', '.join(lacking)}; leave it out or give text")
    if is_empty:
        raise CorpusError("there is no text to score; name files that are not empty")


def _window_nats(model: Any, batch: Sequence[Window]) -> list[float]:
    """The nats of each window's scored ids; the head is applied where one of them follows."""
    import torch

    firsts = [max(window.n_context, 1) for window in batch]
    lengths = [window.ids.size for window in batch]
    with torch.inference_mode():
        input_ids, mask = padded(batch, model)
        kept = np.concatenate(
            [
                row * max(lengths) + np.arange(first - 1, length - 1)
                for row, (first, length) in enumerate(zip(firsts, lengths, strict=True))
            ]
        )
        nats, _ = token_nats(
            model,
            input_ids,
            input_ids.roll(-1, dims=1),
            kept=torch.from_numpy(kept).to(input_ids.device),
            attention_mask=mask,
        )
        found = nats.double().cpu().numpy()
    ends = np.cumsum([length - first for first, length in zip(firsts, lengths, strict=True)])
    return [float(own.sum()) for own in np.split(found, ends[:-1])]
