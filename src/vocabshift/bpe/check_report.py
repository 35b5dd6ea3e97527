"""The report of `check`: what it holds, and what counts as sound.

How each finding is made is the business of `check` for BPE, `plain_check` for the other kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vocabshift.bpe.plain_tokenizer import PlainTokenizer
from vocabshift.bpe.text_check import LanguageCheck
from vocabshift.bpe.tokenizer import Tokenizer

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
