"""The report of a transfer: its figures, and what other programs need to load the result.

Owns the facts about converters, servers and encoders (in versions of November 2026). None of these
programs is run here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vocabshift.text.patterns import NAMED, from_spec
from vocabshift.tokenizer.missing_bytes import LostCharacters
from vocabshift.tokenizer.token_bytes import is_byte_level


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
    tried: dict[str, float] = field(default_factory=dict)  # of "auto": init -> score, lowest first
    n_overridden: int = 0  # new tokens that `overrides` decided
    ambiguous: dict[int, list[int]] = field(default_factory=dict)
    """New id -> old ids: copied by bytes that several old tokens have; one gave the row."""
    n_moved: int = 0  # kept tokens whose id is another now
    n_by_mean: int = 0
    """New tokens that the old tokenizer knows no byte of: `init` had no old token to make them of.
    Initializers that average old tokens give them the mean of all rows."""
    n_described: int = 0  # new special tokens made of the tokens of their descriptions
    distilled: dict[str, Any] = field(default_factory=dict)
    """Of "distill": its snippets, what it learned, and the new tokens that have no snippet."""
    lost_characters: LostCharacters | None = None  # None: not of BPE
    bytes_before: int = 0  # of the shards; 0 where the model was in memory
    bytes_after: int = 0
    files: dict[str, str] = field(default_factory=dict)  # file -> what was (or will be) done
    left_out: dict[str, str] = field(default_factory=dict)
    """File of the model's folder, or folder in it (it ends in "/") -> why it was not taken over."""


_KNOWN = ("gpt2", "cl100k", "o200k", "qwen2", "tekken")
"""Patterns that fast encoders have scanners for."""
_LLAMA_CPP = (
    "llama.cpp: `vocabshift convert FOLDER -o FILE.gguf` writes the file, under the name of a "
    "pre-tokenizer of llama.cpp that gives the same ids, or prints the lines that would teach it "
    "this one; llama.cpp's own converter knows only vocabularies whose hash is in it"
)


def serving_notes(tokenizer: Any) -> list[str]:
    """One line each for llama.cpp, for servers and for fast encoders."""
    name = pattern_name(tokenizer)
    servers = (
        "vLLM, TGI: they load tokenizer.json as AutoTokenizer does, without further settings; vLLM "
        "refuses LoRA adapters that hold whole embeddings (modules_to_save): merge them first"
    )
    if name is None:
        kind = "no pattern that they have a scanner for"
        return [_LLAMA_CPP, servers, f"fast encoders (fastokens, gigatoken): {kind}; {_SLOWER}"]
    return [
        _LLAMA_CPP,
        servers,
        f"fast encoders: the pre-tokenizer is {name}'s, which fastokens and gigatoken know",
    ]


_SLOWER = (
    "gigatoken refuses such files, tokie gave wrong ids for superwords; use vocabshift.Encoder, "
    "tokenizers, or (slower) fastokens"
)


def pattern_name(tokenizer: Any) -> str | None:
    """The pattern of a widely known pre-tokenizer, or None for any other."""
    if tokenizer.kind != "BPE" or not is_byte_level(tokenizer):
        return None
    pattern = from_spec(tokenizer.pre_tokenizer)
    return next((name for name in _KNOWN if pattern and NAMED[name] == pattern), None)
