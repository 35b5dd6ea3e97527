"""The superword stage: merges across words, inside the pieces of the exported pattern.

It starts from the pieces as the merges so far segment them, by rank over the whole piece: exactly
what the exported tokenizer will do (method.md, section 2). The encoded text is kept in a file
where there is a place for it: memory stays small, and a killed run goes on from there.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from vocabshift import _core
from vocabshift.bpe.compiled_model import compile_merges
from vocabshift.trainers.source import Reader
from vocabshift.trainers.stage import Stage
from vocabshift.trainers.work import Work


@dataclass(frozen=True)
class SuperwordRule:
    """What the superword stage may learn."""

    vocab_size: int
    min_frequency: int = 1
    max_token_bytes: int = 0
    max_words: int = 0
    forbidden: set[bytes] = field(default_factory=set)
    conjoiners: str = ""
    terminals: str = ""  # characters that no product may hold
    whole_first: bool = False  # no product holds the end of a character and what follows it
    sentences: _core.SentenceWeights | None = None  # None: documents weigh by their group alone
    unit: int = 1  # what a sentence without target words counts

    def to_core(self) -> _core.MergeRule:
        """The core's form."""
        return _core.MergeRule(
            max_token_bytes=self.max_token_bytes,
            max_words=self.max_words,
            forbidden=self.forbidden,
            terminals=self.terminals,
            whole_characters=self.sentences is not None,
            whole_first=self.whole_first,
            conjoiners=self.conjoiners,
        )


def learn_superwords(reader: Reader, words: Stage, rule: SuperwordRule, work: Work) -> Stage:
    """Continue the vocabulary of `words` inside the pieces of the reader's pattern."""
    with tempfile.TemporaryDirectory(prefix="vocabshift-", dir=work.folder) as temporary:
        with work.watch.phase("encode"):
            stage = _encoded(reader, words, rule, work, Path(temporary))
        with work.watch.phase("stage 2"):
            trained = stage.train(
                reader.fixed_point_weights(),
                rule.vocab_size,
                reader.min_count(rule.min_frequency, rule.unit),
                rule.to_core(),
                work.share_of_memory(0.5),
                work.in_phase("stage 2"),
            )
    return Stage.of(trained, rule.min_frequency)


def _encoded(
    reader: Reader, words: Stage, rule: SuperwordRule, work: Work, temporary: Path
) -> _core.SuperwordStage:
    tokens = list(words.tokens)
    encoder = compile_merges(tokens, words.merges)

    def stage(file: Path | None, *, resume: bool = False) -> _core.SuperwordStage:
        return _core.SuperwordStage(
            encoder,
            tokens,
            reader.scanner,
            work.threads,
            file="" if file is None else str(file),
            sentences=rule.sentences,
            counted=reader.is_counted,
            resume=resume,
        )

    saved = work.checkpoints.load("encode")
    if saved is not None:
        reader.restore(saved.info)
        return stage(saved.path, resume=True)
    kept = work.checkpoints.path("encode")
    file = kept or (temporary / "encoded" if work.memory_bytes else None)
    encoded = stage(file)
    reader.add_to(encoded, threads=work.threads, progress=work.in_phase("encode"))
    encoded.finish()
    if kept is not None:
        work.checkpoints.commit("encode", reader.state())
    return encoded
