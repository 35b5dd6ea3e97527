"""Where a pruning stops by itself: as far as a measure on held-out text allows.

Owns the measures by name, the search for the last vocabulary within the limit, and what it tried.
Source: "Teaching Old Tokenizers New Words", Figure 5, which shows pruned vocabularies by what a
model makes of them; a limit to stop at, and the search, are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vocabshift.pruning.counts import Source, count_tokens
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.id_map import TokenIdMap

MEASURES = ("bits-per-byte", "bytes-per-token")
"""What `until` may limit: a rise of bits per byte, which needs a model, or a fall of bytes per
token, which needs none."""

FINEST = 256
"""A search that runs a model ends within this share of the tokens that can go."""

Measure = Callable[[AnyTokenizer, TokenIdMap | None], Mapping[str, float]]
"""By label of the held-out text, the value under a tokenizer that the map leads to; without a map,
under the tokenizer as it is."""


@dataclass(frozen=True, slots=True)
class PruningStep:
    """One vocabulary that the search tried."""

    n_removed: int
    vocab_size: int  # tokens of the model
    values: Mapping[str, float]  # the measure by label
    change: float  # of the label that lost most, as a share of its value before; below 0: a gain


def bytes_per_token(held_out: Source, *, threads: int = 1) -> Measure:
    """The measure that needs no model."""

    def measure(tokenizer: AnyTokenizer, _map: TokenIdMap | None) -> Mapping[str, float]:
        counts = count_tokens(tokenizer, held_out, threads=threads, phase="held out")
        return {
            label or "all": n_bytes / max(n_tokens, 1)
            for label, (n_bytes, n_tokens) in counts.bytes_and_tokens().items()
        }

    return measure


def change_of(by: str, before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """How much worse the worst label is, as a share of its value before."""
    sign = 1 if by == MEASURES[0] else -1
    return max(sign * (after[label] - before[label]) / before[label] for label in before)


def most_removable(
    n_most: int, try_out: Callable[[int], PruningStep], until: float, *, finest: int = 1
) -> tuple[int, list[PruningStep]]:
    """The largest number of tokens to remove that stays within the limit, and all steps tried.

    By bisection: within `finest` (at most `n_most`) tokens of a number beyond the limit, or of
    `n_most`. The smallest vocabularies make the longest texts, so they are tried last. The number
    returned was measured. ValueError if not even `finest` tokens can go.
    """
    steps: list[PruningStep] = []
    within, beyond = 0, n_most + 1
    while beyond - within > min(finest, n_most):
        steps.append(try_out((within + beyond) // 2))
        if steps[-1].change <= until:
            within = steps[-1].n_removed
        else:
            beyond = steps[-1].n_removed
    if within == 0:
        least = min(steps, key=lambda step: step.n_removed)
        raise ValueError(
            f"nothing can be pruned within {until:.2%}: without {least.n_removed:,} tokens the "
            f"held-out text is worse by {least.change:.2%}; raise the limit, or give n_tokens"
        )
    return within, sorted(steps, key=lambda step: step.n_removed)
