"""A BPE tokenizer as pruning sees it: what may go, how text is counted, what is left.

Owns what is never removed from BPE: special and added tokens, bytes and characters that no merge
makes, "<0xNN>" pieces, the unknown token, and whatever a template or a role names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from vocabshift.errors import InvalidTokenizerError
from vocabshift.pruning.counts import Progress, Source, TokenCounts, check_source, count_bpe_tokens
from vocabshift.pruning.orders import ORDERS
from vocabshift.tokenizer import post_processor
from vocabshift.tokenizer.encoder import Encoder
from vocabshift.tokenizer.post_processor import ids_of
from vocabshift.tokenizer.pretrained_folder import ROLES, config_with_ids
from vocabshift.tokenizer.reachability import unreachable_tokens
from vocabshift.tokenizer.splits import Flags, Ids, Splits, split_tokens
from vocabshift.tokenizer.token_bytes import is_complete, token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint

# Take tokens out of a BPE tokenizer: vocabulary, merges, and everything that holds an id.
#
# Owns the new numbering and what follows from it. Which tokens may go, and in which order, is
# `orders`' and `protection`'s.


def new_ids(present: set[int], removed: Ids, *, keep_ids: bool = False) -> dict[int, int]:
    """New id of every id that stays: dense in the old order, or as before with holes."""
    staying = sorted(present - set(removed.tolist()))
    return {old: old if keep_ids else place for place, old in enumerate(staying)}


def without_tokens(tokenizer: Tokenizer, old_to_new: Mapping[int, int]) -> Tokenizer:
    """The tokenizer of the tokens in `old_to_new`; merges that touch or make another one go."""
    model = tokenizer.model
    vocab = {
        token: old_to_new[token_id]
        for token, token_id in sorted(model.vocab.items(), key=lambda entry: entry[1])
        if token_id in old_to_new
    }
    gone = model.vocab.keys() - vocab.keys()
    merges = tuple(
        merge
        for merge in model.merges
        if merge[0] not in gone and merge[1] not in gone and merge[0] + merge[1] not in gone
    )
    return replace(
        tokenizer,
        model=replace(model, vocab=vocab, merges=merges),
        added_tokens=tuple(
            replace(token, id=old_to_new[token.id]) for token in tokenizer.added_tokens
        ),
        post_processor=post_processor.with_ids(tokenizer.post_processor, old_to_new),
        config=config_with_ids(tokenizer.config, old_to_new),
    )


def present_ids(tokenizer: Tokenizer) -> set[int]:
    """Every id that names a token."""
    return {*tokenizer.model.vocab.values(), *(token.id for token in tokenizer.added_tokens)}


def as_flags(ids: set[int], rows: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(rows,) whether an id is one of `ids`; ids beyond the rows are left out."""
    flags = np.zeros(rows, dtype=bool)
    flags[[token_id for token_id in ids if 0 <= token_id < rows]] = True
    return flags


# ---


class BpeSubject:
    """One tokenizer; InvalidTokenizerError for a kind of BPE whose tokens cannot be taken apart."""

    kind = "BPE"
    orders = ORDERS
    may_have_holes = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        model = tokenizer.model
        if model.continuing_subword_prefix or model.end_of_word_suffix:
            raise InvalidTokenizerError(
                f"{tokenizer.name} marks the parts of words "
                f"({model.continuing_subword_prefix or model.end_of_word_suffix!r}); only "
                "byte-level and SentencePiece BPE, Unigram and WordPiece can be pruned"
            )

    @property
    def name(self) -> str:
        """Its name."""
        return self.tokenizer.name

    @property
    def rows(self) -> int:
        """The highest id plus one."""
        return self.tokenizer.row_count

    @property
    def vocab(self) -> Mapping[str, int]:
        """Tokens of the model."""
        return self.tokenizer.model.vocab

    @property
    def present(self) -> set[int]:
        """Every id that names a token, added ones included."""
        return present_ids(self.tokenizer)

    @cached_property
    def fingerprint(self) -> str:
        """Its name in a token map."""
        return fingerprint(self.tokenizer)

    @cached_property
    def splits(self) -> Splits:
        """Of what its tokens are made."""
        return split_tokens(self.tokenizer, self._encoder(own=False))

    @cached_property
    def spelled(self) -> dict[int, bytes]:
        """Bytes of every token that is not special."""
        return token_bytes(self.tokenizer)

    def protected(self) -> Flags:
        """(rows,) what is never removed."""
        model, config = self.tokenizer.model, self.tokenizer.config
        named = {model.unk_token, *(config.get(f"{role}_token") for role in ROLES)}
        ids = {token_id for token, token_id in model.vocab.items() if token in named}
        ids |= {token.id for token in self.tokenizer.added_tokens}
        ids |= ids_of(self.tokenizer.post_processor)
        return self.splits.atomic | as_flags(ids, self.rows)

    def check_source(self, source: Source) -> None:
        """CorpusError where the source cannot be counted under this tokenizer."""
        check_source(self.tokenizer, source)

    def count(
        self,
        source: Source,
        *,
        own: bool,
        threads: int = 1,
        phase: str = "count",
        progress: Progress | None = None,
    ) -> TokenCounts:
        """Final tokens of a text; `own`: with merge skipping where the tokenizer has it."""
        encoder = self._encoder(own=own)
        return count_bpe_tokens(encoder, source, threads=threads, phase=phase, progress=progress)

    @property
    def counts_alike(self) -> bool:
        """Whether `own` makes no difference."""
        return not self.tokenizer.model.ignore_merges

    def without(self, old_to_new: Mapping[int, int]) -> BpeSubject:
        """The tokenizer of these tokens alone."""
        return BpeSubject(without_tokens(self.tokenizer, old_to_new))

    def come_back(self, texts: list[str], threads: int = 1) -> list[str]:
        """Texts encoded and decoded."""
        encoder = self._encoder(own=True)
        return encoder.decode_batch(*encoder.encode_batch(texts, threads=threads))

    def unreachable(self) -> set[str]:
        """Tokens that merges alone do not make (STT)."""
        return set(unreachable_tokens(self.tokenizer))

    def warnings(self) -> list[str]:
        """What the user should know before trusting the result."""
        if is_complete(self.tokenizer):
            return []
        return ["it lacks some of the 256 bytes and has no unknown token: it loses text as it is"]

    def _encoder(self, *, own: bool) -> Encoder:
        return self._own_encoder if own or self.counts_alike else self._merging_encoder

    @cached_property
    def _own_encoder(self) -> Encoder:
        return Encoder(self.tokenizer)

    @cached_property
    def _merging_encoder(self) -> Encoder:
        model = self.tokenizer.model.unchecked(ignore_merges=False)
        return Encoder(replace(self.tokenizer, model=model))


def lengths_of(vocab: Mapping[str, int], rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(rows,) characters of each token as the vocabulary spells it."""
    lengths = np.zeros(rows, dtype=np.int64)
    lengths[list(vocab.values())] = [len(token) for token in vocab]
    return lengths
