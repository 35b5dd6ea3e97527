"""evaluate: tokenizers and texts in, Results out.

Owns the order of things: check what is asked for, read the texts, measure subject by subject, put
the rows in order. Knows nothing of how a line is counted or a table is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import CorpusError
from vocabshift.evaluation.linguistic.code_switching import mix
from vocabshift.evaluation.linguistic.families import FAMILIES, prepare
from vocabshift.evaluation.linguistic.morph_score import Morphemes
from vocabshift.evaluation.measure import Rows, Task, measure, measure_base
from vocabshift.evaluation.metrics import BASE_METRIC, BIN_METRICS, EVERY, METRICS, check_names
from vocabshift.evaluation.spans import words as frequency_bins
from vocabshift.evaluation.statistics.distribution import ALPHA, check_alpha, find_reference
from vocabshift.evaluation.subject import Subject, engine_of, subjects
from vocabshift.evaluation.texts import ALL, Lines, check_parallel, files_of, read_lines
from vocabshift.evaluation.vocabulary import overlap
from vocabshift.results import Result, Results

DEFAULT_METRICS = ("fertility", "bytes_per_token")

Progress = Callable[[str, int, int | None], None]
"""Called as (phase, done, total)."""


def evaluate(
    tokenizers: Any,
    texts: Any,
    metrics: str | Sequence[str] | None = None,
    *,
    base: Any = None,
    reference: str | None = None,
    frequencies: Any = None,
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

    `tokenizers`: one tokenizer, or a list or tuple of them, or a mapping of names to them; each a
    `Tokenizer`, transformers fast tokenizer, `tokenizers.Tokenizer`, `tiktoken.Encoding`, path or
    Hub name, of type BPE, Unigram or WordPiece. `texts`: a `Corpus` or {language: iterable of
    str}; documents are cut into lines, blank ones are skipped, no BOS or EOS is added.

    `metrics`: names of `vocabshift.evaluation.metrics.METRICS`; by default ("fertility",
    "bytes_per_token"), and "normalized_sequence_length" too where a `base` tokenizer is given;
    "all" is every metric that the input allows. What it does not allow is told to `note`.
    `reference`: the language of "premium", English by default. `frequencies`: a corpus of every
    language that "fertility_bin_…" ranks words by, instead of the texts. `renyi_alpha`: order of
    Rényi's entropy. `parallel` states that line n of all texts says the same, so that a difference
    in length is an error whatever the metrics. `code_switch`: pairs of languages ("hi+en") whose
    parallel texts are mixed by `text.code_switching`'s rule and measured under that label, line by
    line (no fairness, premium, frequency bins or vocabulary of theirs). `morphemes`: words by
    language, for MorphScore and its kin, encoded with a `leading_space` or without; `texts` may
    then be None. Both bring the metrics of their families with them. `threads` changes the time,
    never the result.

    Rows come by metric, then language, then subject; figures over lines have their 95 % bootstrap
    interval and `n` lines, those of a vocabulary are under "all" (or a script, or another
    subject) and `n` is its size. Rows of "loss_rate" are added wherever a tokenizer does not give
    a line back. Raises ValueError for an unknown metric, or for one that needs a base where none
    is given; CorpusError for an empty language, or texts that are not parallel.
    """
    if metrics is None:
        metrics = DEFAULT_METRICS if base is None else (*DEFAULT_METRICS, BASE_METRIC)
        metrics = metrics if texts is not None else list(FAMILIES["morphemes"])
    names = _with_families(check_names(metrics), code_switch, morphemes)
    is_every = EVERY in ((metrics,) if isinstance(metrics, str) else tuple(metrics))
    asked = () if is_every else names
    _check_base(asked, base)
    check_alpha(renyi_alpha)
    judged = subjects(tokenizers)
    lines = {} if texts is None and morphemes else read_lines(texts)
    files = files_of(texts)
    mixed = mix(lines, code_switch, files)
    if parallel:
        check_parallel(lines, "--parallel (parallel=True)", files)
    refused = _not_allowed(
        names, lines, files, base=base, reference=reference, n_subjects=len(judged)
    )
    refused |= _without_data(names, lines, mixed=bool(mixed), words=bool(morphemes))
    if refused and not is_every:
        raise next(iter(refused.values()))
    _tell(refused, note)
    names = tuple(name for name in names if name not in refused)
    mixed_lines = {label: text.texts for label, text in mixed.items()}
    task = Task(
        names,
        lines,
        _bins(lines, frequencies) if set(names) & set(BIN_METRICS) else {},
        reference=find_reference(list(lines), reference) if "premium" in names else None,
        renyi_alpha=renyi_alpha,
        linguistic=prepare(
            names, lines | mixed_lines, mixed=mixed, words=morphemes, leading_space=leading_space
        ),
    )
    tasks = [task]
    if mixed:
        by_line = tuple(name for name in names if METRICS[name].family in _BY_LINE)
        tasks.append(Task(by_line, mixed_lines, renyi_alpha=renyi_alpha))
    if base is not None:
        engine = engine_of(subjects(base)[0].tokenizer)
        tasks = [replace(task, base=measure_base(engine, task)) for task in tasks]
    measured = _measure_all(judged, tasks, threads, progress)
    languages = dict.fromkeys((*lines, *mixed, *(morphemes or ())))
    return _in_order(names, list(languages), [subject.name for subject in judged], measured)


_BY_LINE = ("ratio", "base", "distribution", "drift")
"""Families that are measured of mixed lines too."""


def _with_families(
    names: tuple[str, ...], code_switch: Sequence[str], morphemes: Any
) -> tuple[str, ...]:
    """`names`, and the families that data was given for where none of them is asked for."""
    given = {"code switching": code_switch, "morphemes": morphemes}
    for family, members in FAMILIES.items():
        if given.get(family) and not set(names) & set(members):
            names = (*names, *members)
    return names


def _without_data(
    names: Sequence[str], lines: Lines, *, mixed: bool, words: bool
) -> dict[str, Exception]:
    """Metrics that lack what they are measured on, or with, and what to do."""
    refused: dict[str, Exception] = {}
    has_rapidfuzz = find_spec("rapidfuzz") is not None
    for name in names:
        family = METRICS[name].family
        if family == "morphemes" and not words:
            refused[name] = ValueError("words with their morphemes are needed (--morphemes)")
        elif family == "code switching" and not mixed:
            refused[name] = ValueError("pairs of languages are needed (--code-switch hi+en)")
        elif not lines and family not in ("morphemes", "numbers") and name not in _OF_VOCABULARY:
            refused[name] = CorpusError("texts are needed (--text)")
        elif (family == "robustness" or name == "levenshtein_distance") and not has_rapidfuzz:
            refused[name] = ImportError("rapidfuzz is needed: pip install 'vocabshift[stats]'")
    return refused


_OF_VOCABULARY = (
    *("vocab_size", "script_share", "superword_share", "terminal_spanning_count"),
    *("pairwise_overlap", "vocabulary_overlap"),
)
"""Metrics of a tokenizer alone."""


def _tell(refused: Mapping[str, Exception], note: Callable[[str], None] | None) -> None:
    """Say what is left out and why, metrics of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, error in refused.items():
        by_reason.setdefault(str(error), []).append(name)
    for reason, names in by_reason.items():
        if note is not None:
            note(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}")


def _check_base(names: Sequence[str], base: Any) -> None:
    lacking = [name for name in names if METRICS[name].needs_base and base is None]
    if lacking:
        raise ValueError(f"{lacking[0]} compares with a base tokenizer; give one as base")


def _not_allowed(
    names: Sequence[str],
    lines: Lines,
    files: dict[str, str],
    *,
    base: Any,
    reference: str | None,
    n_subjects: int,
) -> dict[str, Exception]:
    """Metrics that this input does not allow, and why."""
    refused: dict[str, Exception] = {}
    for name in names:
        try:
            _check_base((name,), base)
            if METRICS[name].needs_parallel:
                if len(lines) < 2:
                    raise CorpusError(f"{name} compares languages; give texts of at least two")
                check_parallel(lines, name, files)
            if name == "premium":
                find_reference(list(lines), reference)
            if name == "pairwise_overlap" and n_subjects < 2:
                raise ValueError("pairwise_overlap compares subjects; give at least two")
        except ValueError as error:
            refused[name] = error
    return refused


def _bins(lines: Lines, frequencies: Any) -> dict[str, frequency_bins.Bytes]:
    """Bin of every word by language, from the text itself or from another corpus."""
    known = lines if frequencies is None else read_lines(frequencies)
    lacking = [language for language in lines if language not in known]
    if lacking and list(known) != [ALL]:
        raise CorpusError(
            f"the frequencies hold no text of {', '.join(lacking)}; add it, or one corpus without "
            "a label for all languages"
        )
    found = {}
    for language, of_language in lines.items():
        words = frequency_bins.count_words(known.get(language) or known[ALL])
        ranked = frequency_bins.bins_of_words(words)
        found[language] = frequency_bins.bins_of_lines(of_language, ranked)
    return found


def _measure_all(
    judged: Sequence[Subject], tasks: Sequence[Task], threads: int, progress: Progress | None
) -> list[tuple[Rows, npt.NDArray[np.int64]]]:
    """What `measure` gives for each subject, in order; several at a time.

    Rows of all tasks are put together; the hashes are those of the first one.
    """
    workers = min(threads, len(judged))

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
        for found in map(one, judged) if workers == 1 else pool.map(one, judged):
            done.append(found)
            if progress is not None:
                progress("tokenizers", len(done), len(judged))
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
    if "pairwise_overlap" in names:
        hashes = [found for _, found in measured]
        by_metric["pairwise_overlap"] = [
            Result(one, other, "pairwise_overlap", overlap(ours, theirs), len(ours))
            for other, theirs in zip(labels, hashes, strict=True)
            for one, ours in zip(labels, hashes, strict=True)
            if one != other
        ]
    ordered: list[Result] = []
    for of_metric in by_metric.values():
        labels_of = dict.fromkeys((*languages, ALL, *(row.language for row in of_metric)))
        place = {language: number for number, language in enumerate(labels_of)}
        ordered += sorted(of_metric, key=lambda row: place[row.language])
    return Results(ordered)
