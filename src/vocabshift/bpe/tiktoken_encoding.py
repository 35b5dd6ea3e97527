"""tiktoken's encodings: an `Encoding` of that library, or its name, into a Tokenizer.

Owns what is read of an `Encoding`. tiktoken itself fetches and caches the files of a name; it is
asked only where someone names one. Its ranks are read by `ranks`.
"""

from __future__ import annotations

from typing import Any

from vocabshift.bpe import known_ranks, ranks
from vocabshift.bpe.tokenizer import AddedToken, Tokenizer
from vocabshift.errors import InvalidTokenizerError

PREFIX = "tiktoken:"
"""In front of the name of an encoding, such as "tiktoken:o200k_base"."""


def is_encoding(value: Any) -> bool:
    """Whether `value` is a `tiktoken.Encoding`; tiktoken is not imported for it."""
    return type(value).__module__.split(".")[0] == "tiktoken" and hasattr(value, "_mergeable_ranks")


def load_encoding(name: str) -> Tokenizer:
    """The Tokenizer of an encoding of that name, as the installed tiktoken knows it.

    ImportError without tiktoken, FileNotFoundError where it does not know the name or cannot
    fetch its file.
    """
    try:
        import tiktoken
    except ImportError:
        raise ImportError(
            f"{PREFIX}{name} needs tiktoken: pip install tiktoken, or give the rank file itself"
        ) from None
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # of tiktoken, or of the network client that it uses
        reason = " ".join(str(error).split())[:160]
        raise FileNotFoundError(f"tiktoken does not give {name!r}: {reason}") from None
    return from_encoding(encoding)


def from_encoding(encoding: Any) -> Tokenizer:
    """The Tokenizer that gives the ids of a `tiktoken.Encoding`, special tokens included."""
    mergeable: dict[bytes, int] = dict(encoding._mergeable_ranks)
    known = known_ranks.recognise(mergeable)
    special: dict[str, int] = dict(encoding._special_tokens)
    added = tuple(
        AddedToken(content, token_id, special=True)
        for content, token_id in sorted(special.items(), key=lambda entry: entry[1])
    )
    try:
        return ranks.byte_level_tokenizer(
            mergeable,
            pattern=known.pattern if known else encoding._pat_str,
            added_tokens=added,
            name=encoding.name,
        )
    except InvalidTokenizerError as error:
        raise InvalidTokenizerError(f"tiktoken's {encoding.name}: {error}") from None
