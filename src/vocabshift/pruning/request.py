"""What is asked of a pruning, and whether it can be had: everything that is cheap to check.

Owns the wording of these errors. Knows nothing of how tokens are chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from vocabshift.pruning.keep import Keep, parse_keep
from vocabshift.pruning.orders import ORDERS


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
