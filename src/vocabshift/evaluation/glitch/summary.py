"""A glitch report as plain values: the summary, and one dictionary for each token.

Owns the keys (contract: tokens[{id, token, class, indicator, z, …}], summary), the groups with
what to do about them, and the list that `vocabshift prune` takes. Plain JSON values only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vocabshift.evaluation.glitch import DRIFT, NORM, classes
from vocabshift.evaluation.glitch.classes import (
    ACTIONS,
    CLASSES,
    JUDGED,
    action_of,
    counts_inside,
    reason_of,
)
from vocabshift.evaluation.glitch.find import GlitchReport
from vocabshift.evaluation.glitch.references import ONE_ROW, last_of_vocabulary, reference_curve
from vocabshift.evaluation.glitch.verification import Verified
from vocabshift.evaluation.lines.subject import checksum_of
from vocabshift.tokenizer.token_bytes import token_bytes
from vocabshift.tokenizer.tokenizer_json import fingerprint

_EXAMPLES = 12
_DIGITS = 6
_NAMES = {
    "norm": "input_norm",
    "cosine": "head_cosine",
    "centred": "head_centred",
    "without-component": "head_without_component",
    "distance": "head_distance",
    "bias": "head_bias",
    "drift": "drift",
}
"""Key of each indicator in the rows, whichever decides."""


def token_rows(report: GlitchReport) -> list[dict[str, Any]]:
    """Every token that has a row, the most suspect first; rows without a token are left out."""
    columns = _columns(report)
    spelled = token_bytes(report.tokenizer)
    verified = (
        {}
        if report.verification is None
        else {found.token_id: found for found in report.verification.tokens}
    )
    reference = set() if report.reference is None else set(report.reference.ids.tolist())
    counts, values = report.counts, report.values
    inside = None if counts is None else counts_inside(report.tokenizer, counts).tolist()
    kinds, suspect = report.kinds.classes.tolist(), report.suspect.tolist()
    order = np.argsort(np.where(np.isfinite(values), values, np.inf), kind="stable").tolist()
    rows = []
    for i in order:
        if kinds[i] == classes.NO_TOKEN:
            continue
        found = verified.get(i)
        count = None if counts is None else int(counts[i])
        asked = suspect[i] or found is not None
        text = _text(spelled.get(i))
        parts = None if inside is None else inside[i]
        reason = (
            reason_of(kinds[i], is_text=text is not None, count=count, inside=parts)
            if asked
            else None
        )
        action = action_of(
            kinds[i],
            is_suspect=suspect[i],
            count=count,
            verdict=None if found is None else found.verdict,
        )
        rows.append(
            {
                "id": i,
                "token": report.kinds.tokens[i],
                "text": text,
                "class": kinds[i],
                "script": report.kinds.scripts[i],
                "is_reference": i in reference,
                **{name: column[i] for name, column in columns.items()},
                "is_suspect": suspect[i],
                "count": count,
                "reason": reason,
                "max_probability": None if found is None else _round(found.max_probability),
                "verdict": None if found is None else found.verdict,
                "spelled": None
                if found is None or found.spelled is None
                else _round(found.spelled),
                "action": None if action is None else action[0],
                "why": None if action is None else action[1],
            }
        )
    return rows


def summary(report: GlitchReport, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Facts about the model and the rows, for the head of a report."""
    tables, values = report.tables, report.values
    evaluated = report.kinds.is_in(*JUDGED) & np.isfinite(values)
    own = values[evaluated]
    facts = {
        "model": report.name,
        "tokenizer": fingerprint(report.tokenizer),
        "tokenizer_sha256": checksum_of(report.tokenizer),
        "text_sha256": report.texts,
        "embeddings": tables.hash(),
        "tied": tables.tied,
        "head_bias": tables.bias is not None,
        "rows": tables.embeddings.rows,
        "width": tables.embeddings.width,
        "dtype": tables.embeddings.stored.dtype,
        "padding": tables.embeddings.rows - report.tokenizer.row_count,
        "indicator": report.indicator,
        "mean": _round(own.mean()) if len(own) else None,
        "std": _round(own.std()) if len(own) else None,
        "reference": _reference(report),
        "threshold": {
            "value": _round(report.threshold.value),
            "why": report.threshold.why,
            "is_by_reference": report.threshold.is_by_reference,
        },
        "n_judged": int(evaluated.sum()),
        "n_suspect": int((evaluated & report.suspect).sum()),
        "classes": _table(rows, "class", CLASSES),
        "scripts": _table([row for row in rows if row["class"] in JUDGED], "script"),
        "groups": _groups(rows),
        "curve": _curve(report),
        "drift": None,
        "verification": None,
        "notes": _notes(report, evaluated),
    }
    if report.drift is not None:
        facts["drift"] = {
            "how": report.drift.how,
            "n_matched": report.drift.n_matched,
            "n_held": report.drift.n_held,
        }
    if report.verification is not None:
        verdicts = Counter(found.verdict for found in report.verification.tokens)
        facts["verification"] = {
            "n_tokens": len(report.verification.tokens),
            "verdicts": dict(sorted(verdicts.items())),
            "spelled": _mean_spelled(report.verification.tokens),
            "placeholder": report.kinds.tokens[report.verification.placeholder],
            "shots": report.verification.shots,
        }
    return facts


def _mean_spelled(tokens: Sequence[Verified]) -> float | None:
    """Mean share of letters, of the tokens that have letters."""
    known = [found.spelled for found in tokens if found.spelled is not None]
    return _round(float(np.mean(known))) if known else None


def _text(data: bytes | None) -> str | None:
    """What a token stands for in text; None for half characters and special tokens."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _columns(report: GlitchReport) -> dict[str, list[Any]]:
    """What there is of every row, as lists."""
    found = {"indicator": report.values, "z": report.z}
    found |= {_NAMES[name]: scores.values for name, scores in report.scores.items()}
    if report.drift is not None:
        found["norm_change"] = report.drift.norm_change
        if report.drift.head_distance is not None and report.drift.head_norm_change is not None:
            found["head_drift"] = report.drift.head_distance
            found["head_norm_change"] = report.drift.head_norm_change
    return {name: [_round(value) for value in column.tolist()] for name, column in found.items()}


def _round(value: float) -> float | None:
    """Six digits; None for a number that is none."""
    return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None


def _notes(report: GlitchReport, evaluated: Any) -> list[str]:
    """What a reader must know before acting, one sentence each."""
    notes = []
    n, suspect = int(evaluated.sum()), int((evaluated & report.suspect).sum())
    if report.threshold.is_by_reference and suspect > n / 2:
        notes.append(
            "More than half of the tokens are suspect: the reference rows do not stand apart from "
            "the others, so this model is hardly trained, or they were trained with it."
        )
    known = report.reference
    if known is not None and known.name == ONE_ROW and report.threshold.is_by_reference:
        notes.append(
            "The reference rows are copies of one row, so only tokens that training never drew "
            "away from it are below the threshold. Tokens that it hardly moved come next: "
            "--verify N asks the model for them."
        )
    if report.indicator == DRIFT and report.drift is not None and report.drift.n_held:
        notes.append(
            f"{report.drift.n_held:,} rows are bit for bit those of --initial: training held them "
            "or never met them. Drift says nothing about them, so they are not evaluated."
        )
    if report.tables.tied and report.indicator == NORM:
        notes.append(
            "Norms say nothing about a tied model: the head pushes the rows of unused tokens away "
            "and makes them long (recipes/glitch)."
        )
    if report.reference is not None and len(report.reference.left_out):
        notes.append(
            f"{len(report.reference.left_out)} rows of the same kind were left out of the "
            "reference, being more than 3 times as far from its middle as the median row."
        )
    return notes


def _reference(report: GlitchReport) -> dict[str, Any] | None:
    known = report.reference
    if known is None:
        return None
    return {
        "name": known.name,
        "n": len(known.ids),
        "ids": known.ids.tolist(),
        "why": known.why,
        "left_out": known.left_out.tolist(),
    }


def _table(
    rows: Sequence[Mapping[str, Any]], key: str, order: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Tokens, suspects and the mean of the indicator by class or script."""
    tokens = Counter(row[key] for row in rows)
    suspect = Counter(row[key] for row in rows if row["is_suspect"])
    sums: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["indicator"] is not None:
            sums[row[key]].append(row["indicator"])
    names = [name for name in order if name in tokens] if order else None
    return [
        {
            key: name,
            "tokens": tokens[name],
            "suspect": suspect[name],
            "mean": _round(float(np.mean(sums[name]))) if sums[name] else None,
        }
        for name in names or sorted(tokens, key=lambda name: (-suspect[name], -tokens[name], name))
    ]


def _groups(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tokens with something to do about them, by what and why and class."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row["action"] is not None:
            name = row["token"] if row["text"] is None else row["text"]
            found[row["action"], row["class"], row["why"]].append(name)
    order = sorted(found, key=lambda key: (ACTIONS.index(key[0]), -len(found[key]), key))
    return [
        {
            "action": action,
            "class": kind,
            "why": why,
            "tokens": len(found[action, kind, why]),
            "examples": found[action, kind, why][:_EXAMPLES],
        }
        for action, kind, why in order
    ]


def _curve(report: GlitchReport) -> list[dict[str, Any]]:
    """IST's curve; by distance to the reference where there is one, whatever decides else."""
    name = report.indicator
    if name == NORM and report.reference is not None:
        name = "cosine"
    values = report.scores[name].values
    kinds = report.kinds
    in_model = np.zeros(len(values), dtype=np.bool_)
    in_model[list(report.tokenizer.model.vocab.values())] = True
    in_model &= ~kinds.is_in(classes.SPECIALS, classes.ADDED, classes.DUMMY)
    ranked = in_model & ~kinds.is_in(classes.BYTE) & np.isfinite(values)
    groups = {
        "last_tenth": last_of_vocabulary(in_model),
        "superwords": kinds.is_in(classes.SUPERWORD),
    }
    return [{"k": point.k, **point.counts} for point in reference_curve(values, ranked, groups)]
