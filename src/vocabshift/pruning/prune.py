"""Remove tokens from a tokenizer without making the remaining ones unreachable.

Owns the order of the steps: cheap checks first, then counts of the text, then the removal, and then
a check of the result: no token became unreachable, and text round-trips as before.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from vocabshift.checks.vocabulary_report import CLASSES, classes_of
from vocabshift.errors import UnreachableTokenError
from vocabshift.pruning.counts import (
    Progress,
    Source,
    SourceCounts,
    TokenCounts,
    check_counted,
    require_tokens,
)
from vocabshift.pruning.effects import (
    PruneReport,
    Pruning,
    effects,
    loss_warnings,
    script_effects,
    tie_warnings,
)
from vocabshift.pruning.options import (
    Keep,
    PruningOptions,
    check_kind,
    check_source,
    kept_scripts,
    kept_tokens,
    number_of_tokens,
)
from vocabshift.pruning.orders import Vocabulary, removal_order
from vocabshift.pruning.protection import characters_of, protected, require_prunable, spelled
from vocabshift.pruning.stopping import (
    FINEST,
    MEASURES,
    Measure,
    PruningStep,
    change_of,
    most_removable,
)
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_without
from vocabshift.tokenizer.formats.load import as_tokenizer, open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.missing_bytes import LostCharacters, with_missing_bytes
from vocabshift.tokenizer.pipeline import check_threads
from vocabshift.tokenizer.splits import Flags, Int64s, Splits
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

_Kind = TypeVar("_Kind", bound=AnyTokenizer)
_NO_SCRIPTS = (*CLASSES, "Unknown", "Common", "Inherited")


def prune_with_report(
    tokenizer: Any,
    corpus: Source | SourceCounts | None,
    options: PruningOptions,
    *,
    threads: int = 1,
    measure: bool = True,
    held_out: Measure | None = None,
    progress: Progress | None = None,
) -> Pruning:
    """`prune`, with the id map, the removed ids and a report.

    `measure`: encode the corpus again, for bytes per token before and after and the round trip.
    `corpus` may be SourceCounts: what it has counted already is not counted again.
    `held_out`: the measure that `options.until` limits.
    """
    counted = SourceCounts.of(corpus)
    corpus = counted.source
    check_source(options, corpus)
    check_threads(threads)
    base = open_tokenizer(tokenizer)
    check_kind(base, options)
    value: Tokenizer | UnigramOrWordPieceTokenizer = base
    if options.complete_bytes:
        value = with_missing_bytes(as_tokenizer(base))
    if corpus is not None:
        check_counted(value, corpus)
    names, classes = classes_of(spelled(value), value.row_count)
    characters = None
    if options.drop_unseen_characters:
        assert isinstance(corpus, Corpus)
        characters = characters_of(value, corpus)
    splits = value.splits()
    removable = _removable(value, splits, options.keep, (names, classes), characters=characters)
    n = number_of_tokens(value, options, int(np.count_nonzero(removable)))

    counts, own = _count(
        value, counted, options, measure=measure, threads=threads, progress=progress
    )
    if options.keep.languages and own is not None:
        used = own.of_languages(set(options.keep.languages)) > 0
        removable &= ~splits.trees(used)
        n = number_of_tokens(value, options, int(np.count_nonzero(removable)))
    vocabulary = Vocabulary(splits, removable, _lengths(value), _scripts(names, classes))
    found = removal_order(
        options.order,
        vocabulary,
        None if counts is None else counts.weighted,
        unreachable_first=options.unreachable_first,
    )
    steps: list[PruningStep] = []
    if options.until is not None:
        n, steps = _last_within(
            base, value, found.ids, options, held_out=held_out, progress=progress
        )
    removed = found.ids[:n]

    pruned, old_to_new = _without(value, removed, options)
    before, after = _names(value, splits.unreachable), _names(pruned, pruned.splits().unreachable)
    if after - before:
        raise UnreachableTokenError(
            f"pruning left {len(after - before)} tokens that their merges cannot rebuild: this is "
            "a fault of vocabshift; please report it with the tokenizer"
        )
    measured = effects(
        value, pruned, corpus if measure else None, own, threads=threads, progress=progress
    )
    n_ties = found.n_decided_by_ties(n)
    lost = LostCharacters.between(base, pruned)
    report = PruneReport(
        kind=value.kind,
        order=options.order,
        n_removed=n,
        n_decided_by_ties=n_ties,
        n_removable=len(found.ids),
        n_atomic=int(np.count_nonzero(splits.atomic)),
        vocab_size=value.vocab_size - n,
        rows=pruned.row_count,
        unreachable_before=len(before),
        unreachable_after=len(after),
        removed_by_script=script_effects(names, classes, removed),
        languages=measured.languages,
        round_trip_documents=measured.documents,
        round_trip_failures=measured.failures,
        corpus_fingerprint=None if counts is None else counts.fingerprint,
        warnings=(*loss_warnings(lost), *tie_warnings(n, n_ties)),
        lost_characters=lost,
        steps=tuple(steps),
    )
    return Pruning(pruned, _id_map(base, pruned, old_to_new), removed, report)


def _without(
    tokenizer: _Kind, removed: Int64s, options: PruningOptions
) -> tuple[_Kind, dict[int, int]]:
    """The tokenizer without these ids, and the new id of each that stays."""
    old_to_new = ids_without(tokenizer, removed.tolist(), keep_ids=options.keep_ids)
    return tokenizer.renumbered(old_to_new), old_to_new


def _id_map(base: AnyTokenizer, pruned: AnyTokenizer, old_to_new: dict[int, int]) -> TokenIdMap:
    """The map of the base's own tokens; tokens for missing bytes come after them."""
    kept = {old: new for old, new in old_to_new.items() if old < base.row_count}
    return TokenIdMap.between(base, pruned, kept)


def _last_within(
    base: AnyTokenizer,
    tokenizer: AnyTokenizer,
    order: Int64s,
    options: PruningOptions,
    *,
    held_out: Measure | None,
    progress: Progress | None,
) -> tuple[int, list[PruningStep]]:
    """How many tokens of the order go by `options.until`, and the steps tried.

    `tokenizer`: `base`, with tokens for its missing bytes if they are asked for.
    """
    assert options.until is not None
    if held_out is None:
        raise ValueError("until needs held-out text to measure on")
    before = held_out(base, None)
    finest = max(1, len(order) // FINEST) if options.by == MEASURES[0] else 1
    n_steps = max(1, math.ceil(math.log2((len(order) + 1) / finest)))
    tried: list[int] = []

    def try_out(n: int) -> PruningStep:
        pruned, old_to_new = _without(tokenizer, order[:n], options)
        values = held_out(pruned, _id_map(base, pruned, old_to_new))
        tried.append(n)
        if progress is not None:
            progress("vocabularies tried", len(tried), n_steps)
        return PruningStep(
            n, tokenizer.vocab_size - n, values, change_of(options.by, before, values)
        )

    n, steps = most_removable(len(order), try_out, options.until, finest=finest)
    unpruned = PruningStep(0, base.vocab_size, before, 0.0)
    return n, [unpruned, *steps]


def number_removable(tokenizer: Any) -> int:
    """The largest number of tokens that can be removed; 0 if only atoms are left."""
    value = open_tokenizer(tokenizer)
    require_prunable(value)
    classes = classes_of(spelled(value), value.row_count)
    return int(np.count_nonzero(_removable(value, value.splits(), Keep(), classes)))


def _removable(
    tokenizer: AnyTokenizer,
    splits: Splits,
    keep: Keep,
    classes: tuple[list[str], Int64s],
    *,
    characters: frozenset[str] | None = None,
) -> Flags:
    """What may go: nothing protected, and nothing that something protected is made of.

    `classes`: names, and the number of the name by id, as `classes_of` gives them.
    """
    rows = tokenizer.row_count
    in_model = np.zeros(rows, dtype=bool)
    in_model[list(tokenizer.vocab.values())] = True
    by_text = {data: token_id for token_id, data in spelled(tokenizer).items()}
    kept = protected(tokenizer, splits, characters) | kept_scripts(keep, *classes)
    kept |= kept_tokens(keep, tokenizer.vocab, lambda text: by_text.get(text.encode()), rows)
    return in_model & ~splits.trees(kept)


def _count(
    tokenizer: AnyTokenizer,
    counted: SourceCounts,
    options: PruningOptions,
    *,
    measure: bool,
    threads: int,
    progress: Progress | None,
) -> tuple[TokenCounts | None, TokenCounts | None]:
    """Counts for the order, and the tokenizer's own counts if they are needed.

    The orders use counts without merge skipping; only "frequency" uses the tokenizer's own.
    """
    if counted.source is None:
        return None, None
    by_merges = tokenizer.without_merge_skipping()
    orders_by_own = options.order == "frequency" or by_merges is tokenizer
    first = tokenizer if orders_by_own else by_merges
    counts = counted.count(first, threads=threads, progress=progress)
    require_tokens(counts, tokenizer.name)
    if orders_by_own:
        return counts, counts
    if not (measure or options.keep.languages):
        return counts, None
    own = counted.count(tokenizer, threads=threads, phase="encode", progress=progress)
    return counts, own


def _names(tokenizer: AnyTokenizer, flags: Flags) -> set[str]:
    """The tokens of the model whose ids are flagged."""
    return {token for token, token_id in tokenizer.vocab.items() if flags[token_id]}


def _lengths(tokenizer: AnyTokenizer) -> Int64s:
    """(rows,) characters of each token as the vocabulary spells it."""
    lengths = np.zeros(tokenizer.row_count, dtype=np.int64)
    lengths[list(tokenizer.vocab.values())] = [len(token) for token in tokenizer.vocab]
    return lengths


def _scripts(names: list[str], classes: Int64s) -> Int64s:
    """The classes that are scripts; -1 for digits, punctuation and the like."""
    is_script = np.array([*(name not in _NO_SCRIPTS for name in names), False])
    return np.where(is_script[classes], classes, -1)
