"""Cluster vocabularies: related languages learn together, then the vocabularies are united.

Algorithm 1 of the Indic study (section 3.2.2; Chung et al. 2020) for Unigram models:

1. Each language learns its own vocabulary. The languages are grouped by these with k-means, or by
   family or script.
2. A cluster's budget is proportional to the union of its languages' vocabularies.
3. Each cluster learns from its own text, and all pieces are united. A piece that several clusters
   learned counts once, so the vocabulary is smaller than requested.
4. The united model starts from the clusters' models. The probability of a piece is how often this
   model uses it on all of the text. An unused piece counts as half an occurrence (the study would
   use zero, which no model can hold).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from vocabshift import _core
from vocabshift.text.counting import CorpusReader
from vocabshift.tokenizer.unigram import (
    FIXED_PIECES,
    Scored,
    is_fixed,
    unigram_tokenizer,
)
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer
from vocabshift.trainers.base import PlainTraining, RunContext, Source, TrainingReport, detailed
from vocabshift.trainers.clusters import ClusterOptions, ClusterPart, Clusters, budgets, labels_of
from vocabshift.trainers.unigram import (
    UnigramTrainer,
    finish,
    is_word,
    learn_unigram,
    word_reader,
)

_BATCH = 1 << 14  # words encoded at a time


@dataclass(frozen=True, slots=True)
class ClusterReport(TrainingReport):
    """What a run did."""

    clusters: tuple[ClusterPart, ...]


@dataclass(frozen=True, kw_only=True)
class ClusterTrainer(ClusterOptions, UnigramTrainer):
    """Unigram models of clusters of languages, united."""

    recipe: ClassVar[str] = "cluster"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_options()

    def run(self, corpus: Source, context: RunContext | None = None) -> PlainTraining:
        """Train on `corpus`, whose parts must be labelled, and return tokenizer and report."""
        context = context or RunContext()
        context.refuse_budget(self.recipe)
        reader = word_reader(self, corpus)
        reader.by_language = True
        self.check_languages(reader.corpus.languages)
        with context.watch.phase("count"):
            counter = reader.count_words(
                threads=context.threads, progress=context.in_phase("count")
            )
        words = words_by_language(reader, counter)
        with context.watch.phase("languages"):
            own = self.vocabularies(words, self.character_coverage, context)
        clusters = self.clusters_of(own)
        unions = [frozenset().union(*(own[label] for label in cluster)) for cluster in clusters]
        shares = budgets(self.vocab_size - FIXED_PIECES, [len(union) for union in unions])
        learned: list[Scored] = []
        with context.watch.phase("clusters"):
            for i, (cluster, share) in enumerate(zip(clusters, shares, strict=True)):
                of_cluster = joined([words[label] for label in cluster])
                names = ", ".join(cluster)
                asked = f"vocab_size {self.vocab_size}, {share} of it for {names},"
                learned.append(self._learn(of_cluster, share + FIXED_PIECES, asked))
                context.report("clusters", i + 1, len(clusters))
        with context.watch.phase("unite"):
            sizes = [sum(words[label].total() for label in cluster) for cluster in clusters]
            united = unite(learned, sizes, joined(list(words.values())))
        training = finish(self, united, reader, corpus, context)
        parts = _parts(
            clusters=clusters,
            unions=unions,
            shares=shares,
            learned=learned,
            united=training.tokenizer,
            words=words,
        )
        report = detailed(training.report, ClusterReport, clusters=parts)
        return PlainTraining(training.tokenizer, report, training.language_bytes)

    def _learn(self, words: Mapping[str, int], vocab_size: int, asked: str) -> Scored:
        return learn_unigram(
            sorted(words.items()),
            vocab_size,
            character_coverage=self.character_coverage,
            max_piece_length=self.max_piece_length,
            asked=asked,
        )


def words_by_language(reader: CorpusReader, counter: _core.WordCounter) -> dict[str, Counter[str]]:
    """Return words with their weighted counts, by label, without whitespace."""
    words: dict[str, Counter[str]] = {label: Counter() for label in labels_of(reader)}
    unit, weights = reader.min_count(1), reader.fixed_point_weights()
    for i, group in enumerate(reader.groups):
        of_language = words[str(group.language)]
        for data, count in counter.words(i):
            weighted = max(1, round(count * weights[i] / unit))
            # A pre-token may contain a line end (";\n//"), but SentencePiece reads a table.
            for word in re.split(r"[\t\n]+", data.decode().strip()):
                if is_word(word):
                    of_language[word] += weighted
    return words


def joined(parts: Sequence[Mapping[str, int]]) -> Counter[str]:
    """Return the summed counts of several languages."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def unite(models: Sequence[Scored], sizes: Sequence[int], words: Mapping[str, int]) -> Scored:
    """Unite the models, with probabilities by use; `sizes` weight the models at the start."""
    whole = sum(sizes)
    mixed: dict[str, float] = {}
    for model, size in zip(models, sizes, strict=True):
        for piece, score in model.learned.items():
            mixed[piece] = mixed.get(piece, 0.0) + math.exp(score) * size / whole
    fixed = [piece for piece in models[0].pieces if is_fixed(piece)]
    pieces = (*fixed, *sorted(mixed, key=lambda piece: (-mixed[piece], piece)))
    lowest = [min(model.scores) for model in models]
    start = {piece: math.log(mixed[piece]) if piece in mixed else min(lowest) for piece in pieces}
    model = Scored(pieces, tuple(start.values()))
    counts = _uses(unigram_tokenizer(model, normalizer=None, name="united"), words)
    total = sum(counts.values())
    scores = [math.log(max(counts[i], 0.5) / total) for i in range(len(pieces))]
    # Bytes and the unknown piece stay below all others, or they would replace characters.
    floor = min(scores)
    scores = [
        floor if is_fixed(piece) else score for piece, score in zip(pieces, scores, strict=True)
    ]
    return _without_dead(Scored(pieces, tuple(scores)))


def _without_dead(model: Scored) -> Scored:
    """Keep the pieces that their own text yields; no text uses the others, so nothing changes."""
    dead = set(unigram_tokenizer(model, normalizer=None, name="united").unreachable())
    pairs = zip(model.pieces, model.scores, strict=True)
    kept = [(piece, score) for piece, score in pairs if piece not in dead]
    return Scored(tuple(piece for piece, _ in kept), tuple(score for _, score in kept))


def _uses(tokenizer: UnigramOrWordPieceTokenizer, words: Mapping[str, int]) -> Counter[int]:
    """Count how often each piece is used on counted words."""
    counts: Counter[int] = Counter()
    listed = sorted(words)
    for begin in range(0, len(listed), _BATCH):
        batch = listed[begin : begin + _BATCH]
        found = tokenizer.backend.encode_batch_fast(batch, add_special_tokens=False)
        for word, encoding in zip(batch, found, strict=True):
            for token_id in encoding.ids:
                counts[token_id] += words[word]
    return counts


def _parts(
    *,
    clusters: Clusters,
    unions: Sequence[frozenset[str]],
    shares: Sequence[int],
    learned: Sequence[Scored],
    united: UnigramOrWordPieceTokenizer,
    words: Mapping[str, Mapping[str, int]],
) -> tuple[ClusterPart, ...]:
    """Return the share of each cluster, and what it loses to the others."""
    parts = []
    for cluster, union, share, model in zip(clusters, unions, shares, learned, strict=True):
        own = unigram_tokenizer(model, normalizer=None, name="cluster")
        of_cluster = joined([words[label] for label in cluster])
        parts.append(
            ClusterPart(
                cluster,
                len(union),
                share,
                len(model.learned),
                _uses(own, of_cluster).total(),
                _uses(united, of_cluster).total(),
            )
        )
    return tuple(parts)
