"""Measure tokenizers on text and write files: what `vocabshift evaluate` and `normalize` do.

Owns the order of the steps: outputs that cannot be written are refused before anything is loaded,
and files appear whole or not at all. `evaluation` measures values and `report` draws them. Both
are imported on use, so that the command line can show defaults at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.progress import Progress
from vocabshift.storage.output import atomic_folder, check_free, check_free_file, write_whole
from vocabshift.text.normalize import NORMALIZER_HELP, NORMALIZERS
from vocabshift.workflows.tokenizers import load_tokenizers

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vocabshift.evaluation.significance import SubjectComparison
    from vocabshift.results import Results
    from vocabshift.text.corpus import Corpus

__all__ = [
    "NORMALIZERS",
    "NORMALIZER_HELP",
    "Evaluation",
    "evaluate_to_files",
    "evaluation_tables",
    "metric_groups",
    "normalizer_effect",
]

_WIDE = 4
"""Up to this many subjects, a table has room for intervals."""


@dataclass(frozen=True)
class Evaluation:
    """The measurements of `evaluate_to_files` and the files it wrote."""

    results: Results
    comparisons: tuple[SubjectComparison, ...]  # pairs of tokenizers over languages
    written: Mapping[str, str]  # paths by kind: "output", "html", "figures"

    def to_dict(self) -> dict[str, Any]:
        """Rows and comparisons as plain JSON values."""
        pairs = [pair.to_dict() for pair in self.comparisons]
        return {"results": self.results.to_dicts(), "comparisons": pairs}


def evaluate_to_files(
    tokenizers: Sequence[str | Path],
    corpus: Corpus | None,
    metrics: Sequence[str] | None = None,
    *,
    base: str | Path | None = None,
    pattern: str | None = None,
    reference: str | None = None,
    frequencies: Corpus | None = None,
    renyi_alpha: float = 2.5,
    parallel: bool = False,
    code_switch: Sequence[str] = (),
    morphemes: Sequence[str] = (),
    leading_space: bool = False,
    compare_subjects: bool = False,
    output: str | Path | None = None,
    html: str | Path | None = None,
    figures: str | Path | None = None,
    force: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Evaluation:
    """Load tokenizers, measure them on text, compare them in pairs, and write the requested files.

    `tokenizers` and `base`: folders, files or Hub names; `pattern` for those that lack theirs.
    `morphemes`: `[lang=]FILE.csv` of words with their parts; only with these may `corpus` be None.
    `vocabshift.evaluate` documents the metrics and the other arguments.
    `compare_subjects`: raise ImportError if scipy is not installed, which comparing pairs over more
    than 50 languages needs; otherwise there are then no comparisons.

    Written whole or not at all: `output` (rows as JSON lines), `html` (a report as one file),
    `figures` (a folder of SVG and PNG; needs the [plots] extra). The corpus is read once more for
    the lines that a report shows. Before anything is loaded: FileExistsError for existing outputs,
    unless `force`; ValueError for an output that is an input or another output.
    """
    from vocabshift.evaluation.evaluate import evaluate
    from vocabshift.evaluation.lines.subject import subject_names
    from vocabshift.evaluation.metrics.morph_score import read_morpheme_specs

    sources = [*tokenizers, *([] if base is None else [base])]
    texts = [path for read in (corpus, frequencies) if read is not None for path in read.paths]
    _check_files(output, html, figures, force=force, inputs=[*sources, *texts, *_words(morphemes)])
    words = read_morpheme_specs(morphemes) if morphemes else None
    loaded = load_tokenizers(sources, pattern=pattern)
    loaded_base = None if base is None else loaded.pop()
    named = dict(zip(subject_names(tokenizers), loaded, strict=True))
    results = evaluate(
        named,
        corpus,
        metrics,
        base=loaded_base,
        reference=reference,
        frequencies=frequencies,
        renyi_alpha=renyi_alpha,
        parallel=parallel,
        code_switch=code_switch,
        morphemes=words,
        leading_space=leading_space,
        threads=threads,
        progress=progress,
        note=note,
    )
    written = _write_files(
        results, named, corpus, output=output, html=html, figures=figures, force=force
    )
    return Evaluation(results, _comparisons(results, is_needed=compare_subjects), written)


def _words(specs: Sequence[str]) -> list[str]:
    """The paths of the morpheme files."""
    from vocabshift.text.spec import parse_spec

    return [str(getattr(parse_spec(spec).place, "place", spec)) for spec in specs]


def _check_files(
    output: str | Path | None,
    html: str | Path | None,
    figures: str | Path | None,
    *,
    force: bool,
    inputs: Iterable[str | Path],
) -> None:
    """Refuse early any output that could not be written or would replace an input."""
    from vocabshift.report.figures import check_drawing

    inputs = list(inputs)
    given = [file for file in (output, html) if file is not None]
    files = [check_free_file(file, force=force, inputs=inputs) for file in given]
    if len({file.resolve() for file in files}) < len(files):
        raise ValueError("--output and --html name one file; give each its own")
    if figures is not None:
        check_free(figures, force=force, inputs=[*inputs, *files])
        check_drawing()


def _write_files(
    results: Results,
    tokenizers: Mapping[str, Any],
    corpus: Corpus | None,
    *,
    output: str | Path | None,
    html: str | Path | None,
    figures: str | Path | None,
    force: bool,
) -> dict[str, str]:
    """Write the requested files; {kind: path}. Reads the corpus once more for the lines shown,
    or shows none if only morphemes were measured."""
    written = {}
    if output is not None:
        write_whole(Path(output), results.to_jsonl())
        written["output"] = str(output)
    if html is None and figures is None:
        return written
    from vocabshift.evaluation.lines.texts import read_lines
    from vocabshift.evaluation.lines.views import language_name, token_views

    lines = read_lines(corpus) if corpus is not None else {}
    if html is not None:
        from vocabshift.report.html.report import write_html

        written["html"] = str(write_html(results, token_views(tokenizers, lines), html))
    if figures is not None:
        from vocabshift.report.figures import write_figures

        names = {label: language_name(label) for label in lines}
        with atomic_folder(figures, force=force) as folder:
            write_figures(results, folder, names=names)
        written["figures"] = str(figures)
    return written


def _comparisons(results: Results, *, is_needed: bool) -> tuple[SubjectComparison, ...]:
    """Compare subjects in pairs over languages; without scipy none, unless they are needed."""
    from vocabshift.evaluation.significance import compare_subjects

    try:
        return tuple(compare_subjects(results))
    except ImportError:
        if is_needed:
            raise
        return ()


def evaluation_tables(
    evaluation: Evaluation, *, comparisons: bool = False
) -> Iterator[RenderableType]:
    """The terminal output: one table per metric, and with `comparisons` one of its pairs."""
    from vocabshift.report.tables import subject_comparisons, to_rich

    results, pairs = evaluation.results, evaluation.comparisons
    has_room = len(results.distinct("subject")) <= _WIDE
    for metric in results.distinct("metric"):
        yield to_rich(results, metric, intervals=has_room)
    if comparisons:
        for metric in dict.fromkeys(pair.metric for pair in pairs):
            yield subject_comparisons(pairs, metric)
        if not pairs:
            yield (
                "no comparisons: two tokenizers and five languages are needed, none with lost text"
            )


def metric_groups() -> Iterator[tuple[str, list[str], str]]:
    """(group, its metrics, a shared remark or "") of the registry, for help.

    Metrics that need a base tokenizer say so.
    """
    from vocabshift.evaluation.metrics.registry import GROUPS, by_group

    for group, metrics in by_group().items():
        names = [
            metric.name + (" (--base)" if "base" in metric.needs else "") for metric in metrics
        ]
        yield group, names, GROUPS.get(group, "")


def normalizer_effect(corpus: Corpus, normalizer: str) -> dict[str, Any]:
    """The shares of words, and of distinct words, that a normalizer changes, by language.

    Plain JSON values: `normalizer`, `inverse` (the name of its inverse, or None), `component`
    (its entry of `tokenizer.json`) and `results`. ValueError for an unknown normalizer, before
    the text is read; CorpusError for a language without text.
    """
    from vocabshift.evaluation.lines.texts import normalization_effect
    from vocabshift.text.normalize import inverse_name, normalizer_spec

    spec = normalizer_spec(normalizer)
    results = normalization_effect(corpus, normalizer)
    return {
        "normalizer": normalizer,
        "inverse": inverse_name(normalizer),
        "component": spec,
        "results": results.to_dicts(),
    }
