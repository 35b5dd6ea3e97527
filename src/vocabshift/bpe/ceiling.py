"""The ceiling: the most bytes per token that any extension of a tokenizer can reach.

No merge reaches across a pre-token, so no number of new tokens beats bytes per pre-token. Owns
that figure by language; which tokens there are plays no part in it. Corpus weights play none
either: each document counts once.
"""

from __future__ import annotations

from vocabshift.bpe import token_groups
from vocabshift.bpe.drift import UNLABELLED
from vocabshift.bpe.token_bytes import is_byte_level, is_metaspace
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.bpe.tokenizer_reader import TokenizerReader
from vocabshift.text.corpus import Corpus


def ceilings(tokenizer: Tokenizer, corpus: Corpus, *, threads: int = 1) -> dict[str, float] | None:
    """Bytes of raw text for each pre-token, by label of the corpus.

    Text goes through the tokenizer's normalizer; an added token in it is a pre-token. Where the
    tokenizer encodes whole documents ("▁" for the space) a group of tokens that may ever become one
    stands for the pre-token. None for a tokenizer of another kind; a language whose text yields no
    pre-token is left out.
    """
    if is_metaspace(tokenizer):
        found = token_groups.ceilings(tokenizer, corpus, threads=threads)
        return {label or UNLABELLED: ceiling for label, ceiling in found.items()}
    if not is_byte_level(tokenizer):
        return None
    reader = TokenizerReader.of(tokenizer, corpus, by_language=True)
    words = reader.count_words(threads=threads)
    n_words: dict[str, int] = {}
    n_bytes: dict[str, int] = {}
    for i, group in enumerate(reader.groups):
        label = group.language or UNLABELLED
        n_bytes[label] = n_bytes.get(label, 0) + group.n_bytes
        count = words.occurrences(i) if i < words.group_count else 0
        n_words[label] = n_words.get(label, 0) + count + group.n_special
    return {label: n_bytes[label] / count for label, count in n_words.items() if count}
