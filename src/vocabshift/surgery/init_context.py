"""What an initializer needs beside the old rows, gathered once per transfer.

Owns which method wants what (byte lengths, a donor, text) and turns it into the pieces and weights
of a TokenMap, for the input embeddings and for an untied head.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.bpe import token_bytes
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.surgery import initialize, mixtures
from vocabshift.surgery.token_map import TokenMap

if TYPE_CHECKING:
    from vocabshift.bpe.plain_tokenizer import PlainTokenizer
    from vocabshift.surgery.donor import Donor
    from vocabshift.text.corpus import Corpus

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
        from vocabshift.surgery.donor import Donor
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
    old: Tokenizer | PlainTokenizer,
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
    from vocabshift.surgery.donor import by_matching_pursuit

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
    from vocabshift.surgery.auxiliary_space import auxiliary_vectors
    from vocabshift.surgery.focus import by_similarity

    assert sources.corpus is not None
    vectors = auxiliary_vectors(new, sources.corpus, seed=seed)
    return mixtures.with_sparse(token_map, by_similarity(vectors, token_map))
