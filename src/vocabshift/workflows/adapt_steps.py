"""The steps of `adapt`: tokens are exchanged for learned ones, then for words and special tokens.

Owns both exchanges and the moves of ids that they need: new tokens take the ids of removed ones.
The ids of a Unigram vocabulary are places in a list, so there the tokens after a removed one move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from vocabshift.errors import UnreachableTokenError
from vocabshift.extension.by_name import ByName, add_by_name
from vocabshift.extension.continued import holes
from vocabshift.extension.counting import TextCounts
from vocabshift.extension.extend import Extension, extend_with_report
from vocabshift.extension.named_tokens import AnyKind, NamedTokens
from vocabshift.extension.options import ExtensionOptions
from vocabshift.extension.report import ExtensionReport
from vocabshift.pruning.effects import PruneReport, Pruning
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_of_tokens, tokens_by_id
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.plan import CorpusCounts

First = Literal["prune", "extend"]


def exchange_learned(
    base: Tokenizer,
    counts: CorpusCounts,
    options: ExtensionOptions,
    pruning_options: dict[str, Any],
    *,
    first: First,
) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
    """Exchange tokens for learned ones; fewer if the text yields fewer."""
    run = _prune_first if first == "prune" else _extend_first

    def attempt(n: int) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
        return run(base, counts, replace(options, n_tokens=n), pruning_options)

    result, extension, pruning = attempt(options.n_tokens)
    while extension.n_added < pruning.n_removed:  # the text yields too few: remove fewer
        result, extension, pruning = attempt(extension.n_added)
    return result, extension, pruning


def _prune_first(
    base: Tokenizer, counts: CorpusCounts, options: ExtensionOptions, pruning: dict[str, Any]
) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
    pruned = prune_rows(base, counts, options.n_tokens, pruning)
    extension = _extend(as_tokenizer(pruned.tokenizer), counts.words, options, pruning)
    return with_old_ids(extension.tokenizer, base), extension.report, pruned.report


def _extend_first(
    base: Tokenizer, counts: CorpusCounts, options: ExtensionOptions, pruning: dict[str, Any]
) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
    extension = _extend(base, counts.words, options, pruning)
    n = extension.report.n_added
    pruned = prune_rows(extension.tokenizer, counts, n, pruning)
    result = moved_into_holes(as_tokenizer(pruned.tokenizer), base.row_count)
    if result.row_count > max(base.row_count, 1):
        raise UnreachableTokenError(
            f"adapting left {result.row_count - base.row_count:,} rows too many: this is a fault "
            "of vocabshift; please report it with the text"
        )
    return result, extension.report, pruned.report


def _extend(
    base: Tokenizer, counts: TextCounts, options: ExtensionOptions, run: Mapping[str, Any]
) -> Extension:
    """Add `options.n_tokens` new tokens in total, including missing characters and bytes."""
    n = options.n_tokens

    def extended(n_tokens: int) -> Extension:
        asked = replace(options, n_tokens=n_tokens)
        return extend_with_report(
            base, counts, asked, threads=run["threads"], progress=run["progress"]
        )

    extension = extended(n)
    report = extension.report
    if report.n_added <= n:
        return extension
    n_missing = report.n_characters + report.n_bytes_added
    if n_missing >= n:
        raise ValueError(
            f"{report.n_added:,} tokens at least would be new, and {n:,} are to be exchanged: the "
            f"text has {report.n_characters:,} characters that {base.name} lacks, and "
            f"{report.n_bytes_added:,} bytes are to be added; exchange more than {n_missing:,} "
            "tokens"
        )
    return extended(n - n_missing)


@dataclass(frozen=True)
class NamedExchange:
    """A tokenizer with what was named, and with as many tokens and rows as before."""

    tokenizer: AnyKind
    added: ByName  # before tokens were removed; ids are those of that step
    pruning: PruneReport | None  # None where nothing was new


def exchange_by_name(
    base: AnyKind,
    named: NamedTokens,
    counts: CorpusCounts,
    pruning: Mapping[str, Any],
    *,
    like: AnyKind,
) -> NamedExchange:
    """Add what was named, and remove as many tokens as needed for the number that `like` has.

    base: `like` itself, or `like` with learned tokens or missing bytes.
    pruning: the order, what to keep, threads and progress, as for `prune`. New tokens are kept.
    ValueError if so many tokens cannot be removed.
    """
    text = counts.tokens.source
    added = add_by_name(
        base,
        named,
        text=text if isinstance(text, Corpus) else None,
        threads=pruning["threads"],
    )
    n = len(ids_of_tokens(added.tokenizer)) - len(ids_of_tokens(like))
    if not n:
        return NamedExchange(added.tokenizer, added, None)
    new = [token for token in added.tokenizer.vocab if token not in base.vocab]
    keep = replace(pruning["keep"], tokens=(*pruning["keep"].tokens, *new))
    pruned = prune_rows(added.tokenizer, counts, n, {**pruning, "keep": keep})
    result: Any = pruned.tokenizer
    if base.kind != "Unigram":
        result = moved_into_holes(result, like.row_count)
    return NamedExchange(result, replace(added, tokenizer=result), pruned.report)


def prune_rows(base: AnyKind, counts: CorpusCounts, n: int, run: Mapping[str, Any]) -> Pruning:
    """Remove `n` tokens; the others keep their ids, where ids may have holes."""
    options = PruningOptions(
        order=run["order"], n_tokens=n, keep=run["keep"], keep_ids=base.kind != "Unigram"
    )
    return prune_with_report(
        base, counts.tokens, options, threads=run["threads"], progress=run["progress"]
    )


def with_old_ids(tokenizer: Tokenizer, base: Tokenizer) -> Tokenizer:
    """Give tokens that were removed and learned again the ids that they had in `base`."""
    old, now = base.model.vocab, tokenizer.model.vocab
    moved = {i: old[token] for token, i in now.items() if old.get(token, i) != i}
    if not moved:
        return tokenizer
    new = sorted(i for token, i in now.items() if token not in old)
    free = sorted({*new, *moved} - set(moved.values()))
    moved.update(zip(new, free, strict=False))  # holes of the base leave more ids free
    return _renumbered(tokenizer, {i: moved.get(i, i) for i in ids_of_tokens(tokenizer)})


def moved_into_holes(tokenizer: AnyKind, rows: int) -> Any:
    """Move tokens with ids from `rows` on to the free ids below, in their order."""
    free = iter(holes(tokenizer))
    ids = sorted(ids_of_tokens(tokenizer))
    moved = {i: i if i < rows else next(free) for i in ids}
    if isinstance(tokenizer, Tokenizer):
        return _renumbered(tokenizer, moved)
    return tokenizer.renumbered(moved)


def _renumbered(tokenizer: Tokenizer, old_to_new: dict[int, int]) -> Tokenizer:
    result = tokenizer.renumbered(old_to_new)
    vocab = dict(sorted(result.model.vocab.items(), key=lambda entry: entry[1]))
    return replace(result, model=replace(result.model, vocab=vocab))


def same_tokens(base: AnyTokenizer, result: AnyTokenizer) -> dict[int, int]:
    """Old id -> new id of the tokens that both have."""
    new = {token: token_id for token_id, token in tokens_by_id(result).items()}
    return {i: new[token] for i, token in tokens_by_id(base).items() if token in new}
