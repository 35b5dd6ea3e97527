"""`check`: every invariant of a tokenizer, counted, with the tokens that break it.

Owns what is looked at and what counts as sound. STT and pipeline reachability are computed by
their own files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.pipeline_reachability import unreachable_by_pipeline
from vocabshift.bpe.reachability import byte_pieces, unreachable_tokens
from vocabshift.bpe.token_bytes import token_bytes
from vocabshift.text.corpus import Corpus
from vocabshift.text.sentences import SentencePolicy

_CLOSING = r"[\"'”’»›)\]}）」』】]"


@dataclass(frozen=True)
class CheckReport:
    """What was found in one tokenizer; tokens are spelt as in the vocabulary."""

    tokenizer: str  # its name
    vocab_size: int
    unreachable: tuple[str, ...]  # STT: merges alone do not rebuild them
    unreachable_by_pipeline: tuple[str, ...]  # no text yields them
    byte_pieces: int
    partial_utf8: tuple[str, ...]  # not whole UTF-8, single bytes left out
    superwords: tuple[str, ...]  # text on both sides of a space
    terminal_spanning: tuple[str, ...]  # a sentence end inside the token
    round_trip_failures: int  # lines that do not come back from their ids

    @property
    def ok(self) -> bool:
        """Whether every token can be produced and every text came back."""
        return not (self.unreachable or self.unreachable_by_pipeline or self.round_trip_failures)


def check(tokenizer: Any, corpus: Corpus | None = None, *, threads: int = 1) -> CheckReport:
    """Check a tokenizer (ours, a Hugging Face fast tokenizer, or a path).

    With a corpus, every document is encoded and decoded; without one `round_trip_failures` is 0.
    """
    from vocabshift.bpe.load import as_tokenizer

    value = as_tokenizer(tokenizer)
    encoder = Encoder(value)
    added = {token.content for token in value.added_tokens}
    single = set(byte_pieces(value))
    spelled = token_bytes(value)
    tokens = {
        token: spelled[token_id]
        for token, token_id in sorted(value.model.vocab.items(), key=lambda item: item[1])
        if token not in added and token not in single and token_id in spelled
    }
    return CheckReport(
        tokenizer=value.name,
        vocab_size=value.vocab_size,
        unreachable=unreachable_tokens(value),
        unreachable_by_pipeline=unreachable_by_pipeline(value, encoder),
        byte_pieces=len(single),
        partial_utf8=tuple(token for token, data in tokens.items() if _is_partial(data)),
        superwords=tuple(token for token, data in tokens.items() if b" " in data.strip()),
        terminal_spanning=_terminal_spanning(tokens),
        round_trip_failures=0 if corpus is None else _round_trip_failures(encoder, corpus, threads),
    )


def _is_partial(data: bytes) -> bool:
    """Whether the bytes are not whole UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _terminal_spanning(tokens: Mapping[str, bytes]) -> tuple[str, ...]:
    """Tokens with a terminal, then closing marks and whitespace, then a further character.

    An ASCII period is a terminal only where whitespace follows it (decimals, URLs, code).
    """
    terminals = SentencePolicy().terminals
    spanning = re.compile(
        rf"(?:[{terminals}]{_CLOSING}*\s*|\.{_CLOSING}*\s+)(?!{_CLOSING})[^\s{terminals}.]"
    )
    # Subtle: a token may end inside a character. Where that can only be one more terminal of the
    # same run, nothing is spanned.
    begun = {t.encode()[:length] for t in terminals for length in range(1, len(t.encode()))}

    def text_of(data: bytes) -> str:
        whole = data.decode(errors="ignore").encode()
        return data.decode(errors="replace") if data[len(whole) :] not in begun else whole.decode()

    return tuple(token for token, data in tokens.items() if spanning.search(text_of(data)))


def _round_trip_failures(encoder: Encoder, corpus: Corpus, threads: int) -> int:
    failures = 0
    for documents in corpus.batches():
        texts = list(documents.texts())
        ids, offsets = encoder.encode_batch(texts, threads=threads)
        decoded = encoder.decode_batch(ids, offsets)
        failures += sum(text != back for text, back in zip(texts, decoded, strict=True))
    return failures
