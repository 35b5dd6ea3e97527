"""`check`: every invariant of a tokenizer, counted, with the tokens that break it.

Owns the report, what it holds and what counts as sound. How each finding is made is the business
of the files beside: STT, pipeline reachability, what stands out in a vocabulary, text by language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.pipeline_reachability import pipeline_reachability
from vocabshift.bpe.plain_tokenizer import PlainTokenizer, open_prunable
from vocabshift.bpe.reachability import byte_pieces, missing_byte_pieces, unreachable_tokens
from vocabshift.bpe.text_check import LanguageCheck, check_text
from vocabshift.bpe.token_bytes import token_bytes
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.bpe.vocabulary_check import (
    duplicates,
    is_partial,
    is_superword,
    shadowed_by_added,
    terminal_spanning,
)
from vocabshift.text.corpus import Corpus

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
    from vocabshift.bpe.plain_check import check_plain

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


def id_holes(tokenizer: Tokenizer | PlainTokenizer, in_model: Iterable[int]) -> tuple[int, ...]:
    """Ids that neither the model nor an added token has."""
    taken = {*in_model, *(token.id for token in tokenizer.added_tokens)}
    return tuple(i for i in range(tokenizer.row_count) if i not in taken)
