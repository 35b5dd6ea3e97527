"""Glitch tokens of a model: all facts about every row.

Owns the choice of the deciding indicator, and the order of the work. The other files of this folder
compute the facts; `summary` turns them into JSON values. The weights are read block by block; the
model itself is only loaded for verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.glitch import (
    AUTO,
    BIAS,
    COSINE,
    DRIFT,
    INDICATORS,
    NORM,
    OF_HEAD,
    indicators,
)
from vocabshift.evaluation.glitch.classes import (
    JUDGED,
    Threshold,
    TokenKinds,
    classify,
    count_ids,
    threshold,
)
from vocabshift.evaluation.glitch.indicators import Drift, Scores, drift
from vocabshift.evaluation.glitch.references import Reference, find_reference
from vocabshift.evaluation.glitch.verification import Verification, verify
from vocabshift.models.folder import local_folder
from vocabshift.models.load import load_causal_model
from vocabshift.models.row_blocks import ModelTables, open_tables
from vocabshift.progress import Progress
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class GlitchReport:
    """What was found; arrays are (rows,), by id. `summary` makes dictionaries of it."""

    name: str
    tokenizer: Tokenizer
    tables: ModelTables
    kinds: TokenKinds
    indicator: str  # one of INDICATORS, not "auto"
    scores: dict[str, Scores]  # every indicator that there is, by name
    z: npt.NDArray[np.float32]
    threshold: Threshold
    reference: Reference | None
    counts: npt.NDArray[np.int64] | None
    texts: dict[str, str] | None  # `text_sha256` of each language of the corpus
    drift: Drift | None
    verification: Verification | None

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """(rows,) of the indicator that decides; low is suspect, NaN where there is none."""
        return self.scores[self.indicator].values

    @property
    def suspect(self) -> npt.NDArray[np.bool_]:
        """(rows,) up to the threshold."""
        return np.asarray(self.values <= self.threshold.value)


def find_glitch_tokens(
    model: str | Path,
    *,
    initial: str | Path | None = None,
    reference: Sequence[str] = (),
    indicator: str = AUTO,
    corpus: Corpus | None = None,
    n_verify: int = 0,
    dtype: str = "float32",
    threads: int = 1,
    progress: Progress | None = None,
) -> GlitchReport:
    """Look for under-trained tokens of a saved causal language model and its tokenizer (BPE).

    After Land and Bartolo 2024, "Fishing for Magikarp" (arXiv:2405.05417); classes, indicators,
    references, thresholds and prompts name their sources in the files of this folder.

    Parameters:
        model: folder or Hub name, with its own tokenizer.
        initial: an earlier state of it, for the indicator "drift".
        reference: ids, ranges of ids ("5-9") or tokens that are known to be unused; left out, they
            are looked for.
        indicator: one of INDICATORS; "auto" is the norm of the input embeddings for an untied
            model and the cosine distance to unused rows for a tied one.
        corpus: text that says which tokens are used.
        n_verify: so many of the most suspect tokens are tried by prompting (needs the extra [hf]).
        dtype: of the model while it is prompted.
        threads: for counting the corpus; changes the time, never the result.
        progress: called with the phases of the work and, of "prompts", how many are done.

    Returns arrays of (rows,) by id; `summary.summary` and `summary.token_rows` make plain values
    of them. Raises ValueError (VocabMismatchError, InvalidTokenizerError among them) for models
    that cannot be analysed.
    """
    if indicator not in INDICATORS:
        raise ValueError(f"unknown indicator {indicator!r}; known are: {', '.join(INDICATORS)}")
    if indicator == DRIFT and initial is None:
        raise ValueError("the indicator drift compares with an earlier model: give --initial MODEL")
    folder = local_folder(model)
    tokenizer = load_tokenizer(folder)
    tables = open_tables(folder, tokenizer.row_count)
    known = find_reference(tokenizer, tables.head, reference, tied=tables.tied)
    chosen = _chosen(indicator, tables, known)
    moved = None if initial is None else _drift(tables, tokenizer, initial)
    report_phase = progress or (lambda *_: None)
    report_phase("classes of tokens", 0, None)
    kinds = classify(tokenizer, tables.embeddings.rows)
    report_phase("embeddings", 0, None)
    scores = _scores(tables, known, moved)
    if chosen not in scores:
        raise ValueError(f"the output head of {model} has no bias; choose another indicator")
    values = scores[chosen].values
    evaluated = kinds.is_in(*JUDGED) & np.isfinite(values)
    report = GlitchReport(
        name=folder.resolve().name,
        tokenizer=tokenizer,
        tables=tables,
        kinds=kinds,
        indicator=chosen,
        scores=scores,
        z=_z(values, evaluated),
        threshold=threshold(values, evaluated, scores[chosen].of_reference),
        reference=known,
        counts=None,
        texts=None,
        drift=moved,
        verification=None,
    )
    if corpus is not None:
        report_phase("corpus", 0, None)
        counts, sums = count_ids(tokenizer, corpus, tables.embeddings.rows, threads=threads)
        report = replace(report, counts=counts, texts=sums)
    if n_verify:
        ids = _most_suspect(values, evaluated, n_verify)
        report_phase("loading the model", 0, None)
        loaded: Any = load_causal_model(folder, dtype=dtype)
        found = verify(loaded, tokenizer, ids, progress=progress)
        report = replace(report, verification=found)
    return report


def _chosen(indicator: str, tables: ModelTables, reference: Reference | None) -> str:
    """The indicator that decides; ValueError where it needs a reference and there is none."""
    chosen = indicator
    if chosen == AUTO:
        chosen = COSINE if tables.tied else NORM
    if chosen in OF_HEAD and reference is None:
        other = (
            "compare with an earlier state (--initial MODEL --indicator drift); norms say nothing "
            "where embeddings and head are tied"
            if tables.tied
            else "take --indicator norm, which needs none"
        )
        raise ValueError(
            f"{tables.folder} cannot be evaluated by {chosen}: no row is known to be unused (no "
            "dummies, no rows beyond the tokenizer, no impossible bytes, no unused tokens"
            f"{', no special tokens with one row in common' if tables.tied else ''}); name some "
            f"with --reference (special tokens that it never read, say), or {other}"
        )
    return chosen


def _scores(
    tables: ModelTables, reference: Reference | None, moved: Drift | None
) -> dict[str, Scores]:
    """Every indicator that this model and reference allow."""
    ids = np.zeros(0, dtype=np.int64) if reference is None else reference.ids

    def plain(values: npt.NDArray[np.float32]) -> Scores:
        own = values[ids]
        return Scores(values, own[np.isfinite(own)])

    found = {NORM: plain(indicators.norms(tables.embeddings))}
    if reference is not None:
        found |= indicators.distances(tables.head, ids)
    if tables.bias is not None:
        found[BIAS] = plain(indicators.flat(tables.bias))
    if moved is not None:
        found[DRIFT] = plain(moved.distance)
    return found


def _drift(tables: ModelTables, tokenizer: Tokenizer, initial: str | Path) -> Drift:
    folder = local_folder(initial)
    before = load_tokenizer(folder)
    return drift(tables, tokenizer, open_tables(folder, before.row_count), before)


def _z(
    values: npt.NDArray[np.float32], evaluated: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """(rows,) in standard deviations of the evaluated rows."""
    if not evaluated.any():
        return np.zeros_like(values)
    own = values[evaluated].astype(np.float64)
    return np.asarray((values - own.mean()) / max(own.std(), 1e-12), dtype=np.float32)


def _most_suspect(
    values: npt.NDArray[np.float32], evaluated: npt.NDArray[np.bool_], n: int
) -> list[int]:
    ids = np.flatnonzero(evaluated)
    found: list[int] = ids[np.argsort(values[ids], kind="stable")][:n].tolist()
    return found
