"""The subject of an evaluation: a tokenizer of any kind under a unique name.

Owns the naming rule of the contract: a subject's name is the last part of its path or Hub name.
Names that clash are prefixed with their parent folder ("runs/ist"); those that still clash get a
number ("ist (2)"). And the checksum that tells which tokenizer it was. Knows nothing of lines,
languages or metrics.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vocabshift.results import sha256_of
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.formats.load import open_tokenizer


def engine_of(tokenizer: Any) -> Engine:
    """The engine of a tokenizer: ours, of `tokenizers`, a fast one of transformers, or a path.

    InvalidTokenizerError for a model that is neither BPE nor Unigram nor WordPiece.
    """
    return tokenizer if isinstance(tokenizer, Engine) else Engine(open_tokenizer(tokenizer))


def checksum_of(tokenizer: AnyTokenizer) -> str:
    """SHA-256 of tokenizer.json as `save_pretrained` writes it: `Result.tokenizer_sha256`."""
    return sha256_of([tokenizer.to_json()])


def checksum_if_readable(source: str | Path) -> str | None:
    """`checksum_of` the tokenizer of a model that transformers has loaded; None for one that is
    neither BPE nor Unigram nor WordPiece, or that code of its own makes."""
    try:
        return checksum_of(open_tokenizer(source))
    except (ValueError, OSError):
        return None


_TIKTOKEN = "tiktoken:"  # as `tokenizer.formats.tiktoken` names an encoding


@dataclass(frozen=True, slots=True)
class Subject:
    """One tokenizer under the name that its results carry."""

    name: str
    tokenizer: AnyTokenizer


def subjects(tokenizers: Any) -> list[Subject]:
    """The tokenizers to evaluate, loaded and named.

    `tokenizers` is one tokenizer or a list or tuple of them, each a `Tokenizer`, a transformers
    fast tokenizer, a `tokenizers.Tokenizer`, a `tiktoken.Encoding`, a path, a Hub name or
    "tiktoken:NAME"; or a mapping of names to these. BPE, Unigram and WordPiece. Raises ValueError
    where there is none, and what loading raises.
    """
    if isinstance(tokenizers, Mapping):
        named = [(str(name), source) for name, source in tokenizers.items()]
    else:
        sources = list(tokenizers) if isinstance(tokenizers, list | tuple) else [tokenizers]
        named = list(zip(subject_names(sources), sources, strict=True))
    if not named:
        raise ValueError("no tokenizer is given; name at least one to evaluate")
    return [Subject(name, open_tokenizer(source)) for name, source in named]


def subject_names(sources: Sequence[Any]) -> list[str]:
    """Return the names that `subjects` would use for tokenizers, without loading any."""
    return unique_names([_path_parts(source) for source in sources])


def unique_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """One name for each path (its parts, root first), by the rule at the head of this file."""
    last = Counter(parts[-1] for parts in paths)
    given = ["/".join(parts[-2:]) if last[parts[-1]] > 1 else parts[-1] for parts in paths]
    # A file's name need not be UTF-8, but the name in the results must be.
    names = [name.encode("utf-8", "backslashreplace").decode() for name in given]
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def _path_parts(source: Any) -> tuple[str, ...]:
    """Parts of the path or Hub name that a tokenizer came from; never empty."""
    if isinstance(source, str) and source.startswith(_TIKTOKEN):
        return (source.removeprefix(_TIKTOKEN),)
    if isinstance(source, str | Path):
        if Path(source).exists():
            source = os.path.abspath(source)  # noqa: PTH100 - resolve() would follow links
        return Path(source).parts[-2:] or ("tokenizer",)
    own = getattr(source, "name_or_path", "") or getattr(source, "name", "")  # ours and tiktoken's
    return Path(str(own or "tokenizer")).parts[-2:] or ("tokenizer",)
