"""`check`: every invariant of a tokenizer, counted, with the tokens that break it.

Owns which findings there are of BPE. How each is made is the business of the files beside: STT,
pipeline reachability, what stands out in a vocabulary, text by language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vocabshift.checks.reachability import pipeline_reachability
from vocabshift.checks.text import LanguageCheck, check_text, round_trips
from vocabshift.checks.vocabulary import (
    duplicates,
    is_partial,
    is_superword,
    shadowed_by_added,
    terminal_spanning,
)
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.encoder import Encoder
from vocabshift.tokenizer.pipeline import Ids, Offsets, join
from vocabshift.tokenizer.reachability import (
    BYTE_PIECE,
    byte_pieces,
    missing_byte_pieces,
    unreachable_tokens,
)
from vocabshift.tokenizer.token_bytes import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram import plain_token_bytes, unreachable_pieces
from vocabshift.tokenizer.unigram_or_wordpiece import PlainTokenizer, open_prunable

# The report of `check`: what it holds, and what counts as sound.
#
# How each finding is made is the business of `check` for BPE, `plain_check` for the other kinds.


PADDING = 64
"""Models often round their embedding rows up to a multiple of this."""


@dataclass(frozen=True)
class CheckReport:
    """What was found in one tokenizer; tokens are spelt as in the vocabulary.

    Byte pieces and added tokens are classes of their own: none of them counts as unreachable, and
    none but the first is among the duplicates.
    """

    tokenizer: str  # its name
    vocab_size: int
    unreachable: tuple[str, ...]  # STT: merges alone do not rebuild them
    unreachable_by_pipeline: tuple[str, ...] | None  # no usual context yields them; None: not BPE
    only_in_rare_contexts: tuple[str, ...]  # of these, those that a rarer context yields
    only_by_merge_skipping: tuple[
        str, ...
    ]  # of `unreachable`, those that a text yields all the same
    byte_pieces: int
    missing_byte_pieces: tuple[str, ...]  # bytes that the model lacks, and loses
    partial_utf8: tuple[str, ...]  # not whole UTF-8, single bytes left out
    superwords: tuple[str, ...]  # text on both sides of a space
    terminal_spanning: tuple[str, ...]  # a sentence end inside the token
    duplicates: tuple[str, ...]  # tokens whose bytes another token has too
    shadowed: tuple[str, ...]  # tokens in whose text an added token is cut out first
    special_tokens: tuple[str, ...]
    other_added_tokens: tuple[str, ...]  # added, but not special
    id_holes: tuple[int, ...]  # ids below `rows` that no token has
    rows: int  # embedding rows that a model needs: the highest id plus one
    model_rows: int | None  # rows of the model beside, where there is one
    languages: tuple[LanguageCheck, ...]  # text that was tried, by language

    @property
    def round_trip_failures(self) -> int:
        """Lines that do not come back from their ids."""
        return sum(row.round_trip_failures for row in self.languages)

    @property
    def padding(self) -> int:
        """Rows to add for a whole number of blocks of 64."""
        return -self.rows % PADDING

    @property
    def missing_rows(self) -> int:
        """Rows that the model beside lacks: ids that would be read from outside its embeddings."""
        return 0 if self.model_rows is None else max(self.rows - self.model_rows, 0)

    @property
    def ok(self) -> bool:
        """Whether every token can be produced, no byte is lost and every text came back."""
        return not (
            self.unreachable
            or len(self.unreachable_by_pipeline or ()) > len(self.only_in_rare_contexts)
            or self.missing_byte_pieces
            or self.missing_rows
            or self.round_trip_failures
        )


def id_holes(tokenizer: Tokenizer | PlainTokenizer, in_model: Iterable[int]) -> tuple[int, ...]:
    """Ids that neither the model nor an added token has."""
    taken = {*in_model, *(token.id for token in tokenizer.added_tokens)}
    return tuple(i for i in range(tokenizer.row_count) if i not in taken)


# `check` for Unigram and WordPiece: the same findings, as far as they mean something there.
#
# Tokens are made of no others, so STT asks whether the model gives a token for its own text. Bytes
# are lost where the model falls back on none and has no unknown token to say so. Owns how the
# report is filled; what encodes is `tokenizers`.


def check_plain(
    tokenizer: PlainTokenizer, corpus: Corpus | None, *, threads: int, model_rows: int | None
) -> CheckReport:
    """What `check` tells, without what is BPE's alone."""
    names = {token_id: token for token, token_id in tokenizer.vocab.items()}
    single = {token for token in tokenizer.vocab if BYTE_PIECE.fullmatch(token)}
    table = plain_token_bytes(tokenizer)
    added = {token.content for token in tokenizer.added_tokens}
    tokens = {
        token: table[token_id]
        for token_id, token in sorted(names.items())
        if token_id in table and token not in single and token not in added
    }
    languages = () if corpus is None else round_trips(_Backend(tokenizer), corpus, threads).values()
    return CheckReport(
        tokenizer=tokenizer.name,
        vocab_size=tokenizer.vocab_size,
        unreachable=unreachable_pieces(tokenizer),
        unreachable_by_pipeline=None,
        only_in_rare_contexts=(),
        only_by_merge_skipping=(),
        byte_pieces=len(single),
        missing_byte_pieces=_missing(tokenizer, single),
        partial_utf8=tuple(token for token, data in tokens.items() if is_partial(data)),
        superwords=tuple(token for token, data in tokens.items() if is_superword(data)),
        terminal_spanning=terminal_spanning(tokens),
        duplicates=duplicates(tokenizer, names, table, single),
        shadowed=shadowed_by_added(tokenizer, tokens),
        special_tokens=tuple(t.content for t in tokenizer.added_tokens if t.special),
        other_added_tokens=tuple(t.content for t in tokenizer.added_tokens if not t.special),
        id_holes=id_holes(tokenizer, names),
        rows=tokenizer.row_count,
        model_rows=model_rows,
        languages=tuple(languages),
    )


def _missing(tokenizer: PlainTokenizer, byte_pieces: set[str]) -> tuple[str, ...]:
    """Byte pieces that a model which falls back on bytes lacks."""
    if not tokenizer.document["model"].get("byte_fallback"):
        return ()
    pieces = (f"<0x{byte:02X}>" for byte in range(256))
    return tuple(piece for piece in pieces if piece not in byte_pieces)


class _Backend:
    """`tokenizers`, with the encoder's face."""

    def __init__(self, tokenizer: PlainTokenizer) -> None:
        self._backend = tokenizer.backend

    def encode_batch(
        self,
        texts: list[str],
        *,
        threads: int,  # noqa: ARG002 - their number is the library's own
    ) -> tuple[Ids, Offsets]:
        """Flat ids and offsets."""
        found = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return join([np.array(encoding.ids, dtype=np.int32) for encoding in found])

    def decode_batch(self, ids: Ids, offsets: Offsets) -> list[str]:
        """The texts."""
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        rows = [ids[begin:end].tolist() for begin, end in bounds]
        return list(self._backend.decode_batch(rows, skip_special_tokens=False))


# ---


def check(
    tokenizer: Any,
    corpus: Corpus | None = None,
    *,
    threads: int = 1,
    model_rows: int | None = None,
) -> CheckReport:
    """Check a tokenizer: ours, a Hugging Face fast tokenizer, or a path; Unigram and WordPiece too.

    With a corpus, every document is encoded and decoded, and the ceiling of each language is told;
    without one `languages` is empty. `model_rows`: embedding rows of its model, if known. Of kinds
    other than BPE neither reachability through the whole pipeline nor a ceiling is told.
    """
    value = open_prunable(tokenizer)
    if isinstance(value, PlainTokenizer):
        return check_plain(value, corpus, threads=threads, model_rows=model_rows)
    encoder = Encoder(value)
    single = set(byte_pieces(value))
    tokens = _plain_tokens(value, single)
    unreachable = unreachable_tokens(value)
    by_pipeline, rare = pipeline_reachability(value, encoder)
    never = set(by_pipeline) - set(rare)
    return CheckReport(
        tokenizer=value.name,
        vocab_size=value.vocab_size,
        unreachable=unreachable,
        unreachable_by_pipeline=by_pipeline,
        only_in_rare_contexts=rare,
        only_by_merge_skipping=_by_skipping(value, unreachable, never, tokens),
        byte_pieces=len(single),
        missing_byte_pieces=missing_byte_pieces(value),
        partial_utf8=tuple(token for token, data in tokens.items() if is_partial(data)),
        superwords=tuple(token for token, data in tokens.items() if is_superword(data)),
        terminal_spanning=terminal_spanning(tokens),
        duplicates=duplicates(value, value.model.tokens, token_bytes(value), single),
        shadowed=shadowed_by_added(value, tokens),
        special_tokens=tuple(token.content for token in value.added_tokens if token.special),
        other_added_tokens=tuple(
            token.content for token in value.added_tokens if not token.special
        ),
        id_holes=id_holes(value, value.model.vocab.values()),
        rows=value.row_count,
        model_rows=model_rows,
        languages=() if corpus is None else check_text(encoder, corpus, threads),
    )


def _plain_tokens(tokenizer: Tokenizer, single: set[str]) -> dict[str, bytes]:
    """Tokens of the model with their bytes, by id; added tokens and byte pieces left out."""
    added = {token.content for token in tokenizer.added_tokens}
    spelled = token_bytes(tokenizer)
    return {
        token: spelled[token_id]
        for token, token_id in sorted(tokenizer.model.vocab.items(), key=lambda item: item[1])
        if token not in added and token not in single and token_id in spelled
    }


def _by_skipping(
    tokenizer: Tokenizer, unreachable: tuple[str, ...], never: set[str], tokens: Mapping[str, bytes]
) -> tuple[str, ...]:
    """Tokens that the merges do not make and that whole pieces of text are; half characters are
    no text."""
    if not tokenizer.model.ignore_merges:
        return ()
    return tuple(
        token
        for token in unreachable
        if token not in never and token in tokens and not is_partial(tokens[token])
    )
