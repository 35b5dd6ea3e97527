"""Measures the effect of new tokens on text: bytes per token by their number, and the ceiling.

The new merges run on counted words, and one pass yields the whole curve. The ceiling is bytes per
pre-token: no merge crosses the boundary of a pre-token, so no number of tokens can exceed it.
Corpus weights are ignored: each document counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.extension.continued import Additions, TrainingBase, learn
from vocabshift.extension.counting import CountedText, TextCounts, count_text
from vocabshift.extension.options import ExtensionOptions, repaired_if_possible
from vocabshift.progress import Progress, in_phase
from vocabshift.text.corpus import Corpus
from vocabshift.text.languages import UNLABELLED
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LanguageEffect:
    """Effect on one language; bytes are those of the raw text, other figures of counted words."""

    language: str
    n_bytes: int
    bytes_per_token_before: float  # with the same pre-tokenizer, before the first new token
    bytes_per_token: float
    ceiling_bytes_per_token: float
    new_tokens_used: int  # new tokens that its text contains
    new_tokens_share: float  # of its tokens


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve."""

    n_tokens: int  # new ones
    bytes_per_token: float


@dataclass(frozen=True)
class Effect:
    """Effect of new tokens by language: for each number of them, or before and after all."""

    languages: tuple[LanguageEffect, ...]
    n_bytes: NDArray[np.int64]  # (n_languages,)
    words: NDArray[np.int64]  # (n_languages,)
    at: NDArray[np.int64]  # (n_points,) numbers of new tokens, ascending from 0
    tokens: NDArray[np.int64]  # (n_languages, n_points): of the text, with the first at[i] of them
    unused: tuple[str, ...]  # new tokens that no language's text contains

    @classmethod
    def of(
        cls,
        *,
        labels: Sequence[str],
        n_bytes: NDArray[np.int64],
        words: NDArray[np.int64],
        at: NDArray[np.int64],
        tokens: NDArray[np.int64],
        used: NDArray[np.int64],
        names: Sequence[str],
    ) -> Effect:
        """Build from counts by language; `used` (n_languages, n_new) is how often each new token
        (by `names`) occurs in the final segmentation."""
        languages = tuple(
            LanguageEffect(
                label,
                int(n_bytes[i]),
                round(_ratio(int(n_bytes[i]), int(tokens[i, 0])), 4),
                round(_ratio(int(n_bytes[i]), int(tokens[i, -1])), 4),
                round(_ratio(int(n_bytes[i]), int(words[i])), 4),
                int(np.count_nonzero(used[i])),
                round(_ratio(int(used[i].sum()), int(tokens[i, -1])), 4),
            )
            for i, label in enumerate(labels)
        )
        idle = np.flatnonzero(used.sum(axis=0) == 0)
        unused = tuple(names[i] for i in idle.tolist())
        return cls(languages, n_bytes, words, at, tokens, unused)

    @property
    def n_new(self) -> int:
        """Total number of new tokens."""
        return int(self.at[-1])

    @property
    def ceiling(self) -> float:
        """Bytes per pre-token over all languages."""
        return _ratio(int(self.n_bytes.sum()), int(self.words.sum()))

    def bytes_per_token(self, n_tokens: int, language: str | None = None) -> float:
        """Return it for the first `n_tokens` new tokens, a number in `at`; None: all languages."""
        point = int(np.searchsorted(self.at, n_tokens))
        if language is None:
            return _ratio(int(self.n_bytes.sum()), int(self.tokens[:, point].sum()))
        row = [effect.language for effect in self.languages].index(language)
        return _ratio(int(self.n_bytes[row]), int(self.tokens[row, point]))

    def since(self, before: Effect) -> Effect:
        """Return the same effect with the end of `before` as the state before any new token."""
        rows = {row.language: row.bytes_per_token for row in before.languages}
        languages = tuple(
            replace(row, bytes_per_token_before=rows[row.language]) for row in self.languages
        )
        tokens = self.tokens.copy()
        tokens[:, 0] = before.tokens[:, -1]
        return replace(self, languages=languages, tokens=tokens)

    def curve(self, language: str | None = None) -> tuple[Point, ...]:
        """Return the known points among 0, doublings (250, 500, 1,000 …) and the end."""
        known = set(self.at.tolist())
        return tuple(
            Point(n, round(self.bytes_per_token(n, language), 4))
            for n in steps(self.n_new)
            if n in known
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "ceiling_bytes_per_token": round(self.ceiling, 4),
            "ceilings": {
                effect.language: round(effect.ceiling_bytes_per_token, 4)
                for effect in self.languages
            },
            "curve": [asdict(point) for point in self.curve()],
            "curves": {
                effect.language: [asdict(point) for point in self.curve(effect.language)]
                for effect in self.languages
            },
            "languages": [asdict(effect) for effect in self.languages],
        }


def measure(base: TrainingBase, learned: Additions, text: CountedText) -> Effect:
    """Measure the effect of `learned` on counted text: its training text, or another."""
    rows = base.rows(learned.tokens, learned.merges)
    word_counts, token_counts, happened = _core.replay_merges(text.words, text.encoder, rows)
    groups = text.reader.groups
    labels = list(dict.fromkeys(group.language or UNLABELLED for group in groups))
    shape = (len(labels), len(rows))
    n_bytes = np.zeros(len(labels), dtype=np.int64)
    n_words, before = n_bytes.copy(), n_bytes.copy()
    done = np.zeros(shape, dtype=np.int64)
    for i, group in enumerate(groups):
        row = labels.index(group.language or UNLABELLED)
        n_bytes[row] += group.n_bytes
        n_words[row] += group.n_special  # each is a token that no merge crosses
        before[row] += group.n_special
        if i < len(word_counts):  # groups without words are missing
            n_words[row] += int(word_counts[i])
            before[row] += int(token_counts[i])
            done[row] += happened[i].astype(np.int64)
    n_base = len(base.names)
    made = np.concatenate([[-1], rows[:, 2].astype(np.int64) - n_base])
    saved = np.concatenate([np.zeros((len(labels), 1), dtype=np.int64), done.cumsum(axis=1)], 1)
    # The merges of the first k tokens are those before the first merge that makes a later one.
    last_made = np.maximum.accumulate(np.maximum(made, -1))
    ends = np.searchsorted(last_made, np.arange(len(learned.tokens) + 1), side="left") - 1
    ends[-1] = len(rows)
    n_new = len(learned.tokens)
    used = _used(rows, done, n_base, n_new)
    tokens = before[:, None] - saved[:, ends]
    return Effect.of(
        labels=labels,
        n_bytes=n_bytes,
        words=n_words,
        at=np.arange(n_new + 1),
        tokens=tokens,
        used=used,
        names=learned.tokens,
    )


def ceilings_of(text: CountedText) -> dict[str, float]:
    """Return bytes per word of counted text, by language."""
    n_bytes: dict[str, int] = {}
    n_words: dict[str, int] = {}
    for i, group in enumerate(text.reader.groups):
        label = group.language or UNLABELLED
        n_bytes[label] = n_bytes.get(label, 0) + group.n_bytes
        found = text.words.occurrences(i) if i < text.words.group_count else 0
        n_words[label] = n_words.get(label, 0) + found + group.n_special
    return {label: round(_ratio(n, n_words[label]), 4) for label, n in n_bytes.items()}


def measure_by_encoding(
    base: Tokenizer, longer: Tokenizer, corpus: Corpus, before: Effect, *, threads: int = 1
) -> Effect:
    """Measure by encoding the corpus again, for tokens that no replay of merges can measure.

    `before` is the effect on the same corpus without new tokens. The curve has two points.
    """
    encoder = Encoder(longer)
    labels = [row.language for row in before.languages]
    first = base.row_count
    counts = np.zeros((len(labels), longer.row_count), dtype=np.int64)
    for documents in corpus.batches():
        ids, _ = encoder.encode_documents(
            documents.data, documents.starts, documents.ends, threads=threads
        )
        row = labels.index(documents.language or UNLABELLED)
        counts[row] += np.bincount(ids, minlength=longer.row_count)
    names = {token_id: token for token, token_id in longer.model.vocab.items()}
    names.update((token.id, token.content) for token in longer.added_tokens)
    return Effect.of(
        labels=labels,
        n_bytes=before.n_bytes,
        words=before.words,
        at=np.array([0, longer.row_count - first]),
        tokens=np.stack([before.tokens[:, -1], counts.sum(axis=1)], axis=1),
        used=counts[:, first:],
        names=[names[token_id] for token_id in range(first, longer.row_count)],
    )


def steps(n_tokens: int) -> list[int]:
    """Return the numbers of tokens on a curve: 0, 250, 500, 1,000, 2,000 … and the last."""
    points = [0]
    step = 250
    while step < n_tokens:
        points.append(step)
        step *= 2
    return points if n_tokens == 0 else [*points, n_tokens]


def _used(
    rows: NDArray[np.uint32], done: NDArray[np.int64], n_base: int, n_new: int
) -> NDArray[np.int64]:
    """Return final counts of the new tokens, (n_languages, n_new): made minus merged away."""
    used = np.zeros((done.shape[0], n_new), dtype=np.int64)
    for language, times in enumerate(done):
        for part, sign in ((2, 1), (0, -1), (1, -1)):
            found = np.bincount(rows[:, part], times, n_base + n_new)[n_base:]
            used[language] += sign * found.astype(np.int64)
    return used


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# The whole curve on held-out text: one training up to the largest number of tokens, with the
# unchanged pre-tokenizer and, if it can be repaired, with the repaired one.


@dataclass(frozen=True)
class Growth:
    """Effect of up to `effect.n_new` new tokens with one pre-tokenizer."""

    pre_tokenizer: str  # "kept" or "repaired"
    effect: Effect  # on the held-out text
    stopped_because: str
    n_characters: int  # that the vocabulary lacked, added before the curve's tokens


def grow(
    tokenizer: Tokenizer,
    corpus: Corpus | TextCounts,
    held_out: Corpus,
    *,
    max_tokens: int,
    sampling_alpha: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> tuple[Growth, ...]:
    """Learn from `corpus` and measure on `held_out`, first with the unchanged pre-tokenizer."""
    options = ExtensionOptions(n_tokens=max_tokens, sampling_alpha=sampling_alpha)
    grown = []
    for name, base in (("kept", tokenizer), ("repaired", repaired_if_possible(tokenizer))):
        if base is None:
            continue
        counting = in_phase(progress, f"count ({name})")
        counted = count_text(base, corpus, options, threads, counting)
        learned = learn(
            counted.form,
            counted.text,
            n_tokens=max_tokens,
            threads=threads,
            progress=in_phase(progress, f"learn ({name})"),
        )
        # The form already has the added characters: the held-out text is counted with them.
        evaluated = count_text(
            counted.form.tokenizer, held_out, options.without_characters(), threads
        )
        effect = measure(counted.form, learned, evaluated.text)
        n_characters = len(counted.characters)
        grown.append(Growth(name, effect, learned.stopped_because, n_characters))
    return tuple(grown)
