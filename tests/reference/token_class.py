"""The script or class of a token, one character at a time."""

from __future__ import annotations

from vocabshift import _core


def token_class(data: bytes) -> str:
    """Name of the row that a token of these bytes stands in."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "parts of characters"
    scripts = [_core.script(ord(c)) for c in text if _core.char_class(ord(c)) & 15]
    own = [name for name in scripts if name not in ("Unknown", "Common", "Inherited")]
    if len(set(own)) > 1:
        return "letters of several scripts"
    if own:
        return own[0]
    for name in ("Inherited", "Common", "Unknown"):
        if name in scripts:
            return name
    if text and all(_core.char_class(ord(c)) & 32 for c in text):
        return "whitespace"
    if any(_core.char_class(ord(c)) & 16 for c in text):
        return "digits"
    return "punctuation and symbols"
