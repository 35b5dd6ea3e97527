"""evaluate: tokenizers and texts in, Results out.

Owns the order of things: name the subjects, count every text once for each tokenizer, turn
counts into metrics, make rows. Knows nothing of how a line is counted or a table is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.evaluation import metrics as ratio
from vocabshift.evaluation.counts import LineCounts, count_texts
from vocabshift.evaluation.subject import subjects
from vocabshift.results import Result, Results

DEFAULT_METRICS = ("fertility", "bytes_per_token")


def evaluate(
    tokenizers: Any,
    texts: Any,
    metrics: str | Sequence[str] | None = None,
    *,
    base: Any = None,
    threads: int = 1,
) -> Results:
    """Measure tokenizers on texts, per language.

    `tokenizers`: one `Tokenizer`, transformers fast tokenizer, path or Hub name, or a list or
    tuple of them, or a mapping of names to them. `texts`: a `Corpus` or {language: iterable of
    str}; documents are cut into lines, blank ones are skipped, no BOS or EOS is added.
    `metrics`: by default ("fertility", "bytes_per_token"), and "normalized_sequence_length" too
    where a `base` tokenizer is given; see `vocabshift.evaluation.metrics` for the others.
    `threads` changes the time, never the result.

    Each row is a ratio of sums over lines with its 95 % bootstrap interval; `n` is the number of
    lines. Rows come by metric, then language, then subject. Raises ValueError for an unknown
    metric, or for one that needs a base where none is given; CorpusError for an empty language.
    """
    if metrics is None:
        metrics = DEFAULT_METRICS if base is None else (*DEFAULT_METRICS, ratio.BASE_METRIC)
    names = ratio.check_names(metrics)
    if ratio.BASE_METRIC in names and base is None:
        raise ValueError(f"{ratio.BASE_METRIC} compares with a base tokenizer; give one as base")
    judged = subjects(tokenizers)
    loaded = [subject.tokenizer for subject in judged]
    if base is not None:
        loaded.append(subjects(base)[0].tokenizer)
    counted = count_texts(loaded, texts, threads=threads)
    labels = [subject.name for subject in judged]
    rows = {
        language: _rows(labels, language, names, counts) for language, counts in counted.items()
    }
    return Results(
        row for name in names for of_language in rows.values() for row in of_language[name]
    )


def _rows(
    labels: Sequence[str], language: str, names: Sequence[str], counts: Sequence[LineCounts]
) -> dict[str, list[Result]]:
    """Rows of one language by metric; the counts of the base, if any, come after the others."""
    base = counts[-1] if len(counts) > len(labels) else None
    for label, of_subject in zip((*labels, "base"), counts, strict=False):
        if not of_subject.n_tokens.any():
            raise InvalidTokenizerError(
                f"{label} gives no token for any line of {language}; it cannot be measured there"
            )
    keys = [(name, label) for name in names for label in range(len(labels))]
    estimates = ratio.estimate([ratio.terms(name, counts[i], base) for name, i in keys])
    rows: dict[str, list[Result]] = {name: [] for name in names}
    for (name, i), found in zip(keys, estimates, strict=True):
        n_lines = counts[i].n_lines
        rows[name].append(
            Result(labels[i], language, name, found.value, n_lines, found.low, found.high)
        )
    return rows
