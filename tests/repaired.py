"""A pattern with every step repaired, as the repaired pre-tokenizer of a tokenizer has it."""

from __future__ import annotations

from dataclasses import replace

from vocabshift.text.patterns import Pattern
from vocabshift.text.regexes import repair_regex


def repaired_pattern(pattern: Pattern) -> Pattern:
    """Steps that have no words to repair stay; at least one must have some."""
    steps = tuple(replace(step, regex=repair_regex(step.regex) or step.regex) for step in pattern)
    assert steps != pattern
    return steps
