"""`check`: every invariant of a tokenizer, counted, with the tokens that break it.

Owns the list of findings, and which of them make a tokenizer unsound. The other files of this
package compute them. Findings that do not apply to Unigram and WordPiece, whose tokens are not
made of other tokens, are empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vocabshift.checks.portability import (
    EngineParts,
    PatternLimit,
    engine_parts,
    pattern_limits,
)
from vocabshift.checks.reachability import pipeline_reachability
from vocabshift.checks.text import LanguageCheck, check_text
from vocabshift.checks.vocabulary import (
    duplicates,
    is_partial,
    merge_residue,
    shadowed_by_added,
    terminal_spanning,
)
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_of_tokens
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer, open_tokenizer
from vocabshift.tokenizer.missing_bytes import (
    NEVER_IN_UTF8,
    hex_of,
    losing_bytes,
    lost_characters,
    missing_bytes,
    names_of,
)
from vocabshift.tokenizer.pipeline import check_threads
from vocabshift.tokenizer.token_bytes import is_superword

PADDING = 64
"""Models often round their embedding rows up to a multiple of this."""


@dataclass(frozen=True)
class CheckReport:
    """What was found in one tokenizer; tokens are spelt as in the vocabulary.

    Byte tokens and added tokens are classes of their own. Neither counts as unreachable, and byte
    tokens never count as duplicates.
    """

    tokenizer: str  # its name
    vocab_size: int  # tokens of the model, added ones outside it not counted
    unreachable: tuple[str, ...]  # STT: merges alone do not rebuild them
    unreachable_by_pipeline: tuple[str, ...] | None  # no usual context yields them; None: not BPE
    only_in_rare_contexts: tuple[str, ...]  # of these, those that a rarer context yields
    only_by_merge_skipping: tuple[str, ...]  # of `unreachable`, those that a text yields even so
    byte_pieces: int  # tokens that stand for one byte
    missing_byte_pieces: tuple[str, ...]  # bytes that the vocabulary lacks
    losing_bytes: tuple[str, ...]  # of these, "04": text with assigned characters is lost
    unassigned_bytes: tuple[str, ...]  # "F1": only unassigned characters are spelt with them
    never_bytes: tuple[str, ...]  # "C0": no UTF-8 has them
    lost_characters: tuple[str, ...] | None  # "U+0004": assigned, and the vocabulary has no bytes
    # for them; None for a model without bytes, for which all it does not know is the unknown token
    partial_utf8: tuple[str, ...]  # not whole UTF-8, single bytes left out
    superwords: tuple[str, ...]  # text on both sides of a space
    terminal_spanning: tuple[str, ...]  # a sentence end inside the token
    duplicates: tuple[str, ...]  # tokens whose bytes another token has too
    shadowed: tuple[str, ...]  # tokens in whose text an added token is cut out first
    special_tokens: tuple[str, ...]  # as the tokenizer marks them
    other_added_tokens: tuple[str, ...]  # added, but not special
    id_holes: tuple[int, ...]  # ids below `rows` that no token has
    rows: int  # embedding rows that a model needs: the highest id plus one
    model_rows: int | None  # rows of the model in the same folder, if any
    languages: tuple[LanguageCheck, ...]  # text that was tried, by language
    pattern_limits: tuple[PatternLimit, ...] = ()  # runtimes that its regexes are not for
    merge_residue: tuple[str, ...] | None = None  # used up by merges; None: no text, or not BPE
    engine: EngineParts | None = None  # what encodes with it here; None: not BPE, so `tokenizers`

    @property
    def round_trip_failures(self) -> int:
        """Lines that do not round-trip."""
        return sum(row.round_trip_failures for row in self.languages)

    @property
    def padding(self) -> int:
        """Rows to add for a whole number of blocks of 64."""
        return -self.rows % PADDING

    @property
    def missing_rows(self) -> int:
        """Rows that the model lacks: ids that would be read from outside its embeddings."""
        return 0 if self.model_rows is None else max(self.rows - self.model_rows, 0)

    @property
    def ok(self) -> bool:
        """Whether every token can be produced, no character is lost and every text round-trips.

        Missing bytes that no assigned character is spelt with lose nothing.
        """
        return not (
            self.unreachable
            or len(self.unreachable_by_pipeline or ()) > len(self.only_in_rare_contexts)
            or self.lost_characters
            or self.missing_rows
            or self.round_trip_failures
        )


def check(
    tokenizer: TokenizerLike,
    corpus: Corpus | None = None,
    *,
    threads: int = 1,
    model_rows: int | None = None,
) -> CheckReport:
    """Check a tokenizer of any kind: can each token be produced, does each text round-trip?

    `tokenizer`: one of ours, a `tokenizers` or fast transformers tokenizer, or a path or Hub name;
    BPE, Unigram or WordPiece. `corpus`: text to encode and decode, document by document; the
    report then has a row for each language, with bytes per token and, for BPE, the ceiling that no
    extension can exceed (bytes per pre-token); the tokens that its merges use up are the
    `merge_residue`. Without it `languages` is empty. `threads`: for encoding; the report does not
    depend on it. `model_rows`: rows of its model's embeddings, where
    these are known; ids from there on count as missing rows.

    Reachability through the whole pipeline is checked for BPE alone. InvalidTokenizerError for a
    tokenizer that cannot be read, FileNotFoundError for one that is not there, CorpusError for
    text that cannot be read, ValueError for `threads` below 1.

    Source: the self-tokenization test of "Teaching Old Tokenizers New Words", section 3; contexts,
    twins and ceilings are ours.
    """
    check_threads(threads)
    value = open_tokenizer(tokenizer)
    tokens = _ordinary_tokens(value)
    unreachable = value.unreachable()
    by_pipeline, rare = pipeline_reachability(value) if value.kind == "BPE" else (None, ())
    languages, counts = ((), None) if corpus is None else check_text(value, corpus, threads)
    return CheckReport(
        tokenizer=value.name,
        vocab_size=value.vocab_size,
        unreachable=unreachable,
        unreachable_by_pipeline=by_pipeline,
        only_in_rare_contexts=rare,
        only_by_merge_skipping=_by_skipping(
            value, unreachable, set(by_pipeline or ()) - set(rare), tokens
        ),
        byte_pieces=len(value.byte_pieces()),
        missing_byte_pieces=value.missing_byte_pieces(),
        **_missing(value),
        partial_utf8=tuple(token for token, data in tokens.items() if is_partial(data)),
        superwords=tuple(token for token, data in tokens.items() if is_superword(data)),
        terminal_spanning=terminal_spanning(tokens),
        duplicates=duplicates(value),
        shadowed=shadowed_by_added(value, tokens),
        special_tokens=tuple(token.content for token in value.added_tokens if token.special),
        other_added_tokens=tuple(
            token.content for token in value.added_tokens if not token.special
        ),
        id_holes=tuple(sorted(set(range(value.row_count)) - ids_of_tokens(value))),
        rows=value.row_count,
        model_rows=model_rows,
        languages=languages,
        pattern_limits=(
            pattern_limits(as_tokenizer(value).pre_tokenizer) if value.kind == "BPE" else ()
        ),
        engine=engine_parts(as_tokenizer(value)) if value.kind == "BPE" else None,
        merge_residue=(
            None
            if counts is None or value.kind != "BPE"
            else merge_residue(as_tokenizer(value), counts)
        ),
    )


def _missing(tokenizer: AnyTokenizer) -> dict[str, Any]:
    """The missing bytes by what they lose, and the lost characters."""
    missing, losing = missing_bytes(tokenizer), losing_bytes(tokenizer)
    lost = names_of(lost_characters(tokenizer))
    return {
        "losing_bytes": hex_of(losing),
        "unassigned_bytes": hex_of(b for b in missing if b not in (*losing, *NEVER_IN_UTF8)),
        "never_bytes": hex_of(byte for byte in missing if byte in NEVER_IN_UTF8),
        "lost_characters": lost if lost or tokenizer.byte_pieces() else None,
    }


def _ordinary_tokens(tokenizer: AnyTokenizer) -> dict[str, bytes]:
    """Tokens of the model with their bytes, by id; added tokens and byte tokens left out."""
    left_out = {*tokenizer.byte_pieces(), *(token.content for token in tokenizer.added_tokens)}
    spelled = tokenizer.token_bytes
    return {
        token: spelled[token_id]
        for token, token_id in sorted(tokenizer.vocab.items(), key=lambda item: item[1])
        if token not in left_out and token_id in spelled
    }


def _by_skipping(
    tokenizer: AnyTokenizer,
    unreachable: tuple[str, ...],
    never: set[str],
    tokens: Mapping[str, bytes],
) -> tuple[str, ...]:
    """Tokens that the merges do not make and that whole pre-tokens are; half characters are no
    text."""
    if tokenizer.without_merge_skipping() is tokenizer:
        return ()
    return tuple(
        token
        for token in unreachable
        if token not in never and token in tokens and not is_partial(tokens[token])
    )
