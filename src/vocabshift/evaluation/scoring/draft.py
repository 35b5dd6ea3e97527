"""How many tokens of a draft model would a target model accept? An estimate from text.

Speculative decoding accepts a drafted token with the probability sum(min(p, q)) = 1 - TV(p, q),
p and q being the target's and the draft's next-token distributions (Leviathan et al. 2023,
arXiv:2211.17192, theorem 3.5: sampling at temperature 1); in greedy decoding it accepts where both
have the same most likely token. Both are taken at every token of held-out text, not along a drafted
continuation, and averaged over tokens. Both models must have the same tokenizer.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.evaluation.lines.subject import checksum_of, engine_of, subject_names
from vocabshift.evaluation.metrics.metric import estimate
from vocabshift.evaluation.scoring.score import read_documents
from vocabshift.models.load import check_fit, check_model, lack_of_memory, load_causal_model
from vocabshift.models.windows import (
    Window,
    batches_of,
    padded,
    warn_of_chat_start,
    window_sizes,
    windows_of,
)
from vocabshift.progress import Progress
from vocabshift.results import UNLABELLED, WHOLE, Result, Results, with_sources
from vocabshift.tokenizer.any_tokenizer import Ids, Offsets, tokens_by_id
from vocabshift.tokenizer.engine import Engine

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus

METRICS = ("acceptance_greedy", "acceptance_sampled")
"""Names of the rows: shares of drafted tokens that are accepted, in [0, 1]."""

BATCH_TOKENS = 512
"""Tokens run at once: the logits of both models are in memory together."""

_POSITIONS = 64
"""Of which the probabilities are in memory together, in float32."""


@dataclass(frozen=True, slots=True)
class _Accepted:
    """One document: its predicted tokens, and how many of them are accepted, by `METRICS`."""

    language: str
    n_tokens: int
    sums: tuple[float, float]


def score_draft(
    target: str | Path,
    draft: str | Path,
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Estimate how many tokens of `draft` the model `target` accepts, per language and over "all".

    target, draft: folders or Hub names of causal models with the same tokenizer. Both are in memory
        together.
    context: tokens that the models see at once; default: the positions of both, at most
        `batch_tokens`. batch_tokens: tokens run at once, padding included; the logits take about
        8 * batch_tokens * rows bytes in float32.
    The other arguments are those of `score_models`.

    Rows by language: `acceptance_greedy` and `acceptance_sampled`, averaged over tokens; `n` is the
    number of documents, the 95 % interval a bootstrap over them.

    Raises VocabMismatchError if the tokenizers differ, and what `score_models` raises.
    """
    for source in (target, draft):
        check_model(source, trust_remote_code=trust_remote_code)
    read = read_documents(texts)
    pairs = [(language, text) for language, own in read.items() for text in own]
    engine, ids, offsets = _encoded(target, draft, [text for _, text in pairs])
    options: dict[str, Any] = {"dtype": dtype, "device": device}
    models = [
        load_causal_model(source, trust_remote_code=trust_remote_code, **options)
        for source in (target, draft)
    ]
    bos, _ = (check_fit(model, engine.row_count) for model in models)
    warn_of_chat_start(models[0], engine.tokenizer)
    n_prefix = 0 if bos is None else 1
    if context is None:
        own = [window_sizes(model, None, None, n_prefix=n_prefix)[0] for model in models]
        context = max(4, min(*own, batch_tokens))
    sizes = [window_sizes(model, context, overlap, n_prefix=n_prefix) for model in models]
    windows = [
        window
        for document, (start, end) in enumerate(pairwise(offsets))
        for window in windows_of(document, ids[start:end], bos, *sizes[0])
    ]
    with lack_of_memory(
        f"no memory for {batch_tokens} tokens under both models: lower the batch tokens or the "
        "context, or choose a smaller dtype"
    ):
        found = _accepted(
            models,
            windows,
            [language for language, _ in pairs],
            n_rows=engine.row_count,
            batch_tokens=batch_tokens,
            progress=progress,
        )
    [subject] = subject_names([target])
    return with_sources(_rows(subject, found), read, {subject: checksum_of(engine.tokenizer)})


def _encoded(
    target: str | Path, draft: str | Path, texts: Sequence[str]
) -> tuple[Engine, Ids, Offsets]:
    """The tokenizer of both models and the ids of the texts; VocabMismatchError if they differ."""
    engine, other = engine_of(target), engine_of(draft)
    command = shlex.join(["vocabshift", "transfer", str(draft), str(target), "-o", "DIR"])
    advice = f"move the draft first: {command}"
    a, b = tokens_by_id(engine.tokenizer), tokens_by_id(other.tokenizer)
    wrong = next((i for i in sorted({*a, *b}) if a.get(i) != b.get(i)), None)
    if wrong is not None:
        raise VocabMismatchError(
            f"{target} and {draft} have different tokenizers: token {wrong} is {a.get(wrong)!r} in "
            f"the one and {b.get(wrong)!r} in the other; {advice}"
        )
    ids, offsets = engine.encode_batch(texts)
    ids_of_draft, offsets_of_draft = other.encode_batch(texts)
    if not (np.array_equal(ids, ids_of_draft) and np.array_equal(offsets, offsets_of_draft)):
        raise VocabMismatchError(
            f"{target} and {draft} have the same tokens, but cut this text in different ways "
            f"(merges, pre-tokenizer or normalizer); {advice}"
        )
    return engine, ids, offsets


def _accepted(
    models: Sequence[Any],
    windows: Sequence[Window],
    labels: Sequence[str],
    *,
    n_rows: int,
    batch_tokens: int,
    progress: Progress | None,
) -> list[_Accepted]:
    sums = np.zeros((len(labels), len(METRICS)))
    n_tokens = np.zeros(len(labels), dtype=np.int64)
    done, total = 0, sum(window.ids.size for window in windows)
    for batch in batches_of(windows, batch_tokens, models[0].device.type):
        found = _batch_sums(models, batch, n_rows)
        for window, (n, *accepted) in zip(batch, found, strict=True):
            n_tokens[window.document] += n
            sums[window.document] += accepted
        done += sum(window.ids.size for window in batch)
        if progress is not None:
            progress("score", done, total)
    if not np.isfinite(sums).all():
        raise ValueError(
            "a model gives no finite probabilities: its weights are broken, or too large for their "
            "dtype (try float32)"
        )
    return [
        _Accepted(language, int(n), (float(row[0]), float(row[1])))
        for language, n, row in zip(labels, n_tokens, sums, strict=True)
    ]


def _batch_sums(
    models: Sequence[Any], batch: list[Window], n_rows: int
) -> list[tuple[int, float, float]]:
    """For each window: its tokens, and the sums of both kinds of acceptance over them."""
    import torch

    with torch.inference_mode():
        logits = []
        for model in models:
            ids, mask = padded(batch, model)
            found = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            logits.append(found[..., :n_rows])  # rows of padding are no tokens
        sums = []
        for row, window in enumerate(batch):
            first, last = max(window.n_context, 1) - 1, window.ids.size - 1
            greedy = sampled = 0.0
            for at in range(first, last, _POSITIONS):
                p, q = (
                    each[row, at : min(at + _POSITIONS, last)].float().softmax(-1)
                    for each in logits
                )
                greedy += float((p.argmax(-1) == q.argmax(-1)).sum())
                # Not the sum of min(p, q): rounding would take it beyond 1.
                distances = (p - q).abs().sum(-1) / 2  # of each position, in [0, 1]
                sampled += len(p) - float(distances.cpu().double().sum())
            sums.append((last - first, greedy, sampled))
    return sums


def _rows(subject: str, documents: Sequence[_Accepted]) -> Results:
    languages = dict.fromkeys(document.language for document in documents)
    groups = [(each, [d for d in documents if d.language == each]) for each in languages]
    if len(groups) > 1 and UNLABELLED not in languages:
        groups.append((WHOLE, list(documents)))
    rows = []
    for language, own in groups:
        n_tokens = np.array([d.n_tokens for d in own], dtype=np.float64)
        if not n_tokens.any():
            raise CorpusError(f"the text of {language} has no token that follows another")
        sums = np.array([d.sums for d in own]).T
        for metric, found in zip(METRICS, estimate([(s, n_tokens) for s in sums]), strict=True):
            rows.append(
                Result(subject, language, metric, found.value, len(own), found.low, found.high)
            )
    return Results(rows)
