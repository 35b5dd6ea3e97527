"""`extend` into a folder, with superwords too: what `vocabshift extend` does.

Owns the contents of the folder: the tokenizer's files, `token_map.json`, `vocabshift.json`. With
superwords, new words come first, and stage 2 of IST follows: the effect of the second on every
language is measured. `trainers.on_top` adds the superwords and adapts the pre-tokenizer to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vocabshift.checks.vocabulary import bytes_per_token
from vocabshift.errors import CorpusError
from vocabshift.extension.extend import Extension, extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.progress import Progress
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.regexes import WORTHWHILE_LIFT
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer, load_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap, chained
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.on_top import OnTopReport, SuperwordsOnTopTrainer

__all__ = ["WORTHWHILE_LIFT", "ExtensionOptions", "extend_to_folder"]


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


def extend_to_folder(
    tokenizer: TokenizerLike,
    source: Corpus | CountFolder,
    options: ExtensionOptions,
    out: str | Path,
    *,
    n_superwords: int | None = None,
    sentencepiece_model: str | Path | None = None,
    inputs: Iterable[str | Path] = (),
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Extend, write the folder, reopen it with `tokenizers` and compare.

    tokenizer, source, options: as for `extend`. n_superwords: also learn this many superwords
        inside sentences, from the text itself (a Corpus).
    sentencepiece_model: file whose rules new pieces obey; None: the one next to the tokenizer.
    out: the folder, which appears whole or not at all. inputs: further paths, besides the
        tokenizer and the source, that it may not replace.
    threads: the result does not depend on it. progress: called with the phase, the work done and
        the total work.

    Returns the keys of `vocabshift extend --json`. FileExistsError if `out` exists, without
    `force`; ValueError or CorpusError if nothing can be learned.
    """
    with outcome("extend", out, inputs=[tokenizer, source, *inputs], force=force) as output:
        if sentencepiece_model is not None:
            tokenizer = _with_rules(tokenizer, sentencepiece_model)
        config = json.loads(json.dumps(asdict(options)))
        if n_superwords is None:
            words = extend_with_report(
                tokenizer, source, options, threads=threads, progress=progress
            )
            result, id_map, figures = words.tokenizer, words.id_map, words.report.to_dict()
        else:
            if not isinstance(source, Corpus):
                raise CorpusError("--superwords needs the text itself; give --corpus")
            longer = extend_with_superwords(
                tokenizer,
                source,
                options,
                n_superwords=n_superwords,
                threads=threads,
                progress=progress,
            )
            words, result, id_map = longer.words, longer.tokenizer, longer.id_map
            figures = longer.to_dict()
            config["n_superwords"] = n_superwords
        write_files(result, output.folder)
        return output.record(
            {"old": id_map.old, **config},
            figures,
            corpus_fingerprint=words.report.corpus_fingerprint,
            id_map=id_map,
        )


def _with_rules(tokenizer: TokenizerLike, file: str | Path) -> Tokenizer:
    """The tokenizer with the rules of a SentencePiece model."""
    model = load_tokenizer(file)
    if model.piece_rules is None:
        raise ValueError(f"{file} is no SentencePiece model; give the tokenizer.model of the base")
    return replace(as_tokenizer(tokenizer), piece_rules=model.piece_rules)
