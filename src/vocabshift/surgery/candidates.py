"""`init="auto"`: several initializers tried on a model, and the model as it was again.

Owns the trying and the rolling back. What a try is worth the caller's `score` says (this workshop
does not evaluate). A candidate costs memory for one more set of embedding matrices, nothing else
of the model is copied; the best one is made a second time rather than kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.surgery import resize
from vocabshift.surgery.init_context import InitContext, InitSources
from vocabshift.surgery.matrices import Matrices

CANDIDATES = ("fvt", "fvt-weighted", "first-last", "mean", "normal")
"""What auto tries; omp and focus too where a donor or a corpus is given."""

Score = Callable[[Any, Tokenizer], float]
"""(model, its tokenizer) -> a price, such as bits per byte: lower is better."""


def candidates(sources: InitSources) -> tuple[str, ...]:
    """The names that auto tries with what the user gave."""
    more = (("omp", sources.donor), ("focus", sources.corpus))
    return CANDIDATES + tuple(name for name, needed in more if needed is not None)


def prices(
    model: Any,
    matrices: Matrices,
    contexts: Iterator[InitContext] | Sequence[InitContext],
    *,
    tokenizer: Tokenizer,
    n_rows: int,
    score: Score,
) -> dict[str, float]:
    """Name -> price, lowest first; among equals the earlier one. The model is as before.

    ValueError where no price is a number.
    """
    found = {}
    for context in contexts:
        with _rows_restored(model, matrices):
            resize.move_rows(
                model,
                matrices,
                context.input,
                context.init,
                n_rows,
                seed=context.seed,
                head_map=context.head,
            )
            price = float(score(model, tokenizer))
        found[context.init] = price if math.isfinite(price) else math.inf
    if not any(map(math.isfinite, found.values())):
        raise ValueError(
            f"no initializer gives the model a finite price on this text ({', '.join(found)}); "
            "is the model's own finite?"
        )
    return dict(sorted(found.items(), key=lambda entry: entry[1]))


@contextmanager
def _rows_restored(model: Any, matrices: Matrices) -> Iterator[None]:
    """Afterwards the modules hold the parameters, buffers and sizes that they held."""
    before = []
    for name in (name for table in matrices.tables for name in table.names):
        path, _, own = name.rpartition(".")
        module = model.get_submodule(path)
        counts = [key for key in ("num_embeddings", "out_features") if hasattr(module, key)]
        before += [(module, key, getattr(module, key)) for key in (own, *counts)]
    try:
        yield
    finally:
        for module, key, value in before:
            setattr(module, key, value)
