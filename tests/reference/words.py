"""Chains of merges, slowly: `tokenizers` itself segments the word anew after every merge."""

from __future__ import annotations

from tokenizers import models

Merge = tuple[str, str]


def chains(
    vocab: dict[str, int], merges: list[Merge], strings: list[str], *, ignore_merges: bool = False
) -> tuple[list[str], list[Merge]]:
    """New tokens and merges under which each string is one token, in order.

    The last two tokens of a string become a merge until it is one token.
    """
    vocab, merges = dict(vocab), list(merges)
    n_tokens, n_merges = len(vocab), len(merges)
    for string in strings:
        if ignore_merges and string in vocab:
            continue
        for character in string:
            vocab.setdefault(character, len(vocab))
        while len(tokens := tokens_of(vocab, merges, string)) > 1:
            merges.append((tokens[-2], tokens[-1]))
            vocab.setdefault(tokens[-2] + tokens[-1], len(vocab))
    return list(vocab)[n_tokens:], merges[n_merges:]


def tokens_of(vocab: dict[str, int], merges: list[Merge], string: str) -> list[str]:
    """The tokens that merges alone make of a string."""
    return [token.value for token in models.BPE(vocab, merges).tokenize(string)]
