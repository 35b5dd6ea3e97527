"""What an initializer needs beside the old rows, gathered once per transfer.

Owns which method wants what (byte lengths, a donor, text) and turns it into the pieces and weights
of a TokenMap, for the input embeddings and for an untied head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.models.tables import Matrices
from vocabshift.surgery import initialize
from vocabshift.surgery import initialize as mixtures
from vocabshift.surgery import rows as resize
from vocabshift.surgery.row_sources import TokenMap
from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from vocabshift.surgery.omp import Donor
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

AUTO = "auto"
"""The one that a `score` finds; see `candidates`."""


@dataclass(frozen=True, eq=False)
class InitSources:
    """What the user gives for methods that need more than the old rows."""

    donor: Donor | None = None  # omp
    corpus: Corpus | None = None  # focus
    n_atoms: int = 64  # omp: rows combined, at most

    @classmethod
    def of(cls, donor: Any = None, corpus: Any = None, n_atoms: int = 64) -> InitSources:
        """`donor`: a Donor or a model folder; `corpus`: a Corpus or texts."""
        from vocabshift.surgery.omp import Donor
        from vocabshift.text.corpus import Corpus

        if isinstance(donor, str | Path):
            donor = Donor.load(donor)
        if corpus is not None and not isinstance(corpus, Corpus):
            corpus = Corpus.from_texts(corpus)
        if n_atoms < 1:
            raise ValueError(f"n_atoms is {n_atoms}; at least 1 is needed")
        return cls(donor, corpus, n_atoms)

    def check(self, init: str) -> None:
        """ValueError for an unknown method, or one that lacks what it needs."""
        if init != AUTO:
            initialize.initializer(init)
        if init == "omp" and self.donor is None:
            raise ValueError(
                "init 'omp' needs donor=: a model that has the new tokens (--donor MODEL)"
            )
        if init == "focus" and self.corpus is None:
            raise ValueError(
                "init 'focus' needs corpus=: text of the new tokenizer's languages (--corpus SPEC)"
            )


@dataclass(frozen=True, eq=False)
class InitContext:
    """One method, ready for the rows: its name, and of what each table's new rows are made."""

    init: str
    seed: int
    input: TokenMap
    head: TokenMap  # of an untied head and of its bias


def prepare(
    init: str,
    token_map: TokenMap,
    *,
    old: Tokenizer | UnigramOrWordPieceTokenizer,
    new: Tokenizer,
    tied: bool,
    sources: InitSources | None = None,
    seed: int = 0,
) -> InitContext:
    """The context of a method; ValueError where something that it needs is not given."""
    sources = sources or InitSources()
    sources.check(init)
    one = two = token_map
    if not token_map.n_made:
        return InitContext(init, seed, one, two)
    assert isinstance(old, Tokenizer)
    if init == "fvt-weighted":
        lengths = {token_id: len(data) for token_id, data in token_bytes.token_bytes(old).items()}
        one = two = mixtures.weighted_by_bytes(token_map, lengths)
    elif init == "first-last":
        one, two = mixtures.last_pieces(token_map), mixtures.first_pieces(token_map)
        if tied:
            one = two = mixtures.first_and_last_pieces(token_map)
    elif init == "omp":
        one, two = _from_donor(token_map, old, new, sources, tied=tied)
    elif init == "focus":
        one = two = _from_text(token_map, new, sources, seed)
    return InitContext(init, seed, one, two)


def _from_donor(
    token_map: TokenMap, old: Tokenizer, new: Tokenizer, sources: InitSources, *, tied: bool
) -> tuple[TokenMap, TokenMap]:
    from vocabshift.surgery.omp import by_matching_pursuit

    assert sources.donor is not None
    maps: list[TokenMap] = []
    for head in (False, True):
        if head and (tied or sources.donor.head is None):
            maps.append(maps[0])
            continue
        sparse = by_matching_pursuit(
            sources.donor, token_map, old=old, new=new, head=head, n_atoms=sources.n_atoms
        )
        maps.append(mixtures.with_sparse(token_map, sparse))
    return maps[0], maps[1]


def _from_text(token_map: TokenMap, new: Tokenizer, sources: InitSources, seed: int) -> TokenMap:
    from vocabshift.surgery.focus import auxiliary_vectors, by_similarity

    assert sources.corpus is not None
    vectors = auxiliary_vectors(new, sources.corpus, seed=seed)
    return mixtures.with_sparse(token_map, by_similarity(vectors, token_map))


# `init="auto"`: several initializers tried on a model, and the model as it was again.
#
# Owns the trying and the rolling back. What a try is worth the caller's `score` says (this workshop
# does not evaluate). A candidate costs memory for one more set of embedding matrices, nothing else
# of the model is copied; the best one is made a second time rather than kept.


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
