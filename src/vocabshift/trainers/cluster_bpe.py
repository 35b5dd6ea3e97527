"""Cluster vocabularies for BPE: each cluster of languages learns merges, and all are stacked.

Languages are grouped, and budgets divided, as in Algorithm 1 of the Indic study (see `cluster`).
The union of merge lists does not work as a merge list: the rules of one cluster split text before
another's can apply. So `_core.MergeStack` stacks the tokens, the most frequent merge of any cluster
first. A token goes on top when the merges below leave its bytes as two tokens, which become its
merge. Each cluster keeps its own order, and every token can be rebuilt. A token that several
clusters learned uses the budget of only one. The cost of the other clusters' merges is measured on
a cluster's own words.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from vocabshift import _core
from vocabshift.text.counting import CorpusReader
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import RunContext, Source, Training, detailed
from vocabshift.trainers.byte_level import ByteLevelTrainer, count_tokens
from vocabshift.trainers.cluster import ClusterReport, words_by_language
from vocabshift.trainers.clusters import ClusterOptions, ClusterPart, Clusters, budgets
from vocabshift.trainers.stages import Stage, WordWeight

_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class ClusterBpeTrainer(ClusterOptions, ByteLevelTrainer):
    """Byte-pair encoding in clusters of languages, stacked to one vocabulary."""

    recipe: ClassVar[str] = "cluster-bpe"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_options()
        self._refuse_grapheme_safe("cluster by cluster")

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus`, whose parts must be labelled, and return tokenizer and report.

        Raises ValueError for a memory budget: the words of all languages are in memory at once.
        """
        context = context or RunContext()
        context.refuse_budget(self.recipe)
        reader = self._text_reader(corpus, self._pattern(corpus))
        reader.by_language = True
        self.check_languages(reader.corpus.languages)
        with context.watch.phase("count"):
            counter = reader.count_words(
                threads=context.threads, progress=context.in_phase("count")
            )
        with context.watch.phase("languages"):
            own = self.vocabularies(words_by_language(reader, counter), 0.9999, context)
        clusters = self.clusters_of(own)
        unions = [len(frozenset().union(*(own[label] for label in c))) for c in clusters]
        shares = budgets(self.vocab_size - _BYTES, unions)
        with context.watch.phase("stage 1"):
            learned = [
                self._learn(_of_languages(reader, counter, cluster), reader, context)
                for cluster in clusters
            ]
        with context.watch.phase("stack"):
            stack = _core.MergeStack(self.vocab_size)
            _stack(stack, learned, shares, self.vocab_size)
        united = compile_merges(stack.tokens, stack.merges)
        with context.watch.phase("encode"):
            parts = _parts(
                clusters=clusters,
                unions=unions,
                shares=shares,
                learned=learned,
                words=[_words(reader, counter, cluster) for cluster in clusters],
                united=united,
            )
            training_tokens = count_tokens(united, reader, context)
        stopped = "vocab_size" if stack.size == self.vocab_size else "no_pair_left"
        stage = Stage.of_merges(stack.tokens, stack.merges, stopped, training_tokens)
        training = self._finish([stage], reader, context)
        return replace(training, report=detailed(training.report, ClusterReport, clusters=parts))

    def _learn(
        self, counter: _core.WordCounter, reader: CorpusReader, context: RunContext
    ) -> Stage:
        """Learn BPE from the words of one cluster, up to the whole vocabulary: if other clusters
        take some of its tokens, it needs later ones."""
        trained = _core.train_bpe(
            counter,
            WordWeight().to_core(reader.fixed_point_weights()),
            self.vocab_size,
            reader.min_count(self.min_frequency),
            self._word_rule(reader, self.vocab_size).to_core(),
            threads=context.threads,
            progress=context.in_phase("stage 1"),
        )
        return Stage.of(trained, self.min_frequency)


def _words(
    reader: CorpusReader, counter: _core.WordCounter, languages: Sequence[str]
) -> list[list[tuple[bytes, int]]]:
    """Return words and counts by group of the corpus; other languages have none."""
    return [
        counter.words(i) if group.language in languages else []
        for i, group in enumerate(reader.groups)
    ]


def _of_languages(
    reader: CorpusReader, counter: _core.WordCounter, languages: Sequence[str]
) -> _core.WordCounter:
    """Return a counter of these languages alone, because training empties its counter."""
    part = _core.WordCounter(_core.PreTokenizer([]))
    for i, words in enumerate(_words(reader, counter, languages)):
        ends = np.cumsum([len(word) for word, _ in words], dtype=np.int64)
        counts = np.array([count for _, count in words], dtype=np.uint64)
        part.add_words(b"".join(word for word, _ in words), ends, counts, i)
    return part


def _stack(
    stack: _core.MergeStack, learned: Sequence[Stage], shares: Sequence[int], vocab_size: int
) -> None:
    """Stack the lists by descending count, each up to its budget; then spend what remains."""

    def candidates(i: int) -> Iterator[tuple[int, int, int]]:
        stage = learned[i]
        for place, count in enumerate(stage.counts.tolist()):
            yield -count, i, place

    left = list(shares)
    spent: list[list[bytes]] = [[] for _ in learned]
    for _, i, place in heapq.merge(*(candidates(i) for i in range(len(learned)))):
        if stack.size == vocab_size:
            return
        token = learned[i].tokens[int(learned[i].merges[place, 2])]
        if not left[i]:
            spent[i].append(token)
        elif stack.push(token) == 2:
            left[i] -= 1
    for tokens in spent:  # clusters out of budget use what clusters out of tokens left
        for token in tokens:
            if stack.size < vocab_size:
                stack.push(token)


def _parts(
    *,
    clusters: Clusters,
    unions: Sequence[int],
    shares: Sequence[int],
    learned: Sequence[Stage],
    words: Sequence[Sequence[Sequence[tuple[bytes, int]]]],
    united: _core.Encoder,
) -> tuple[ClusterPart, ...]:
    """Return the share of each cluster, and what it loses to the others."""
    parts = []
    for cluster, union, share, stage, own in zip(
        clusters, unions, shares, learned, words, strict=True
    ):
        size = min(share, len(stage.merges))
        alone = compile_merges(list(stage.tokens[: _BYTES + size]), stage.merges[:size])
        parts.append(
            ClusterPart(cluster, union, share, size, _tokens(alone, own), _tokens(united, own))
        )
    return tuple(parts)


def _tokens(encoder: _core.Encoder, words: Sequence[Sequence[tuple[bytes, int]]]) -> int:
    """Count the tokens of counted words, each encoded separately."""
    text = _core.TextEncoder(encoder, pre_tokenizer=_core.PreTokenizer([]))
    total = 0
    for of_group in words:
        listed = [word.decode() for word, _ in of_group]
        _, offsets, _ = text.encode_batch(listed, 1)
        counts = np.array([count for _, count in of_group], dtype=np.int64)
        total += int((np.diff(offsets) * counts).sum())
    return total
