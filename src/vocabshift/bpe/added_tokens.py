"""Which id does an added token get? The rule of `tokenizers`, and what contradicts it.

Trap: `tokenizers` ignores the id that `tokenizer.json` states for an added token; a token outside
`model.vocab` is numbered anew at load. Found with 0.22 and 0.23; held by a property test.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from vocabshift.bpe.model import MAX_ID, BpeModel
from vocabshift.bpe.tokenizer import AddedToken
from vocabshift.errors import InvalidTokenizerError


def ids_at_load(added: Iterable[AddedToken], vocab: Mapping[str, int]) -> list[int]:
    """The id that `tokenizers` gives each added token when it reads them in this order.

    A token of the vocabulary has its id there; the others are numbered from the vocabulary's
    count (not its highest id) on, whatever id the file states.
    """
    free = itertools.count(len(vocab))
    return [next(free) if (known := vocab.get(token.content)) is None else known for token in added]


def vocab_with(vocab: dict[str, int], added: Iterable[AddedToken]) -> dict[str, int]:
    """The vocabulary with every added token written into it, by id."""
    whole = {**vocab, **{token.content: token.id for token in added}}
    return dict(sorted(whole.items(), key=lambda entry: entry[1]))


def check_added(added: Iterable[AddedToken], model: BpeModel) -> None:
    """InvalidTokenizerError where two tokens would share a text or an id."""
    contents: set[str] = set()
    owners: dict[int, str] = {}
    for token in added:
        if token.content in contents or token.id in owners:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} (id {token.id}) shares its text or its id "
                "with another added token"
            )
        contents.add(token.content)
        owners[token.id] = token.content
        known = model.vocab.get(token.content, token.id)
        # The table of all tokens by id takes its time: most added tokens need no look at it.
        is_free = token.id >= model.size or model.vocab.get(token.content) == token.id
        owner = token.content if is_free else model.tokens.get(token.id, token.content)
        if owner != token.content or known != token.id or not 0 <= token.id <= MAX_ID:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} cannot have id {token.id}: "
                + (
                    f"that is {owner!r}"
                    if owner != token.content
                    else f"the vocabulary says {known}"
                )
            )
