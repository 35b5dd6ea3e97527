"""`prune`: remove tokens from a tokenizer without making the remaining ones unreachable.

Owns the order of the steps: cheap checks first, then counts of the text, then the removal, and then
a check of the result: no token became unreachable, and text round-trips as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    parse_keep,
)
from vocabshift.pruning.orders import Vocabulary, removal_order
from vocabshift.pruning.protection import characters_of, protected, require_prunable, spelled
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_without
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer, open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.missing_bytes import LostCharacters, with_missing_bytes
from vocabshift.tokenizer.pipeline import check_threads
from vocabshift.tokenizer.splits import Flags, Int64s, Splits
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

_NO_SCRIPTS = (*CLASSES, "Unknown", "Common", "Inherited")


def prune(
    tokenizer: TokenizerLike,
    corpus: Source | None = None,
    *,
    n_tokens: int | None = None,
    vocab_size: int | None = None,
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    keep_ids: bool = False,
    unreachable_first: bool = False,
    drop_unseen_characters: bool = False,
    complete_bytes: bool = False,
    threads: int = 1,
) -> Tokenizer | UnigramOrWordPieceTokenizer:
    """Remove `n_tokens` tokens from a tokenizer, or all but `vocab_size`; return the smaller one.

    Special and added tokens, bytes, characters and "<0xNN>" are never removed, nor is a token that
    a remaining token is made of. The same text gives the same result.

    tokenizer: one of ours, a `tokenizers` or fast transformers tokenizer, or a path or Hub name;
        BPE, Unigram or WordPiece.
    corpus: a Corpus or, for byte-level BPE, a CountFolder; the orders "leaf-id" and "id" need no
        text.
    n_tokens, vocab_size: the number of tokens to remove, or to keep in the model; one of them.
    order: "leaf-frequency" (tokens that nothing is made of, the rarest first), "leaf-id" (of these
        the highest id), "merge" (the rarest in any merge; BPE alone), "frequency" (the rarest in
        the end), "id" (the highest id, with what is made of it), "script" (scripts that the text
        uses least).
    keep: further tokens to keep: a token, "file:PATH" (one a line), "script:Deva",
        "language:LABEL" (the tokens that the text of that label uses).
    keep_ids: leave ids as they are, with holes; otherwise they are packed densely in the old order.
        Not for Unigram.
    unreachable_first: first the tokens that their own merges cannot make; BPE alone.
    drop_unseen_characters: of Unigram and WordPiece, also remove single characters that the
        corpus does not have; text with these then has unknown tokens.
    complete_bytes: first add tokens for the bytes that the vocabulary lacks and that UTF-8 can
        hold; BPE alone. They count in `vocab_size`.
    threads: for encoding; the result does not depend on it.

    ValueError if more tokens are to be removed than can be, or if text is needed and not given;
    InvalidTokenizerError for a tokenizer that cannot be read or split into its parts; CorpusError
    for text that cannot be read or yields no token.

    Source: "Teaching Old Tokenizers New Words", section 4; `pruning.orders` says where we differ.
    Unigram and WordPiece are ours.
    """
    options = PruningOptions(
        order=order,
        n_tokens=n_tokens,
        vocab_size=vocab_size,
        keep=parse_keep(keep),
        keep_ids=keep_ids,
        unreachable_first=unreachable_first,
        drop_unseen_characters=drop_unseen_characters,
        complete_bytes=complete_bytes,
    )
    return prune_with_report(tokenizer, corpus, options, threads=threads, measure=False).tokenizer


def prune_with_report(
    tokenizer: Any,
    corpus: Source | SourceCounts | None,
    options: PruningOptions,
    *,
    threads: int = 1,
    measure: bool = True,
    progress: Progress | None = None,
) -> Pruning:
    """`prune`, with the id map, the removed ids and a report.

    `measure`: encode the corpus again, for bytes per token before and after and the round trip.
    `corpus` may be SourceCounts: what it has counted already is not counted again.
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
    removed = found.ids[:n]

    old_to_new = ids_without(value, removed.tolist(), keep_ids=options.keep_ids)
    pruned = value.renumbered(old_to_new)
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
    )
    kept = {old: new for old, new in old_to_new.items() if old < base.row_count}
    return Pruning(pruned, TokenIdMap.between(base, pruned, kept), removed, report)


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
