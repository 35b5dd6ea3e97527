"""Orthographic syllables character by character: what the scanner is held against."""

from __future__ import annotations

from vocabshift import _core
from vocabshift.text.writing import CONJUNCTS, LINKERS

ZWJ = "\u200d"


def is_mark(c: str) -> bool:
    return bool(_core.char_class(ord(c)) & 8)


def is_syllabic(c: str) -> bool:
    return bool(_core.char_class(ord(c)) & 7) and _core.script(ord(c)) in LINKERS


def borders(text: str) -> list[int]:
    """Every offset in 1..len(text) that cuts no syllable and no mark off its character."""
    return [at for at in range(1, len(text) + 1) if at == len(text) or not _is_inside(text, at)]


def _is_inside(text: str, at: int) -> bool:
    if is_mark(text[at]) or _is_in_conjunct(text, at):
        return True
    head = text[:at].rstrip("".join({c for c in text if is_mark(c) or c in "\u200c\u200d"}))
    if not head or not is_syllabic(head[-1]):
        return False
    between = text[len(head) : at]
    if text[at] in "\u200c\u200d":
        return True
    linked = between.removesuffix(ZWJ)[-1:]
    return is_syllabic(text[at]) and linked != "" and linked in "".join(LINKERS.values())


def _is_in_conjunct(text: str, at: int) -> bool:
    return any(
        text.startswith(conjunct, begin)
        for conjunct in CONJUNCTS
        for begin in range(max(0, at - len(conjunct) + 1), at)
    )
