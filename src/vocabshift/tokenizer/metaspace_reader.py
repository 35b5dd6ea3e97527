"""Groups of tokens: the words of a tokenizer that encodes a document as a whole ("▁" for space).

Owns encoding a text and splitting its tokens where two neighbours can never be merged, under the
rules of the SentencePiece model. No merge crosses such a boundary, so bytes per group are the
ceiling for new tokens. Owns also the characters of a text that the vocabulary lacks: they are added
before merges, because no merge can use text that is encoded as bytes or as unknown. Source:
docs/algorithms/continued.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader, PreparedBlock
from vocabshift.text.documents import Documents, pack
from vocabshift.tokenizer.any_tokenizer import Ids, Offsets, join
from vocabshift.tokenizer.components import (
    NEVER_IN_PIECES,
    SPACE,
    SentencePieceRules,
    decimal_digits,
)
from vocabshift.tokenizer.pipeline import Pipeline, simple_normalizer
from vocabshift.tokenizer.token_bytes import byte_pieces, is_metaspace

if TYPE_CHECKING:
    from vocabshift.tokenizer.tokenizer import Tokenizer

COVERAGE = 0.9995
"""Share of a text's characters that a vocabulary is to hold: that of SentencePiece's trainer and of
the toolkit of "Teaching Old Tokenizers New Words", which adds the most frequent first."""

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
    """The tokenizer with these characters as tokens; their ids follow all others."""
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
    tokenizer: Tokenizer, block: PreparedBlock, label: str | None, keeps: dict[str | None, bool]
) -> Iterator[Documents]:
    """The block as the tokenizer normalizes it; `keeps` says by label whether anything is left."""
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


_AT_ONCE = 1000
"""Documents that `tokenizers` encodes at once: what it returns takes 100 bytes and more a token."""


class GroupCutter:
    """One tokenizer, ready to cut text; tokens are known by their place in the order of the ids.

    `rules`: by default those of the tokenizer's SentencePiece model where it came with one, and
    otherwise the usual ones. ValueError for a tokenizer that does not spell the space "▁".
    """

    def __init__(self, tokenizer: Tokenizer, rules: SentencePieceRules | None = None) -> None:
        require_metaspace(tokenizer)
        self.tokenizer = tokenizer
        self.rules = rules or tokenizer.piece_rules or SentencePieceRules()
        self.rule = _piece_rule(self.rules)
        ids = dict(tokenizer.model.vocab)
        for token in tokenizer.added_tokens:
            ids.setdefault(token.content, token.id)
        by_id = sorted(ids.items(), key=lambda entry: entry[1])
        self.names = [token for token, _ in by_id]
        """All tokens by place, added ones included."""
        self.unmergeable = _unmergeable(tokenizer)
        """Tokens that are groups by themselves: bytes, the unknown token, added tokens."""
        places = {token: place for place, token in enumerate(self.names)}
        alone = [places[token] for token in self.unmergeable if token in places]
        self._groups = _core.TokenGroups(self.rule, [name.encode() for name in self.names], alone)
        self._place_of = np.full(by_id[-1][1] + 1, -1, dtype=np.int32)
        self._place_of[[token_id for _, token_id in by_id]] = np.arange(len(by_id), dtype=np.int32)
        self._is_dense = len(self._place_of) == len(by_id)
        whole = _without_idle_split(tokenizer)
        is_whole = whole.pre_tokenizer is None
        self._pipeline = Pipeline(whole, parse_special=True) if is_whole else None

    def add_to(
        self, counter: _core.WordCounter, block: PreparedBlock, threads: int = 1
    ) -> tuple[int, int]:
        """Count the groups of a block as words: the bytes of their places. (groups, tokens)."""
        places, offsets = self.encode(block, threads)
        return self._groups.add_to(counter, places, offsets, block.group), len(places)

    def count(self, block: PreparedBlock, threads: int = 1) -> tuple[int, int]:
        """(groups, tokens) of a block."""
        places, offsets = self.encode(block, threads)
        return self._groups.count(places, offsets, threads), len(places)

    def encode(self, block: PreparedBlock, threads: int = 1) -> tuple[Ids, Offsets]:
        """Places of the tokens of a block, and offsets that no merge reaches across: at least
        between documents, and between pre-tokens where the tokenizer has such."""
        if self._pipeline is not None:
            ids, offsets = self._pipeline.encode_documents(
                block.data, block.starts, block.ends, threads
            )
        else:
            ids, offsets = self._encode_pieces(block)
        return (ids if self._is_dense else self._place_of[ids]), offsets

    def _encode_pieces(self, block: PreparedBlock) -> tuple[Ids, Offsets]:
        """By `tokenizers`, which alone knows where this pre-tokenizer cuts; slower."""
        backend = self.tokenizer.backend
        pieces: list[NDArray[np.int32]] = []
        for at in range(0, len(block.starts), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            spans = zip(block.starts[part].tolist(), block.ends[part].tolist(), strict=True)
            texts = [str(block.data[start:end], "utf-8") for start, end in spans]
            for encoding in backend.encode_batch(texts, add_special_tokens=False):
                ids = np.array(encoding.ids, dtype=np.int32)
                words = np.array([-1 if w is None else w for w in encoding.word_ids])
                pieces.extend(np.split(ids, np.flatnonzero(np.diff(words)) + 1))
        return join(pieces)


def ceilings(
    tokenizer: Tokenizer,
    corpus: Corpus,
    *,
    rules: SentencePieceRules | None = None,
    add_characters: float | None = COVERAGE,
    threads: int = 1,
    progress: Progress | None = None,
) -> dict[str | None, float]:
    """Bytes per group by language: more bytes per token no number of merges can reach.

    The characters that extending would add (`missing_characters`) are taken for tokens, for what
    stands as bytes cannot be merged; None: only those that are there.
    """
    require_metaspace(tokenizer)
    reader = CorpusReader(corpus, (), by_language=True)
    characters = missing_characters(tokenizer, reader, add_characters, threads, progress)
    cutter = GroupCutter(with_characters(tokenizer, characters), rules)
    groups: dict[str | None, int] = {}
    for block in reader.read(progress):
        label = reader.groups[block.group].language
        groups[label] = groups.get(label, 0) + cutter.count(block, threads)[0]
    return {label: reader.language_bytes[label] / count for label, count in groups.items() if count}


def require_metaspace(tokenizer: Tokenizer) -> None:
    """ValueError for a tokenizer that does not spell the space "▁"."""
    if not is_metaspace(tokenizer):
        raise ValueError(
            f"{tokenizer.name} does not spell the space {SPACE!r}: SentencePiece's rules are for "
            "tokenizers that do"
        )


def _piece_rule(rules: SentencePieceRules) -> _core.PieceRule:
    return _core.PieceRule(
        max_characters=rules.max_length,
        split_by_script=rules.split_by_script,
        split_by_number=rules.split_by_number,
        split_digits=rules.split_digits,
        split_by_space=rules.split_by_whitespace,
        space_is_suffix=rules.whitespace_as_suffix,
        space_runs=rules.whitespace_only,
        digits=decimal_digits(),
        never=NEVER_IN_PIECES,
    )


def _unmergeable(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Byte pieces, the unknown token and added tokens, in the order of the vocabulary."""
    model = tokenizer.model
    outside = {token.content for token in tokenizer.added_tokens}
    if model.unk_token is not None:
        outside.add(model.unk_token)
    bytes_ = byte_pieces(tokenizer)
    return (*bytes_, *sorted(outside.difference(bytes_)))


def _without_idle_split(tokenizer: Tokenizer) -> Tokenizer:
    """Without a pre-tokenizer that never cuts: Gemma's files split at a space, of which the
    normalizer leaves none."""
    pre = tokenizer.pre_tokenizer
    steps = tokenizer.normalizer or {}
    last = steps["normalizers"][-1] if steps.get("normalizers") else steps
    is_idle = (
        pre is not None
        and pre["type"] == "Split"
        and isinstance(pattern := pre["pattern"].get("String"), str)
        and last.get("type") == "Replace"
        and last["pattern"] == {"String": pattern}
        and pattern not in last["content"]
    )
    # Subtle: between added tokens, too, the normalizer runs before the split.
    return replace(tokenizer, pre_tokenizer=None) if is_idle else tokenizer
