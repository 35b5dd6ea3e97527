"""PickyBPE: byte-pair encoding that removes tokens which have served their purpose.

When a pair (a, b) has merged n times, a (then b) is removed if n / (its remaining count + n) is
above `threshold`: it occurred almost only where it is now part of the longer token. Its remaining
occurrences are split into its parts, and its place in the vocabulary becomes free. The core's
picky_loop.h states the exact rules and the differences from the authors' code. With threshold 1
nothing is removed and the merges are those of recipe bpe.

The exported tokenizer is not exactly PickyBPE. PickyBPE's own encoder replays the events, merges
and removals, but a merge list in `tokenizer.json` cannot express a removal. We write an ordinary
list:

- Kept tokens go on a stack (merge_stack.h) in the order in which they were first made. If the
  merges below leave the bytes of a token as two tokens, it is merged from these two.
- If they leave more than two, the token needs an intermediate one, because every merge makes a
  token. Among the pairs of its neighbouring parts, the one whose product training made first (and
  removed) returns. If training made none of these products, that of the first two parts is
  written. Then the token is tried again.
- The exported vocabulary has `vocab_size` tokens, returned ones included. So the rarest kept
  tokens, as many as returned, are left out.

Every token of such a list can be rebuilt. Each goes on the stack when the merges below leave
exactly two parts of it. Merging by rank applies the lower ranks first, so later tokens never change
that. A returned product satisfies it too: no merge crosses the boundaries between the parts of the
longer token, so the merges below segment the product alone into the same two parts.

Almost every removed token returns: it was removed because it is a part of a longer token, and the
longer one needs it. So the report compares, over all counted words, the segmentations of PickyBPE's
own encoder and of the exported file.

Source: Chizhov, Arnett, Korotkova, Yamshchikov, "BPE Gets Picky: Efficient Vocabulary Refinement
During Tokenizer Training", EMNLP 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from vocabshift import _core
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import Reader, RunContext, Source, Training, TrainingReport, detailed
from vocabshift.trainers.byte_level import ByteLevelTrainer
from vocabshift.trainers.stages import Stage, WordRule, count_words


@dataclass(frozen=True, slots=True)
class PickyReport(TrainingReport):
    """What a run did; all merges count as stage 1. A word is a pre-token."""

    kept_tokens: int  # that training ended with, the bytes included
    removals: int  # a token that is made again and removed again counts twice
    returned: int  # tokens written only because a kept one cannot be rebuilt without them
    left_out: int  # kept tokens that had no room after those
    words: int  # of all documents
    replayed_tokens: int  # of all documents, as PickyBPE's own encoder segments them
    words_differing: float  # share that the exported tokenizer segments differently, 0-1
    tokens_differing: float  # share of its tokens that do not stand there by events, 0-1


def facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts shown to users: how far the export differs from PickyBPE itself."""
    words = max(result["words"], 1)
    per_word = (result["training_tokens"] / words, result["replayed_tokens"] / words)
    return {
        "tokens removed / written all the same": f"{result['removals']:,} / {result['returned']:,}",
        "kept tokens without room": result["left_out"],
        "tokens by PickyBPE itself": result["replayed_tokens"],
        "tokens per word, as written / by PickyBPE": "{:.4f} / {:.4f}".format(*per_word),
        "words / tokens that differ": f"{result['words_differing']:.2%} / "
        f"{result['tokens_differing']:.2%}",
    }


@dataclass(frozen=True, kw_only=True)
class PickyTrainer(ByteLevelTrainer):
    """Byte-pair encoding inside the words of a pattern, with removals."""

    threshold: Annotated[float, "share"] = 0.9
    """Share of a token's occurrences, in (0, 1], above which a merge that takes them removes it.
    1: none is ever removed."""

    recipe: ClassVar[str] = "picky"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.threshold <= 1:
            raise ValueError(
                f"threshold is {self.threshold!r}; give a share above 0 and up to 1: 0.9 is the "
                "paper's, 1 removes nothing"
            )
        self._refuse_grapheme_safe("by its score alone")

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report.

        Raises ValueError for a memory budget: all words and pairs are in memory at once.
        """
        context = context or RunContext()
        reader = self._reader(corpus, self._pattern(corpus))
        trained = self.learn(reader, context)
        with context.watch.phase("export"):
            export = Export(trained.tokens, trained.present, self.vocab_size)
            tokens, merges = export.stack.tokens, export.stack.merges
            compared = trained.compare(compile_merges(tokens, merges), list(map(len, tokens)))
        stopped = why_stopped(trained, self.min_frequency)
        stage = Stage.of_merges(tokens, merges, stopped, compared.exported_tokens)
        training = self._finish([stage], reader, context)
        report = detailed(
            training.report,
            PickyReport,
            kept_tokens=sum(trained.present),
            removals=len(trained.parts),
            returned=export.returned,
            left_out=export.left_out,
            words=compared.words,
            replayed_tokens=compared.replayed_tokens + reader.n_special,
            words_differing=compared.words_differing / max(compared.words, 1),
            tokens_differing=compared.tokens_differing / max(compared.exported_tokens, 1),
        )
        return replace(training, report=report)

    def learn(self, reader: Reader, context: RunContext) -> _core.PickyTrained:
        """Learn the merges and removals."""

        def groups_and_score() -> tuple[Groups, None]:
            return [(weight, 0) for weight in reader.fixed_point_weights()], None

        return learn_scored_words(
            reader,
            self._word_rule(reader, self.vocab_size),
            context,
            recipe=self.recipe,
            groups_and_score=groups_and_score,
            threshold=self.threshold,
        )


class Export:
    """The merge list that is written: see the head of the file."""

    def __init__(self, tokens: list[bytes], present: list[bool], vocab_size: int) -> None:
        self.stack = _core.MergeStack(vocab_size)
        self._vocab_size = vocab_size
        self._made = {token: token_id for token_id, token in enumerate(tokens)}
        kept = {token for token, is_kept in zip(tokens, present, strict=True) if is_kept}
        for token in tokens:
            if token in kept and len(token) > 1:
                self._push(token)
        written = set(self.stack.tokens)
        self.returned = len(written - kept)
        self.left_out = len(kept - written)

    def _push(self, token: bytes) -> None:
        """Stack a kept token after the tokens that it needs, if there is room for all of them."""
        while self.stack.size < self._vocab_size:
            n_parts = self.stack.push(token)
            if n_parts <= 2 or self.stack.size + n_parts - 1 > self._vocab_size:
                return
            if self.stack.push(self._between(self.stack.parts)) != 2:
                raise AssertionError("neighbouring parts are no parts of their own product")

    def _between(self, parts: list[bytes]) -> bytes:
        """Return the product to write next on the way to a token of these parts."""
        products = [left + right for left, right in pairwise(parts)]
        made = [product for product in products if product in self._made]
        return min(made, key=self._made.__getitem__, default=products[0])


# The word stage of PickyBPE and OBPE: tokens may be removed, and pairs compete by a score.

Groups = list[tuple[int, int]]
"""Weight, fixed point, and number of the language of each group of documents."""


def learn_scored_words(
    reader: Reader,
    rule: WordRule,
    context: RunContext,
    *,
    recipe: str,
    groups_and_score: Callable[[], tuple[Groups, _core.PairScore | None]],
    threshold: float = 1.0,
) -> _core.PickyTrained:
    """Learn events inside the words of the reader's pattern, up to `rule.vocab_size` tokens.

    `groups_and_score` is called after the words are counted and the reader knows its groups.
    Without a score, pairs compete by their count.
    """
    context.refuse_budget(recipe)
    counter = count_words(reader, context)
    groups, score = groups_and_score()
    with context.watch.phase("stage 1"):
        return _core.train_picky(
            counter,
            groups,
            rule.vocab_size,
            reader.min_count(rule.min_frequency),
            rule.to_core(),
            threshold=threshold,
            score=score,
            progress=context.in_phase("stage 1"),
        )


def why_stopped(trained: _core.PickyTrained, min_frequency: int) -> str:
    """Return the report's name for the reason."""
    stopped: str = trained.stopped.name.lower()
    # In fixed point even one occurrence counts more than 1.
    return "no_pair_left" if stopped == "min_frequency" and min_frequency == 1 else stopped
