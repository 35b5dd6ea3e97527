"""ExtensionOptions: how a tokenizer is to be extended, checked before any work.

Owns the options and their defaults; what they do is each method's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

from vocabshift.errors import CorpusError
from vocabshift.extension.base import TrainingBase
from vocabshift.extension.continued import TieBreak, check_tie_break
from vocabshift.extension.counting import Counted, TextCounts, count_byte_level, count_metaspace
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.tokenizer.token_bytes import is_metaspace
from vocabshift.tokenizer.tokenizer import Tokenizer

Method = Literal["continued", "regen", "append", "prepend", "add-tokens"]
PreTokenizer = Literal["kept", "repaired"]
Progress = Callable[[str, int, int | None], None]
"""Called now and then with the phase, the work done and the work in all."""


@dataclass(frozen=True, kw_only=True)
class ExtensionOptions:
    """How to extend; frozen, so that it is the configuration that `vocabshift.json` names."""

    n_tokens: int
    """New tokens, those for missing characters not counted."""
    method: Method = "continued"
    """"continued" trains on; the others are baselines, each reported with what it costs."""
    tie_break: TieBreak = "id"
    """What decides between equal counts; "lexicographic" is the order of the paper's toolkit."""
    pre_tokenizer: PreTokenizer = "kept"
    """"repaired" lets marks and joiners follow the letters of a word (byte-level only)."""
    min_frequency: int = 1
    """A pair must occur this often to become a token."""
    max_token_bytes: int | None = None
    """Longest new token, in bytes (byte-level only)."""
    character_coverage: Annotated[float | None, "share"] = 0.9995
    """Share of the text's characters that the vocabulary is to hold; missing ones are added first,
    beside `n_tokens`. None: none are. Byte-level vocabularies lack none."""
    fill_holes: bool = False
    """New tokens take ids that no token has (left by pruning, say) before those behind all."""
    normalizer: Annotated[str | None, "STEP[+STEP…]"] = None
    """What the training text is brought into first, as in `train`; the tokenizer keeps its own."""
    sampling_alpha: Annotated[float | None, "share"] = None
    """Languages count in proportion to bytes ** alpha: 1 as they are, 0.3 nearly alike. None: as
    they are."""

    def __post_init__(self) -> None:
        for name, kinds in (("method", Method), ("pre_tokenizer", PreTokenizer)):
            if getattr(self, name) not in get_args(kinds):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; give one of {get_args(kinds)}"
                )
        check_tie_break(self.tie_break)
        for name in ("n_tokens", "min_frequency", "max_token_bytes"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or not 1 <= value < 1 << 62):
                raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
        if self.fill_holes and self.method != "continued":
            raise ValueError("fill_holes is for the method continued; baselines take new ids")

    def without_characters(self) -> ExtensionOptions:
        """The same without characters that are added first."""
        return replace(self, character_coverage=None)


def in_phase(progress: Progress | None, phase: str) -> Callable[[int, int | None], None] | None:
    """`progress` with its first argument filled in."""
    if progress is None:
        return None
    return lambda done, total: progress(phase, done, total)


# The text that is learned from, counted as the merges of a tokenizer see it, whatever its kind.
#
# Owns which kind of counting a tokenizer needs, and which options do not fit it.


def count_text(
    base: Tokenizer,
    source: Corpus | CountFolder | TextCounts,
    asked: ExtensionOptions,
    threads: int = 1,
    progress: Callable[[int, int | None], None] | None = None,
    *,
    with_plain: bool = False,
) -> Counted:
    """The text as the merges of `base` see it; `with_plain`: see `Counted.plain`."""
    counts = TextCounts.of(source)
    if is_metaspace(base):
        if not isinstance(counts.source, Corpus):
            raise CorpusError(
                f"{base.name} encodes whole documents, which counted words are not; give --corpus"
            )
        if asked.max_token_bytes is not None:
            raise ValueError(
                f"max_token_bytes is for byte-level tokenizers; the pieces of {base.name} are as "
                "long as its SentencePiece model allows"
            )
        return count_metaspace(
            base,
            counts.source,
            normalizer=asked.normalizer,
            add_characters=asked.character_coverage,
            with_plain=with_plain,
            sampling_alpha=asked.sampling_alpha,
            threads=threads,
            progress=progress,
        )
    form = TrainingBase(base)
    text = count_byte_level(
        form,
        counts,
        normalizer=asked.normalizer,
        sampling_alpha=asked.sampling_alpha,
        max_token_bytes=asked.max_token_bytes,
        threads=threads,
        progress=progress,
    )
    return Counted(form, text)
