"""Characters of a text that a vocabulary spelt in characters lacks.

What is not there stands as bytes or as unknown, which no merge can take up: so characters come
before merges, and without them text in a script that the vocabulary lacks letters of has a low
ceiling. Source: "Teaching Old Tokenizers New Words", whose toolkit adds the most frequent first
until the text is covered, as SentencePiece's trainer does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from vocabshift import _core
from vocabshift.bpe.components import SPACE
from vocabshift.bpe.pipeline import simple_normalizer
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import CorpusError
from vocabshift.text.counting import CorpusReader, Prepared
from vocabshift.text.documents import Documents, pack
from vocabshift.text.piece_characters import NEVER_IN_PIECES

COVERAGE = 0.9995
"""Share of a text's characters that a vocabulary is to hold: that of SentencePiece's trainer and
of the paper's toolkit."""

Progress = Callable[[int, int | None], None]


def missing_characters(
    tokenizer: Tokenizer,
    reader: CorpusReader,
    coverage: float | None = COVERAGE,
    threads: int = 1,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Characters to add so that the share `coverage` of the text's is there; None adds none.

    The most frequent first, equal ones by code point; languages count by their weights. Reads the
    whole text. ValueError for a share outside (0, 1]; CorpusError where the tokenizer's normalizer
    leaves nothing of a language.
    """
    if coverage is not None and not 0 < coverage <= 1:
        raise ValueError(
            f"the character coverage is {coverage!r}; give the share of the text's characters that "
            "the vocabulary is to hold, above 0 and up to 1, or None"
        )
    found = _count(tokenizer, reader, threads, progress)
    if coverage is None:
        return ()
    counted = {c: count for c, count in found.items() if c not in NEVER_IN_PIECES}
    known = tokenizer.model.vocab.keys() | {token.content for token in tokenizer.added_tokens}
    total = sum(counted.values())
    covered = sum(count for c, count in counted.items() if c in known)
    chosen: list[str] = []
    for negative, character in sorted((-n, c) for c, n in counted.items() if c not in known):
        if covered >= coverage * total:
            break
        chosen.append(character)
        covered -= negative
    return tuple(chosen)


def with_characters(tokenizer: Tokenizer, characters: Sequence[str]) -> Tokenizer:
    """The tokenizer with these characters as tokens; their ids stand behind all others."""
    if not characters:
        return tokenizer
    first = tokenizer.row_count
    vocab = dict(tokenizer.model.vocab)
    vocab.update((character, first + i) for i, character in enumerate(characters))
    return replace(tokenizer, model=replace(tokenizer.model, vocab=vocab))


def _count(
    tokenizer: Tokenizer, reader: CorpusReader, threads: int, progress: Progress | None
) -> Counter[str]:
    """Characters of the text as the tokenizer normalizes it, weighted, spaces as "▁"."""
    by_group: dict[int, Counter[str]] = {}
    keeps: dict[str | None, bool] = {}
    is_simple = simple_normalizer(tokenizer.normalizer) is not None  # takes nothing away
    for block in reader.read(progress):
        counts = by_group.setdefault(block.group, Counter())
        label = reader.groups[block.group].language
        parts = (block,) if is_simple else _normalized(tokenizer, block, label, keeps)
        for part in parts:
            points, times = _core.count_characters(part.data, part.starts, part.ends, threads)
            for point, count in zip(points.tolist(), times.tolist(), strict=True):
                counts[chr(point)] += count
    _require_kept_text(tokenizer, keeps)
    weights = reader.fixed_point_weights()
    total: Counter[str] = Counter()
    for group, counts in by_group.items():
        for character, count in counts.items():
            total[SPACE if character == " " else character] += count * weights[group]
    return total


def _normalized(
    tokenizer: Tokenizer, block: Prepared, label: str | None, keeps: dict[str | None, bool]
) -> Iterator[Documents]:
    """The block as the tokenizer normalizes it; `keeps` is told whether anything is left."""
    normalize = tokenizer.backend.normalizer.normalize_str

    def texts() -> Iterator[bytes]:
        for start, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True):
            text = str(block.data[start:end], "utf-8")
            normalized = str(normalize(text))
            if not keeps.get(label) and not text.isspace():
                keeps[label] = bool(normalized.replace(SPACE, " ").strip())
            yield normalized.encode()

    return pack(texts(), "corpus")


def _require_kept_text(tokenizer: Tokenizer, keeps: dict[str | None, bool]) -> None:
    lost = [label for label, kept in keeps.items() if not kept]
    if lost:
        names = ", ".join("the text" if label is None else repr(label) for label in lost)
        raise CorpusError(
            f"the normalizer of {tokenizer.name} leaves nothing of {names}: no token can be "
            "learned from it; give text that the tokenizer keeps, or a tokenizer without that "
            "normalizer"
        )
