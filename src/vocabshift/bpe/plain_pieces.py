"""The tokens of Unigram and WordPiece tokenizers: their bytes in text, and which can be produced.

What `token_bytes` and `reachability` are for BPE.
"""

from __future__ import annotations

from vocabshift.bpe.plain_tokenizer import PlainTokenizer
from vocabshift.bpe.reachability import BYTE_PIECE
from vocabshift.bpe.token_bytes import text_pieces


def unreachable_pieces(tokenizer: PlainTokenizer) -> tuple[str, ...]:
    """Tokens that their own text does not give: others stand for it at less cost.

    The model alone is asked, without normalizer and pre-tokenizer. Byte pieces, added tokens and
    the unknown token are not counted.
    """
    model = tokenizer.backend.model
    outside = {token.content for token in tokenizer.added_tokens} | {tokenizer.unk_token}
    return tuple(
        token
        for token, token_id in tokenizer.vocab.items()
        if token not in outside
        and not BYTE_PIECE.fullmatch(token)
        and not token.startswith(tokenizer.prefix or "\0")
        and [piece.id for piece in model.tokenize(token)] != [token_id]
    )


def plain_token_bytes(tokenizer: PlainTokenizer) -> dict[int, bytes]:
    """What each token that is not special stands for in text, by id (see `token_bytes`).

    "▁" is a space, "##ing" is "ing", a byte piece its byte; the unknown token is none of these.
    """
    outside = {token.id for token in tokenizer.added_tokens}
    hidden = outside | {tokenizer.vocab.get(tokenizer.unk_token or "", -1)}
    spell = text_pieces(tokenizer.document)
    table = {}
    for token, token_id in tokenizer.vocab.items():
        if token_id not in hidden:
            within = bool(tokenizer.prefix) and token.startswith(tokenizer.prefix)
            table[token_id] = spell(token.removeprefix(tokenizer.prefix) if within else token)
    for added in tokenizer.added_tokens:
        if not added.special:
            table[added.id] = added.content.encode()
    return table
