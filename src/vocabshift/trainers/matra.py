"""Matra: two stages; words of Indian scripts count more; no superword holds a sentence terminal.

Source: "Matra: Sentence-Constrained Superword Tokenization for India's Scheduled Languages",
section 3; docs/algorithms/matra.md explains our reading. IST cuts the data at sentence ends,
whereas Matra refuses the token. The exported pattern needs no boundary at sentence ends, because
no token can cross one.

Where the paper leaves a choice:
- Words with a character of the target scripts count `1 / alpha` times (the printed value, 1.33 at
  alpha = 0.75); `word_weight="smoothed"` is the other reading of its formula.
- A sentence with the share p of target words counts `p / alpha + (1 - p)` times. It ends with a
  terminal or a newline; words are what whitespace divides.
- Weighted sentences need merges that stay inside a sentence. So a product of stage 2 also begins
  and ends between characters: one that began with the last byte of a terminal would cross it.
- Table 1 lists Meetei Mayek as U+AAE0-AAFF, its extension block, which has none of its everyday
  letters. We add U+ABC0-ABFF.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from vocabshift.errors import CorpusError
from vocabshift.text.languages import MATRA_SCRIPTS, MEETEI_MAYEK_LETTERS
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.weighing import WEIGHT_UNIT, SentenceWeight
from vocabshift.text.writing import TERMINALS
from vocabshift.trainers.base import Reader
from vocabshift.trainers.counted import holds_words
from vocabshift.trainers.stages import SuperwordRule, WordWeight
from vocabshift.trainers.superword import SuperwordTrainer

Weighting = Literal["constant", "smoothed", "none"]

_SCRIPTS = (*MATRA_SCRIPTS.values(), MEETEI_MAYEK_LETTERS)
_NEWLINE = "\n"
_LEAST_ALPHA = 1e-6  # its weight still fits in 32 bits
_SENTENCE_ENDS = "".join(TERMINALS.values()) + "." + _NEWLINE

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "A": {"word_weight": "none"},
    "B": {"transition": 1.0},
    "C": {"terminal_prohibition": False},
    "D": {
        "word_weight": "none",
        "pre_tokenizer": "o200k",
        "stage2_pre_tokenizer": "superbpe-stage2",
    },
    "E": {},
}
"""The paper's Table 4: no weighting, no stage 2, no constraint, constraint only, all of it.

D is read as the constraint alone on top of SuperBPE's curriculum: neither weights nor Matra's own
pre-tokenization (with them but for the weights it would be A)."""


@dataclass(frozen=True, kw_only=True)
class MatraTrainer(SuperwordTrainer):
    """Matra; `transition` is the share of the vocabulary that stage 1 learns."""

    pre_tokenizer: str | Pattern = "matra"
    stage2_pre_tokenizer: str | Pattern = "matra-stage2"
    alpha: Annotated[float, "share"] = 0.75
    """Temperature of the weights, in (0, 1]; 1: all words count alike."""
    word_weight: Weighting = "constant"
    """"constant": target words count 1 / alpha times. "smoothed": the count c of a target word
    becomes c ** alpha, scaled so that all target words together count as before; sentences then
    count alike. "none": everything counts alike."""
    terminal_prohibition: bool = True
    """No product of stage 2 holds a sentence terminal: ".", newline or one of text/writing.py."""

    recipe: ClassVar[str] = "matra"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LEAST_ALPHA <= self.alpha <= 1:
            raise ValueError(
                f"alpha is {self.alpha}; give a number above 0 (at least {_LEAST_ALPHA:f}) and up "
                "to 1 (the paper uses 0.75)"
            )
        if self.word_weight not in ("constant", "smoothed", "none"):
            raise ValueError(
                f'word_weight is {self.word_weight!r}; give "constant", "smoothed" or "none"'
            )
        pieces = compile_pattern(get_pattern(self.stage2_pre_tokenizer))
        if self._weighs_sentences and pieces is None:
            raise ValueError(
                "weighted sentences need a stage-2 pattern that the core runs, such as "
                "matra-stage2; name one, or turn weights off (word_weight none)"
            )

    @property
    def _weighs_sentences(self) -> bool:
        return self.word_weight == "constant" and self.alpha < 1

    @property
    def _target(self) -> int:
        """The weight of a target word, fixed point."""
        return round(WEIGHT_UNIT / self.alpha)

    def _word_weight(self) -> WordWeight:
        if self.alpha == 1 or self.word_weight == "none":
            return WordWeight()
        if self.word_weight == "smoothed":
            # The unit preserves fractions of a count that rounding would lose.
            return WordWeight(_SCRIPTS, WEIGHT_UNIT, WEIGHT_UNIT, self.alpha)
        return WordWeight(_SCRIPTS, WEIGHT_UNIT, self._target)

    def _superword_rule(self, reader: Reader) -> SuperwordRule:
        pieces = get_pattern(self.stage2_pre_tokenizer)
        if self._weighs_sentences and reader.is_counted and not holds_words(reader, pieces):
            raise CorpusError(
                "Matra weighs sentences, and a folder of counts holds none; train from the text "
                "(--corpus), with counted runs (--runs), or without these weights (--word-weight "
                "none or smoothed)"
            )
        rule = super()._superword_rule(reader)
        # Without the prohibition a "sentence" is a line: the pattern cuts at newlines anyway.
        terminals = _SENTENCE_ENDS if self.terminal_prohibition else _NEWLINE
        if not self._weighs_sentences:
            return replace(rule, terminals=terminals)
        sentences = SentenceWeight(_SCRIPTS, terminals, WEIGHT_UNIT, self._target)
        return replace(rule, terminals=terminals, sentences=sentences, unit=WEIGHT_UNIT)


def variant_options(variant: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Join the options of a variant of Table 4 with those given; ValueError if they conflict."""
    if variant not in VARIANTS:
        raise ValueError(f"no variant of Matra is named {variant!r}; they are A, B, C, D and E")
    options = VARIANTS[variant]
    for name, value in options.items():
        if given.get(name, value) != value:
            raise ValueError(
                f"variant {variant} means {name} = {value!r}, and {name} = {given[name]!r} is "
                "given; leave one of them out"
            )
    return {**given, **options}
