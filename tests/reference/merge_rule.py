"""What a merge may make, written on strings."""

from __future__ import annotations

from vocabshift import _core

ZWJ, ZWNJ = "\u200d", "\u200c"


def whole_text(product: bytes) -> tuple[bool, str, bool]:
    """Whether a part of UTF-8 text begins inside a character, its characters, whether it ends so"""
    begin = 0
    while begin < len(product) and 0x80 <= product[begin] < 0xC0:
        begin += 1
    for end in range(len(product), begin - 1, -1):
        try:
            return begin > 0, product[begin:end].decode(), end < len(product)
        except UnicodeDecodeError:
            continue
    raise AssertionError("not a part of UTF-8 text")


def is_mark_or_joiner(c: str) -> bool:
    return bool(_core.char_class(ord(c)) & 8) or c in (ZWJ, ZWNJ)


def is_letter(c: str) -> bool:
    return bool(_core.char_class(ord(c)) & 7)


def is_syllabic(c: str, conjoiners: str) -> bool:
    scripts = {_core.script(ord(sign)) for sign in conjoiners}
    return is_letter(c) and _core.script(ord(c)) in scripts


def conjoined(before: str, conjoiners: str) -> str | None:
    """What stands before the marks of which a conjoiner is the last; "" for the text's begin."""
    before = before.removesuffix(ZWJ)
    if before[-1:] not in tuple(conjoiners):
        return None
    while before and is_mark_or_joiner(before[-1]):
        before = before[:-1]
    return before[-1:]


def is_open(text: str, conjoiners: str) -> bool:
    """Whether a letter behind this text may belong to its last syllable."""
    letter = conjoined(text, conjoiners)
    return letter is not None and (letter == "" or is_letter(letter))


def joins(before: str, letter: str, conjoiners: str) -> bool:
    """Whether a letter is known to belong to the last syllable of the text before it."""
    other = conjoined(before, conjoiners)
    known = other is not None and (other == "" or is_syllabic(other, conjoiners))
    return known and is_syllabic(letter, conjoiners)


def syllables(text: str, conjoiners: str) -> list[str]:
    """A part of a word, cut where a syllable begins; a space goes with the letter behind it."""
    found: list[str] = []
    before = ""
    for c in text:
        goes_on = is_mark_or_joiner(c) or (
            is_letter(c) and (joins(before, c, conjoiners) or before == " ")
        )
        if goes_on and found:
            found[-1] += c
        else:
            found.append(c)
        before += c
    return found


def allows(
    product: bytes,
    *,
    max_token_bytes: int = 0,
    max_words: int = 0,
    forbidden: set[bytes] = frozenset(),  # type: ignore[assignment]
    terminals: str = "",
    whole_characters: bool = False,
    conjoiners: str = "",
) -> bool:
    if max_token_bytes and len(product) > max_token_bytes:
        return False
    if product in forbidden:
        return False
    if max_words and len([word for word in product.split(b" ") if word]) > max_words:
        return False
    begins_inside, text, ends_inside = whole_text(product)
    if any(terminal in text for terminal in terminals):
        return False
    if whole_characters and (begins_inside or ends_inside):
        return False
    parts = syllables(text, conjoiners)
    if not conjoiners or len(parts) + (len(text) > 1 and (begins_inside or ends_inside)) < 2:
        return True
    return not (
        begins_inside or ends_inside or is_mark_or_joiner(text[0]) or is_open(text, conjoiners)
    )
