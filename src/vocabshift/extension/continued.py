"""Continued BPE: training continues where a tokenizer's own merges end.

Owns the start of training (dense ids, bytes, the core's encoder), its result, and how the result
is added to a tokenizer.

Source: "Teaching Old Tokenizers New Words" (arXiv:2512.03989), section 3. The unchanged tokenizer
segments the corpus, with merge skipping. Pairs of its tokens are counted, and the best pair becomes
a new token, repeatedly. The merges that made a new token also rebuild it.

Where we differ:
- Ids decide between equal counts, unless the order of the paper's toolkit ("lexicographic") is
  requested.
- If the base already has the product of a pair, the pair takes that token's id (a repair), provided
  that no merge uses the token. Otherwise the pair is refused. So running all merges by rank ends
  where training ended.
- Training that runs out of pairs keeps what it learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from itertools import count as count_from
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.extension.options import check_tie_break
from vocabshift.progress import PhaseProgress
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_of_tokens
from vocabshift.tokenizer.model import MAX_ID, Merge, compile_model
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from vocabshift.extension.counting import CountedText


class TrainingBase:
    """The start of training. A place is the index of a token in the order of the ids.

    The ids of the vocabulary may have holes; places are dense.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.byte_level = is_byte_level(tokenizer)

    @cached_property
    def names(self) -> list[str]:
        """Return the tokens by place, as the vocabulary spells them."""
        return self.tokenizer.model.strings.names_by_id()

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the place of each token."""
        return {token: place for place, token in enumerate(self.names)}

    @cached_property
    def tokens(self) -> list[bytes]:
        """Return the bytes by place, as the core compares them: of a token, or of its text."""
        return self.tokenizer.model.strings.bytes_by_id(self.byte_level)

    @cached_property
    def encoder(self) -> _core.Encoder:
        """Return the unchanged model, with merge skipping; ids are places."""
        model = self.tokenizer.model
        if model.size != model.n_tokens:
            model = model.unchecked(vocab=self.places)
        return compile_model(model, byte_level=self.byte_level)

    @cached_property
    def held(self) -> list[int]:
        """Return the places of the tokens that are a part of some merge."""
        return self.tokenizer.model.strings.parts_by_id()

    def forbidden(self) -> set[bytes]:
        """Return what no merge may make: ordinary text must not yield an added token."""
        return {token.content.encode() for token in self.tokenizer.added_tokens}

    def spell(self, tokens: Sequence[bytes]) -> list[str]:
        """Return tokens of training as the vocabulary spells them."""
        if self.byte_level:
            return byte_level.all_to_images(tokens)
        return [token.decode() for token in tokens]

    def rows(self, tokens: Sequence[str], merges: Sequence[Merge]) -> NDArray[np.uint32]:
        """Return merges as (n, 3) training ids; the new `tokens` come after all places."""
        ids = dict(self.places)
        ids.update((token, len(self.names) + i) for i, token in enumerate(tokens))
        rows = [(ids[left], ids[right], ids[left + right]) for left, right in merges]
        return np.array(rows, dtype=np.uint32).reshape(-1, 3)


@dataclass(frozen=True)
class Additions:
    """New tokens and merges, in the order of the ids and ranks that they will have."""

    tokens: tuple[str, ...]  # not in the base; as the vocabulary spells them
    merges: tuple[Merge, ...]  # (left, right); a product may be a token of the base: a repair
    counts: tuple[int, ...] = ()  # of each merge's pair when it was merged, where it was counted
    stopped_because: str = "n_tokens"  # or "min_frequency", "no_pair_left", "no_token_left"
    n_repaired: int = 0  # merges that make a token of the base
    characters: tuple[str, ...] = ()  # of the tokens, those added for the text's characters alone


_STOPPED = {"vocab_size": "n_tokens"}


def learn(
    base: TrainingBase,
    text: CountedText,
    *,
    n_tokens: int,
    tie_break: str = "id",
    min_frequency: int = 1,
    threads: int = 1,
    progress: PhaseProgress | None = None,
) -> Additions:
    """Learn up to `n_tokens` new tokens; the counted words stay in `text`.

    There are fewer tokens if no pair is left that occurs `min_frequency` times.
    """
    check_tie_break(tie_break)
    n_base = len(base.names)
    trained = _core.continue_bpe(
        text.words,
        _core.WordWeights(text.reader.fixed_point_weights()),
        n_base + n_tokens,
        text.encoder,
        base.tokens,
        base.held,
        min_frequency=text.reader.min_count(min_frequency),
        rule=text.rule,
        tie_break=_core_tie_break(tie_break, base.byte_level),
        # The paper's toolkit merges such pairs even if a merge uses their product.
        duplicates=_core.Duplicates.REUSE_ID
        if tie_break == "lexicographic"
        else _core.Duplicates.REUSE_UNHELD,
        keep_words=True,
        threads=threads,
        progress=progress,
    )
    new = base.spell(trained.tokens[n_base:])
    names = [*base.names, *new]
    merges: list[Merge] = []
    counts: list[int] = []
    n_repaired = 0
    rows = trained.merges.tolist()
    pairs = [(names[left], names[right]) for left, right, _ in rows]
    old = [pair for pair, (_, _, product) in zip(pairs, rows, strict=True) if product < n_base]
    are_known = base.tokenizer.model.strings.are_merges(old)
    known = {pair for pair, is_known in zip(old, are_known, strict=True) if is_known}
    for merge, (_, _, product), count in zip(pairs, rows, trained.counts.tolist(), strict=True):
        if merge in known:  # a pair listed twice would get its later rank
            continue
        known.add(merge)
        merges.append(merge)
        counts.append(count)
        n_repaired += product < n_base
    stopped = trained.stopped.name.lower()
    if stopped == "min_frequency" and min_frequency == 1:
        stopped = "no_pair_left"  # in fixed point even one occurrence counts more than 1
    return Additions(
        tuple(new), tuple(merges), tuple(counts), _STOPPED.get(stopped, stopped), n_repaired
    )


def _core_tie_break(tie_break: str, byte_level: bool) -> _core.TieBreak:
    if tie_break == "id":
        return _core.TieBreak.IDS
    return _core.TieBreak.BYTE_IMAGES if byte_level else _core.TieBreak.TEXTS


def extended(
    base: Tokenizer, learned: Additions, *, merges_first: bool = False, free_ids: Iterable[int] = ()
) -> Tokenizer:
    """Return `base` with the tokens and merges of `learned`; new ids begin at `base.row_count`.

    Existing ids, merges and special tokens keep their places. Merge skipping, normalizer,
    post-processor and chat template are kept. `free_ids`, which no token of the base has, are used
    before new ids. `merges_first` puts the new merges before all old ones, which changes old text
    too; the baseline `prepend` needs it. Raises ValueError for tokens that the base already has, or
    for too many tokens.
    """
    check_room(base, len(learned.tokens))
    added = {token.content for token in base.added_tokens}
    taken = base.model.token_id
    twice = [token for token in learned.tokens if token in added or taken(token) is not None]
    if twice or len(set(learned.tokens)) != len(learned.tokens):
        raise ValueError(
            f"{len(twice)} of the new tokens are in {base.name} already, the first is {twice[0]!r}"
            if twice
            else "a new token is listed twice"
        )
    ids = chain(free_ids, count_from(base.row_count))
    vocab = dict(zip(learned.tokens, ids, strict=False))
    model = base.model.extended(vocab, learned.merges, merges_first=merges_first)
    return replace(base, model=model)


def holes(base: AnyTokenizer) -> list[int]:
    """Return the unused ids below the highest one, ascending."""
    taken = ids_of_tokens(base)
    return [token_id for token_id in range(base.row_count) if token_id not in taken]


def check_room(base: Tokenizer, n_tokens: int) -> None:
    """Raise ValueError if ids would exceed the highest one that is accepted."""
    room = MAX_ID + 1 - base.row_count
    if n_tokens > room:
        raise ValueError(f"{n_tokens:,} new tokens are too many; {base.name} has room for {room:,}")
