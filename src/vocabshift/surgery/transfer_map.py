"""`transfer_map.json`: beside a transferred model, which id each token of its first tokenizer has.

The form is that of `token_map.json`; the name is another, because what extends this model's
tokenizer must not build on it: a chain of token maps begins at a model's own tokenizer.
"""

from __future__ import annotations

from vocabshift.bpe.fingerprint import fingerprint
from vocabshift.bpe.id_map import IdMap
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.surgery.token_map import TokenMap

FILE = "transfer_map.json"


def map_of(old: Tokenizer, tokenizer: Tokenizer, mapping: TokenMap) -> IdMap:
    """The map of a transfer; of several tokens that copy one row it names the first."""
    return IdMap.of_ids(
        fingerprint(old),
        fingerprint(tokenizer),
        mapping.old_to_new,
        old.row_count,
        tokenizer.row_count,
    )
