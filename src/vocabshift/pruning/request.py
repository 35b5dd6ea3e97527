"""What is asked of a pruning, and whether it can be had: everything that is cheap to check.

Owns the wording of these errors. Knows nothing of how tokens are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from vocabshift.pruning.orders import ORDERS
from vocabshift.text.languages import script_name
from vocabshift.tokenizer.splits import Flags, Ids

# `--keep`: which tokens may not go, in the words of the user.
#
# Owns the grammar: a token as the vocabulary spells it or as its text, `file:PATH` (one token a
# line), `script:Deva` (or Unicode's name), `language:LABEL` (what the text of that label uses).


@dataclass(frozen=True)
class Keep:
    """What to keep, taken apart; checked only against what a tokenizer has."""

    tokens: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # Unicode names
    languages: tuple[str, ...] = ()  # labels of the corpus


def parse_keep(values: Iterable[str]) -> Keep:
    """Take the values apart and read the files; ValueError for an empty one."""
    if isinstance(values, str):
        raise TypeError("keep is a str; give a list of str")
    tokens: list[str] = []
    scripts: list[str] = []
    languages: list[str] = []
    for value in values:
        kind, colon, rest = value.partition(":")
        if not value or (colon and kind in ("file", "script", "language") and not rest):
            raise ValueError(
                f"keep {value!r} names nothing; give a token, file:PATH, script:Deva or "
                "language:LABEL"
            )
        if colon and kind == "file":
            lines = Path(rest).read_text(encoding="utf-8").split("\n")
            tokens += [line.removesuffix("\r") for line in lines if line.removesuffix("\r")]
        elif colon and kind == "script":
            scripts.append(script_name(rest))
        elif colon and kind == "language":
            languages.append(rest)
        else:
            tokens.append(value)
    return Keep(tuple(tokens), tuple(scripts), tuple(languages))


def check_languages(keep: Keep, labels: Iterable[str]) -> None:
    """ValueError where a language to keep is no label of the corpus."""
    known = list(labels)
    for label in keep.languages:
        if label not in known:
            have = ", ".join(known) or "none; label files as lang=PATH"
            raise ValueError(f"keep language:{label}: the corpus has no {label!r}; it has: {have}")


def kept_tokens(
    keep: Keep, vocab: Mapping[str, int], find_text: Callable[[str], int | None], rows: int
) -> Flags:
    """(rows,) the ids of the tokens named one by one; ValueError for one that is not there.

    `find_text`: the id of the token whose text that is.
    """
    kept = np.zeros(rows, dtype=bool)
    for token in keep.tokens:
        token_id = vocab.get(token)
        if token_id is None:
            token_id = find_text(token)
        if token_id is None:
            raise ValueError(
                f"keep {token!r}: the vocabulary has no such token; write it as the vocabulary "
                "does, or as the text that it stands for"
            )
        kept[token_id] = True
    return kept


def kept_scripts(keep: Keep, names: list[str], classes: Ids) -> Flags:
    """(rows,) the ids of the tokens in the scripts to keep; ValueError where there are none."""
    kept = np.zeros(len(classes), dtype=bool)
    present = {names[i] for i in np.unique(classes[classes >= 0]).tolist()}
    for name in keep.scripts:
        if name not in present:
            raise ValueError(
                f"keep script:{name}: no token is in that script; the vocabulary has "
                f"{', '.join(sorted(present))}"
            )
        kept |= classes == names.index(name)
    return kept


# ---


class Asked(Protocol):
    """A tokenizer of some kind."""

    @property
    def kind(self) -> str:
        """BPE, Unigram or WordPiece."""

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders that it has."""

    @property
    def may_have_holes(self) -> bool:
        """Whether an id may name no token."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def vocab(self) -> Mapping[str, int]:
        """Tokens of the model."""


@dataclass(frozen=True)
class Request:
    """What is asked for, checked as far as that goes without a tokenizer."""

    order: str
    n_tokens: int | None
    vocab_size: int | None
    keep: Keep
    keep_ids: bool
    unreachable_first: bool
    drop_unseen_characters: bool  # of a Unigram or WordPiece tokenizer


def check_request(
    order: str,
    n_tokens: int | None,
    vocab_size: int | None,
    keep: Iterable[str] = (),
    *,
    keep_ids: bool = False,
    unreachable_first: bool = False,
    drop_unseen_characters: bool = False,
) -> Request:
    """ValueError or TypeError for what cannot be asked of any tokenizer."""
    if order not in ORDERS:
        raise ValueError(f"unknown order {order!r}; known are: {', '.join(ORDERS)}")
    if (n_tokens is None) == (vocab_size is None):
        raise ValueError("give n_tokens (how many go) or vocab_size (how many stay), one of them")
    for name, value in (("n_tokens", n_tokens), ("vocab_size", vocab_size)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r}; give a whole number")
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; give at least 1")
    return Request(
        order,
        n_tokens,
        vocab_size,
        parse_keep(keep),
        keep_ids,
        unreachable_first,
        drop_unseen_characters,
    )


def check_kind(subject: Asked, request: Request) -> None:
    """ValueError for what cannot be asked of this kind of model."""
    kind = f"{subject.name} is a {subject.kind} tokenizer"
    if request.order not in subject.orders:
        raise ValueError(
            f"{kind}, which has no order {request.order!r}; it has: {', '.join(subject.orders)}"
        )
    if request.keep_ids and not subject.may_have_holes:
        raise ValueError(
            f"{kind}: its ids are places in a list and cannot have holes; leave keep_ids out"
        )
    if request.unreachable_first and subject.kind != "BPE":
        raise ValueError(f"{kind}: it has no merges that could fail; leave unreachable_first out")
    if request.drop_unseen_characters and subject.kind == "BPE":
        raise ValueError(
            f"{kind}: its characters are what every token is made of; leave "
            "drop_unseen_characters out"
        )


def number_of_tokens(subject: Asked, request: Request, n_removable: int) -> int:
    """How many tokens are to go; ValueError where so many cannot."""
    size = len(subject.vocab)
    if request.n_tokens is not None:
        n = request.n_tokens
    else:
        assert request.vocab_size is not None
        n = size - request.vocab_size
        if n <= 0:
            raise ValueError(
                f"{subject.name} has {size:,} tokens already; vocab_size {request.vocab_size:,} "
                "leaves nothing to prune"
            )
    if n > n_removable:
        raise ValueError(
            f"{n:,} tokens are to be pruned, and at most {n_removable:,} of the {size:,} tokens "
            f"of {subject.name} can be (vocab_size {size - n_removable:,}): special tokens, bytes, "
            "characters and what is to be kept never go"
        )
    return n
