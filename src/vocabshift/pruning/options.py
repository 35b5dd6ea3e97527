"""PruningOptions: the options of a pruning, and their checks.

Owns all checks that are cheap, the wording of their errors, and the grammar of `--keep`: a
token as the vocabulary spells it or as its text, `file:PATH` (one token a line), `script:Deva` (or
Unicode's name), `language:LABEL` (what the text of that label uses).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vocabshift.pruning.counts import Source, languages_of
from vocabshift.pruning.orders import NEED_COUNTS, ORDERS, ORDERS_WITHOUT_MERGES
from vocabshift.pruning.protection import require_prunable
from vocabshift.pruning.stopping import MEASURES
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.languages import script_name
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.splits import Flags, Int64s


@dataclass(frozen=True)
class Keep:
    """The parsed values of `--keep`; a tokenizer decides whether they exist."""

    tokens: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # Unicode names
    languages: tuple[str, ...] = ()  # labels of the corpus


def parse_keep(values: Iterable[str]) -> Keep:
    """Parse the values and read the files; ValueError for an empty one."""
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
    """ValueError if a language to keep is not a label of the corpus."""
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


def kept_scripts(keep: Keep, names: list[str], classes: Int64s) -> Flags:
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


@dataclass(frozen=True, kw_only=True)
class PruningOptions:
    """The options of a pruning; ValueError or TypeError for impossible ones.

    Exactly one of `n_tokens`, `vocab_size` and `until` is given.
    """

    order: str = "leaf-frequency"
    """In which tokens go: one of ORDERS (see `prune`)."""
    n_tokens: int | None = None
    """How many tokens go."""
    vocab_size: int | None = None
    """How many tokens of the model stay."""
    until: float | None = None
    """As many tokens go as make held-out text worse by at most this share; 0.005 is 0.5 %."""
    by: str = MEASURES[0]
    """What `until` limits: one of MEASURES."""
    keep: Keep = field(default_factory=Keep)
    """Tokens that are never removed, in addition to the protected ones."""
    keep_ids: bool = False
    """Leave ids as they are, with holes, instead of numbering them densely."""
    unreachable_first: bool = False
    """First the tokens that their own merges cannot make; BPE alone."""
    drop_unseen_characters: bool = False
    """Characters that the corpus does not have may go too; Unigram and WordPiece alone."""
    complete_bytes: bool = False
    """First add tokens for the bytes that the vocabulary lacks and that UTF-8 can hold; BPE alone.
    They count in `vocab_size`, and not as removed."""

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"unknown order {self.order!r}; known are: {', '.join(ORDERS)}")
        sizes = {"n_tokens": self.n_tokens, "vocab_size": self.vocab_size}
        if sum(value is not None for value in (*sizes.values(), self.until)) != 1:
            raise ValueError(
                "give n_tokens (how many go), vocab_size (how many stay) or until (how much worse "
                "held-out text may become), one of them"
            )
        if self.by not in MEASURES:
            raise ValueError(f"unknown measure {self.by!r}; known are: {', '.join(MEASURES)}")
        if self.until is not None and not 0 <= self.until < math.inf:
            raise ValueError(f"until is {self.until}; give a share from 0 up, such as 0.005")
        if self.until is not None and self.drop_unseen_characters:
            raise ValueError(
                "until cannot be given with drop_unseen_characters: held-out text whose characters "
                "are gone becomes unknown tokens, which cost little, so no measure shows the loss; "
                "leave drop_unseen_characters out, or give n_tokens or vocab_size"
            )
        for name, value in sizes.items():
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise TypeError(f"{name} is {value!r}; give a whole number")
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; give at least 1")

    @property
    def needs_text(self) -> bool:
        """Whether a corpus is needed."""
        return self.order in NEED_COUNTS or self.drop_unseen_characters


def check_source(options: PruningOptions, source: Source | None) -> None:
    """ValueError for options that need text or a label that is not there; TypeError for what is no
    text."""
    if source is None and options.needs_text:
        what = (
            "drop_unseen_characters"
            if options.drop_unseen_characters
            else f"the order {options.order!r}"
        )
        raise ValueError(f"{what} looks at text; give a corpus, or order leaf-id")
    if not isinstance(source, Corpus | CountFolder | None):
        raise TypeError(
            f"corpus is {type(source).__name__}; give a Corpus, for example "
            "vs.Corpus.from_files({'hi': 'hindi.txt'})"
        )
    check_languages(options.keep, [] if source is None else languages_of(source))


def check_kind(tokenizer: AnyTokenizer, options: PruningOptions) -> None:
    """ValueError for what cannot be asked of this kind of model, InvalidTokenizerError for a kind
    that cannot be pruned at all."""
    require_prunable(tokenizer)
    kind = f"{tokenizer.name} is a {tokenizer.kind} tokenizer"
    orders = ORDERS if tokenizer.kind == "BPE" else ORDERS_WITHOUT_MERGES
    if options.order not in orders:
        raise ValueError(
            f"{kind}, which has no order {options.order!r}; it has: {', '.join(orders)}"
        )
    if options.keep_ids and tokenizer.kind == "Unigram":
        raise ValueError(
            f"{kind}: its ids are places in a list and cannot have holes; leave keep_ids out"
        )
    if options.unreachable_first and tokenizer.kind != "BPE":
        raise ValueError(f"{kind}: it has no merges that could fail; leave unreachable_first out")
    if options.complete_bytes and tokenizer.kind != "BPE":
        raise ValueError(
            f"{kind}, to which nothing can be added without new scores; leave complete_bytes out"
        )
    if options.drop_unseen_characters and tokenizer.kind == "BPE":
        raise ValueError(
            f"{kind}: its characters are what every token is made of; leave "
            "drop_unseen_characters out"
        )


def number_of_tokens(tokenizer: AnyTokenizer, options: PruningOptions, n_removable: int) -> int:
    """How many tokens to remove, or with `until` at most; ValueError if so many cannot be."""
    size = len(tokenizer.vocab)
    if options.until is not None:
        n = max(n_removable, 1)
    elif options.n_tokens is not None:
        n = options.n_tokens
    else:
        assert options.vocab_size is not None
        n = size - options.vocab_size
        if n <= 0:
            raise ValueError(
                f"{tokenizer.name} has {size:,} tokens already; vocab_size {options.vocab_size:,} "
                "leaves nothing to prune"
            )
    if n > n_removable:
        raise ValueError(
            f"{n:,} tokens are to be pruned, and at most {n_removable:,} of the {size:,} tokens "
            f"of {tokenizer.name} can be (vocab_size {size - n_removable:,}): special tokens, "
            "bytes, characters and what is to be kept never go"
        )
    return n
