"""How far would new tokens take a tokenizer? The whole curve, on text that was not learned from.

Owns learning once, up to the most tokens, with the tokenizer's own pre-tokenizer and with the
repaired one where there is something to repair; every point in between follows (`effect`).
"""

from __future__ import annotations

from dataclasses import dataclass

from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.extension.continued import learn
from vocabshift.extension.count_text import count_text
from vocabshift.extension.effect import Effect, measure
from vocabshift.extension.options import ExtensionOptions, Progress, in_phase
from vocabshift.extension.pre_tokenizer_repair import repaired_if_possible
from vocabshift.text.corpus import Corpus


@dataclass(frozen=True)
class Growth:
    """What up to `effect.n_new` new tokens do with one pre-tokenizer."""

    pre_tokenizer: str  # "kept" or "repaired"
    effect: Effect  # on the held-out text
    stopped_because: str


def grow(
    tokenizer: Tokenizer,
    corpus: Corpus,
    held_out: Corpus,
    *,
    max_tokens: int,
    sampling_alpha: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> tuple[Growth, ...]:
    """Learn from `corpus`, measure on `held_out`: first with the pre-tokenizer as it is."""
    asked = ExtensionOptions(n_tokens=max_tokens, sampling_alpha=sampling_alpha)
    grown = []
    for name, base in (("kept", tokenizer), ("repaired", repaired_if_possible(tokenizer))):
        if base is None:
            continue
        tick = in_phase(progress, f"count ({name})")
        counted = count_text(base, corpus, asked, threads, tick)
        learned = learn(
            counted.form,
            counted.text,
            n_tokens=max_tokens,
            threads=threads,
            progress=in_phase(progress, f"learn ({name})"),
        )
        # The characters were added to the form already: the base of the judged text has them too.
        judged = count_text(counted.form.tokenizer, held_out, asked.without_characters(), threads)
        effect = measure(counted.form, learned, judged.text)
        grown.append(Growth(name, effect, learned.stopped_because))
    return tuple(grown)
