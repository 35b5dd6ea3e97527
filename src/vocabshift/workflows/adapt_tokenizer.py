"""`adapt`: the words a tokenizer lacks for those that nobody needs, at constant size.

Joins pruning and extension, in either order. No id moves: what is kept keeps its id, special tokens
too, and new tokens take the ids of those that are gone. So a model keeps its number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from vocabshift.errors import UnreachableTokenError
from vocabshift.extension.continued import holes
from vocabshift.extension.extend import Extension, extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.extension.report import ExtensionReport
from vocabshift.pruning.effects import PruneReport, Pruning
from vocabshift.pruning.options import PruningOptions, parse_keep
from vocabshift.pruning.prune import prune_with_report
from vocabshift.storage.output import atomic_folder, check_free
from vocabshift.storage.provenance import write_provenance
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import ids_of_tokens
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap, chained
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.tokenizer import Tokenizer

First = Literal["prune", "extend"]
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Adaptation:
    """A tokenizer of the size of its base, and how it came about."""

    tokenizer: Tokenizer
    id_map: TokenIdMap  # tokens that are gone have no new id
    extension: ExtensionReport
    pruning: PruneReport
    first: First
    added: tuple[str, ...]  # tokens that the base does not have, by rank: the most useful first
    removed: tuple[str, ...]  # tokens of the base that are gone, by id
    n_relearned: int  # of the base, taken out and learned again; neither added nor removed

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values. What the two steps did, each by itself, stands in their reports."""
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
        }


def adapt_tokenizer(
    tokenizer: Any,
    corpus: Corpus,
    *,
    n_tokens: int,
    first: First = "prune",
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    threads: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Adaptation:
    """Take `n_tokens` out of a tokenizer and learn as many new ones from `corpus`.

    `first` says what is done first. `order` and `keep` are those of `prune`; `options` the others
    of `ExtensionOptions`. Where the text yields fewer new tokens, fewer are taken out. The corpus
    must hold text of every language that is to stay good: what it does not use goes first.
    """
    if first not in get_args(First):
        raise ValueError(f"first is {first!r}; give one of {get_args(First)}")
    if options.get("method", "continued") != "continued":
        raise ValueError("adapt continues training; compare baselines with extend")
    ExtensionOptions(n_tokens=n_tokens, **options)
    base = as_tokenizer(tokenizer)
    kept = parse_keep(keep)
    run = _prune_first if first == "prune" else _extend_first

    def attempt(n: int) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
        return run(
            base,
            corpus,
            n,
            {"order": order, "keep": kept, "threads": threads, "progress": progress},
            {**options, "threads": threads, "progress": progress},
        )

    result, extension, pruning = attempt(n_tokens)
    while extension.n_added < pruning.n_removed:  # the text yields no more: take out no more
        result, extension, pruning = attempt(extension.n_added)
    vocab, before = result.model.vocab, base.model.vocab
    learned = (left + right for left, right in result.model.merges)
    removed = tuple(token for token in before if token not in vocab)
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
    )


def _same_ids(base: Tokenizer, result: Tokenizer) -> dict[int, int]:
    """Ids that name the same token in both."""
    new = _by_id(result)
    return {i: i for i, token in _by_id(base).items() if new.get(i) == token}


def _by_id(tokenizer: Tokenizer) -> dict[int, str]:
    tokens = {token_id: token for token, token_id in tokenizer.model.vocab.items()}
    return tokens | {token.id: token.content for token in tokenizer.added_tokens}


def adapt_to_folder(
    tokenizer: Any,
    corpus: Corpus,
    out: str | Path,
    *,
    force: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Adapt and write the folder, whole or not at all; `options` are those of `adapt_tokenizer`."""
    inputs = [*corpus.paths]
    if isinstance(tokenizer, str | Path):
        inputs.append(Path(tokenizer))
    check_free(out, force=force, inputs=inputs)
    adaptation = adapt_tokenizer(tokenizer, corpus, **options)
    figures = adaptation.to_dict()
    with atomic_folder(out, force=force) as partial:
        write_files(adaptation.tokenizer, partial)
        adaptation.id_map.save(partial)
        config = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in options.items()
            if key not in ("threads", "progress")
        }
        config["old"] = adaptation.id_map.old
        fingerprint = adaptation.extension.corpus_fingerprint
        write_provenance(partial, "adapt", config, figures, corpus_fingerprint=fingerprint)
    return {"out": str(out), **figures}


def _prune(base: Tokenizer, corpus: Corpus, n: int, pruning: dict[str, Any]) -> Pruning:
    options = PruningOptions(
        order=pruning["order"], n_tokens=n, keep=pruning["keep"], keep_ids=True
    )
    return prune_with_report(
        base, corpus, options, threads=pruning["threads"], progress=pruning["progress"]
    )


def _prune_first(
    base: Tokenizer, corpus: Corpus, n: int, pruning: dict[str, Any], extending: dict[str, Any]
) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
    pruned = _prune(base, corpus, n, pruning)
    extension = _extend(pruned.tokenizer, corpus, n, {**extending, "fill_holes": True})
    return _with_old_ids(extension.tokenizer, base), extension.report, pruned.report


def _extend_first(
    base: Tokenizer, corpus: Corpus, n: int, pruning: dict[str, Any], extending: dict[str, Any]
) -> tuple[Tokenizer, ExtensionReport, PruneReport]:
    extension = _extend(base, corpus, n, extending)
    n = extension.report.n_added
    pruned = _prune(extension.tokenizer, corpus, n, pruning)
    result = _moved_into_holes(as_tokenizer(pruned.tokenizer), base.row_count)
    if result.row_count > max(base.row_count, 1):
        raise UnreachableTokenError(
            f"adapting left {result.row_count - base.row_count:,} rows too many: this is a fault "
            "of vocabshift; please report it with the text"
        )
    return result, extension.report, pruned.report


def _extend(base: Any, corpus: Corpus, n: int, options: dict[str, Any]) -> Extension:
    """`n` new tokens in all, those for missing characters among them."""
    run = {name: options[name] for name in ("threads", "progress")}
    rest = {name: value for name, value in options.items() if name not in run}
    extension = extend_with_report(base, corpus, ExtensionOptions(n_tokens=n, **rest), **run)
    n_characters = extension.report.n_characters
    if extension.report.n_added <= n:
        return extension
    if n_characters >= n:
        raise ValueError(
            f"{extension.report.n_added:,} tokens at least would be new, and {n:,} are to be "
            f"exchanged: the text has {n_characters:,} characters that {base.name} lacks; exchange "
            f"more than {n_characters:,} tokens"
        )
    fewer = ExtensionOptions(n_tokens=n - n_characters, **rest)
    return extend_with_report(base, corpus, fewer, **run)


def _with_old_ids(tokenizer: Tokenizer, base: Tokenizer) -> Tokenizer:
    """Tokens that were taken out and learned again take the ids that they had in `base`."""
    old, now = base.model.vocab, tokenizer.model.vocab
    moved = {i: old[token] for token, i in now.items() if old.get(token, i) != i}
    if not moved:
        return tokenizer
    new = sorted(i for token, i in now.items() if token not in old)
    free = sorted({*new, *moved} - set(moved.values()))
    moved.update(zip(new, free, strict=False))  # more are free where the base had holes
    return _renumbered(tokenizer, {i: moved.get(i, i) for i in ids_of_tokens(tokenizer)})


def _moved_into_holes(tokenizer: Tokenizer, rows: int) -> Tokenizer:
    """Tokens with ids from `rows` on take the free ids below, in their order."""
    free = iter(holes(tokenizer))
    ids = sorted(ids_of_tokens(tokenizer))
    return _renumbered(tokenizer, {i: i if i < rows else next(free) for i in ids})


def _renumbered(tokenizer: Tokenizer, old_to_new: dict[int, int]) -> Tokenizer:
    result = tokenizer.renumbered(old_to_new)
    vocab = dict(sorted(result.model.vocab.items(), key=lambda entry: entry[1]))
    return replace(result, model=replace(result.model, vocab=vocab))
