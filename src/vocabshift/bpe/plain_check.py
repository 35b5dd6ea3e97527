"""`check` for Unigram and WordPiece: the same findings, as far as they mean something there.

Tokens are made of no others, so STT asks whether the model gives a token for its own text. Bytes
are lost where the model falls back on none and has no unknown token to say so. Owns how the report
is filled; what encodes is `tokenizers`.
"""

from __future__ import annotations

import numpy as np

from vocabshift.bpe.check_report import CheckReport, id_holes
from vocabshift.bpe.flat_ids import Ids, Offsets, join
from vocabshift.bpe.plain_pieces import plain_token_bytes, unreachable_pieces
from vocabshift.bpe.plain_tokenizer import PlainTokenizer
from vocabshift.bpe.reachability import BYTE_PIECE
from vocabshift.bpe.text_check import round_trips
from vocabshift.bpe.vocabulary_check import (
    duplicates,
    is_partial,
    is_superword,
    shadowed_by_added,
    terminal_spanning,
)
from vocabshift.text.corpus import Corpus


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
