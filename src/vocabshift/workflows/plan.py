"""`plan`: how many tokens to add or remove? The whole curve from one run, with the model's costs.

Joins extension (growth, with the pre-tokenizer kept and repaired), pruning (what is lost) and the
sizes of a model. All figures are measured on held-out text: every twentieth document of the
corpus, or text of the caller's. Owns the table and the knee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.extension.counting import TextCounts
from vocabshift.extension.effect import Growth, grow, steps
from vocabshift.models.facts import ModelFacts, model_facts
from vocabshift.progress import Progress
from vocabshift.pruning.counts import SourceCounts, count_tokens
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import number_removable, prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import hold_out
from vocabshift.text.languages import UNLABELLED
from vocabshift.text.regexes import WORTHWHILE_LIFT
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer

MAX_TOKENS = 32_000
"""Tokens to add at most, by default."""

BANDWIDTH = 3.35e12
"""Bytes a second that an H100 SXM reads from its memory: what bounds generation, one text at a
time."""

LOGIT_TOKENS = 1_000
"""Positions for which the memory of the logits is reported."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One number of tokens; negative: tokens removed."""

    n_tokens: int
    pre_tokenizer: str  # "kept" or "repaired"
    bytes_per_token: float
    by_language: Mapping[str, float]
    is_knee: bool = False
    n_characters: int = 0  # that the vocabulary lacked, beside n_tokens
    # Costs of the model, if one is named:
    extra_parameters: int | None = None
    parameters: int | None = None
    tokens_per_second: float | None = None  # generating one text, bound by memory
    bytes_per_second: float | None = None  # the same speed in bytes of text
    logits_bytes: int | None = None  # float32, for LOGIT_TOKENS positions


@dataclass(frozen=True)
class Plan:
    """The trade-off of one tokenizer on one kind of text."""

    tokenizer: str
    rows: tuple[PlanRow, ...]  # by pre-tokenizer, then by n_tokens
    ceilings: Mapping[str, Mapping[str, float]]  # pre-tokenizer -> language -> bytes per token
    stopped_because: Mapping[str, str]  # by pre-tokenizer
    n_removable: int  # tokens that could be removed in total
    n_bytes: int  # of the held-out text
    model: ModelFacts | None

    @property
    def suggested(self) -> PlanRow:
        """The knee of the best curve: repaired if that raises the ceiling of some language."""
        knees = {row.pre_tokenizer: row for row in self.rows if row.is_knee}
        kept, lifted = self.ceilings["kept"], self.ceilings.get("repaired", {})
        is_lifted = any(
            lifted[label] > WORTHWHILE_LIFT * kept[label] for label in lifted if label in kept
        )
        return knees["repaired"] if is_lifted and "repaired" in knees else knees["kept"]

    def knee_of(self, pre_tokenizer: str) -> int:
        """Tokens at the knee of one pre-tokenizer's curve; at least 1."""
        knees = [r.n_tokens for r in self.rows if r.is_knee and r.pre_tokenizer == pre_tokenizer]
        if pre_tokenizer not in ("kept", "repaired"):  # patterns of llama.cpp have no curve
            knees = [self.suggested.n_tokens]
        if not knees:
            what = f"the pre-tokenizer of {self.tokenizer} cannot be {pre_tokenizer}"
            raise ValueError(f"{what}: there is nothing to repair")
        return max(knees[0], 1)

    def exchange_of(self, pre_tokenizer: str) -> int:
        """Tokens to exchange at constant size: the knee, or fewer if removing that many costs.

        At most the largest number on the curve that costs no language more than `MAX_LOSS` of its
        bytes per token; if every number does, the smallest on the curve; at least 1.
        """
        base = next(row for row in self.rows if row.n_tokens == 0)
        shrunk = {-row.n_tokens: row.by_language for row in self.rows if row.n_tokens < 0}
        harmless = [
            n
            for n, by_language in shrunk.items()
            if all(
                by_language[label] >= (1 - MAX_LOSS) * value
                for label, value in base.by_language.items()
            )
        ]
        most = max(harmless, default=min(shrunk, default=1))
        return max(1, min(self.knee_of(pre_tokenizer), most))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "tokenizer": self.tokenizer,
            "rows": [asdict(row) for row in self.rows],
            "ceilings": {name: dict(by) for name, by in self.ceilings.items()},
            "stopped_because": dict(self.stopped_because),
            "suggested": asdict(self.suggested),
            "n_removable": self.n_removable,
            "n_bytes": self.n_bytes,
            "model": None if self.model is None else asdict(self.model),
        }


MAX_LOSS = 0.01
"""Share of its bytes per token that an exchange may cost a language before anything is learned."""


@dataclass(frozen=True)
class CorpusCounts:
    """A text whose words and tokens are counted once, for a plan and the exchange after it."""

    words: TextCounts
    tokens: SourceCounts

    @classmethod
    def of(cls, source: Corpus | TextCounts | CorpusCounts) -> CorpusCounts:
        """The source itself if it is a CorpusCounts, else a new one."""
        if isinstance(source, CorpusCounts):
            return source
        words = TextCounts.of(source)
        return cls(words, SourceCounts(words.source))


def plan(
    tokenizer: TokenizerLike,
    corpus: Corpus | TextCounts | CorpusCounts,
    *,
    text: Corpus | None = None,
    max_tokens: int = MAX_TOKENS,
    model: str | Path | None = None,
    sampling_alpha: float | None = None,
    bandwidth: float = BANDWIDTH,
    threads: int = 1,
    progress: Progress | None = None,
) -> Plan:
    """The curve of tokens added (up to `max_tokens`) or removed against bytes per token.

    tokenizer: one of ours, a fast transformers or `tokenizers` one, or a path.
    corpus: text to learn from; words that are already counted are not counted again. Tokens are
        removed in the order leaf-frequency.
    text: held-out text to measure on; None holds out every twentieth document of `corpus`.
    model: a model folder or Hub name, for the cost of the rows; only its config and tensor headers
        are read.
    sampling_alpha: languages count in proportion to bytes ** alpha; None: as they are.
    bandwidth: memory bandwidth of the machine in bytes per second.
    threads: the result does not depend on it. progress: called with the phase, the work done and
        the total work.

    ValueError or CorpusError if nothing can be learned or measured. Source of the knee: see
    `knee`; of the ceiling: bytes per pre-token, because no merge crosses its boundaries.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; give at least 1")
    if not bandwidth > 0:
        raise ValueError(f"bandwidth is {bandwidth}; give bytes per second above 0")
    base = as_tokenizer(tokenizer)
    facts = None if model is None else model_facts(model)
    counts = CorpusCounts.of(corpus)
    source = counts.words.source
    if not isinstance(source, Corpus):
        raise CorpusError(
            "plan encodes the text itself, which counted words are not; give --corpus"
        )
    learned_from, judged_on = source, text
    if judged_on is None:
        learned_from, judged_on = hold_out(source)
        counts = CorpusCounts.of(learned_from)
    run: dict[str, Any] = {"max_tokens": max_tokens, "threads": threads, "progress": progress}
    grown = grow(base, counts.words, judged_on, sampling_alpha=sampling_alpha, **run)
    judged = grown[0].effect
    n_bytes = {row.language: row.n_bytes for row in judged.languages}
    removed, n_removable = _shrink(base, counts.tokens, judged_on, **run)
    rows = [*removed, *(row for growth in grown for row in _growth_rows(growth))]
    if grown[0].n_characters:  # the curve begins after them, and the table with the base
        at = next(i for i, row in enumerate(rows) if row.n_tokens == 0)
        measured = _measured(base, judged_on, 0, threads)
        rows[at] = replace(measured, is_knee=rows[at].is_knee)
    return Plan(
        tokenizer=base.name,
        rows=tuple(_priced(row, base, facts, bandwidth) for row in rows),
        ceilings={
            growth.pre_tokenizer: {
                row.language: row.ceiling_bytes_per_token for row in growth.effect.languages
            }
            for growth in grown
        },
        stopped_because={growth.pre_tokenizer: growth.stopped_because for growth in grown},
        n_removable=n_removable,
        n_bytes=sum(n_bytes.values()),
        model=facts,
    )


def knee(values: Sequence[float]) -> int:
    """Where a curve is farthest above the straight line from its first to its last value.

    `values`: the curve at 0, 1, 2 …, rising ever more slowly; 0 if there is no such place. Source:
    Satopää et al., "Finding a 'Kneedle' in a Haystack" (2011), for a curve without noise.
    """
    heights = np.asarray(values, dtype=np.float64)
    rise = heights[-1] - heights[0]
    if len(heights) < 3 or rise <= 0:
        return 0
    above = (heights - heights[0]) / rise - np.linspace(0, 1, len(heights))
    return int(above.argmax())


def _growth_rows(growth: Growth) -> list[PlanRow]:
    """Rows at powers of two, at the end, and at the knee."""
    effect, languages = growth.effect, growth.effect.languages
    totals = effect.tokens.sum(axis=0)
    at = knee((effect.n_bytes.sum() / np.maximum(totals, 1)).tolist())
    return [
        PlanRow(
            n,
            growth.pre_tokenizer,
            round(effect.bytes_per_token(n), 4),
            {row.language: round(effect.bytes_per_token(n, row.language), 4) for row in languages},
            is_knee=n == at,
            n_characters=growth.n_characters,
        )
        for n in sorted({*steps(effect.n_new), at})
    ]


def _measured(tokenizer: Tokenizer, judged_on: Corpus, n_tokens: int, threads: int) -> PlanRow:
    counts = count_tokens(tokenizer, judged_on, threads=threads).bytes_and_tokens()
    n_bytes, n_all = map(sum, zip(*counts.values(), strict=True))
    by_language = {name or UNLABELLED: round(n / max(m, 1), 4) for name, (n, m) in counts.items()}
    return PlanRow(n_tokens, "kept", round(n_bytes / max(n_all, 1), 4), by_language)


def _shrink(
    base: Tokenizer,
    corpus: SourceCounts,
    judged_on: Corpus,
    *,
    max_tokens: int,
    threads: int,
    progress: Progress | None,
) -> tuple[list[PlanRow], int]:
    """Measure the held-out text after removing the tokens that `corpus` needs least."""
    n_removable = number_removable(base)
    if not n_removable:  # nothing but bytes and special tokens
        return [], 0
    n_most = min(max_tokens, n_removable)
    options = PruningOptions(n_tokens=n_most)
    order = prune_with_report(base, corpus, options, measure=False, threads=threads).removed
    points = [n for n in steps(n_most) if n >= 1_000 or n == n_most][::-1]
    rows = []
    for i, n in enumerate(points):
        if progress is not None:
            progress("shrink", i, len(points))
        smaller = base.without(order[:n].tolist())
        rows.append(_measured(smaller, judged_on, -n, threads))
    return rows, n_removable


def _priced(row: PlanRow, base: Tokenizer, facts: ModelFacts | None, bandwidth: float) -> PlanRow:
    """The row with the model's costs added; the number of padding rows stays the same."""
    if facts is None:
        return row
    rows = facts.rows + row.n_tokens
    if (n_new := row.n_tokens + row.n_characters) > 0:  # new tokens move into padding first
        rows = max(facts.rows, base.row_count + n_new)
    per_second = bandwidth / facts.bytes_read_per_token(rows)
    return replace(
        row,
        extra_parameters=facts.parameters(rows) - facts.parameters(facts.rows),
        parameters=facts.parameters(rows),
        tokens_per_second=round(per_second, 2),
        bytes_per_second=round(per_second * row.bytes_per_token, 1),
        logits_bytes=facts.logits_bytes(rows, LOGIT_TOKENS),
    )
