"""Which of several models is best: bits per byte of several languages as one number.

The number of a model is what it saves against another one: the sum over languages of a weight times
the bits per byte saved. Models are compared by document, because documents differ far more from
each other than two models do on one document. Where the interval of a difference includes zero, two
models cannot be told apart. Knows nothing of how a model was made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from vocabshift.evaluation.metrics.metric import Floats, resampled_sums
from vocabshift.evaluation.scoring.score import DocumentScore, bits_of, bytes_of

FEWEST_DOCUMENTS = 10
"""Documents of each language below which there is no interval: a bootstrap over a few documents is
far too narrow, so that one of two equal models looks clearly better."""

_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Standing:
    """One model, and how it compares with the one it is measured against and with the best."""

    name: str
    saved: float  # weighted bits per byte saved; below 0 where it is the worse one
    saved_low: float | None  # 95 %, paired by document; None: too few documents
    saved_high: float | None
    changes: Mapping[str, float]  # bits per byte by language, less those it is measured against
    behind: float  # what the best saves beyond it; 0 of the best itself
    behind_low: float | None  # Bonferroni's interval over all others, 95 % for all of them together
    behind_high: float | None
    is_tied: bool  # the best cannot be told from it

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)


def rank(
    scores: Mapping[str, Sequence[DocumentScore]],
    against: Sequence[DocumentScore],
    weights: Mapping[str, float],
) -> list[Standing]:
    """The models, the best first.

    scores: the documents of each model as `score_documents` gives them, of the same texts in the
    same
        order as `against`, the model before; ValueError where they are not.
    weights: of each language; the others do not count.

    A document that a tokenizer does not give back makes a model's likelihood one of another text:
    ValueError. The bootstrap resamples the documents of each language, independently of the others.
    With fewer than `FEWEST_DOCUMENTS` of a language there are no intervals, and all are tied.
    """
    for name, own in scores.items():
        if [(d.language, d.n_bytes) for d in own] != [(d.language, d.n_bytes) for d in against]:
            raise ValueError(f"{name} was not scored on the same documents as the model before")
        lost = {d.language for d in own if d.is_lost and d.language in weights}
        if lost:
            raise ValueError(f"the tokenizer of {name} loses text of {', '.join(sorted(lost))}")
    names = list(scores)
    saved = np.zeros(len(names))
    drawn: Floats | None = np.zeros((1, len(names)))
    changes: dict[str, dict[str, float]] = {name: {} for name in names}
    languages = dict.fromkeys(document.language for document in against)
    for stream, language in enumerate(languages):
        before = [d for d in against if d.language == language]
        sizes = bytes_of(before)
        columns = [
            bits_of([d for d in scores[name] if d.language == language]) - bits_of(before)
            for name in names
        ]
        table = np.stack([*columns, sizes], axis=1)
        change = table[:, :-1].sum(axis=0) / sizes.sum()
        for name, value in zip(names, change.tolist(), strict=True):
            changes[name][language] = value
        weight = weights.get(language, 0.0)
        saved -= weight * change
        if weight and len(before) < FEWEST_DOCUMENTS:
            drawn = None
        elif weight and drawn is not None:
            sums = resampled_sums(table, stream=stream)
            drawn = drawn - weight * sums[:, :-1] / sums[:, -1:]
    best = int(saved.argmax()) if names else 0
    found = []
    for number in sorted(range(len(names)), key=lambda each: -saved[each]):
        low = high = behind_low = behind_high = None
        if drawn is not None:
            of_it = drawn[:, number]
            low, high = _interval(of_it, _LEVEL)
            behind_low, behind_high = _interval(
                drawn[:, best] - of_it, _LEVEL / max(len(names) - 1, 1)
            )
        found.append(
            Standing(
                name=names[number],
                saved=float(saved[number]),
                saved_low=low,
                saved_high=high,
                changes=changes[names[number]],
                behind=float(saved[best] - saved[number]),
                behind_low=behind_low,
                behind_high=behind_high,
                is_tied=number != best and (behind_low is None or behind_low <= 0),
            )
        )
    return found


def _interval(drawn: Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(drawn, (level / 2, 1 - level / 2))
    return float(low), float(high)
