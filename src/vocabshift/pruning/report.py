"""What a pruning gives back: the tokenizer, the id map, and the figures.

Owns the shape of the report, which `--json` prints, and when to warn.
"""

from __future__ import annotations

from dataclasses import dataclass

from vocabshift.bpe.id_map import IdMap
from vocabshift.bpe.plain_tokenizer import PlainTokenizer
from vocabshift.bpe.splits import Ids
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.pruning.effects import LanguageEffect, ScriptEffect


@dataclass(frozen=True)
class PruneReport:
    """What a pruning did; counts are of tokens."""

    kind: str  # "BPE", "Unigram" or "WordPiece"
    order: str
    n_removed: int
    n_decided_by_ties: int  # removed only because of a tie-break
    n_removable: int  # could have been removed in all
    n_atomic: int  # bytes, characters and byte pieces: made of no others
    vocab_size: int  # tokens of the model, special tokens outside it not counted
    rows: int  # the highest id plus one
    unreachable_before: int  # STT
    unreachable_after: int
    removed_by_script: tuple[ScriptEffect, ...]
    languages: tuple[LanguageEffect, ...]  # where there is a corpus, and it was asked for
    round_trip_documents: int  # of the corpus, encoded and decoded by both
    round_trip_failures: int  # of these, not given back as the old tokenizer gives them
    corpus_fingerprint: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pruning:
    """A pruned tokenizer and how it came about."""

    tokenizer: Tokenizer | PlainTokenizer
    id_map: IdMap
    removed: Ids  # (n_removed,) old ids in the order of removal
    report: PruneReport


def tie_warnings(n_removed: int, n_ties: int) -> tuple[str, ...]:
    """A warning where most removals were decided by a tie."""
    if n_ties * 2 <= n_removed:
        return ()
    return (
        f"{n_ties:,} of {n_removed:,} removals were decided by a tie alone: the text is too small "
        "to tell these tokens from others that stay; give more text, or keep what matters",
    )
