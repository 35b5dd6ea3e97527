"""Words, then superwords, for a tokenizer that exists: extension and stage 2 of IST, joined.

Owns the order of the two and what the second does to every language. How superwords are put on a
tokenizer, and what its pre-tokenizer has to give up for them, is `trainers.superwords_on_top`'s.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vocabshift.checks.vocabulary import bytes_per_token
from vocabshift.extension.extend import Extension, extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.progress import Progress
from vocabshift.storage.output import atomic_folder, check_free
from vocabshift.storage.provenance import write_provenance
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap, chained
from vocabshift.tokenizer.pretrained_folder import write_files
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
        """Plain JSON values: those of `extend`, and what the superwords did."""
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
    tokenizer: Any,
    corpus: Corpus,
    *,
    n_superwords: int,
    threads: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> SuperwordExtension:
    """`n_tokens` new words by continued BPE, then `n_superwords` inside sentences.

    `options` are those of `ExtensionOptions`. Superwords need the space wall of the pre-tokenizer
    lifted, and merge skipping off: what that alone changes is measured and reported. Byte-level
    tokenizers only (ValueError).
    """
    base = as_tokenizer(tokenizer)
    alpha = options.get("sampling_alpha")
    SuperwordsOnTopTrainer(base=base, n_tokens=n_superwords)  # refuses early what cannot have any
    asked = ExtensionOptions(**options)
    words = extend_with_report(base, corpus, asked, threads=threads, progress=progress)
    trainer = SuperwordsOnTopTrainer(
        base=words.tokenizer, n_tokens=n_superwords, sampling_alpha=alpha
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


def extend_with_superwords_to_folder(
    tokenizer: Any,
    corpus: Corpus,
    out: str | Path,
    *,
    options: ExtensionOptions,
    n_superwords: int,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The same into a folder, whole or not at all; the keys of `extend`, `superwords` (new ones)
    and `superword_effect`."""
    inputs = [*corpus.paths]
    if isinstance(tokenizer, str | Path):
        inputs.append(Path(tokenizer))
    check_free(out, force=force, inputs=inputs)
    extension = extend_with_superwords(
        tokenizer,
        corpus,
        n_superwords=n_superwords,
        threads=threads,
        progress=progress,
        **asdict(options),
    )
    figures = extension.to_dict()
    with atomic_folder(out, force=force) as partial:
        write_files(extension.tokenizer, partial)
        extension.id_map.save(partial)
        config = {
            **asdict(options),
            "n_superwords": n_superwords,
            "old": extension.id_map.old,
        }
        fingerprint = extension.words.report.corpus_fingerprint
        write_provenance(partial, "extend", config, figures, corpus_fingerprint=fingerprint)
    return {"out": str(out), **figures}
