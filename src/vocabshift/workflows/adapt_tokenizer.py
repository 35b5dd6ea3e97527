"""`adapt`: replace unneeded tokens of a tokenizer by missing ones, at constant vocabulary size.

Joins pruning and extension, in either order. Kept tokens, special tokens included, keep their ids,
and new tokens take the ids of removed ones. So a model keeps its number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from vocabshift.errors import UnreachableTokenError
from vocabshift.extension.continued import holes
from vocabshift.extension.counting import TextCounts
from vocabshift.extension.extend import Extension, extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.extension.report import ExtensionReport
from vocabshift.progress import Progress
from vocabshift.pruning.effects import PruneReport, Pruning, loss_warnings
from vocabshift.pruning.options import PruningOptions, parse_keep
from vocabshift.pruning.prune import prune_with_report
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import ids_of_tokens
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap, chained
from vocabshift.tokenizer.missing_bytes import LostCharacters
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.plan import CorpusCounts, plan

First = Literal["prune", "extend"]


@dataclass(frozen=True)
class Adaptation:
    """A tokenizer with as many tokens as its base, and how it was made."""

    tokenizer: Tokenizer
    id_map: TokenIdMap  # removed tokens have no new id
    extension: ExtensionReport
    pruning: PruneReport
    first: First
    added: tuple[str, ...]  # tokens that the base lacks, by rank, most useful first
    removed: tuple[str, ...]  # removed tokens of the base, by id
    n_relearned: int  # base tokens removed, then relearned; neither added nor removed
    lost_characters: LostCharacters

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values. The reports of the two steps describe each step by itself."""
        vocab = self.tokenizer.model.vocab
        n_special = sum(token.content not in vocab for token in self.tokenizer.added_tokens)
        return {
            "first": self.first,
            "vocab_size": self.tokenizer.vocab_size,
            "rows": self.tokenizer.row_count,
            "n_copied": self.tokenizer.vocab_size + n_special - len(self.added),
            "n_initialized": len(self.added),
            "n_added": len(self.added),
            "n_removed": len(self.removed),
            "n_relearned": self.n_relearned,
            "extension": self.extension.to_dict(),
            "pruning": asdict(self.pruning),
            "lost_characters": asdict(self.lost_characters),
        }


def adapt_tokenizer(
    tokenizer: TokenizerLike,
    corpus: Corpus | TextCounts | CorpusCounts,
    *,
    n_tokens: int,
    first: First = "prune",
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    pre_tokenizer: str = ExtensionOptions.pre_tokenizer,
    tie_break: str = ExtensionOptions.tie_break,
    min_frequency: int = ExtensionOptions.min_frequency,
    max_token_bytes: int | None = ExtensionOptions.max_token_bytes,
    character_coverage: float | None = ExtensionOptions.character_coverage,
    complete_bytes: bool = ExtensionOptions.complete_bytes,
    fill_holes: bool = ExtensionOptions.fill_holes,
    normalizer: str | None = ExtensionOptions.normalizer,
    sampling_alpha: float | None = ExtensionOptions.sampling_alpha,
    threads: int = 1,
    progress: Progress | None = None,
) -> Adaptation:
    """Remove `n_tokens` tokens from a tokenizer and learn as many new ones from a corpus.

    tokenizer: one of ours, a fast transformers or `tokenizers` one, or a path; it is not changed.
    corpus: text of every language whose quality must be kept: tokens that it does not use are
        removed first. Words that are already counted are not counted again.
    n_tokens: tokens to exchange; if the text yields fewer new ones, fewer are removed. Tokens for
        missing bytes (`complete_bytes`) are among the new ones.
    first: the first step, "prune" or "extend".
    order, keep: which tokens are removed, as for `prune`.
    pre_tokenizer, tie_break, min_frequency, max_token_bytes, character_coverage, complete_bytes,
        fill_holes, normalizer, sampling_alpha: how new tokens are learned, as for `extend`.
    threads: the result does not depend on it. progress: called with the phase, the work done and
        the total work.

    ValueError for an impossible number of tokens; CorpusError if nothing can be learned.
    Source: continued BPE and leaf pruning of arXiv:2512.03989; their exchange in place is ours.
    """
    if first not in get_args(First):
        raise ValueError(f"first is {first!r}; give one of {get_args(First)}")
    base = as_tokenizer(tokenizer)
    options = ExtensionOptions(
        n_tokens=n_tokens,
        pre_tokenizer=pre_tokenizer,
        tie_break=tie_break,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        character_coverage=character_coverage,
        complete_bytes=complete_bytes,
        fill_holes=fill_holes or first == "prune",
        normalizer=normalizer,
        sampling_alpha=sampling_alpha,
    )
    counts = CorpusCounts.of(corpus)  # every attempt splits the text alike
    kept = parse_keep(keep)
    run = _prune_first if first == "prune" else _extend_first
    pruning_options = {"order": order, "keep": kept, "threads": threads, "progress": progress}

    def attempt(n: int) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
        return run(base, counts, replace(options, n_tokens=n), pruning_options)

    result, extension, pruning = attempt(n_tokens)
    while extension.n_added < pruning.n_removed:  # the text yields too few: remove fewer
        result, extension, pruning = attempt(extension.n_added)
    vocab, before = result.model.vocab, base.model.vocab
    learned = (left + right for left, right in result.model.merges)
    removed = tuple(token for token in before if token not in vocab)
    if complete_bytes:  # what the pruning by itself loses is added by the other step
        losses = loss_warnings(pruning.lost_characters)
        pruning = replace(pruning, warnings=tuple(w for w in pruning.warnings if w not in losses))
    return Adaptation(
        tokenizer=result,
        id_map=chained(tokenizer, TokenIdMap.between(base, result, _same_ids(base, result)), vocab),
        extension=extension,
        pruning=pruning,
        first=first,
        added=tuple(
            token
            for token in dict.fromkeys((*learned, *vocab))
            if token in vocab and token not in before
        ),
        removed=removed,
        n_relearned=pruning.n_removed - len(removed) if first == "prune" else 0,
        lost_characters=LostCharacters.between(base, result),
    )


def _same_ids(base: Tokenizer, result: Tokenizer) -> dict[int, int]:
    """Ids that name the same token in both tokenizers."""
    new = _by_id(result)
    return {i: i for i, token in _by_id(base).items() if new.get(i) == token}


def _by_id(tokenizer: Tokenizer) -> dict[int, str]:
    tokens = {token_id: token for token, token_id in tokenizer.model.vocab.items()}
    return tokens | {token.id: token.content for token in tokenizer.added_tokens}


def adapt_to_folder(
    tokenizer: TokenizerLike,
    corpus: Corpus,
    out: str | Path,
    *,
    n_tokens: int | None = None,
    first: First = "prune",
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    pre_tokenizer: str = ExtensionOptions.pre_tokenizer,
    min_frequency: int = ExtensionOptions.min_frequency,
    complete_bytes: bool = ExtensionOptions.complete_bytes,
    sampling_alpha: float | None = ExtensionOptions.sampling_alpha,
    inputs: Iterable[str | Path] = (),
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Adapt a tokenizer and write the folder.

    n_tokens: None takes what `Plan.exchange_of` says. The other options are those of
    `adapt_tokenizer`. out: the folder, which appears whole or not at all. inputs: further paths,
    besides the tokenizer and the corpus, that `out` may not replace.

    Returns the keys of `vocabshift adapt --json`. FileExistsError if `out` exists, without
    `force`; errors of `adapt_tokenizer` before anything is written.
    """
    shared: dict[str, Any] = {"sampling_alpha": sampling_alpha}
    run: dict[str, Any] = {"threads": threads, "progress": progress}
    with outcome("adapt", out, inputs=[tokenizer, corpus, *inputs], force=force) as output:
        base = as_tokenizer(tokenizer)  # opened, compiled and split into parts once
        if n_tokens is None:
            n_tokens = plan(base, corpus, **shared, **run).exchange_of(pre_tokenizer)
        asked = {
            "n_tokens": n_tokens,
            "first": first,
            "order": order,
            "keep": list(keep),
            "pre_tokenizer": pre_tokenizer,
            "min_frequency": min_frequency,
            **({"complete_bytes": True} if complete_bytes else {}),
            **shared,
        }
        adaptation = adapt_tokenizer(base, corpus, **asked, **run)
        id_map = chained(tokenizer, adaptation.id_map, adaptation.tokenizer.vocab)
        write_files(adaptation.tokenizer, output.folder)
        return output.record(
            asked | {"old": id_map.old},
            adaptation.to_dict(),
            corpus_fingerprint=adaptation.extension.corpus_fingerprint,
            id_map=id_map,
        )


def _prune(base: Tokenizer, counts: CorpusCounts, n: int, run: Mapping[str, Any]) -> Pruning:
    options = PruningOptions(order=run["order"], n_tokens=n, keep=run["keep"], keep_ids=True)
    return prune_with_report(
        base, counts.tokens, options, threads=run["threads"], progress=run["progress"]
    )


def _prune_first(
    base: Tokenizer, counts: CorpusCounts, options: ExtensionOptions, pruning: dict[str, Any]
) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
    pruned = _prune(base, counts, options.n_tokens, pruning)
    extension = _extend(as_tokenizer(pruned.tokenizer), counts.words, options, pruning)
    return _with_old_ids(extension.tokenizer, base), extension.report, pruned.report


def _extend_first(
    base: Tokenizer, counts: CorpusCounts, options: ExtensionOptions, pruning: dict[str, Any]
) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
    extension = _extend(base, counts.words, options, pruning)
    n = extension.report.n_added
    pruned = _prune(extension.tokenizer, counts, n, pruning)
    result = _moved_into_holes(as_tokenizer(pruned.tokenizer), base.row_count)
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


def _with_old_ids(tokenizer: Tokenizer, base: Tokenizer) -> Tokenizer:
    """Give tokens that were removed and learned again the ids that they had in `base`."""
    old, now = base.model.vocab, tokenizer.model.vocab
    moved = {i: old[token] for token, i in now.items() if old.get(token, i) != i}
    if not moved:
        return tokenizer
    new = sorted(i for token, i in now.items() if token not in old)
    free = sorted({*new, *moved} - set(moved.values()))
    moved.update(zip(new, free, strict=False))  # holes of the base leave more ids free
    return _renumbered(tokenizer, {i: moved.get(i, i) for i in ids_of_tokens(tokenizer)})


def _moved_into_holes(tokenizer: Tokenizer, rows: int) -> Tokenizer:
    """Move tokens with ids from `rows` on to the free ids below, in their order."""
    free = iter(holes(tokenizer))
    ids = sorted(ids_of_tokens(tokenizer))
    return _renumbered(tokenizer, {i: i if i < rows else next(free) for i in ids})


def _renumbered(tokenizer: Tokenizer, old_to_new: dict[int, int]) -> Tokenizer:
    result = tokenizer.renumbered(old_to_new)
    vocab = dict(sorted(result.model.vocab.items(), key=lambda entry: entry[1]))
    return replace(result, model=replace(result.model, vocab=vocab))
