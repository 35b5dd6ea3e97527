"""What a transfer did, in figures. Owns no work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TransferReport:
    """What a transfer did. Counts are of tokens; rows are those of the embedding matrix."""

    n_copied: int  # new tokens that took over the row of an old one
    n_initialized: int  # new tokens whose row was made by `init`
    n_removed: int  # old tokens that the new tokenizer does not have
    tied: bool  # whether head and input embeddings are one tensor
    vocab_size: int  # tokens of the new tokenizer, special tokens included
    rows: int  # padding included
    old_rows: int
    init: str
    special_ids: dict[str, list[Any]]  # {"eos": [old, new], "generation_config.eos": …}
    tried: dict[str, float] = field(default_factory=dict)  # init -> price, of "auto"; lowest first
    n_overridden: int = 0  # new tokens that `overrides` decided
    ambiguous: dict[int, list[int]] = field(default_factory=dict)
    """New id -> old ids: copied by bytes that several old tokens have; one gave the row."""
    n_moved: int = 0  # kept tokens whose id is another now
    bytes_before: int = 0  # of the shards; 0 where the model was in memory
    bytes_after: int = 0
    files: dict[str, str] = field(default_factory=dict)  # file -> what was (or will be) done
