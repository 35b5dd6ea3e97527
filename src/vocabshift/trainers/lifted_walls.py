"""Which pattern lifts the space wall of a tokenizer and changes the least else?

Lifting walls changes how a tokenizer segments text before there is a single superword, and kills
the tokens that it reached by merge skipping alone. Owns the candidates and what each would change,
measured on a sample of the corpus. Knows nothing of training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vocabshift.bpe.drift import Drift, drift, sample, token_lengths
from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.pipeline_reachability import unreachable_by_pipeline
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, Pattern, Split, from_spec, sentence_split, splitter
from vocabshift.text.regexes import join_words
from vocabshift.text.sentences import SentencePolicy
from vocabshift.trainers.base_tokenizer import BaseTokenizer

OWN = "own"
"""The base's own pattern, but words follow each other over single spaces."""

OWN_SENTENCES = "own-sentences"
"""The same, and every sentence terminal ends a piece."""


@dataclass(frozen=True, slots=True)
class WallChange:
    """What one pattern does to the base before any superword; shares are in [0, 1]."""

    name: str
    lifts_space_wall: bool
    keeps_sentences: bool  # no piece goes on behind a sentence end and a space
    changed_lines: float  # share of the sample's documents that are segmented otherwise
    changed_tokens: float  # share of the base's tokens there that are gone
    tokens_lost: int  # tokens of the base that no text yields any more


@dataclass(frozen=True, slots=True)
class Lifted:
    """A pattern and what it changes."""

    name: str
    pattern: Pattern
    drifts: Mapping[str, Drift]  # by language
    tokens_lost: tuple[str, ...]  # as the vocabulary spells them

    def summary(self) -> WallChange:
        """The figures over all languages."""
        lines, tokens = Drift.total(self.drifts.values()).shares
        lifts, keeps = lifts_space_wall(self.pattern), keeps_sentences(self.pattern)
        return WallChange(self.name, lifts, keeps, lines, tokens, len(self.tokens_lost))


def candidates(base: Tokenizer) -> dict[str, Pattern]:
    """Patterns that may take the place of the base's own, by name."""
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


def choose(measured: Sequence[Lifted]) -> Lifted:
    """The one that changes the fewest tokens, of those that lift the space wall and no sentence
    end; the first of equals."""
    fit = [
        (one.summary().changed_tokens, i)
        for i, one in enumerate(measured)
        if lifts_space_wall(one.pattern) and keeps_sentences(one.pattern)
    ]
    return measured[min(fit)[1]]  # ist-stage2 is always among them


def measure(
    base: BaseTokenizer, patterns: Mapping[str, Pattern], corpus: Corpus, threads: int
) -> list[Lifted]:
    """What each pattern changes, before any superword."""
    before = Encoder(base.tokenizer)
    dead = set(unreachable_by_pipeline(base.tokenizer, before))
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
        lost = (token for token in unreachable_by_pipeline(lifted, after) if token not in dead)
        results.append(Lifted(name, pattern, drifts, tuple(lost)))
    return results


def lifts_space_wall(pattern: Pattern) -> bool:
    """Whether two words over a single space are one piece."""
    return splitter(pattern)("word word") == ["word word"]


def keeps_sentences(pattern: Pattern) -> bool:
    """Whether no piece goes on behind a sentence end and a space."""
    split = splitter(pattern)
    return all("b" not in split(f"a{end} b")[0] for end in f".{SentencePolicy().terminals}")


def _cuts_words(split: Split) -> bool:
    is_plain = split.behavior == "Isolated" and not split.invert
    return is_plain and splitter((split,))("word word") == ["word", " word"]
