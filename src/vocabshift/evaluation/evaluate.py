"""evaluate: tokenizers and texts in, Results out.

Owns the order of the steps: check the arguments, read the texts, measure each subject, sort the
rows. Knows nothing of how a line is counted or a table is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.subject import Subject, checksum_of, engine_of, subjects
from vocabshift.evaluation.lines.texts import (
    Lines,
    bins_of_texts,
    blank_lines,
    check_parallel,
    files_of,
    read_lines,
)
from vocabshift.evaluation.lines.words import cuts_of, withheld
from vocabshift.evaluation.measure import Rows, Task, doubts, measure, measure_base, prepare
from vocabshift.evaluation.metrics.code_switching import mix
from vocabshift.evaluation.metrics.distribution import ALPHA, check_alpha, find_reference
from vocabshift.evaluation.metrics.metric import Metric, Need, OfPair, Ratio
from vocabshift.evaluation.metrics.morph_score import Morphemes
from vocabshift.evaluation.metrics.registry import EVERY, METRICS, check_names
from vocabshift.progress import Progress
from vocabshift.results import WHOLE, Result, Results, with_sources

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.formats.load import TokenizerLike

DEFAULT_METRICS = ("fertility", "bytes_per_token")
BASE_METRIC = "normalized_sequence_length"
"""Measured unasked where there is a base."""


def evaluate(
    tokenizers: TokenizerLike | Sequence[TokenizerLike] | Mapping[str, TokenizerLike],
    texts: Corpus | Mapping[str, Iterable[str]] | Sequence[str] | None,
    metrics: str | Sequence[str] | None = None,
    *,
    base: TokenizerLike | None = None,
    reference: str | None = None,
    frequencies: Corpus | Mapping[str, Iterable[str]] | Sequence[str] | None = None,
    renyi_alpha: float = ALPHA,
    parallel: bool = False,
    code_switch: Sequence[str] = (),
    morphemes: Mapping[str, Sequence[Morphemes]] | None = None,
    leading_space: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Results:
    """Measure tokenizers on texts, per language.

    Documents are cut into lines, blank ones are skipped, no BOS or EOS is added. Definitions and
    their sources are in the files of `vocabshift.evaluation.metrics`.

    Parameters:
        tokenizers: one tokenizer, or a list or tuple of them, or a mapping of names to them; each
            a `Tokenizer`, transformers fast tokenizer, `tokenizers.Tokenizer`,
            `tiktoken.Encoding`, path or Hub name, of type BPE, Unigram or WordPiece.
        texts: a `Corpus`, {language: iterable of str}, or lines without a label; None where only
            `morphemes` are measured.
        metrics: names of `METRICS`; by default "fertility" and "bytes_per_token", and
            "normalized_sequence_length" too where there is a `base`. "all" is every metric that
            the input allows; what it does not allow is reported to `note`.
        base: the tokenizer that lengths, cuts and vocabularies are compared with.
        reference: the language of "premium", English by default.
        frequencies: texts of every language that "fertility_bin_…" ranks words by, instead of
            `texts`.
        renyi_alpha: order of Rényi's entropy, above 0.
        parallel: states that line n of all texts says the same, so that a difference in length is
            an error whatever the metrics.
        code_switch: pairs of languages ("hi+en") whose parallel texts are mixed
            (`metrics.code_switching` has the rule) and measured under that label, line by line
            (no fairness, premium, frequency bins or vocabulary of theirs). Brings its metrics.
        morphemes: words with their parts by language (`read_morphemes`), for MorphScore and its
            kin; brings these metrics.
        leading_space: encode these words after a space, as in running text.
        threads: changes the time, never the result.
        progress: called with the phase "tokenizers", tokenizers done, and all of them.
        note: called with a sentence for each reason why metrics were left out, and for a base or
            language of reference of which text is lost.

    Returns rows by metric, then language, then subject. Figures over lines have their 95 %
    bootstrap interval, and `n` is the number of lines; those of a vocabulary are under "all" (or
    a script, or another subject) and `n` is its size. Rows of "loss_rate" are added wherever a
    tokenizer does not round-trip a line.

    Raises ValueError for an unknown metric, or for one that needs a base where none is given;
    CorpusError for an empty language, or texts that are not parallel; InvalidTokenizerError for a
    tokenizer that gives no token for a language; ImportError where an extra is missing.
    """
    if metrics is None:
        metrics = DEFAULT_METRICS if base is None else (*DEFAULT_METRICS, BASE_METRIC)
        metrics = metrics if texts is not None else _needing("morphemes")
    names = _with_families(check_names(metrics), code_switch, morphemes)
    is_every = EVERY in ((metrics,) if isinstance(metrics, str) else tuple(metrics))
    if not is_every and base is None:  # before any text is read
        for name in names:
            if "base" in METRICS[name].needs:
                raise ValueError(f"{name} compares with a base tokenizer; give one as base")
    check_alpha(renyi_alpha)
    evaluated = subjects(tokenizers)
    lines = {} if texts is None and morphemes else read_lines(texts)
    files = files_of(texts)
    is_parallel = parallel or code_switch or any("parallel" in METRICS[n].needs for n in names)
    blank = blank_lines(texts) if is_parallel and len(lines) > 1 else {}
    mixed = mix(lines, code_switch, files, blank)
    if parallel:
        check_parallel(lines, "--parallel (parallel=True)", files, blank)
    given = _Given(
        *(lines, files, blank, base is not None, reference),
        *(bool(mixed), bool(morphemes), len(evaluated)),
    )
    refused: dict[str, Exception] = {}
    for name in names:
        try:
            given.check(METRICS[name])
        except ValueError as error:
            refused[name] = error
    if refused and not is_every:
        raise next(iter(refused.values()))
    say = note or (lambda _: None)
    _report(refused, say)
    names = tuple(name for name in names if name not in refused)
    mixed_lines = {label: text.texts for label, text in mixed.items()}
    needs = {need for name in names for need in METRICS[name].needs}
    by_word = [name for name in names if "words" in METRICS[name].needs]
    cuts = cuts_of(lines | mixed_lines) if by_word else {}
    if why := withheld(cuts, by_word):
        say(why)
    task = Task(
        names,
        lines,
        bins_of_texts(lines, frequencies) if "ranks" in needs else {},
        cuts,
        reference=find_reference(list(lines), reference) if "reference" in needs else None,
        renyi_alpha=renyi_alpha,
        linguistic=prepare(
            names, lines | mixed_lines, mixed=mixed, words=morphemes, leading_space=leading_space
        ),
    )
    tasks = [task]
    if mixed:
        by_line = tuple(name for name in names if _is_by_line(METRICS[name]))
        tasks.append(Task(by_line, mixed_lines, cuts=cuts, renyi_alpha=renyi_alpha))
    if base is not None:
        engine = engine_of(subjects(base)[0].tokenizer)
        tasks = [replace(task, base=measure_base(engine, task)) for task in tasks]
    measured = _measure_all(evaluated, tasks, threads, progress)
    languages = dict.fromkeys((*lines, *mixed, *(morphemes or ())))
    found = _in_order(names, list(languages), [subject.name for subject in evaluated], measured)
    for doubt in doubts(tasks, found):
        say(doubt)
    return _with_sources(found, evaluated, lines, mixed_lines)


def _with_sources(rows: Results, of: Sequence[Subject], lines: Lines, mixed: Lines) -> Results:
    """The rows with the checksums of their tokenizer, and of their text where there is one."""
    own = {subject.name: checksum_of(subject.tokenizer) for subject in of}
    return Results(
        row if "text" in METRICS[row.metric].needs else replace(row, text_sha256=None)
        for row in with_sources(rows, lines, own, apart=mixed)
    )


def _needing(need: Need) -> list[str]:
    return [name for name, metric in METRICS.items() if need in metric.needs]


def _is_by_line(metric: Metric) -> bool:
    """Whether it is measured of mixed lines too: it needs nothing of the languages alone."""
    return isinstance(metric.formula, Ratio) and not metric.needs & {"reference", "ranks"}


def _with_families(
    names: tuple[str, ...], code_switch: Sequence[str], morphemes: Any
) -> tuple[str, ...]:
    """`names`, and the families that data was given for where none of them is asked for."""
    given: dict[Need, Any] = {"code switching": code_switch, "morphemes": morphemes}
    for need, data in given.items():
        members = _needing(need)
        if data and not set(names) & set(members):
            names = (*names, *members)
    return names


@dataclass(frozen=True, slots=True)
class _Given:
    """What there is to measure with."""

    lines: Lines
    files: Mapping[str, str]
    blank: Mapping[str, Sequence[int]]
    has_base: bool
    reference: str | None
    has_mixed_lines: bool
    has_words: bool
    n_subjects: int

    def check(self, metric: Metric) -> None:
        """ValueError or CorpusError for what the metric needs and there is not."""
        name, needs = metric.name, metric.needs
        if "morphemes" in needs and not self.has_words:
            raise ValueError("words with their morphemes are needed (--morphemes)")
        if "code switching" in needs and not self.has_mixed_lines:
            raise ValueError("pairs of languages are needed (--code-switch hi+en)")
        if "text" in needs and not self.lines:
            raise CorpusError("texts are needed (--text)")
        if "base" in needs and not self.has_base:
            raise ValueError(f"{name} compares with a base tokenizer; give one as base")
        if "subjects" in needs and self.n_subjects < 2:
            raise ValueError(f"{name} compares subjects; give at least two")
        if "parallel" in needs:
            if len(self.lines) < 2:
                raise CorpusError(f"{name} compares languages; give texts of at least two")
            check_parallel(self.lines, name, self.files, self.blank)
        if "reference" in needs:
            find_reference(list(self.lines), self.reference)


def _report(refused: Mapping[str, Exception], say: Callable[[str], None]) -> None:
    """Say what is left out and why, metrics of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, error in refused.items():
        by_reason.setdefault(str(error), []).append(name)
    for reason, names in by_reason.items():
        say(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}")


def _measure_all(
    evaluated: Sequence[Subject], tasks: Sequence[Task], threads: int, progress: Progress | None
) -> list[tuple[Rows, npt.NDArray[np.int64]]]:
    """Yield the result of `measure` for each subject, in order; several run at a time.

    Rows of all tasks are put together; the hashes are those of the first one.
    """
    workers = min(threads, len(evaluated))

    def one(subject: Subject) -> tuple[Rows, npt.NDArray[np.int64]]:
        engine = engine_of(subject.tokenizer)
        inside = max(1, threads // workers)
        found = [measure(subject.name, engine, task, threads=inside) for task in tasks]
        rows, hashes = found[0]
        for more, _ in found[1:]:
            for name, of_metric in more.items():
                rows.setdefault(name, []).extend(of_metric)
        return rows, hashes

    done = []
    with ThreadPoolExecutor(workers) as pool:
        for found in map(one, evaluated) if workers == 1 else pool.map(one, evaluated):
            done.append(found)
            if progress is not None:
                progress("tokenizers", len(done), len(evaluated))
    return done


def _in_order(
    names: Sequence[str],
    languages: Sequence[str],
    labels: Sequence[str],
    measured: Sequence[tuple[Rows, npt.NDArray[np.int64]]],
) -> Results:
    """Rows by metric, then language in the order of the texts, then subject.

    Scripts and others in the place of a language keep their order.
    """
    by_metric: dict[str, list[Result]] = {name: [] for name in names}
    for rows, _ in measured:
        for name, of_metric in rows.items():
            by_metric.setdefault(name, []).extend(of_metric)
    hashes = [found for _, found in measured]
    for name in names:
        formula = METRICS[name].formula
        if isinstance(formula, OfPair):
            by_metric[name] = [
                Result(one, other, name, formula.function(ours, theirs), len(ours))
                for other, theirs in zip(labels, hashes, strict=True)
                for one, ours in zip(labels, hashes, strict=True)
                if one != other
            ]
    ordered: list[Result] = []
    for of_metric in by_metric.values():
        labels_of = dict.fromkeys((*languages, WHOLE, *(row.language for row in of_metric)))
        place = {language: number for number, language in enumerate(labels_of)}
        ordered += sorted(of_metric, key=lambda row: place[row.language])
    return Results(ordered)
