"""Which texts may be a SentencePiece piece, character by character, as its trainer asks."""

from __future__ import annotations

from vocabshift import _core

SPACE = "▁"
ANY = "any"


def allows(
    text: str,
    *,
    max_characters: int = 16,
    split_by_script: bool = True,
    split_by_number: bool = True,
    split_digits: bool = True,
    split_by_space: bool = True,
    space_is_suffix: bool = False,
    space_runs: bool = True,
    digits: str = "",
    never: str = "",
) -> bool:
    if not 1 <= len(text) <= max_characters:
        return False
    is_space_run = space_runs and set(text) == {SPACE}
    last = len(text) - 1
    before = ANY
    for place, character in enumerate(text):
        if character in never:
            return False
        if character == SPACE:
            if is_space_run:
                continue
            at_border = place == last if space_is_suffix else place == 0
            at_wrong_border = place == 0 if space_is_suffix else place == last
            if split_by_space and not at_border:
                return False
            if not split_by_space and not at_border and at_wrong_border:
                return False
            continue
        if character in digits and split_digits and len(text) > 1:
            return False
        script = _core.script(ord(character))
        if script in ("Hiragana", "Katakana") or character == "ー":
            script = "Han"
        elif script == "Inherited":
            script = before
        if character in digits and not split_by_number:
            script = ANY
        if split_by_script and ANY not in (script, before) and script != before:
            return False
        before = script
    return True
