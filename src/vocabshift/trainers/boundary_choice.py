"""Chooses the pattern that lets tokens cross spaces and changes the tokenizer least otherwise.

Lifting boundaries changes how a tokenizer segments text even before the first superword. It also
kills the tokens that only merge skipping reached. Owns which tokenizers can have superwords, the
candidates, and the changes that each would cause, measured on a sample of the corpus.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.checks.text import Drift, drift, sample, token_lengths
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import (
    NAMED,
    Pattern,
    from_spec,
    sentence_split,
    splitter,
    to_spec,
)
from vocabshift.text.regexes import join_words
from vocabshift.text.splits import Split
from vocabshift.text.writing import SentencePolicy
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import vocab_with
from vocabshift.tokenizer.corpus_reader import normalizer_name
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.model import images_bytes
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.stages import Stage


class BaseTokenizer:
    """A tokenizer that superwords can be put on; ValueError for one that cannot have any.

    In a configuration it is its name and the hash of its content. Its ids may have holes; those of
    training are dense.
    """

    def __init__(self, source: Any) -> None:
        if isinstance(source, BaseTokenizer):
            source = source.tokenizer if source.path is None else source.path
        self.path: Path | None = Path(source) if isinstance(source, str | Path) else None
        self.tokenizer: Tokenizer = as_tokenizer(source)
        _check(self.tokenizer)
        normalizer_name(self.tokenizer)  # raises ValueError: training must know the normalizer
        text = self.tokenizer.to_json()
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.tokenizer.name} {self.fingerprint}"

    def __repr__(self) -> str:
        return f"BaseTokenizer({str(self)!r})"

    def __deepcopy__(self, _memo: object) -> BaseTokenizer:
        return self  # frozen and large; dataclasses.asdict deep-copies unknown types

    @cached_property
    def vocab(self) -> dict[str, int]:
        """All tokens with their ids, added ones included. `tokenizer.json` must hold them all: an
        added token outside the vocabulary would get a new id after the superwords."""
        return vocab_with(dict(self.tokenizer.model.vocab), self.tokenizer.added_tokens)

    def stage(self) -> Stage:
        """Return its tokens and merges as a training stage; ids are places in `vocab`."""
        place = {token: i for i, token in enumerate(self.vocab)}
        merges = np.array(
            [
                (place[left], place[right], place[left + right])
                for left, right in self.tokenizer.model.merges
            ],
            dtype=np.uint32,
        ).reshape(-1, 3)
        return Stage.of_merges(images_bytes(list(self.vocab)), merges, "vocab_size")

    def forbidden(self) -> set[bytes]:
        """Return what no merge may make: ordinary text must not yield an added token."""
        return {token.content.encode() for token in self.tokenizer.added_tokens}

    def lifted(self, pattern: Pattern) -> Tokenizer:
        """Return it with other boundaries, no merge skipping, and all tokens in the vocabulary.

        Merge skipping makes a whole pre-token one token if it is in the vocabulary, regardless of
        the merges. Now pre-tokens are sentences: a superword would be found by look-up if it is a
        whole sentence and by merges elsewhere, so text would be cut differently than in training.
        """
        model = replace(self.tokenizer.model, vocab=self.vocab, ignore_merges=False)
        return replace(self.tokenizer, model=model, pre_tokenizer=to_spec(pattern))

    def extended(self, pattern: Pattern, learned: Stage) -> Tokenizer:
        """Return `lifted` plus the additions of `learned` to `stage()`; new ids come last."""
        new = byte_level.all_to_images(learned.tokens[len(self.vocab) :])
        first = self.tokenizer.row_count
        names = [*self.vocab, *new]
        merges = [(names[left], names[right]) for left, right, _ in learned.merges.tolist()]
        lifted = self.lifted(pattern)
        model = replace(
            lifted.model,
            vocab=self.vocab | {token: first + i for i, token in enumerate(new)},
            merges=(*lifted.model.merges, *merges),
        )
        return replace(lifted, model=model)


def _check(tokenizer: Tokenizer) -> None:
    name, model = tokenizer.name, tokenizer.model
    spec: Mapping[str, Any] = tokenizer.pre_tokenizer or {}
    last = (spec["pretokenizers"] or [{}])[-1] if spec.get("type") == "Sequence" else spec
    if not is_byte_level(tokenizer) or last.get("type") != "ByteLevel":
        raise ValueError(
            f"{name} is not byte-level (its pre-tokenizer must end in ByteLevel); superwords can "
            "be put on byte-level tokenizers only, such as those of Llama-3, Qwen or Mistral Nemo"
        )
    if last.get("add_prefix_space", True):
        raise ValueError(
            f"{name} puts a space before every text (add_prefix_space), which a superword "
            "tokenizer must not: text would not come back; give a base without it"
        )
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        raise ValueError(f"{name} marks parts of words by a prefix or suffix; that is not byte BPE")
    for token in tokenizer.added_tokens:
        if token.single_word or (token.normalized and tokenizer.normalizer is not None):
            raise ValueError(
                f"the added token {token.content!r} of {name} is matched "
                + ("as a single word" if token.single_word else "in normalized text")
                + ", which training does not do; set that flag to false"
            )


OWN = "own"
"""The base's own pattern, but words follow each other over single spaces."""

OWN_SENTENCES = "own-sentences"
"""The same, and every sentence terminal ends a pre-token."""


@dataclass(frozen=True, slots=True)
class BoundaryChange:
    """What one pattern does to the base before any superword; shares are in [0, 1]."""

    name: str
    lifts_space_wall: bool
    keeps_sentences: bool  # no pre-token continues after a sentence end and a space
    changed_lines: float  # share of the sample's documents that are segmented otherwise
    changed_tokens: float  # share of the base's tokens there that are gone
    tokens_lost: int  # tokens of the base that no text yields any more


@dataclass(frozen=True, slots=True)
class BoundaryCandidate:
    """A pattern and what it changes before any superword."""

    name: str
    pattern: Pattern
    drifts: Mapping[str, Drift]  # by language
    tokens_lost: tuple[str, ...]  # as the vocabulary spells them

    def summary(self) -> BoundaryChange:
        """The figures over all languages."""
        lines, tokens = Drift.total(self.drifts.values()).shares
        lifts, keeps = lifts_space_boundary(self.pattern), keeps_sentences(self.pattern)
        return BoundaryChange(self.name, lifts, keeps, lines, tokens, len(self.tokens_lost))


def candidates(base: Tokenizer) -> dict[str, Pattern]:
    """Return the patterns that may replace the base's own, by name."""
    found: dict[str, Pattern] = {}
    own = from_spec(base.pre_tokenizer)
    if own is not None:
        lifted = tuple(
            Split(join_words(split.regex)) if _cuts_words(split) else split for split in own
        )
        if lifted != own:
            found[OWN] = lifted
            found[OWN_SENTENCES] = lifted + sentence_split(SentencePolicy())
    for name in ("ist-stage2", "superbpe-stage2"):
        found[name] = NAMED[name]
    return found


def choose(measured: Sequence[BoundaryCandidate]) -> BoundaryCandidate:
    """Return the candidate that changes the fewest tokens, among those that lift the space
    boundary and keep sentence ends; the first of equals."""
    fit = [
        (one.summary().changed_tokens, i)
        for i, one in enumerate(measured)
        if lifts_space_boundary(one.pattern) and keeps_sentences(one.pattern)
    ]
    return measured[min(fit)[1]]  # ist-stage2 is always among them


def measure(
    base: BaseTokenizer, patterns: Mapping[str, Pattern], corpus: Corpus, threads: int
) -> list[BoundaryCandidate]:
    """Measure what each pattern changes, before any superword."""
    before = Encoder(base.tokenizer)
    dead = set(unreachable_by_pipeline(base.tokenizer))
    texts = sample(corpus)
    encoded = {label: before.encode_batch(text, threads=threads) for label, text in texts.items()}
    lengths = token_lengths(base.tokenizer)
    results = []
    for name, pattern in patterns.items():
        lifted = base.lifted(pattern)
        after = Encoder(lifted)
        drifts = {
            label: drift(encoded[label], after.encode_batch(text, threads=threads), lengths)
            for label, text in texts.items()
        }
        lost = (token for token in unreachable_by_pipeline(lifted) if token not in dead)
        results.append(BoundaryCandidate(name, pattern, drifts, tuple(lost)))
    return results


def lifts_space_boundary(pattern: Pattern) -> bool:
    """Return whether two words with a single space between them are one pre-token."""
    return splitter(pattern)("word word") == ["word word"]


def keeps_sentences(pattern: Pattern) -> bool:
    """Return whether every pre-token stops at a sentence end followed by a space."""
    split = splitter(pattern)
    return all("b" not in split(f"a{end} b")[0] for end in f".{SentencePolicy().terminals}")


def _cuts_words(split: Split) -> bool:
    is_plain = split.behavior == "Isolated" and not split.invert
    return is_plain and splitter((split,))("word word") == ["word", " word"]
