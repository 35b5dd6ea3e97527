"""Decides which languages share a vocabulary, and its size: clusters of the Indic study.

Owns the three ways to group (k-means over vocabularies, families, scripts), the vocabularies that
k-means uses, and the budgets.

Source: Algorithm 1 of the study (section 3.2.2), after Chung et al. 2020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Literal, get_args

import numpy as np

from vocabshift.text.counting import CorpusReader
from vocabshift.text.languages import family, find_language
from vocabshift.tokenizer.unigram import FIXED_PIECES
from vocabshift.trainers.base import RunContext, check_positive, check_vocab_size
from vocabshift.trainers.unigram import learn_unigram

ClusterBy = Literal["kmeans", "family", "script"]
WAYS: tuple[ClusterBy, ...] = get_args(ClusterBy)
_STARTS = 32  # starts of k-means; the tightest clusters are used

Clusters = tuple[tuple[str, ...], ...]
"""Languages of each cluster, both in the order of the corpus."""


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """What one cluster got."""

    languages: tuple[str, ...]
    union: int  # pieces that its languages have learned alone, all together
    budget: int  # tokens it was to learn
    learned: int  # tokens it learned
    tokens_alone: int  # of its words, weighted, by its own vocabulary
    tokens_united: int  # the same, by the united vocabulary


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Options of the recipes that learn from clusters of languages."""

    cluster_by: ClusterBy = "kmeans"
    """"kmeans" over the languages' Unigram vocabularies, "family" or "script"."""
    n_clusters: int | None = None
    """Of k-means; None: 4, or as many as there are languages that differ."""
    language_vocab_size: int = 8000
    """Pieces of each language's own Unigram vocabulary (Chung et al. 2020)."""
    seed: Annotated[int, "any"] = 0
    """Of k-means."""

    def check_options(self) -> None:
        """Raise ValueError for invalid options, ImportError if k-means is not installed."""
        if self.cluster_by not in WAYS:
            raise ValueError(f"cluster_by is {self.cluster_by!r}; it can be {', '.join(WAYS)}")
        if self.cluster_by != "kmeans" and self.n_clusters is not None:
            raise ValueError(
                f"{self.cluster_by} says how many clusters there are; leave n_clusters out"
            )
        check_positive("n_clusters", self.n_clusters)
        check_vocab_size(self.language_vocab_size, n_fixed=FIXED_PIECES, name="language_vocab_size")
        if self.cluster_by == "kmeans" and find_spec("scipy") is None:
            raise ImportError(
                "k-means is scipy's, which is not installed; pip install 'vocabshift[stats]'"
            )

    def check_languages(self, languages: Sequence[str]) -> None:
        """Raise ValueError if these languages cannot be grouped this way."""
        if len(languages) < 2:
            raise ValueError(
                f"clusters are made of languages, and the corpus names {len(languages)}; label "
                "its parts as lang=PATH"
            )
        if self.n_clusters is not None and self.n_clusters > len(languages):
            raise ValueError(
                f"{self.n_clusters} clusters cannot be made of {len(languages)} languages; give "
                f"at most {len(languages)}"
            )

    def vocabularies(
        self, words: Mapping[str, Mapping[str, int]], character_coverage: float, context: RunContext
    ) -> dict[str, frozenset[str]]:
        """Return the pieces that each language learns alone."""
        own = {}
        for number, (label, of_language) in enumerate(words.items()):
            model = learn_unigram(
                sorted(of_language.items()),
                self.language_vocab_size,
                character_coverage=character_coverage,
                max_piece_length=16,
                asked=f"language_vocab_size {self.language_vocab_size} (for {label!r})",
            )
            own[label] = frozenset(model.learned)
            context.report("languages", number + 1, len(words))
        return own

    def clusters_of(self, own: Mapping[str, frozenset[str]]) -> Clusters:
        """Return the languages of each cluster; `own` are the pieces that each learned alone."""
        if self.cluster_by == "family":
            return by_family(list(own))
        if self.cluster_by == "script":
            return by_script(list(own))
        return by_kmeans(own, self.n_clusters or min(4, len(set(own.values()))), self.seed)


def labels_of(reader: CorpusReader) -> list[str]:
    """Return the languages of the corpus; ValueError if some text has no label."""
    labels = [group.language for group in reader.groups]
    if None in labels:
        raise ValueError("some of the text has no label; label every part as lang=PATH")
    return list(dict.fromkeys(map(str, labels)))


def by_kmeans(vocabularies: Mapping[str, frozenset[str]], n_clusters: int, seed: int) -> Clusters:
    """Run k-means over 0/1 vectors, with one dimension for each piece of any language."""
    from scipy.cluster.vq import ClusterError, kmeans2

    languages = list(vocabularies)
    if (n_different := len(set(vocabularies.values()))) < n_clusters:
        raise ValueError(
            f"{n_clusters} clusters cannot be made of {len(languages)} languages that have "
            f"{n_different} different vocabularies between them; give fewer"
        )
    pieces = sorted(frozenset().union(*vocabularies.values()))
    place = {piece: i for i, piece in enumerate(pieces)}
    vectors = np.zeros((len(languages), len(pieces)))
    for row, own in enumerate(vocabularies.values()):
        vectors[row, [place[piece] for piece in own]] = 1
    best: tuple[float, np.ndarray] | None = None
    for start in range(_STARTS):
        rng = np.random.default_rng([seed, start])
        try:
            centres, labels = kmeans2(vectors, n_clusters, minit="++", missing="raise", seed=rng)
        except ClusterError:  # a cluster became empty
            continue
        spread = float(((vectors - centres[labels]) ** 2).sum())
        if best is None or spread < best[0] - 1e-9:
            best = spread, labels
    if best is None:
        raise ValueError(
            f"{n_clusters} clusters of {len(languages)} languages leave one empty from each start; "
            "give fewer"
        )
    return _grouped(languages, [int(label) for label in best[1]])


def by_family(languages: Sequence[str]) -> Clusters:
    """Group by language family; unknown labels share a cluster."""
    return _grouped(languages, [family(label) for label in languages])


def by_script(languages: Sequence[str]) -> Clusters:
    """Group by the usual script of a language; unknown labels share a cluster."""
    found = [find_language(label) for label in languages]
    return _grouped(languages, [None if one is None else one.scripts[0] for one in found])


def budgets(total: int, sizes: Sequence[int]) -> list[int]:
    """Divide `total` in proportion to `sizes`, by largest remainder; the first wins a tie."""
    whole = sum(sizes)
    exact = [total * size / whole for size in sizes]
    shares = [int(amount) for amount in exact]
    order = sorted(range(len(sizes)), key=lambda i: (shares[i] - exact[i], i))
    for i in order[: total - sum(shares)]:
        shares[i] += 1
    return shares


def _grouped(languages: Sequence[str], keys: Sequence[object]) -> Clusters:
    groups: dict[object, list[str]] = {}
    for language, key in zip(languages, keys, strict=True):
        groups.setdefault(key, []).append(language)
    return tuple(tuple(group) for group in groups.values())
