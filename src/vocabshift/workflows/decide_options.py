"""What `decide` is asked: the candidates, the budget, and how a pilot is trained.

Imports nothing heavy, so that the command line can read the defaults.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from vocabshift.errors import VocabshiftWarning

KEEP = "keep"
Way = Literal["keep", "extend", "superwords", "swap"]
WAYS = ("extend", "superwords", "swap")
TRAINED = ("all", "embeddings", "ends")
"""Phases that need nothing but the model, which the old tokenizer can be trained with too."""


@dataclass(frozen=True, kw_only=True)
class DecideOptions:
    """Candidates, budget and pilots."""

    ways: Annotated[tuple[str, ...], "WAY"] = WAYS
    """Ways to try beside the old tokenizer: some of "extend", "superwords" (on top of the smallest
    extension) and "swap"."""
    extend_tokens: Annotated[tuple[int, ...], "N"] = ()
    """Sizes of an extension to try. Not given: the knee of `plan`'s curve, and twice as many."""
    superwords: Annotated[tuple[int, ...], "N"] = ()
    """Numbers of superwords to try. Not given: half as many as the new words under them."""
    swap_tokens: Annotated[tuple[int, ...], "N"] = ()
    """Sizes of another tokenizer to try. Not given: that of the old one, 32,000 at most."""
    swap_recipe: Annotated[str, "RECIPE"] = "ist"
    """Recipe of `train` for another tokenizer."""
    inits: Annotated[tuple[str, ...], "NAME"] = ("fvt",)
    """Initializers of new rows to try, as for `transfer`."""
    trained: Annotated[str, "PHASE"] = "all"
    """What pilots train, as a phase of `cpt`."""
    n_bytes: int | None = None
    """Text that each trained pilot reads, in bytes. Not given: what `minutes` allow."""
    minutes: float | None = None
    """Time for all pilots together, of this and earlier attempts. Not given: no limit."""
    finalists: int = 3
    """Candidates that are trained, beside the old tokenizer: the best of each way first."""
    share_of_new: Annotated[float, "share"] = 0.6
    """Share of new languages in the text of a pilot."""
    home_weight: float = 1.0
    """What a bit per byte lost at home weighs, where one gained in the new languages weighs 1."""
    learning_rate: float = 2e-4
    """Peak, after the warm-up."""
    sequence_length: int = 128
    """Tokens of a training sequence."""
    step_bytes: int = 2500
    """Text of a training step, about, whatever the tokenizer."""
    score_bytes: int = 20_000
    """Held-out text of each language that models are compared on, in bytes. Of a longer document
    the beginning counts, a twentieth of this at most, so that there is room for twenty."""
    seed: Annotated[int, "any"] = 0
    """Of the text that is drawn, its order, and what is random in an initializer."""

    def __post_init__(self) -> None:
        if self.n_bytes is None and self.minutes is None:
            raise ValueError(
                "a budget is needed: n_bytes (--bytes) of text for a pilot, or minutes"
            )
        for name in ("n_bytes", "minutes", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; a number above 0 is needed")
        if not (math.isfinite(self.home_weight) and self.home_weight >= 0):
            raise ValueError(f"home_weight is {self.home_weight}; 0 or more is needed")
        if not 0 < self.share_of_new < 1:
            raise ValueError(f"share_of_new is {self.share_of_new}; a share between 0 and 1")
        for name in ("finalists", "sequence_length", "step_bytes", "score_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if any(n < 1 for n in (*self.extend_tokens, *self.superwords, *self.swap_tokens)):
            raise ValueError("a tokenizer has at least 1 new token")
        if not self.inits or not self.ways or set(self.ways) - set(WAYS):
            raise ValueError(f"inits and ways must not be empty; ways are {', '.join(WAYS)}")
        if self.trained not in TRAINED:
            raise ValueError(f"trained is {self.trained!r}; pilots train {', '.join(TRAINED)}")

    def shares(self, sides: Mapping[str, Sequence[str]]) -> dict[str, float]:
        """The share of each language of "new" and "home" in the text of a pilot."""
        of_side = {"new": self.share_of_new, "home": 1 - self.share_of_new}
        return {
            name: of_side[side] / len(languages)
            for side, languages in sides.items()
            for name in languages
        }


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to go: a tokenizer, and how its new rows are made."""

    way: Way
    n_tokens: int = 0  # new words of an extension, all tokens of another tokenizer
    init: str | None = None
    n_superwords: int = 0  # on top of an extension

    @property
    def tokenizer(self) -> str:
        """Name of the tokenizer, which candidates with other rows share."""
        if self.way == KEEP:
            return KEEP
        if self.way == "superwords":
            return f"extend-{self.n_tokens}-superwords-{self.n_superwords}"
        return f"{self.way}-{self.n_tokens}"

    @property
    def name(self) -> str:
        """As tables and files call it."""
        return self.tokenizer if self.init is None else f"{self.tokenizer}-{self.init}"


def candidates(
    extensions: Sequence[int],
    swaps: Sequence[int],
    inits: Sequence[str],
    superwords: Sequence[tuple[int, int]] = (),
) -> Iterator[Candidate]:
    """The old tokenizer, then every tokenizer with the first initializer, and so on.

    superwords: numbers of new words, and of superwords on top of them.

    In this order all tokenizers have been tried once if the time does not suffice for more.
    """
    yield Candidate("keep")
    for init in inits:
        for n_tokens in extensions:
            yield Candidate("extend", n_tokens, init)
        for n_tokens, n_superwords in superwords:
            yield Candidate("superwords", n_tokens, init, n_superwords)
        for n_tokens in swaps:
            yield Candidate("swap", n_tokens, init)


def warn_of_few(documents: Mapping[str, Sequence[str]], weights: Mapping[str, float]) -> None:
    """VocabshiftWarning where a language has too few held-out documents for any verdict."""
    from vocabshift.evaluation.scoring.choice import FEWEST_DOCUMENTS

    counts = {name: len(documents[name]) for name, weight in weights.items() if weight}
    few = [f"{name} has {n}" for name, n in counts.items() if n < FEWEST_DOCUMENTS]
    if few:
        warnings.warn(
            f"the pilots will not be told apart: each language needs {FEWEST_DOCUMENTS} held-out "
            f"documents, and {', '.join(few)}; give more documents, every twentieth of which is "
            "held out, or more held-out text",
            VocabshiftWarning,
            stacklevel=3,
        )


def size_of(texts: Iterable[str]) -> int:
    """Bytes of UTF-8."""
    return sum(len(text.encode("utf-8")) for text in texts)
