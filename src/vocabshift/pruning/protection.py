"""Tokens that are never removed, so that every text that could be encoded still can be.

Special and added tokens, bytes, single characters, the unknown token, and tokens of a template or a
role are always protected. BPE builds all others from these. A Unigram or WordPiece model
segments text into whole tokens, so more tokens are protected there:

- If a character is not a token by itself, all tokens that contain it are kept. Text around it may
  still be segmented in another way and become unknown; the check on the corpus shows that.
- A Unigram model gives an unknown character the lowest score in the vocabulary minus 10, so the
  token with the lowest score is kept too.

Scores are not changed, so text without a removed token is segmented as before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vocabshift.errors import InvalidTokenizerError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.components import SPACE, ids_of
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.pretrained_folder import ROLES
from vocabshift.tokenizer.splits import Flags, Splits
from vocabshift.tokenizer.token_bytes import ANY_BYTE_PIECE


def require_prunable(tokenizer: AnyTokenizer) -> None:
    """InvalidTokenizerError for a kind of BPE whose tokens cannot be split into their parts."""
    if tokenizer.kind != "BPE":
        return
    model = as_tokenizer(tokenizer).model
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        raise InvalidTokenizerError(
            f"{tokenizer.name} marks the parts of words "
            f"({model.continuing_subword_prefix or model.end_of_word_suffix!r}); only "
            "byte-level and SentencePiece BPE, Unigram and WordPiece can be pruned"
        )


def protected(
    tokenizer: AnyTokenizer, splits: Splits, characters: frozenset[str] | None = None
) -> Flags:
    """(rows,) what is never removed.

    `characters`: the only characters to keep of a Unigram or WordPiece tokenizer; None: all.
    """
    rows = tokenizer.row_count
    named = {tokenizer.unk_token, *(tokenizer.config.get(f"{role}_token") for role in ROLES)}
    ids = {token_id for token, token_id in tokenizer.vocab.items() if token in named}
    ids |= {token.id for token in tokenizer.added_tokens}
    ids |= ids_of(tokenizer.post_processor)
    kept = splits.atomic.copy()
    if tokenizer.kind != "BPE":
        texts = _texts(tokenizer)
        if characters is not None:
            seen = {token for token, text in texts.items() if text in characters}
            seen |= {token for token in texts if ANY_BYTE_PIECE.fullmatch(token)}
            kept &= _flags({tokenizer.vocab[token] for token in seen}, rows)
        ids |= _with_lone_characters(tokenizer, texts, characters)
        if scores := tokenizer.scores:
            ids.add(min(scores, key=scores.__getitem__))
    return kept | _flags(ids, rows)


def characters_of(tokenizer: AnyTokenizer, corpus: Corpus) -> frozenset[str]:
    """The characters of a text as the tokenizer normalizes it, and "▁"."""
    normalizer = tokenizer.backend.normalizer
    seen = {SPACE}
    for _, text in corpus.texts():
        seen.update(text if normalizer is None else normalizer.normalize_str(text))
    return frozenset(seen)


def spelled(tokenizer: AnyTokenizer) -> Mapping[int, bytes]:
    """By id, the text by which a token is named and put into a script.

    For BPE it is the token's text; for the others its spelling in the vocabulary, so a byte token
    is "<0xNN>".
    """
    if tokenizer.kind == "BPE":
        return tokenizer.token_bytes
    return {
        tokenizer.vocab[token]: text.replace(SPACE, " ").encode()
        for token, text in _texts(tokenizer).items()
    }


def _texts(tokenizer: AnyTokenizer) -> dict[str, str]:
    """By token that is not added, its text without the mark that it stands inside a word."""
    added = {token.content for token in tokenizer.added_tokens}
    prefix = tokenizer.continuing_prefix
    return {
        token: token.removeprefix(prefix) or token
        for token in tokenizer.vocab
        if token not in added
    }


def _with_lone_characters(
    tokenizer: AnyTokenizer, texts: Mapping[str, str], characters: frozenset[str] | None
) -> set[int]:
    """Ids of tokens with a character to keep that is no token of its own in its place."""
    vocab, prefix = tokenizer.vocab, tokenizer.continuing_prefix
    ids = set()
    for token, text in texts.items():
        inside = text != token
        for place, character in enumerate(text):
            alone = prefix + character if inside or place > 0 else character
            if alone not in vocab and (characters is None or character in characters):
                ids.add(vocab[token])
                break
    return ids


def _flags(ids: set[int], rows: int) -> Flags:
    """(rows,) whether an id is one of `ids`; ids beyond the rows are left out."""
    flags = np.zeros(rows, dtype=bool)
    flags[[token_id for token_id in ids if 0 <= token_id < rows]] = True
    return flags
