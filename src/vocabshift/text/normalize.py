"""Normalizers that can travel inside ``tokenizer.json``: by name, and as a function on text.

None is the default everywhere: text comes back byte for byte. Running them is left to
`tokenizers`, so that training sees what the exported tokenizer will see (its Unicode tables are
not Python's).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMES = ("nfc", "nfd", "nfkc", "nfkd")


def normalizer_spec(name: str | None) -> dict[str, Any] | None:
    """The component of tokenizer.json for "nfc", "nfd", "nfkc" or "nfkd"; None for "none"."""
    if name is None or name == "none":
        return None
    if name not in NAMES:
        raise ValueError(f"no normalizer is named {name!r}; the names are none, {', '.join(NAMES)}")
    return {"type": name.upper()}


def normalizer_function(name: str | None) -> Callable[[str], str] | None:
    """The normalizer of that name as a function, or None for no normalizer."""
    spec = normalizer_spec(name)
    if spec is None:
        return None
    from tokenizers import normalizers

    normalize = getattr(normalizers, spec["type"])().normalize_str

    def apply(text: str) -> str:
        # Every Unicode normalization form leaves ASCII as it is.
        return text if text.isascii() else str(normalize(text))

    return apply
