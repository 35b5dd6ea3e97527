"""`extend`: new words for an existing tokenizer, by whichever method, with a report.

Owns the order of the work: repair the pre-tokenizer if asked, count, learn, put in, measure. What
each method learns is its own file's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from vocabshift.bpe.id_map import IdMap, chained
from vocabshift.bpe.load import as_tokenizer
from vocabshift.bpe.reachability import unreachable_tokens
from vocabshift.bpe.token_bytes import is_metaspace
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import CorpusError, UnreachableTokenError
from vocabshift.extension.apply import check_room, extended
from vocabshift.extension.continued import TieBreak, check_tie_break, learn
from vocabshift.extension.counted_text import Counted, count_byte_level
from vocabshift.extension.effect import Effect, measure
from vocabshift.extension.learned import Learned
from vocabshift.extension.metaspace import count_metaspace
from vocabshift.extension.pre_tokenizer_repair import RepairDrift, repair_drift, repaired
from vocabshift.extension.training_base import TrainingBase
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder

Method = Literal["continued", "regen", "append", "prepend", "add-tokens"]
PreTokenizer = Literal["kept", "repaired"]
Progress = Callable[[str, int, int | None], None]
"""Called now and then with the phase, the work done and the work in all."""


@dataclass(frozen=True)
class ExtensionReport:
    """What was added and what it does; counts are integers."""

    method: Method
    n_added: int  # new tokens
    n_repaired: int  # of the new merges, those that make a token of the base
    n_characters: int  # of the new tokens, characters that the vocabulary lacked
    n_merges: int  # new merges
    stopped_because: str  # "n_tokens", "min_frequency" or "no_pair_left"
    vocab_size: int
    row_count: int  # the highest id plus one
    unreachable_before: int  # STT
    unreachable: int
    unreachable_added: int  # of the new tokens
    unused: tuple[str, ...]  # new tokens that the text does not contain in the end
    pre_tokenizer: PreTokenizer
    effect: Effect | None
    drift: RepairDrift | None = None  # of the repaired pre-tokenizer, before any token
    other: Effect | None = None
    """Of the other pre-tokenizer without any new token: kept where this one is repaired, repaired
    where this one is kept; None where there is nothing to repair."""
    cost: Mapping[str, Any] = field(default_factory=dict)  # of a baseline
    corpus_fingerprint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain = {
            key: getattr(self, key)
            for key in self.__dataclass_fields__
            if key not in ("effect", "drift", "other", "unused", "corpus_fingerprint", "cost")
        }
        effect = {} if self.effect is None else self.effect.to_dict()
        drift = {} if self.drift is None else {"drift": self.drift.to_dict()}
        cost = {"cost": dict(self.cost)} if self.cost else {}
        return {
            **plain,
            "unused_added": len(self.unused),
            **effect,
            **drift,
            **cost,
            "other_pre_tokenizer": self._other(),
        }

    def _other(self) -> dict[str, Any]:
        if self.other is None:
            return {}
        rows = self.other.languages
        return {
            "pre_tokenizer": "kept" if self.pre_tokenizer == "repaired" else "repaired",
            "ceilings": {row.language: row.ceiling_bytes_per_token for row in rows},
            "bytes_per_token": {row.language: row.bytes_per_token for row in rows},
        }


@dataclass(frozen=True)
class Extension:
    """An extended tokenizer, how its ids follow from the base's, and what was done."""

    tokenizer: Tokenizer
    id_map: IdMap
    report: ExtensionReport


@dataclass(frozen=True, kw_only=True)
class ExtensionOptions:
    """How to extend; frozen, so that it is the configuration that `vocabshift.json` names."""

    n_tokens: int
    """New tokens, those for missing characters not counted."""
    method: Method = "continued"
    """"continued" trains on; the others are baselines, each told with what it costs."""
    tie_break: TieBreak = "id"
    """What decides between equal counts; "lexicographic" is the order of the paper's toolkit."""
    pre_tokenizer: PreTokenizer = "kept"
    """"repaired" lets marks and joiners follow the letters of a word (byte-level only)."""
    min_frequency: int = 1
    """A pair must occur this often to become a token."""
    max_token_bytes: int | None = None
    """Longest new token, in bytes (byte-level only)."""
    character_coverage: float | None = 0.9995
    """Share of the text's characters that the vocabulary is to hold; missing ones are added first,
    beside `n_tokens`. None: none are. Byte-level vocabularies lack none."""
    normalizer: str | None = None
    """Unicode form that the training text is brought into first; the tokenizer keeps its own."""
    sampling_alpha: float | None = None
    """Languages count in proportion to bytes ** alpha; None: as they are."""

    def __post_init__(self) -> None:
        for name, kinds in (("method", Method), ("pre_tokenizer", PreTokenizer)):
            if getattr(self, name) not in get_args(kinds):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; give one of {get_args(kinds)}"
                )
        check_tie_break(self.tie_break)
        for name in ("n_tokens", "min_frequency", "max_token_bytes"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or not 1 <= value < 1 << 62):
                raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")

    def without_characters(self) -> ExtensionOptions:
        """The same without characters that are added first."""
        return replace(self, character_coverage=None)


def extend(tokenizer: Any, corpus: Corpus | CountFolder, **options: Any) -> Tokenizer:
    """`tokenizer` with new tokens learned from `corpus`; it is not changed itself.

    `options` are those of `extend_with_report`, of which this returns the tokenizer alone.
    """
    return extend_with_report(tokenizer, corpus, **options).tokenizer


def extend_with_report(
    tokenizer: Any,
    corpus: Corpus | CountFolder,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Extension:
    """Extend a tokenizer (ours, a Hugging Face fast one, or a path) and tell what it does.

    `options` are the fields of `ExtensionOptions`; `n_tokens` is required. Existing ids, merges
    and special tokens stay; new ids stand behind all others. Where the text runs out of pairs, what
    was learned is kept and `report.stopped_because` says so. The result does not depend on
    `threads`. ValueError or CorpusError where nothing can be learned at all.
    """
    asked = ExtensionOptions(**options)
    base = as_tokenizer(tokenizer)
    check_room(base, asked.n_tokens)
    changed = repaired(base) if asked.pre_tokenizer == "repaired" else base
    counted = count_text(changed, corpus, asked, threads, _in_phase(progress, "count"))
    of_form = learn(
        counted.form,
        counted.text,
        n_tokens=asked.n_tokens,
        tie_break=asked.tie_break,
        min_frequency=asked.min_frequency,
        threads=threads,
        progress=_in_phase(progress, "learn"),
    )
    learned = counted.learned(of_form)
    if not learned.tokens and not learned.merges:
        raise CorpusError(
            f"there is nothing to learn for {base.name}: no two tokens stand side by side in a "
            f"pre-token of this text {asked.min_frequency:,} times; give more text, or text of "
            "another language"
        )
    result = extended(changed, learned)
    drift, other = None, None
    if isinstance(corpus, Corpus):
        if changed is not base:
            drift = repair_drift(base, changed, corpus, threads=threads)
        alternative = base if changed is not base else repaired_if_possible(base)
        if alternative is not None:
            there = count_text(alternative, corpus, asked, threads)
            other = measure(there.form, Learned((), ()), there.text)
    before, after = unreachable_tokens(base), unreachable_tokens(result)
    new = set(learned.tokens)
    lost = set(after) - set(before)
    if lost:
        raise UnreachableTokenError(
            f"extending left {len(lost & new):,} new and {len(lost - new):,} old tokens that the "
            "merges cannot rebuild: this is a fault of vocabshift; please report it with the text"
        )
    effect = measure(counted.form, of_form, counted.text)
    if counted.characters:
        plain = count_text(changed, corpus, asked.without_characters(), threads)
        effect = effect.since(measure(plain.form, Learned((), ()), plain.text))
    report = ExtensionReport(
        method=asked.method,
        n_added=len(learned.tokens),
        n_repaired=learned.n_repaired,
        n_characters=len(learned.characters),
        n_merges=len(learned.merges),
        stopped_because=learned.stopped_because,
        vocab_size=result.vocab_size,
        row_count=result.row_count,
        unreachable_before=len(before),
        unreachable=len(after),
        unreachable_added=0,
        unused=effect.unused,
        pre_tokenizer=asked.pre_tokenizer,
        effect=effect,
        drift=drift,
        other=other,
        corpus_fingerprint=counted.text.weighed.fingerprint,
    )
    id_map = chained(tokenizer, IdMap.between(base, result))
    return Extension(result, id_map, report)


def count_text(
    base: Tokenizer,
    source: Corpus | CountFolder,
    asked: ExtensionOptions,
    threads: int = 1,
    progress: Callable[[int, int | None], None] | None = None,
) -> Counted:
    """The text as the merges of `base` see it."""
    if is_metaspace(base):
        if not isinstance(source, Corpus):
            raise CorpusError(
                f"{base.name} encodes whole documents, which counted words are not; give --corpus"
            )
        if asked.max_token_bytes is not None:
            raise ValueError(
                f"max_token_bytes is for byte-level tokenizers; the pieces of {base.name} are as "
                "long as its SentencePiece model allows"
            )
        return count_metaspace(
            base,
            source,
            normalizer=asked.normalizer,
            add_characters=asked.character_coverage,
            sampling_alpha=asked.sampling_alpha,
            threads=threads,
            progress=progress,
        )
    form = TrainingBase(base)
    text = count_byte_level(
        form,
        source,
        normalizer=asked.normalizer,
        sampling_alpha=asked.sampling_alpha,
        max_token_bytes=asked.max_token_bytes,
        threads=threads,
        progress=progress,
    )
    return Counted(form, text)


def repaired_if_possible(base: Tokenizer) -> Tokenizer | None:
    """The tokenizer with the repaired pre-tokenizer, None where there is nothing to repair."""
    try:
        return repaired(base)
    except ValueError:  # there is nothing to repair
        return None


def _in_phase(progress: Progress | None, phase: str) -> Callable[[int, int | None], None] | None:
    """`progress` with its first argument filled in."""
    if progress is None:
        return None
    return lambda done, total: progress(phase, done, total)
