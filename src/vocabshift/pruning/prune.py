"""`prune`: a tokenizer in, a smaller one out, in which nothing that stays is broken.

Owns the order of the work: what is cheap is checked first, then text is counted, then tokens are
taken out, and then the result is looked at: no token became unreachable, text comes back as before.
The kinds of models are known to `bpe_subject` and `trim`, the orders to `orders`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from vocabshift.checks.vocabulary_report import CLASSES, classes_of
from vocabshift.errors import UnreachableTokenError
from vocabshift.pruning.bpe import BpeSubject, lengths_of, new_ids
from vocabshift.pruning.counts import Progress, Source, TokenCounts, languages_of, require_tokens
from vocabshift.pruning.effects import PruneReport, Pruning, effects, script_effects, tie_warnings
from vocabshift.pruning.orders import NEED_COUNTS, RemovalOrder, Vocabulary, removal_order
from vocabshift.pruning.request import (
    Keep,
    Request,
    check_kind,
    check_languages,
    check_request,
    kept_scripts,
    kept_tokens,
    number_of_tokens,
    parse_keep,
)
from vocabshift.pruning.unigram_or_wordpiece import PlainSubject
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.tokenizer.formats.load import TokenizerLike
from vocabshift.tokenizer.id_map import IdMap
from vocabshift.tokenizer.splits import Flags, Ids
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import open_prunable

Subject = BpeSubject | PlainSubject

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
    threads: int = 1,
) -> Any:
    """Take `n_tokens` tokens out of a tokenizer, or all but `vocab_size`; returns the smaller one.

    `tokenizer`: a Tokenizer, a transformers or `tokenizers` one, or a path; BPE, or Unigram or
    WordPiece (then the result is a `PlainTokenizer`). `corpus`: a Corpus or CountFolder; orders
    that look at no text ("leaf-id", "id") work without.

    `order`: "leaf-frequency" (tokens that nothing is made of, the rarest first), "leaf-id" (of
    these the highest id), "merge" (the rarest in any merge), "frequency" (the rarest in the end),
    "id" (the highest id, with what is made of it), "script" (scripts that the text uses least).
    Never goes: a special or added token, a byte, a character, "<0xNN>", what stands in `keep`
    (a token, "file:PATH", "script:Deva", "language:LABEL"), or what one that stays is made of.

    Of a Unigram or WordPiece tokenizer `drop_unseen_characters` lets single characters go that the
    corpus does not have: text with these then holds unknown tokens.

    Ids are packed densely in the old order, or with `keep_ids` left as they are. The same text
    gives the same result whatever `threads`. ValueError where more is asked for than can go.
    """
    return prune_with_report(
        tokenizer,
        corpus,
        n_tokens=n_tokens,
        vocab_size=vocab_size,
        order=order,
        keep=keep,
        keep_ids=keep_ids,
        unreachable_first=unreachable_first,
        drop_unseen_characters=drop_unseen_characters,
        threads=threads,
        measure=False,
    ).tokenizer


def prune_with_report(
    tokenizer: Any,
    corpus: Source | None = None,
    *,
    n_tokens: int | None = None,
    vocab_size: int | None = None,
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    keep_ids: bool = False,
    unreachable_first: bool = False,
    drop_unseen_characters: bool = False,
    threads: int = 1,
    measure: bool = True,
    progress: Progress | None = None,
) -> Pruning:
    """`prune`, with the id map, the removed ids and a report.

    `measure`: encode the corpus again, for bytes per token before and after and the round trip.
    """
    request = check_request(
        order,
        n_tokens,
        vocab_size,
        keep,
        keep_ids=keep_ids,
        unreachable_first=unreachable_first,
        drop_unseen_characters=drop_unseen_characters,
    )
    if corpus is None and (order in NEED_COUNTS or drop_unseen_characters):
        what = "drop_unseen_characters" if drop_unseen_characters else f"the order {order!r}"
        raise ValueError(f"{what} looks at text; give a corpus, or order leaf-id")
    if not isinstance(corpus, Corpus | CountFolder | None):
        raise TypeError(
            f"corpus is {type(corpus).__name__}; give a Corpus, for example "
            "vs.Corpus.from_files({'hi': 'hindi.txt'})"
        )
    check_languages(request.keep, [] if corpus is None else languages_of(corpus))
    if threads < 1:
        raise ValueError(f"threads is {threads}; give at least 1")
    subject = open_subject(tokenizer)
    return prune_subject(
        subject, corpus, request, threads=threads, measure=measure, progress=progress
    )


def open_subject(tokenizer: Any) -> Subject:
    """The tokenizer as pruning sees it; InvalidTokenizerError for a kind that cannot be pruned."""
    value = open_prunable(tokenizer)
    return BpeSubject(value) if isinstance(value, Tokenizer) else PlainSubject(value)


def number_removable(tokenizer: Any) -> int:
    """How many tokens could be taken out of a tokenizer at most; 0 where only atoms are left."""
    subject = open_subject(tokenizer)
    names, classes = classes_of(subject.spelled, subject.rows)
    return int(np.count_nonzero(_removable(subject, parse_keep(()), names, classes)))


def prune_subject(
    subject: Subject,
    source: Source | None,
    request: Request,
    *,
    threads: int = 1,
    measure: bool = True,
    progress: Progress | None = None,
) -> Pruning:
    """Do what `prune_with_report` does, with everything checked that is cheap."""
    check_kind(subject, request)
    if source is not None:
        subject.check_source(source)
    names, classes = classes_of(subject.spelled, subject.rows)
    if request.drop_unseen_characters and isinstance(subject, PlainSubject):
        assert isinstance(source, Corpus)
        subject = subject.for_characters_of(source)
    removable = _removable(subject, request.keep, names, classes)
    n = number_of_tokens(subject, request, int(np.count_nonzero(removable)))

    counts, own = _count(
        subject, source, request, measure=measure, threads=threads, progress=progress
    )
    if request.keep.languages and own is not None:
        used = own.of_languages(set(request.keep.languages)) > 0
        removable &= ~subject.splits.trees(used)
        n = number_of_tokens(subject, request, int(np.count_nonzero(removable)))
    scripts = _scripts(names, classes)
    found = _order(subject, request, removable, scripts, counts)
    removed = found.ids[:n]

    old_to_new = new_ids(subject.present, removed, keep_ids=request.keep_ids)
    pruned = subject.without(old_to_new)
    before, after = subject.unreachable(), pruned.unreachable()
    if after - before:
        raise UnreachableTokenError(
            f"pruning left {len(after - before)} tokens that their merges cannot rebuild: this is "
            "a fault of vocabshift; please report it with the tokenizer"
        )
    measured = effects(
        subject, pruned, source if measure else None, own, threads=threads, progress=progress
    )
    n_ties = found.n_decided_by_ties(n)
    report = PruneReport(
        kind=subject.kind,
        order=request.order,
        n_removed=n,
        n_decided_by_ties=n_ties,
        n_removable=len(found.ids),
        n_atomic=int(np.count_nonzero(subject.splits.atomic)),
        vocab_size=len(subject.vocab) - n,
        rows=pruned.rows,
        unreachable_before=len(before),
        unreachable_after=len(after),
        removed_by_script=script_effects(names, classes, removed),
        languages=measured.languages,
        round_trip_documents=measured.documents,
        round_trip_failures=measured.failures,
        corpus_fingerprint=None if counts is None else counts.fingerprint,
        warnings=(*subject.warnings(), *tie_warnings(n, n_ties)),
    )
    id_map = IdMap.of_ids(
        subject.fingerprint,
        pruned.fingerprint,
        old_to_new,
        subject.rows,
        pruned.rows,
        vocab=subject.vocab,
    )
    return Pruning(pruned.tokenizer, id_map, removed, report)


def _removable(subject: Subject, keep: Keep, names: list[str], classes: Ids) -> Flags:
    """What may go: nothing protected, and nothing that something protected is made of."""
    in_model = np.zeros(subject.rows, dtype=bool)
    in_model[list(subject.vocab.values())] = True
    by_text = {data: token_id for token_id, data in subject.spelled.items()}
    kept = subject.protected() | kept_scripts(keep, names, classes)
    kept |= kept_tokens(keep, subject.vocab, lambda text: by_text.get(text.encode()), subject.rows)
    return in_model & ~subject.splits.trees(kept)


def _count(
    subject: Subject,
    source: Source | None,
    request: Request,
    *,
    measure: bool,
    threads: int,
    progress: Progress | None,
) -> tuple[TokenCounts | None, TokenCounts | None]:
    """Counts for the order, and those of the tokenizer as it is where somebody asks for them."""
    if source is None:
        return None, None
    orders_by_own = request.order == "frequency" or subject.counts_alike
    counts = subject.count(source, own=orders_by_own, threads=threads, progress=progress)
    require_tokens(counts, subject.name)
    if orders_by_own:
        return counts, counts
    if not (measure or request.keep.languages):
        return counts, None
    own = subject.count(source, own=True, threads=threads, phase="encode", progress=progress)
    return counts, own


def _order(
    subject: Subject,
    request: Request,
    removable: Flags,
    scripts: Ids,
    counts: TokenCounts | None,
) -> RemovalOrder:
    lengths = lengths_of(subject.vocab, subject.rows)
    vocabulary = Vocabulary(subject.splits, removable, lengths, scripts)
    weighted = None if counts is None else counts.weighted
    return removal_order(
        request.order, vocabulary, weighted, unreachable_first=request.unreachable_first
    )


def _scripts(names: list[str], classes: Ids) -> Ids:
    """The classes that are scripts; -1 for digits, punctuation and the like."""
    is_script = np.array([*(name not in _NO_SCRIPTS for name in names), False])
    return np.where(is_script[classes], classes, -1)
