"""The registry of initializers: every name that `init=` takes, what it means and what it needs.

A new initializer is one function with `@initializer(...)` above it, here or anywhere that is
imported: the command line, `init="auto"` and the table in `docs/transfer.md` follow. The function
gets an `InitRequest` and returns `request.rows(...)`, with other old tokens or weights
(`row_sources`), another tensor function (`initialize`), or both. numpy, torch and the algorithms
are imported when a function runs, so that the command line can read the names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vocabshift.surgery.options import AUTO, DISTILL, DistillOptions, TransferOptions

if TYPE_CHECKING:
    from vocabshift.surgery.initialize import RowFunction
    from vocabshift.surgery.row_sources import RowSources
    from vocabshift.surgery.rows import InitContext


Need = Literal["donor", "corpus"]
"""The field of TransferOptions without which an initializer cannot work."""

_NEEDS: dict[Need, str] = {
    "donor": "a model that has the new tokens (--donor MODEL)",
    "corpus": "text of the new tokenizer's languages (--corpus SPEC)",
}


@dataclass(frozen=True, eq=False)
class InitRequest:
    """What an initializer may look at."""

    init: str
    sources: RowSources  # as the tokenizers were matched: old tokens without weights
    old: Any  # tokenizers; of Unigram and WordPiece ones nothing is ever made
    new: Any
    tied: bool  # input embeddings and head are one table
    options: TransferOptions  # opened: a Donor, a Corpus

    def rows(
        self,
        sources: RowSources | None = None,
        head: RowSources | None = None,
        make: RowFunction | None = None,
    ) -> InitContext:
        """The rows of new tokens: `make` of their old tokens; None: the (weighted) mean.

        `sources`: of all tables, None: as they were matched; `head`: of an untied head and its
        bias, None: the same.
        """
        from vocabshift.surgery.initialize import fvt
        from vocabshift.surgery.rows import InitContext

        own = sources or self.sources
        return InitContext(self.init, self.options.seed, own, head or own, make or fvt)


@dataclass(frozen=True)
class Initializer:
    """One entry of the registry."""

    name: str
    summary: str
    """The row of a new token, in one line."""
    prepare: Callable[[InitRequest], InitContext]
    needs: Need | None
    in_auto: bool
    """Whether "auto" tries it, where what it needs is given."""


INITIALIZERS: dict[str, Initializer] = {}
"""By name, in the order in which they are listed."""


def initializer(
    name: str, summary: str, *, needs: Need | None = None, in_auto: bool = False
) -> Callable[[Callable[[InitRequest], InitContext]], Callable[[InitRequest], InitContext]]:
    """Register the function below as an initializer; ValueError for a name that is taken."""

    def register(prepare: Callable[[InitRequest], InitContext]) -> Callable[..., InitContext]:
        if name in INITIALIZERS or name == AUTO:
            raise ValueError(f"an initializer {name!r} is registered already")
        INITIALIZERS[name] = Initializer(name, summary, prepare, needs, in_auto)
        return prepare

    return register


def init_names() -> tuple[str, ...]:
    """What `init=` takes: the names of the registry, and "auto"."""
    return (*INITIALIZERS, AUTO)


def find_initializer(name: str) -> Initializer:
    """The initializer of this name; ValueError lists the names there are."""
    if name not in INITIALIZERS:
        raise ValueError(f"unknown init {name!r}; known are: {', '.join(init_names())}")
    return INITIALIZERS[name]


def check_init(options: TransferOptions) -> None:
    """ValueError for an unknown initializer, or one that lacks what it needs."""
    if options.init == AUTO:
        return
    needs = find_initializer(options.init).needs
    if needs is not None and getattr(options, needs) is None:
        raise ValueError(f"init {options.init!r} needs {needs}=: {_NEEDS[needs]}")
    if options.init == DISTILL:
        if options.distill.start in (DISTILL, AUTO):
            raise ValueError(f"{options.distill.start!r} cannot be the start of init 'distill'")
        _check_distill(options.distill)
        check_init(replace(options, init=options.distill.start))


def _check_distill(options: DistillOptions) -> None:
    """ValueError for numbers with which nothing can be learned."""
    least = {"snippet_tokens": 2, "learning_rate": 1e-12, "hidden_weight": 0.0}
    least |= {"next_token_weight": 0.0, "layer": -math.inf}
    for field in fields(options):
        value = getattr(options, field.name)
        if isinstance(value, int | float):
            lowest = least.get(field.name, 1)
            if not lowest <= value < math.inf:
                raise ValueError(f"distill: {field.name} is {value}; give at least {lowest}")
    if not options.hidden_weight + options.next_token_weight:
        raise ValueError("distill: both weights are 0, so there is nothing to learn from")


def open_sources(options: TransferOptions) -> TransferOptions:
    """The options with the donor loaded and the texts as a Corpus."""
    from vocabshift.surgery.omp import Donor
    from vocabshift.text.corpus import Corpus

    donor, corpus = options.donor, options.corpus
    if isinstance(donor, str | Path):
        donor = Donor.load(donor)
    if corpus is not None and not isinstance(corpus, Corpus):
        corpus = Corpus.from_texts(corpus)
    return replace(options, donor=donor, corpus=corpus)


def prepare(request: InitRequest) -> InitContext:
    """Run the initializer that the request names; without new tokens no work is needed."""
    if not request.sources.n_made:
        return request.rows()
    return find_initializer(request.init).prepare(request)


def candidates(options: TransferOptions) -> tuple[str, ...]:
    """The names that "auto" tries with these options; those that need nothing come first."""
    tried = [each for each in INITIALIZERS.values() if each.in_auto]
    given = [
        each for each in tried if each.needs is None or getattr(options, each.needs) is not None
    ]
    return tuple(each.name for each in sorted(given, key=lambda each: each.needs is not None))


@initializer("fvt", "the mean of the rows of its old tokens", in_auto=True)
def _fvt(request: InitRequest) -> InitContext:
    return request.rows()


@initializer("retok", "the same: another name for fvt")
def _retok(request: InitRequest) -> InitContext:
    return request.rows()


@initializer(
    "fvt-weighted", "the mean of the rows of its old tokens, weighted by their bytes", in_auto=True
)
def _fvt_weighted(request: InitRequest) -> InitContext:
    from vocabshift.surgery.row_sources import weighted_by_bytes
    from vocabshift.tokenizer.token_bytes import token_bytes

    lengths = {token_id: len(data) for token_id, data in token_bytes(request.old).items()}
    return request.rows(weighted_by_bytes(request.sources, lengths))


@initializer(
    "first-last",
    "head: the first old token, which the old model would predict; input: the last, which it has "
    "just read (tied: the mean of both)",
    in_auto=True,
)
def _first_last(request: InitRequest) -> InitContext:
    from vocabshift.surgery import row_sources

    if request.tied:
        return request.rows(row_sources.first_and_last_pieces(request.sources))
    last = row_sources.last_pieces(request.sources)
    return request.rows(last, head=row_sources.first_pieces(request.sources))


@initializer(
    "omp",
    "the sparse mixture of kept tokens that fits its row in --donor, a model that has the token",
    needs="donor",
    in_auto=True,
)
def _omp(request: InitRequest) -> InitContext:
    from vocabshift.surgery.omp import Donor, by_matching_pursuit
    from vocabshift.surgery.row_sources import with_sparse

    donor = request.options.donor
    assert isinstance(donor, Donor)

    def combined(*, head: bool) -> RowSources:
        sparse = by_matching_pursuit(
            donor, request.sources, old=request.old, new=request.new, head=head
        )
        return with_sparse(request.sources, sparse)

    has_head = not request.tied and donor.head is not None
    return request.rows(combined(head=False), head=combined(head=True) if has_head else None)


@initializer(
    "focus",
    "kept tokens that are used like it in --corpus, in a sparse mixture",
    needs="corpus",
    in_auto=True,
)
def _focus(request: InitRequest) -> InitContext:
    from vocabshift.surgery.focus import auxiliary_vectors, by_similarity
    from vocabshift.surgery.row_sources import with_sparse
    from vocabshift.text.corpus import Corpus

    corpus = request.options.corpus
    assert isinstance(corpus, Corpus)
    vectors = auxiliary_vectors(request.new, corpus, seed=request.options.seed)
    return request.rows(with_sparse(request.sources, by_similarity(vectors, request.sources)))


@initializer(
    DISTILL,
    "learned on --corpus: the model that reads the token is to do as it did with its old tokens",
    needs="corpus",
)
def _distill(request: InitRequest) -> InitContext:
    start = request.options.distill.start  # `distill.learn_rows` does the rest, with the model
    made = find_initializer(start).prepare(replace(request, init=start))
    return replace(made, init=request.init)


@initializer("mean", "the mean of all rows", in_auto=True)
def _mean(request: InitRequest) -> InitContext:
    from vocabshift.surgery.initialize import mean

    return request.rows(make=mean)


@initializer("normal", "drawn with the mean and the covariance of all rows", in_auto=True)
def _normal(request: InitRequest) -> InitContext:
    from vocabshift.surgery.initialize import normal

    return request.rows(make=normal)


@initializer("random", "drawn with the mean and the deviation of each dimension")
def _random(request: InitRequest) -> InitContext:
    from vocabshift.surgery.initialize import random

    return request.rows(make=random)


@initializer("zeros", "zeros, to compare with")
def _zeros(request: InitRequest) -> InitContext:
    from vocabshift.surgery.initialize import zeros

    return request.rows(make=zeros)
