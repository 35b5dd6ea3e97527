"""The text that is learned from, counted as the merges of a tokenizer see it, whatever its kind.

Owns which kind of counting a tokenizer needs, and which options do not fit it.
"""

from __future__ import annotations

from collections.abc import Callable

from vocabshift.bpe.token_bytes import is_metaspace
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import CorpusError
from vocabshift.extension.counted_text import Counted, count_byte_level
from vocabshift.extension.metaspace import count_metaspace
from vocabshift.extension.options import ExtensionOptions
from vocabshift.extension.training_base import TrainingBase
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder


def count_text(
    base: Tokenizer,
    source: Corpus | CountFolder,
    asked: ExtensionOptions,
    threads: int = 1,
    progress: Callable[[int, int | None], None] | None = None,
) -> Counted:
    """The text as the merges of `base` see it."""
    if is_metaspace(base):
        if not isinstance(source, Corpus):
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
            source,
            normalizer=asked.normalizer,
            add_characters=asked.character_coverage,
            sampling_alpha=asked.sampling_alpha,
            threads=threads,
            progress=progress,
        )
    form = TrainingBase(base)
    text = count_byte_level(
        form,
        source,
        normalizer=asked.normalizer,
        sampling_alpha=asked.sampling_alpha,
        max_token_bytes=asked.max_token_bytes,
        threads=threads,
        progress=progress,
    )
    return Counted(form, text)
