"""Two-stage BPE: subwords inside words, then superwords inside sentences (IST, section 3).

The merges of stage 1 segment the stage-2 pre-tokens, by rank over the whole pre-token, and stage 2
starts from the result. The exported tokenizer has the stage-2 pattern and segments in the same way
(docs/algorithms/superwords.md). So the saved file yields the tokens with which training ended.

Where we differ: stage 1 takes its words inside the pre-tokens of stage 2. Under the stage-1 pattern
alone it would learn tokens across the boundaries that stay ("!=", ";" with a newline), which the
exported pattern can never produce again: dead rows in the model.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from vocabshift import _core
from vocabshift.engines.borders import RunPlan
from vocabshift.errors import CorpusError
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.counting import CorpusReader, CountReader
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.run_folder import RunFolder
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import Reader, RunContext, Source, Training, check_positive
from vocabshift.trainers.byte_level import ByteLevelTrainer, forbidden
from vocabshift.trainers.counted import learn_counted, require_words, run_plan, runs_of
from vocabshift.trainers.stages import Stage, SuperwordRule, WordWeight, learn_words


def learn_superwords(
    reader: Reader, words: Stage, rule: SuperwordRule, context: RunContext
) -> Stage:
    """Continue the vocabulary of `words` inside the pre-tokens of the reader's pattern.

    The encoded text is in a file if there is a place for one. Memory stays small, and a killed run
    resumes from the file.
    """
    with tempfile.TemporaryDirectory(prefix="vocabshift-", dir=context.folder) as temporary:
        with context.watch.phase("encode"):
            stage = _encoded(reader, words, rule, context, Path(temporary))
        with context.watch.phase("stage 2"):
            trained = stage.train(
                reader.fixed_point_weights(),
                rule.vocab_size,
                reader.min_count(rule.min_frequency, rule.unit),
                rule.to_core(),
                context.share_of_memory(0.5),
                context.in_phase("stage 2"),
            )
    return Stage.of(trained, rule.min_frequency)


def _encoded(
    reader: Reader, words: Stage, rule: SuperwordRule, context: RunContext, temporary: Path
) -> _core.SuperwordStage:
    tokens = list(words.tokens)
    encoder = compile_merges(tokens, words.merges)

    def stage(file: Path | None, *, resume: bool = False) -> _core.SuperwordStage:
        return _core.SuperwordStage(
            encoder,
            tokens,
            reader.scanner,
            context.threads,
            file="" if file is None else str(file),
            sentences=None if rule.sentences is None else rule.sentences.to_core(),
            counted=reader.is_counted,
            resume=resume,
        )

    saved = context.checkpoints.load("encode")
    if saved is not None:
        reader.restore(saved.info)
        return stage(saved.path, resume=True)
    kept = context.checkpoints.path("encode")
    file = kept or (temporary / "encoded" if context.memory_bytes else None)
    encoded = stage(file)
    reader.add_to(encoded, threads=context.threads, progress=context.in_phase("encode"))
    encoded.finish()
    if kept is not None:
        context.checkpoints.commit("encode", reader.state())
    return encoded


@dataclass(frozen=True, kw_only=True)
class SuperwordTrainer(ByteLevelTrainer):
    """IST: `transition` of the vocabulary inside words, the rest inside sentences.

    `pre_tokenizer` is the pattern of stage 1.
    """

    transition: Annotated[float, "share"] = 0.9
    """Share of the vocabulary that stage 1 learns, in (0, 1]; 1: there is no stage 2."""
    stage2_pre_tokenizer: str | Pattern = "ist-stage2"
    """Pattern of stage 2, and of the exported tokenizer (followed by that of stage 1 where there is
    no stage 2: without superwords the words stay apart)."""
    max_words: int | None = None
    """Most words, divided by spaces, that a superword may hold."""

    recipe: ClassVar[str] = "ist"
    takes_runs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.transition <= 1:
            raise ValueError(
                f"transition is {self.transition}; give the share of the vocabulary that is "
                "learned inside words, above 0 and at most 1 (the papers use 0.9)"
            )
        if self.stage1_size < 256:
            raise ValueError(
                f"transition {self.transition} of vocab_size {self.vocab_size} leaves stage 1 "
                f"{self.stage1_size} tokens, below the alphabet of 256 bytes; raise either"
            )
        check_positive("max_words", self.max_words)
        get_pattern(self.stage2_pre_tokenizer)

    @property
    def stage1_size(self) -> int:
        """Size of the vocabulary after stage 1, the bytes included."""
        return round(self.transition * self.vocab_size)

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        return self._learn(self._two_stage_reader(corpus), context or RunContext())

    def _two_stage_reader(self, corpus: Source) -> Reader:
        """Return the corpus as stage 1 sees it: words inside the pre-tokens of stage 2."""
        pieces = get_pattern(self.stage2_pre_tokenizer)
        return self._reader(corpus, pieces, get_pattern(self.pre_tokenizer))

    def _learn(self, reader: Reader, context: RunContext) -> Training:
        """Run both stages, and make the report."""
        rule = self._word_rule(reader, self.stage1_size)
        words = learn_words(reader, rule, self._word_weight(), context)
        return self._add_superwords(words, reader, context)

    def _add_superwords(self, words: Stage, reader: Reader, context: RunContext) -> Training:
        """Run stage 2, if there is one, and make the report."""
        if self.stage1_size == self.vocab_size:
            return self._finish([words], reader, context)
        pieces = get_pattern(self.stage2_pre_tokenizer)
        runs = runs_of(reader, pieces)
        if runs is None or isinstance(reader, CorpusReader):
            reader = reader.again(pieces)
            superwords = learn_superwords(reader, words, self._superword_rule(reader), context)
        else:
            reader = replace(reader, pieces=pieces)
            of_superwords = self._superword_rule(reader)
            plan = run_plan(reader, words, of_superwords, pieces)
            superwords = learn_counted(reader, plan, of_superwords, runs, context)
        return self._finish([words, superwords], reader, context)

    def plan_runs(self, words: CountFolder, context: RunContext | None = None) -> RunPlan:
        """Learn stage 1 from counted words, and return the plan under which runs are counted.

        The words must have been counted under the patterns of stage 2 and stage 1, one after the
        other (`--pattern ist-stage2+o200k`).
        """
        pieces, reader = self._counted(words)
        rule = self._word_rule(reader, self.stage1_size)
        learned = learn_words(reader, rule, self._word_weight(), context or RunContext())
        return run_plan(reader, learned, self._superword_rule(reader), pieces)

    def train_runs(
        self, plan: RunPlan, words: CountFolder, runs: RunFolder, context: RunContext | None = None
    ) -> Stage:
        """Learn stage 2 alone: BoundTooHighError if the runs do not hold all that it needs."""
        _, reader = self._counted(words)
        rule = self._superword_rule(reader)
        return learn_counted(reader, plan, rule, runs, context or RunContext())

    def _counted(self, words: CountFolder) -> tuple[Pattern, CountReader]:
        """Return the pattern of stage 2, and a reader of the words."""
        pieces = get_pattern(self.stage2_pre_tokenizer)
        reader = self._two_stage_reader(words)
        assert isinstance(reader, CountReader)
        if self.stage1_size == self.vocab_size:
            raise CorpusError("transition 1 leaves out stage 2, so there are no runs to count")
        require_words(reader, pieces, get_pattern(self.pre_tokenizer))
        return pieces, reader

    def _word_weight(self) -> WordWeight:
        """Return the weights of words, by script."""
        return WordWeight()

    def _superword_rule(self, reader: Reader) -> SuperwordRule:
        """Return the rule of stage 2."""
        return SuperwordRule(
            vocab_size=self.vocab_size,
            min_frequency=self.min_frequency,
            max_token_bytes=self.max_token_bytes or 0,
            max_words=self.max_words or 0,
            forbidden=forbidden(reader),
            conjoiners=self._conjoiners,
        )


@dataclass(frozen=True, kw_only=True)
class SuperBpeTrainer(SuperwordTrainer):
    """SuperBPE's settings: no sentence boundaries, at most four words in a superword.

    Its filter on a colon before a space is left out, and marks count as letters in the pattern:
    SuperBPE's own cuts Indian words at two marks in a row.
    """

    stage2_pre_tokenizer: str | Pattern = "superbpe-stage2"
    max_words: int | None = 4

    recipe: ClassVar[str] = "superbpe"
