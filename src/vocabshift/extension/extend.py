"""`extend`: new words for an existing tokenizer, by whichever method, with a report.

Owns the order of the work: repair the pre-tokenizer if asked, count, learn, put in, measure. What
each method learns is its own file's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vocabshift.errors import CorpusError, UnreachableTokenError
from vocabshift.extension.base import Learned, check_room, extended, holes
from vocabshift.extension.baseline_cost import extension_cost
from vocabshift.extension.baselines import (
    Auxiliary,
    naive_extension,
    train_auxiliary,
    train_sentencepiece_auxiliary,
)
from vocabshift.extension.continued import learn
from vocabshift.extension.counting import Counted, CountedText, TextCounts
from vocabshift.extension.effect import Effect, ceilings_of, measure, measure_by_encoding
from vocabshift.extension.options import (
    ExtensionOptions,
    Method,
    PreTokenizer,
    Progress,
    count_text,
    in_phase,
)
from vocabshift.extension.pre_tokenizer_repair import (
    RepairDrift,
    repair_drift,
    repaired,
    repaired_if_possible,
)
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.id_map import IdMap, chained, find
from vocabshift.tokenizer.reachability import unreachable_tokens
from vocabshift.tokenizer.token_bytes import is_metaspace
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint

# ExtensionReport: what an extension added and what it does, as a value and as plain JSON.
#
# Owns the keys that `vocabshift extend --json` prints. Knows nothing of how they came about.


@dataclass(frozen=True)
class ExtensionReport:
    """What was added and what it does; counts are integers."""

    method: Method
    n_added: int  # new tokens
    n_repaired: int  # of the new merges, those that make a token of the base
    n_characters: int  # of the new tokens, characters that the vocabulary lacked
    n_merges: int  # new merges
    stopped_because: str  # "n_tokens", "min_frequency", "no_pair_left" or "no_token_left"
    vocab_size: int
    row_count: int  # the highest id plus one
    unreachable_before: int  # STT
    unreachable: int
    unreachable_added: int  # of the new tokens
    unused: tuple[str, ...]  # new tokens that the text does not contain in the end
    pre_tokenizer: PreTokenizer
    effect: Effect | None
    drift: RepairDrift | None = None  # of the repaired pre-tokenizer, before any token
    other: Mapping[str, Any] = field(default_factory=dict)
    """What the other pre-tokenizer (repaired for kept, kept for repaired) has for ceilings; beside
    a repaired one also `bytes_per_token`, as it was. Empty where there is nothing to repair."""
    cost: Mapping[str, Any] = field(default_factory=dict)  # of a baseline, see `ExtensionCost`
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
            "other_pre_tokenizer": dict(self.other),
        }


# ---


@dataclass(frozen=True)
class Extension:
    """An extended tokenizer, how its ids follow from the base's, and what was done."""

    tokenizer: Tokenizer
    id_map: IdMap
    report: ExtensionReport


def extend_with_report(
    tokenizer: Any,
    corpus: Corpus | CountFolder | TextCounts,
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
    if isinstance(corpus, TextCounts):
        counts, corpus = corpus, corpus.source
    else:
        counts = TextCounts(corpus)
    if not isinstance(corpus, Corpus | CountFolder):
        raise TypeError(
            f"corpus is {type(corpus).__name__}; give a Corpus, for example "
            "vs.Corpus.from_files({'hi': 'hindi.txt'})"
        )
    if threads < 1:
        raise ValueError(f"threads is {threads}; give at least 1")
    base = as_tokenizer(tokenizer)
    check_room(base, asked.n_tokens)
    before = find(tokenizer)
    if before is not None:
        before.require(before.old, fingerprint(base))
    changed = repaired(base) if asked.pre_tokenizer == "repaired" else base
    tick = in_phase(progress, "count")
    counted = count_text(changed, counts, asked, threads, tick, with_plain=True)
    work = _Work(base, changed, counts, counted, corpus, asked, threads, progress)
    done = _continue(work) if asked.method == "continued" else _take_over(work)
    result, learned = done.tokenizer, done.learned
    report = ExtensionReport(
        method=asked.method,
        n_added=len(learned.tokens),
        n_repaired=learned.n_repaired,
        n_characters=len(learned.characters),
        n_merges=len(result.model.merges) - len(base.model.merges),
        stopped_because=learned.stopped_because,
        vocab_size=result.vocab_size,
        row_count=result.row_count,
        unreachable_before=len(done.unreachable_before),
        unreachable=len(done.unreachable),
        unreachable_added=len(set(done.unreachable) & set(learned.tokens)),
        unused=done.effect.unused,
        pre_tokenizer=asked.pre_tokenizer,
        effect=done.effect,
        drift=_drift(work),
        other=_other(work),
        cost=done.cost,
        corpus_fingerprint=counted.text.weighed.fingerprint,
    )
    id_map = chained(tokenizer, IdMap.between(base, result), result.model.vocab)
    return Extension(result, id_map, report)


@dataclass(frozen=True)
class _Work:
    """What every step is given."""

    base: Tokenizer
    changed: Tokenizer  # the base, its pre-tokenizer repaired if asked
    counts: TextCounts  # of the corpus
    counted: Counted  # as the merges of `changed` see the text
    corpus: Corpus | CountFolder
    asked: ExtensionOptions
    threads: int
    progress: Progress | None


@dataclass(frozen=True)
class _Done:
    """What a method came to."""

    tokenizer: Tokenizer
    learned: Learned
    effect: Effect
    unreachable_before: tuple[str, ...]
    unreachable: tuple[str, ...]
    cost: Mapping[str, Any] = field(default_factory=dict)


def _continue(work: _Work) -> _Done:
    """Continued BPE, checked: nothing that was reachable may have become unreachable."""
    asked, counted = work.asked, work.counted
    of_form = learn(
        counted.form,
        counted.text,
        n_tokens=asked.n_tokens,
        tie_break=asked.tie_break,
        min_frequency=asked.min_frequency,
        threads=work.threads,
        progress=in_phase(work.progress, "learn"),
    )
    learned = counted.learned(of_form)
    if not learned.tokens and not learned.merges:
        raise CorpusError(_nothing_to_learn(work))
    free_ids = holes(work.changed) if asked.fill_holes else ()
    result = extended(work.changed, learned, free_ids=free_ids)
    before, after = unreachable_tokens(work.base), unreachable_tokens(result)
    lost = set(after) - set(before)
    if lost:
        n_new = len(lost & set(learned.tokens))
        raise UnreachableTokenError(
            f"extending left {n_new:,} new and {len(lost) - n_new:,} old tokens that the merges "
            "cannot rebuild: this is a fault of vocabshift; please report it with the text"
        )
    effect = measure(counted.form, of_form, counted.text)
    if (plain := counted.plain) is not None:
        effect = effect.since(measure(plain.form, Learned((), ()), plain.text))
    return _Done(result, learned, effect, before, after)


def _nothing_to_learn(work: _Work) -> str:
    asked = work.asked
    often = f" at least {asked.min_frequency:,} times" if asked.min_frequency > 1 else ""
    short = (
        "" if asked.max_token_bytes is None else f" and make {asked.max_token_bytes} bytes or less"
    )
    return (
        f"there is nothing to learn for {work.base.name}: no two tokens stand side by side in a "
        f"pre-token of this text{often}{short}; give more text, text of another language, or ask "
        "for less"
    )


def _take_over(work: _Work) -> _Done:
    """A baseline: tokens of an auxiliary tokenizer, and what they cost."""
    asked, base, corpus = work.asked, work.changed, work.corpus
    assert asked.method != "continued"
    if not isinstance(corpus, Corpus):
        raise CorpusError(f"method {asked.method} encodes the text itself; give --corpus")
    counted = work.counted.plain or work.counted  # baselines add no characters first
    auxiliary = _auxiliary(work, counted.text, corpus)
    result = naive_extension(base, auxiliary, asked.method, n_tokens=asked.n_tokens)
    names = {**{t.id: t.content for t in result.added_tokens}, **result.model.tokens}
    tokens = tuple(names[i] for i in range(base.row_count, result.row_count))
    stopped = "n_tokens" if len(tokens) == asked.n_tokens else "no_token_left"
    before = measure(counted.form, Learned((), ()), counted.text)
    return _Done(
        result,
        Learned(tokens, (), stopped_because=stopped),
        measure_by_encoding(base, result, corpus, before, threads=work.threads),
        unreachable_tokens(base),
        unreachable_tokens(result),
        extension_cost(base, result, corpus, threads=work.threads).to_dict(),
    )


def _auxiliary(work: _Work, text: CountedText, corpus: Corpus) -> Auxiliary:
    """Trained as the paper's toolkit trains it for this kind of tokenizer."""
    base, asked = work.changed, work.asked
    if is_metaspace(base):
        return train_sentencepiece_auxiliary(
            base, corpus, normalizer=asked.normalizer, threads=work.threads
        )
    progress = in_phase(work.progress, "train auxiliary")
    return train_auxiliary(base, text, threads=work.threads, progress=progress)


def _drift(work: _Work) -> RepairDrift | None:
    """What the repaired pre-tokenizer alone changes, if it was asked for."""
    if work.changed is work.base or not isinstance(work.corpus, Corpus):
        return None
    return repair_drift(work.base, work.changed, work.corpus, threads=work.threads)


def _other(work: _Work) -> dict[str, Any]:
    """What the other pre-tokenizer would allow, and for a repaired one what was before."""
    if not isinstance(work.corpus, Corpus):
        return {}
    is_repaired = work.changed is not work.base
    other = work.base if is_repaired else repaired_if_possible(work.base)
    if other is None:
        return {}
    counted = count_text(other, work.counts, work.asked, work.threads)
    found = {
        "pre_tokenizer": "kept" if is_repaired else "repaired",
        "ceilings": ceilings_of(counted.text),
    }
    if is_repaired:
        rows = measure(counted.form, Learned((), ()), counted.text).languages
        found["bytes_per_token"] = {row.language: row.bytes_per_token for row in rows}
    return found
