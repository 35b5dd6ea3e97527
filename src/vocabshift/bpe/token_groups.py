"""Groups of tokens: the words of a tokenizer that encodes a document as a whole ("▁" for space).

Owns encoding a text and cutting its tokens where two neighbours can never be merged, under the
rules of the SentencePiece model; no merge reaches across, so bytes per group are the ceiling of
what new tokens can do. Source: adapting.md section 1.3. Knows nothing of what is learned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.bpe.components import SPACE
from vocabshift.bpe.flat_ids import Ids, Offsets, join
from vocabshift.bpe.missing_characters import COVERAGE, missing_characters, with_characters
from vocabshift.bpe.pipeline import Pipeline
from vocabshift.bpe.reachability import byte_pieces
from vocabshift.bpe.sentencepiece_rules import SentencePieceRules
from vocabshift.bpe.token_bytes import is_metaspace
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader, Prepared
from vocabshift.text.piece_characters import DECIMAL_DIGITS, NEVER_IN_PIECES

_AT_ONCE = 1000
"""Documents that `tokenizers` encodes at once: what it returns takes 100 bytes and more a token."""

Progress = Callable[[int, int | None], None]


class GroupCutter:
    """One tokenizer, ready to cut text; tokens are told by their place in the order of the ids.

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
        """Tokens that stand alone: bytes, the unknown token, added tokens."""
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
        self, counter: _core.WordCounter, block: Prepared, threads: int = 1
    ) -> tuple[int, int]:
        """Count the groups of a block as words: the bytes of their places. (groups, tokens)."""
        places, offsets = self.encode(block, threads)
        return self._groups.add_to(counter, places, offsets, block.group), len(places)

    def count(self, block: Prepared, threads: int = 1) -> tuple[int, int]:
        """(groups, tokens) of a block."""
        places, offsets = self.encode(block, threads)
        return self._groups.count(places, offsets, threads), len(places)

    def encode(self, block: Prepared, threads: int = 1) -> tuple[Ids, Offsets]:
        """Places of the tokens of a block, and offsets that no merge reaches across: at least
        between documents, and between pre-tokens where the tokenizer has such."""
        if self._pipeline is not None:
            ids, offsets = self._pipeline.encode_documents(
                block.data, block.starts, block.ends, threads
            )
        else:
            ids, offsets = self._encode_pieces(block)
        return (ids if self._is_dense else self._place_of[ids]), offsets

    def _encode_pieces(self, block: Prepared) -> tuple[Ids, Offsets]:
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
        digits=DECIMAL_DIGITS,
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
