"""New words by continued BPE, then superwords inside sentences, as the second stage of IST.

Joins extension and `trainers.on_top`, which adds the superwords and adapts the pre-tokenizer to
them. The effect of each step on every language is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vocabshift.checks.vocabulary import bytes_per_token
from vocabshift.extension.extend import Extension, extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.progress import Progress
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap, chained
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.on_top import OnTopReport, SuperwordsOnTopTrainer


@dataclass(frozen=True)
class SuperwordExtension:
    """A tokenizer with new words and superwords."""

    tokenizer: Tokenizer
    id_map: TokenIdMap
    words: Extension
    superwords: OnTopReport
    bytes_per_token_before: dict[str, float]  # by language, with the new words alone
    bytes_per_token: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: those of `extend`, and the effect of the superwords."""
        report = self.superwords
        unreachable = unreachable_tokens(self.tokenizer)
        return {
            **self.words.report.to_dict(),
            "vocab_size": self.tokenizer.vocab_size,
            "row_count": self.tokenizer.row_count,
            "unreachable": len(unreachable),
            "superwords": report.new_tokens,
            "superword_effect": {
                "stopped_because": report.stopped_because,
                "pattern": report.stage2_pre_tokenizer,
                "changed_lines": dict(report.changed_lines),
                "changed_tokens": dict(report.changed_tokens),
                "tokens_lost": len(report.tokens_lost),
                "languages": [
                    {
                        "language": label,
                        "bytes_per_token_before": before,
                        "bytes_per_token": self.bytes_per_token[label],
                    }
                    for label, before in self.bytes_per_token_before.items()
                ],
            },
        }


def extend_with_superwords(
    tokenizer: TokenizerLike,
    corpus: Corpus,
    options: ExtensionOptions,
    *,
    n_superwords: int,
    threads: int = 1,
    progress: Progress | None = None,
) -> SuperwordExtension:
    """Add new words by continued BPE as `options` say, then `n_superwords` inside sentences.

    Superwords need the space boundary of the pre-tokenizer lifted, and merge skipping off. The
    effect of that alone is measured and reported. The result does not depend on `threads`.
    ValueError for a tokenizer that is not byte-level; CorpusError if nothing can be learned.
    """
    if options.pre_tokenizer not in ("kept", "repaired"):
        raise ValueError(
            f"pre_tokenizer {options.pre_tokenizer!r} does not go with superwords: they lift the "
            "space boundary, and llama.cpp has no pattern for what stays; leave one of them out"
        )
    base = as_tokenizer(tokenizer)
    SuperwordsOnTopTrainer(base=base, n_tokens=n_superwords)  # refuses unsuitable tokenizers early
    words = extend_with_report(base, corpus, options, threads=threads, progress=progress)
    trainer = SuperwordsOnTopTrainer(
        base=words.tokenizer, n_tokens=n_superwords, sampling_alpha=options.sampling_alpha
    )
    training = trainer.run(corpus, RunContext(threads=threads, progress=progress))
    assert isinstance(training.report, OnTopReport)
    return SuperwordExtension(
        tokenizer=training.tokenizer,
        id_map=chained(
            tokenizer, TokenIdMap.between(base, training.tokenizer), training.tokenizer.model.vocab
        ),
        words=words,
        superwords=training.report,
        bytes_per_token_before=bytes_per_token(words.tokenizer, corpus, threads=threads),
        bytes_per_token=bytes_per_token(training.tokenizer, corpus, threads=threads),
    )
