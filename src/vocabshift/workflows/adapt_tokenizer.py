"""`adapt`: replace unneeded tokens of a tokenizer by missing ones, at constant vocabulary size.

Joins pruning and extension, in either order. Kept tokens, special tokens included, keep their ids,
and new tokens take the ids of removed ones. So a model keeps its number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from vocabshift.checks.deployable import Choice
from vocabshift.extension.by_name import ByName
from vocabshift.extension.counting import TextCounts
from vocabshift.extension.extend import prepared
from vocabshift.extension.named_tokens import NOTHING, AnyKind, NamedTokens
from vocabshift.extension.options import ExtensionOptions
from vocabshift.extension.report import ExtensionReport
from vocabshift.progress import Progress
from vocabshift.pruning.effects import PruneReport, loss_warnings
from vocabshift.pruning.options import parse_keep
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import ids_of_tokens, tokens_by_id
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer, open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap, chained
from vocabshift.tokenizer.missing_bytes import LostCharacters
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.adapt_steps import (
    First,
    exchange_by_name,
    exchange_learned,
    same_tokens,
)
from vocabshift.workflows.extend import check_request
from vocabshift.workflows.plan import CorpusCounts, plan


@dataclass(frozen=True)
class Adaptation:
    """A tokenizer with as many tokens as its base, and how it was made."""

    tokenizer: AnyKind
    id_map: TokenIdMap  # removed tokens have no new id
    extension: ExtensionReport | None  # None: nothing was learned
    pruning: PruneReport | None  # of what was learned, else of what was named; None: nothing is new
    first: First
    added: tuple[str, ...]  # tokens that the base lacks, by rank, most useful first
    removed: tuple[str, ...]  # removed tokens of the base, by id
    n_relearned: int  # base tokens removed, then relearned; neither added nor removed
    lost_characters: LostCharacters
    by_name: ByName | None = None  # words and special tokens, where any are given
    choice: Choice | None = None  # of a pattern of llama.cpp, where nothing was learned

    @property
    def corpus_fingerprint(self) -> str | None:
        """The fingerprint of the corpus, as far as something was counted."""
        if self.extension is not None:
            return self.extension.corpus_fingerprint
        return None if self.pruning is None else self.pruning.corpus_fingerprint

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values. The reports of the two steps describe each step by itself."""
        n_added = len(self.added)
        figures = {
            "first": self.first,
            "vocab_size": self.tokenizer.vocab_size,
            "rows": self.tokenizer.row_count,
            "n_copied": len(ids_of_tokens(self.tokenizer)) - n_added,
            "n_initialized": n_added,
            "n_added": n_added,
            "n_removed": len(self.removed),
            "n_relearned": self.n_relearned,
            "extension": None if self.extension is None else self.extension.to_dict(),
            "pruning": None if self.pruning is None else asdict(self.pruning),
            "lost_characters": asdict(self.lost_characters),
        }
        if self.choice is not None:
            figures["deployable"] = self.choice.to_dict()
        return figures if self.by_name is None else {**self.by_name.figures(figures), **figures}


def adapt_tokenizer(
    tokenizer: TokenizerLike,
    corpus: Corpus | TextCounts | CorpusCounts,
    *,
    n_tokens: int = 0,
    named: NamedTokens = NOTHING,
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
        missing bytes (`complete_bytes`) are among the new ones. 0: nothing is learned.
    named: words and special tokens to add on top, for which as many tokens are removed. Unigram and
        WordPiece tokenizers take these alone.
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
    base = open_tokenizer(tokenizer)
    options = ExtensionOptions(
        n_tokens=n_tokens,
        pre_tokenizer=pre_tokenizer,
        tie_break=tie_break,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        character_coverage=character_coverage,
        complete_bytes=complete_bytes,
        fill_holes=fill_holes or (first == "prune" and n_tokens > 0),
        normalizer=normalizer,
        sampling_alpha=sampling_alpha,
    )
    counts = CorpusCounts.of(corpus)  # every attempt splits the text alike
    check_request(options, named, counts.words.source)
    run = {"order": order, "keep": parse_keep(keep), "threads": threads, "progress": progress}
    result: AnyKind = base
    extension = pruning = exchange = choice = None
    n_relearned = 0
    if n_tokens:
        result, extension, pruning = exchange_learned(
            as_tokenizer(base), counts, options, run, first=first
        )
        if first == "prune":
            n_lost = sum(token not in result.vocab for token in base.vocab)
            n_relearned = pruning.n_removed - n_lost
    if named:
        if not n_tokens:
            result, choice = prepared(base, counts.words.source, options, threads=threads)
        exchange = exchange_by_name(result, named, counts, run, like=base)
        result, pruning = exchange.tokenizer, pruning or exchange.pruning
    if complete_bytes and pruning:  # what the pruning by itself loses is added by the other step
        losses = loss_warnings(pruning.lost_characters)
        pruning = replace(pruning, warnings=tuple(w for w in pruning.warnings if w not in losses))
    merges = result.model.merges if isinstance(result, Tokenizer) else ()
    before, now = tokens_by_id(base).values(), tokens_by_id(result).values()
    known, there = set(before), set(now)
    removed = tuple(token for token in base.vocab if token not in there)
    kept = same_tokens(base, result)
    return Adaptation(
        tokenizer=result,
        id_map=chained(tokenizer, TokenIdMap.between(base, result, kept), result.vocab),
        extension=extension,
        pruning=pruning,
        first=first,
        added=tuple(
            token
            for token in dict.fromkeys((*(left + right for left, right in merges), *now))
            if token in there and token not in known
        ),
        removed=removed,
        n_relearned=n_relearned,
        lost_characters=LostCharacters.between(base, result),
        by_name=None if exchange is None else exchange.added,
        choice=choice,
    )


def adapt_to_folder(
    tokenizer: TokenizerLike,
    corpus: Corpus,
    out: str | Path,
    *,
    n_tokens: int | None = None,
    named: NamedTokens = NOTHING,
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

    n_tokens: None takes what `Plan.exchange_of` says, or 0 where words or special tokens are
        `named`. The other options are those of `adapt_tokenizer`.
    out: the folder, which appears whole or not at all. inputs: further paths, besides the tokenizer
        and the corpus, that `out` may not replace.

    Returns the keys of `vocabshift adapt --json`. FileExistsError if `out` exists, without
    `force`; errors of `adapt_tokenizer` before anything is written.
    """
    shared: dict[str, Any] = {"sampling_alpha": sampling_alpha}
    run: dict[str, Any] = {"threads": threads, "progress": progress}
    with outcome("adapt", out, inputs=[tokenizer, corpus, *inputs], force=force) as output:
        base = open_tokenizer(tokenizer)  # opened, compiled and split into parts once
        if n_tokens is None and named:
            n_tokens = 0
        elif n_tokens is None:
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
        adaptation = adapt_tokenizer(base, corpus, named=named, **asked, **run)
        id_map = chained(tokenizer, adaptation.id_map, adaptation.tokenizer.vocab)
        write_files(adaptation.tokenizer, output.folder)
        return output.record(
            asked | named.to_dict() | {"old": id_map.old},
            adaptation.to_dict(),
            corpus_fingerprint=adaptation.corpus_fingerprint,
            id_map=id_map,
        )
