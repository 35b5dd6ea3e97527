"""ExtensionOptions, and the other pre-tokenizers that they can ask for.

Owns the options, their defaults, and the names that they accept; they are checked before any work
starts. The repair keeps marks and joiners in words: no extension can exceed bytes per pre-token,
and patterns whose words are only letters cut every Indian word at its vowel signs. `text.regexes`
rewrites the regex.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.checks.text import SAMPLE_BYTES, Drift, drift, sample, token_lengths
from vocabshift.text.corpus import Corpus
from vocabshift.text.llama_cpp import DEPLOYABLE, KEEP_MARKS
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.gguf import run_by_llama_cpp
from vocabshift.tokenizer.pipeline import puts_space_and_cuts, repair_words
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from vocabshift.checks.deployable import Choice

METHODS: Mapping[str, str] = {
    "continued": "train on from the tokenizer's own merges",
    "regen": "baseline: every split of a new token as a merge, after the old ones",
    "append": "baseline: the merges of a new tokenizer after the old ones",
    "prepend": "baseline: the merges of regen before the old ones, which changes old text",
    "add-tokens": "baseline: added tokens, cut out of the text before anything else",
}
"""Name of a method -> what it does, in one line."""

TIE_BREAKS: Mapping[str, str] = {
    "id": "the smaller ids",
    "lexicographic": "the smaller strings, as in the paper's toolkit",
}
"""Which of two pairs with equal counts is merged first -> the same, in one line."""

PRE_TOKENIZERS: Mapping[str, str] = {
    "kept": "as the tokenizer has it",
    "repaired": "marks and joiners may follow the letters of a word",
    DEPLOYABLE: "the best pattern of llama.cpp that keeps the ids of text without marks",
    **dict.fromkeys(KEEP_MARKS, "that pattern of llama.cpp, whatever it changes"),
}
"""What becomes of the pre-tokenizer -> the same, in one line."""


@dataclass(frozen=True, kw_only=True)
class ExtensionOptions:
    """How to extend; `vocabshift.json` records it."""

    n_tokens: int = 0
    """New tokens, those for missing characters not counted. 0 is for words and special tokens that
    are added by name: nothing is learned from text."""
    method: Annotated[str, METHODS] = "continued"
    """How new tokens are found. Baselines are reported with their cost."""
    tie_break: Annotated[str, TIE_BREAKS] = "id"
    """What decides between equal counts."""
    pre_tokenizer: Annotated[str, PRE_TOKENIZERS] = "kept"
    """What cuts words; all but "kept" are for byte-level tokenizers only."""
    min_frequency: int = 1
    """A pair must occur this often to become a token."""
    max_token_bytes: int | None = None
    """Longest new token, in bytes (byte-level only)."""
    character_coverage: Annotated[float | None, "share"] = 0.9995
    """Share of the text's characters that the vocabulary is to hold; missing ones are added first,
    on top of `n_tokens`. None: none are. Byte-level vocabularies lack none."""
    complete_bytes: bool = False
    """First add tokens for the bytes that the vocabulary lacks and that UTF-8 can hold, on top of
    `n_tokens`."""
    fill_holes: bool = False
    """New tokens take ids that no token has (left by pruning, say) before those after all."""
    normalizer: Annotated[str | None, "STEP[+STEP…]"] = None
    """What the training text is brought into first, as in `train`; the tokenizer keeps its own."""
    sampling_alpha: Annotated[float | None, "share"] = None
    """Languages count in proportion to bytes ** alpha: 1 as they are, 0.3 nearly alike. None: as
    they are."""

    def __post_init__(self) -> None:
        check_known("method", self.method, METHODS)
        check_known("pre_tokenizer", self.pre_tokenizer, PRE_TOKENIZERS)
        check_tie_break(self.tie_break)
        for name, least in (("n_tokens", 0), ("min_frequency", 1), ("max_token_bytes", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or not least <= value < 1 << 62):
                raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
        if self.fill_holes and self.method != "continued":
            raise ValueError("fill_holes is for the method continued; baselines take new ids")

    def without_characters(self) -> ExtensionOptions:
        """Return the same options without added characters."""
        return replace(self, character_coverage=None)


def check_tie_break(tie_break: str) -> None:
    """Raise ValueError for an order that does not exist."""
    check_known("tie_break", tie_break, TIE_BREAKS)


def check_known(name: str, value: str, known: Mapping[str, str]) -> None:
    """Raise ValueError for a name that is none of `known`."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}; give one of {tuple(known)}")


@dataclass(frozen=True)
class RepairDrift:
    """Changes by another pre-tokenizer before any token is added; both sides have the same ids."""

    languages: Mapping[str, Drift]  # by label of the corpus, on a sample of each language
    lost: tuple[str, ...]  # tokens that no text yields after the repair
    gained: tuple[str, ...]  # tokens that no text yielded before

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; shares are in [0, 1]."""
        shares = {label: drift.shares for label, drift in self.languages.items()}
        return {
            "changed_lines": {label: lines for label, (lines, _) in shares.items()},
            "changed_tokens": {label: tokens for label, (_, tokens) in shares.items()},
            "tokens_lost": len(self.lost),
            "tokens_gained": len(self.gained),
        }


def repaired(tokenizer: Tokenizer) -> Tokenizer:
    """Return the same tokenizer with marks and joiners allowed after the letters of a word.

    Everything else stays, vocabulary and merges included. Text in which no letter is followed by a
    mark, ZWNJ or ZWJ keeps its ids. A ByteLevel with GPT-2's regex inside becomes a Split with the
    repaired regex and a ByteLevel without one. Raises ValueError if there is nothing to repair.
    """
    changed = repair_words(tokenizer)
    if changed is not None:
        return changed
    spec = tokenizer.pre_tokenizer
    if spec is None or not is_byte_level(tokenizer):
        reason = (
            "is not byte-level: no regex cuts its words at marks, and nothing is to be repaired"
        )
    elif puts_space_and_cuts(spec):
        reason = (
            "puts a space before every text while it cuts words (ByteLevel with add_prefix_space "
            "and use_regex), which no list of steps with a repaired regex can do"
        )
    else:
        reason = (
            "cuts no word at a mark or joiner, or not by a regex with \\p{L}+ for words: there is "
            "nothing to repair"
        )
    raise ValueError(f"{tokenizer.name} {reason}; extend it with its own pre-tokenizer (kept)")


def requested(
    tokenizer: Tokenizer, source: object, pre_tokenizer: str, *, threads: int = 1
) -> tuple[Tokenizer, Choice | None]:
    """Return the tokenizer with one of `PRE_TOKENIZERS`, and how a pattern of llama.cpp was chosen.

    source: the corpus on which such a pattern is chosen and measured. The tokenizer itself where
    nothing changes. ValueError where it cannot be done; CorpusError for counts without text.
    """
    from vocabshift.checks.deployable import choose, require_text

    if pre_tokenizer == "kept":
        return tokenizer, None
    if pre_tokenizer == "repaired":
        return repaired(tokenizer), None
    name = None if pre_tokenizer == DEPLOYABLE else pre_tokenizer
    choice = choose(require_text(source), tokenizer, name=name, threads=threads)
    return run_by_llama_cpp(tokenizer)[choice.name], choice


def repaired_if_possible(tokenizer: Tokenizer) -> Tokenizer | None:
    """Return the tokenizer with the repaired pre-tokenizer, or None if nothing can be repaired."""
    try:
        return repaired(tokenizer)
    except ValueError:  # there is nothing to repair
        return None


def repair_drift(
    base: Tokenizer,
    changed: Tokenizer,
    corpus: Corpus,
    *,
    threads: int = 1,
    sample_bytes: int = SAMPLE_BYTES,
) -> RepairDrift:
    """Compare a tokenizer with its repair on the first `sample_bytes` bytes of each language."""
    before, after = Encoder(base), Encoder(changed)
    lengths = token_lengths(base)
    languages = {
        label: drift(
            before.encode_batch(texts, threads=threads),
            after.encode_batch(texts, threads=threads),
            lengths,
        )
        for label, texts in sample(corpus, sample_bytes).items()
    }
    dead, dead_after = (unreachable_by_pipeline(e.tokenizer) for e in (before, after))
    was_dead, is_dead = set(dead), set(dead_after)
    return RepairDrift(
        languages,
        tuple(token for token in dead_after if token not in was_dead),
        tuple(token for token in dead if token not in is_dead),
    )
