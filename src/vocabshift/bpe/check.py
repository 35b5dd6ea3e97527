"""`check`: every invariant of a tokenizer, counted, with the tokens that break it.

Owns which findings there are of BPE. How each is made is the business of the files beside: STT,
pipeline reachability, what stands out in a vocabulary, text by language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vocabshift.bpe.check_report import CheckReport, id_holes
from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.pipeline_reachability import pipeline_reachability
from vocabshift.bpe.plain_check import check_plain
from vocabshift.bpe.plain_tokenizer import PlainTokenizer, open_prunable
from vocabshift.bpe.reachability import byte_pieces, missing_byte_pieces, unreachable_tokens
from vocabshift.bpe.text_check import check_text
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
