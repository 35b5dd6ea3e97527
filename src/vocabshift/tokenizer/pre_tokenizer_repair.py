"""The repaired pre-tokenizer as a component: marks and joiners may follow the letters of a word.

Owns which steps of a pre-tokenizer are rewritten, and with what. How a regex is rewritten is
`text.regexes`'s; what the repair changes in a tokenizer's ids is `extension`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from vocabshift.text.regexes import GPT2, repair_regex
from vocabshift.tokenizer.components import Spec
from vocabshift.tokenizer.token_bytes import is_byte_level

if TYPE_CHECKING:
    from vocabshift.tokenizer.tokenizer import Tokenizer


def repair_words(tokenizer: Tokenizer) -> Tokenizer | None:
    """The tokenizer with its words repaired; None where there is nothing to repair, or no way."""
    spec = tokenizer.pre_tokenizer
    if spec is None or not is_byte_level(tokenizer) or puts_space_and_cuts(spec):
        return None
    steps = list(_steps(spec))
    changed = [new for step in steps for new in _repaired_step(step)]
    if changed == steps:
        return None
    return replace(tokenizer, pre_tokenizer={"type": "Sequence", "pretokenizers": changed})


def puts_space_and_cuts(spec: Spec) -> bool:
    """Whether ByteLevel puts a space before the text and then cuts it: one step does both, and no
    list of steps with another regex is equal to it."""
    return any(
        step["type"] == "ByteLevel" and _cuts(step) and step.get("add_prefix_space", True)
        for step in _steps(spec)
    )


def _steps(spec: Spec) -> Iterator[Spec]:
    """The steps of a pre-tokenizer, those of nested sequences in their place."""
    if spec["type"] != "Sequence":
        yield spec
        return
    for part in spec["pretokenizers"]:
        yield from _steps(part)


def _cuts(step: Spec) -> bool:
    """Whether a ByteLevel step cuts with GPT-2's regex first."""
    return bool(step.get("use_regex", True))


def _repaired_step(step: Spec) -> list[Spec]:
    """Return the replacement of one step, or the step itself if it has nothing to repair."""
    if step["type"] == "ByteLevel" and _cuts(step):
        split = {
            "type": "Split",
            "pattern": {"Regex": repair_regex(GPT2)},
            "behavior": "Isolated",
            "invert": False,
        }
        return [split, {**step, "use_regex": False}]
    regex = step["pattern"].get("Regex") if step["type"] == "Split" else None
    new = None if regex is None else repair_regex(regex)
    return [step] if new is None else [{**step, "pattern": {"Regex": new}}]
