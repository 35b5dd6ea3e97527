"""Stacked vocabularies: each script learns alone, then the merge lists are stacked (IST, 4.4).

This is the "explicit merging" with which IST compares. It loses to one vocabulary learned from all
text: budgets are fixed beforehand, and the rules of one script interfere with the next one's.

- A word belongs to the script of its first letter; words without letters (digits, punctuation,
  whitespace) share a part of their own, "Common".
- Budgets are proportional to the bytes of each part in the (weighted) corpus, or given.
- Each part learns byte-level BPE from its own words alone, under the same pattern.
- Lists are stacked, the largest budget first. A token goes on top when the rules below leave its
  bytes as exactly two tokens, which become its merge. A token that already exists uses no budget.
  A token that the rules below cut into more than two is out of reach and skipped. So ids are dense,
  every token can be rebuilt, and the budgets are met. If the pairs of a part run out, the rest of
  its budget goes to the next parts.

Source: IndicSuperTokenizer, section 4.4, Tables 9, 10 and 17.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.counting import CorpusReader
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import RunContext, Source, Training, TrainingReport, detailed
from vocabshift.trainers.byte_level import ByteLevelTrainer, count_tokens
from vocabshift.trainers.stages import Stage, WordWeight

SHARED_PART = "Common"
"""The part of words without letters, named as Unicode names what belongs to no one script."""

_SORTED_AT_ONCE = 1 << 20
"""Words that are sorted together: a line may hold millions, and Ctrl-C waits for NumPy."""


@dataclass(frozen=True, slots=True)
class ScriptPart:
    """What one script got."""

    script: str  # Unicode's name, or SHARED_PART
    corpus_bytes: int  # of its words, unweighted
    budget: int  # tokens it was to add
    tokens: int  # tokens it added
    known: int  # its tokens that other scripts had added already
    out_of_reach: int  # its tokens that the rules of other scripts cut into more than two


@dataclass(frozen=True, slots=True)
class StackedReport(TrainingReport):
    """What a run did; all merges count as stage 1."""

    scripts: tuple[ScriptPart, ...]  # in the order in which they were stacked


@dataclass(frozen=True, kw_only=True)
class StackedTrainer(ByteLevelTrainer):
    """Byte-pair encoding per script, stacked to one vocabulary.

    `budgets` may also be given as a mapping, or as texts such as "Devanagari=0.3,Latin=0.4".
    """

    budgets: Annotated[tuple[tuple[str, float], ...], "SCRIPT=SHARE"] = ()
    """Shares (0-1) of the merges for some scripts, by Unicode's names, "Common" for words without
    letters. The others share what is left by their bytes."""

    recipe: ClassVar[str] = "stacked"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "budgets", parse_budgets(self.budgets))
        self._refuse_grapheme_safe("script by script")

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus`, which is read twice, and return the tokenizer with a report.

        Raises ValueError for a memory budget: the words of all scripts are in memory at once.
        """
        context = context or RunContext()
        context.refuse_budget(self.recipe)
        reader = self._text_reader(corpus, self._pattern(corpus))
        with context.watch.phase("count"):
            parts = _count_by_script(reader, context.threads, context.in_phase("count"))
        budgets = divide(
            self.vocab_size - 256,
            {script: part.weighted_bytes(reader) for script, part in parts.items()},
            dict(self.budgets),
        )
        with context.watch.phase("stage 1"):
            learned = {
                script: self._learn_script(parts[script], reader, context, script)
                for script in budgets
            }
        with context.watch.phase("stack"):
            stack = _core.MergeStack(self.vocab_size)
            scripts = _stack(stack, learned, parts, budgets, self.vocab_size)
        tokens = stack.tokens
        with context.watch.phase("encode"):
            encoder = compile_merges(tokens, stack.merges)
            training_tokens = count_tokens(encoder, reader, context)
        stopped = "vocab_size"
        if len(tokens) < self.vocab_size:
            all_stopped = [one.stopped for one in learned.values()]
            stopped = all_stopped[0] if all_stopped else "no_pair_left"
        stage = Stage.of_merges(tokens, stack.merges, stopped, training_tokens)
        training = self._finish([stage], reader, context)
        return replace(training, report=detailed(training.report, StackedReport, scripts=scripts))

    def _learn_script(
        self, part: _Part, reader: CorpusReader, context: RunContext, script: str
    ) -> Stage:
        """Learn BPE from the words of one script, up to the whole vocabulary: if other parts take
        some of its tokens, it needs later ones."""
        rule = self._word_rule(reader, self.vocab_size)
        trained = _core.train_bpe(
            part.counter,
            WordWeight().to_core(reader.fixed_point_weights()),
            self.vocab_size,
            reader.min_count(self.min_frequency),
            rule.to_core(),
            progress=context.in_phase(script),
        )
        return Stage.of(trained, self.min_frequency)


def parse_budgets(
    budgets: Mapping[str, float] | Iterable[str | tuple[str, float]] | str,
) -> tuple[tuple[str, float], ...]:
    """Return shares by script, sorted by name; ValueError for an unknown script or bad share."""
    if isinstance(budgets, Mapping):
        given = list(budgets.items())
    else:
        given = []
        for item in [budgets] if isinstance(budgets, str) else budgets:
            given += _parse_text(item) if isinstance(item, str) else [item]
    known = {*_core.script_names(), SHARED_PART} - {"Unknown", "Inherited"}
    for script, share in given:
        if script not in known:
            raise ValueError(
                f"no script is named {script!r}; give Unicode's name, such as Devanagari or Latin, "
                f"or {SHARED_PART} for words without letters"
            )
        if not 0 <= share <= 1:
            raise ValueError(f"the budget of {script} is {share}; give a share from 0 to 1")
    if len(dict(given)) < len(given):
        raise ValueError("a script has two budgets; give one share for each")
    if math.fsum(share for _, share in given) > 1 + 1e-9:
        raise ValueError("the budgets sum to more than 1; give shares of the whole vocabulary")
    return tuple(sorted((script, float(share)) for script, share in given))


def _parse_text(text: str) -> list[tuple[str, float]]:
    pairs = []
    for part in text.split(","):
        script, _, share = part.partition("=")
        try:
            pairs.append((script.strip(), float(share)))
        except ValueError:
            raise ValueError(
                f"the budget {part!r} is not SCRIPT=SHARE, such as Devanagari=0.3"
            ) from None
    return pairs


def divide(total: int, sizes: Mapping[str, int], given: Mapping[str, float]) -> dict[str, int]:
    """Divide `total` merges over scripts, the largest budget first; ties by name.

    `given` shares are kept; the other scripts divide the rest by their sizes. By largest remainder
    the budgets sum to `total` (or less, if every script with text has a given share). Raises
    CorpusError for a share of a script without text.
    """
    for script in given:
        if script not in sizes:
            raise CorpusError(
                f"{script} has a budget, but no word of the corpus is written in it; the corpus "
                f"holds {', '.join(sorted(sizes)) or 'no word'}"
            )
    rest = max(0.0, 1 - math.fsum(given.values()))
    free = {script: size for script, size in sizes.items() if script not in given}
    free_bytes = sum(free.values())
    exact = {script: total * share for script, share in given.items()}
    exact |= {script: total * rest * size / free_bytes for script, size in free.items()}
    budgets = {script: int(amount) for script, amount in exact.items()}
    by_remainder = sorted(exact, key=lambda script: (budgets[script] - exact[script], script))
    for script in by_remainder[: round(math.fsum(exact.values())) - sum(budgets.values())]:
        budgets[script] += 1
    return dict(sorted(budgets.items(), key=lambda item: (-item[1], item[0])))


class _Part:
    """Counted words of one script."""

    def __init__(self, threads: int) -> None:
        self.counter = _core.WordCounter(_core.PreTokenizer([]), threads)
        self.bytes_by_group: dict[int, int] = {}

    def add(self, data: Any, starts: NDArray[Any], ends: NDArray[Any], group: int) -> None:
        self.counter.add(data, starts, ends, group)
        seen = self.bytes_by_group.get(group, 0)
        self.bytes_by_group[group] = seen + int((ends - starts).sum())

    @property
    def corpus_bytes(self) -> int:
        return sum(self.bytes_by_group.values())

    def weighted_bytes(self, reader: CorpusReader) -> int:
        weights = reader.fixed_point_weights()
        return sum(weights[group] * size for group, size in self.bytes_by_group.items())


def _count_by_script(reader: CorpusReader, threads: int, progress: Any) -> dict[str, _Part]:
    """Count the words of the corpus by the script of their first letter."""
    names = _core.script_names()
    parts: dict[str, _Part] = {}
    for block in reader.read(progress):
        starts, ends, scripts = _core.words_by_script(
            reader.scanner, block.data, block.starts, block.ends, threads
        )
        for at in range(0, len(scripts), _SORTED_AT_ONCE):
            some = slice(at, at + _SORTED_AT_ONCE)
            order = np.argsort(scripts[some], kind="stable") + at
            borders = np.flatnonzero(np.diff(scripts[order])) + 1
            for words in np.split(order, borders):
                number = int(scripts[words[0]])
                part = parts.setdefault(names[number] if number else SHARED_PART, _Part(threads))
                part.add(block.data, starts[words], ends[words], block.group)
    return parts


def _stack(
    stack: _core.MergeStack,
    learned: Mapping[str, Stage],
    parts: Mapping[str, _Part],
    budgets: Mapping[str, int],
    vocab_size: int,
) -> tuple[ScriptPart, ...]:
    """Stack the lists up to their budgets, then distribute the remainder in the same order."""
    lists = {script: iter(one.tokens[256:]) for script, one in learned.items()}
    pushed = {script: [0, 0, 0] for script in lists}  # known, taken, out of reach

    def push(script: str, budget: int) -> None:
        while budget and stack.size < vocab_size:
            token = next(lists[script], None)
            if token is None:
                return
            outcome = min(stack.push(token), 3) - 1
            pushed[script][outcome] += 1
            budget -= outcome == 1

    for script in lists:
        push(script, budgets[script])
    for script in lists:
        push(script, vocab_size)
    return tuple(
        ScriptPart(script, parts[script].corpus_bytes, budgets[script], taken, known, out_of_reach)
        for script, (known, taken, out_of_reach) in pushed.items()
    )
