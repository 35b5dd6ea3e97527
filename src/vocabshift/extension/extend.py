"""`extend` adds tokens to an existing tokenizer by any of the methods, with a report.

Owns the order of the steps: repair the pre-tokenizer if requested, count, learn, add, measure. Each
method has its own file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vocabshift.checks.deployable import Choice
from vocabshift.errors import CorpusError, UnreachableTokenError
from vocabshift.extension.baselines import (
    Auxiliary,
    naive_extension,
    train_auxiliary,
    train_sentencepiece_auxiliary,
)
from vocabshift.extension.continued import Additions, check_room, extended, holes, learn
from vocabshift.extension.counting import CountedText, TextCounts, TrainingInput, count_text
from vocabshift.extension.effect import Effect, ceilings_of, measure, measure_by_encoding
from vocabshift.extension.named_tokens import AnyKind
from vocabshift.extension.options import (
    ExtensionOptions,
    RepairDrift,
    repair_drift,
    repaired_if_possible,
    requested,
)
from vocabshift.extension.report import ExtensionReport, extension_cost
from vocabshift.progress import Progress, in_phase
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer, open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap, chained, find
from vocabshift.tokenizer.missing_bytes import LostCharacters, with_missing_bytes
from vocabshift.tokenizer.pipeline import check_threads
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.token_bytes import is_metaspace
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint


@dataclass(frozen=True)
class Extension:
    """An extended tokenizer, the map from the base's ids to its own, and the report."""

    tokenizer: Tokenizer
    id_map: TokenIdMap
    report: ExtensionReport


def extend_with_report(
    tokenizer: TokenizerLike,
    corpus: Corpus | CountFolder | TextCounts,
    options: ExtensionOptions,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Extension:
    """Extend a tokenizer as `extend` does, and report the effect of the new tokens.

    If the text runs out of pairs, the tokens learned so far are kept and `report.stopped_because`
    says so. `corpus` may be TextCounts: words that it has already counted are not counted again.
    """
    counts = TextCounts.of(corpus)
    corpus = counts.source
    if not isinstance(corpus, Corpus | CountFolder):
        raise TypeError(
            f"corpus is {type(corpus).__name__}; give a Corpus, for example "
            "vs.Corpus.from_files({'hi': 'hindi.txt'})"
        )
    check_threads(threads)
    if not options.n_tokens:
        raise ValueError("n_tokens is 0: nothing would be learned; give a number of at least 1")
    base = as_tokenizer(tokenizer)
    check_room(base, options.n_tokens)
    if (before := find(tokenizer)) is not None:
        before.require(before.old, fingerprint(base))
    free_ids = holes(base) if options.fill_holes else ()
    whole = with_missing_bytes(base, free_ids) if options.complete_bytes else base
    changed, choice = requested(whole, corpus, options.pre_tokenizer, threads=threads)
    counting = in_phase(progress, "count")
    counted = count_text(changed, counts, options, threads, counting, with_plain=True)
    context = _Context(whole, changed, counts, counted, corpus, options, threads, progress)
    made = _continue(context) if options.method == "continued" else _baseline(context)
    result, learned = made.tokenizer, made.additions
    n_bytes_added = whole.vocab_size - base.vocab_size
    report = ExtensionReport(
        method=options.method,
        n_added=n_bytes_added + len(learned.tokens),
        n_repaired=learned.n_repaired,
        n_characters=len(learned.characters),
        n_bytes_added=n_bytes_added,
        n_merges=len(result.model.merges) - len(base.model.merges),
        stopped_because=learned.stopped_because,
        vocab_size=result.vocab_size,
        row_count=result.row_count,
        unreachable_before=len(made.unreachable_before),
        unreachable=len(made.unreachable),
        unreachable_added=len(set(made.unreachable) & set(learned.tokens)),
        unused=made.effect.unused,
        pre_tokenizer=options.pre_tokenizer,
        effect=made.effect,
        drift=_drift(context),
        other=_other(context),
        cost=made.cost,
        corpus_fingerprint=counted.text.reader.fingerprint,
        lost_characters=LostCharacters.between(base, result),
        deployable=None if choice is None else choice.to_dict(),
    )
    id_map = chained(tokenizer, TokenIdMap.between(base, result), result.model.vocab)
    return Extension(result, id_map, report)


def prepared(
    tokenizer: TokenizerLike, source: object, options: ExtensionOptions, *, threads: int = 1
) -> tuple[AnyKind, Choice | None]:
    """The tokenizer before tokens are added: with its missing bytes and another pre-tokenizer.

    source: the corpus on which a pattern of llama.cpp is chosen; the choice is returned with the
    tokenizer. Any kind of tokenizer, itself where nothing is asked for; else ValueError for one
    that is not BPE. CorpusError if such a pattern is asked for without text.
    """
    base = open_tokenizer(tokenizer)
    if not options.complete_bytes and options.pre_tokenizer == "kept":
        return base, None
    whole = as_tokenizer(base)
    if options.complete_bytes:
        whole = with_missing_bytes(whole, holes(whole) if options.fill_holes else ())
    return requested(whole, source, options.pre_tokenizer, threads=threads)


@dataclass(frozen=True)
class _Context:
    """The values that every step needs."""

    base: Tokenizer  # with its missing bytes, if requested
    changed: Tokenizer  # the base, with another pre-tokenizer if requested
    counts: TextCounts  # of the corpus
    counted: TrainingInput  # as the merges of `changed` see the text
    corpus: Corpus | CountFolder
    options: ExtensionOptions
    threads: int
    progress: Progress | None


@dataclass(frozen=True)
class _Outcome:
    """The result of a method."""

    tokenizer: Tokenizer
    additions: Additions
    effect: Effect
    unreachable_before: tuple[str, ...]
    unreachable: tuple[str, ...]
    cost: Mapping[str, Any] = field(default_factory=dict)


def _continue(context: _Context) -> _Outcome:
    """Run continued BPE, and check that no reachable token has become unreachable."""
    options, counted = context.options, context.counted
    of_form = learn(
        counted.form,
        counted.text,
        n_tokens=options.n_tokens,
        tie_break=options.tie_break,
        min_frequency=options.min_frequency,
        threads=context.threads,
        progress=in_phase(context.progress, "learn"),
    )
    learned = counted.additions(of_form)
    if not learned.tokens and not learned.merges:
        raise CorpusError(_nothing_to_learn(context))
    free_ids = holes(context.changed) if options.fill_holes else ()
    result = extended(context.changed, learned, free_ids=free_ids)
    before, after = unreachable_tokens(context.base), unreachable_tokens(result)
    if lost := set(after) - set(before):
        n_new = len(lost & set(learned.tokens))
        raise UnreachableTokenError(
            f"extending left {n_new:,} new and {len(lost) - n_new:,} old tokens that the merges "
            "cannot rebuild: this is a fault of vocabshift; please report it with the text"
        )
    effect = measure(counted.form, of_form, counted.text)
    if (plain := counted.plain) is not None:
        effect = effect.since(measure(plain.form, Additions((), ()), plain.text))
    return _Outcome(result, learned, effect, before, after)


def _nothing_to_learn(context: _Context) -> str:
    least, most = context.options.min_frequency, context.options.max_token_bytes
    often = f" at least {least:,} times" if least > 1 else ""
    short = "" if most is None else f" and make {most} bytes or less"
    return (
        f"there is nothing to learn for {context.base.name}: no two tokens stand side by side in a "
        f"pre-token of this text{often}{short}; give more text, text of another language, or ask "
        "for less"
    )


def _baseline(context: _Context) -> _Outcome:
    """Run a baseline: tokens of an auxiliary tokenizer, and their cost."""
    options, base, corpus = context.options, context.changed, context.corpus
    assert options.method != "continued"
    if not isinstance(corpus, Corpus):
        raise CorpusError(f"method {options.method} encodes the text itself; give --corpus")
    counted = context.counted.plain or context.counted  # baselines add no characters first
    auxiliary = _auxiliary(context, counted.text, corpus)
    result = naive_extension(base, auxiliary, options.method, n_tokens=options.n_tokens)
    names = {**{t.id: t.content for t in result.added_tokens}, **result.model.tokens}
    tokens = tuple(names[i] for i in range(base.row_count, result.row_count))
    stopped = "n_tokens" if len(tokens) == options.n_tokens else "no_token_left"
    before = measure(counted.form, Additions((), ()), counted.text)
    return _Outcome(
        result,
        Additions(tokens, (), stopped_because=stopped),
        measure_by_encoding(base, result, corpus, before, threads=context.threads),
        unreachable_tokens(base),
        unreachable_tokens(result),
        extension_cost(base, result, corpus, threads=context.threads).to_dict(),
    )


def _auxiliary(context: _Context, text: CountedText, corpus: Corpus) -> Auxiliary:
    """Train the auxiliary tokenizer as the paper's toolkit does for this kind of tokenizer."""
    base, options = context.changed, context.options
    if is_metaspace(base):
        return train_sentencepiece_auxiliary(
            base, corpus, normalizer=options.normalizer, threads=context.threads
        )
    progress = in_phase(context.progress, "train auxiliary")
    return train_auxiliary(base, text, threads=context.threads, progress=progress)


def _drift(context: _Context) -> RepairDrift | None:
    """Return what another pre-tokenizer alone changes, if it is requested."""
    if context.changed is context.base or not isinstance(context.corpus, Corpus):
        return None
    return repair_drift(context.base, context.changed, context.corpus, threads=context.threads)


def _other(context: _Context) -> dict[str, Any]:
    """Return the other pre-tokenizer's ceilings, and for a changed one the old figures."""
    if not isinstance(context.corpus, Corpus):
        return {}
    is_repaired = context.changed is not context.base
    if (other := context.base if is_repaired else repaired_if_possible(context.base)) is None:
        return {}
    counted = count_text(other, context.counts, context.options, context.threads)
    found = {
        "pre_tokenizer": "kept" if is_repaired else "repaired",
        "ceilings": ceilings_of(counted.text),
    }
    if is_repaired:
        rows = measure(counted.form, Additions((), ()), counted.text).languages
        found["bytes_per_token"] = {row.language: row.bytes_per_token for row in rows}
    return found
