"""`vocabshift evaluate`: every metric of tokenizers on text, for any tokenizers on any text."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError, add_many, add_threads, add_verb, threads
from vocabshift.cli.subjects import add_pattern, load_any
from vocabshift.storage.output import check_free_file, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift.results import Results
    from vocabshift.text.corpus import Corpus


# `--output`, `--html` and `--figures` of `evaluate`: flags, early checks, and writing.
#
# Knows nothing of metrics.


def add_files(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--html", metavar="FILE", help="also write a report as one HTML file")
    parser.add_argument(
        "--figures", metavar="DIR", help="also write figures as SVG and PNG (needs [plots])"
    )
    parser.add_argument("--force", action="store_true", help="replace what exists already")


def check_files(args: argparse.Namespace, *, inputs: Iterable[str | Path]) -> None:
    """Complain now about what could not be written after the work, or would replace an input."""
    from vocabshift.report.figures import check_drawing
    from vocabshift.storage.output import check_free

    inputs = list(inputs)
    files = [
        check_free_file(file, force=args.force, inputs=inputs)
        for file in (args.output, args.html)
        if file is not None
    ]
    if len({file.resolve() for file in files}) < len(files):
        raise UsageError("--output and --html name one file; give each its own")
    if args.figures is not None:
        check_free(args.figures, force=args.force, inputs=[*inputs, *files])
        check_drawing()


def write_files(
    args: argparse.Namespace,
    results: Results,
    tokenizers: Mapping[str, Any],
    corpus: Corpus | None,
) -> dict[str, str]:
    """Write what was asked for; {flag: path}. The corpus is read once more for the lines shown;
    there is none where only morphemes were measured."""
    written = {}
    if args.output is not None:
        write_whole(Path(args.output), results.to_jsonl())
        written["output"] = args.output
    if args.html is None and args.figures is None:
        return written
    from vocabshift.evaluation.lines.texts import read_lines
    from vocabshift.evaluation.lines.views import language_name, token_views

    lines = read_lines(corpus) if corpus is not None else {}
    if args.html is not None:
        from vocabshift.report.html.report import write_html

        written["html"] = str(write_html(results, token_views(tokenizers, lines), args.html))
    if args.figures is not None:
        from vocabshift.report.figures import write_figures
        from vocabshift.storage.output import atomic_folder

        names = {label: language_name(label) for label in lines}
        with atomic_folder(args.figures, force=args.force) as folder:
            write_figures(results, folder, names=names)
        written["figures"] = args.figures
    return written


# ---


_WIDTH, _INDENT = 100, 17  # columns of the list of metrics

_WIDE = 4
"""Up to this many subjects, a table has room for intervals."""


def _description() -> str:
    """The metrics by group, from the registry."""
    from vocabshift.evaluation.metrics.registry import GROUPS, by_group

    lines = [
        "Measure tokenizers on text, per language, with 95 % bootstrap intervals over lines.",
        "",
        'metrics (names for --metrics; "all" for every one that the input allows):',
    ]
    for group, metrics in by_group().items():
        about = GROUPS.get(group, "")
        names = [
            metric.name + (" (--base)" if "base" in metric.needs else "") for metric in metrics
        ]
        lines += textwrap.wrap(
            ", ".join(names) + (f": {about}" if about else ""),
            width=_WIDTH,
            initial_indent=f"  {group:<{_INDENT - 2}}",
            subsequent_indent=" " * _INDENT,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "evaluate",
        "measure tokenizers on text, per language",
        _description,
        "  vocabshift evaluate ist meta-llama/Llama-3.2-1B --text hi=hindi.txt ta=tamil.txt\n"
        "  vocabshift evaluate ist tiktoken:o200k_base --base gpt2 --text en=en.txt hi=hi.txt "
        "--metrics all --parallel --json\n",
    )
    parser.add_argument(
        "tokenizers",
        metavar="TOKENIZER",
        nargs="+",
        help="folder, file, Hub name or tiktoken:NAME; BPE, Unigram or WordPiece",
    )
    add_many(
        parser,
        "--text",
        metavar="SPEC",
        help="[lang=]PATH|DIR|GLOB|hf:DATASET; not needed with --morphemes",
    )
    parser.add_argument("--base", metavar="TOKENIZER", help="what lengths and cuts compare with")
    add_many(
        parser,
        "--metrics",
        metavar="M",
        help="default: fertility bytes_per_token, and normalized_sequence_length with --base",
    )
    parser.add_argument(
        "--parallel", action="store_true", help="the texts are parallel: refuse other lengths"
    )
    parser.add_argument(
        "--reference", metavar="LANG", help="language that premium compares with (default: English)"
    )
    add_many(
        parser, "--frequencies", metavar="SPEC", help="corpus that ranks words for fertility_bin_…"
    )
    parser.add_argument(
        "--renyi-alpha",
        metavar="A",
        type=_order,
        default=2.5,
        help="order of Rényi's entropy (default: 2.5)",
    )
    parser.add_argument(
        "--compare-subjects",
        action="store_true",
        help="test all pairs of tokenizers over languages (Wilcoxon, Holm); --json has it always "
        "where scipy is installed and there are 5 languages",
    )
    add_many(
        parser,
        "--morphemes",
        metavar="[lang=]CSV",
        help="words with their parts (columns full_word, pt1 and rest; or word and segments)",
    )
    parser.add_argument(
        "--leading-space", action="store_true", help="encode these words behind a space"
    )
    add_many(
        parser,
        "--code-switch",
        metavar="PAIR",
        help="mix parallel texts of two languages, like hi+en, and measure that too",
    )
    add_pattern(parser)
    add_files(parser)
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure, and write the rows where that is asked for."""
    from vocabshift.cli.console import print_line, progress_bar
    from vocabshift.evaluation.evaluate import evaluate
    from vocabshift.evaluation.lines.subject import subject_names
    from vocabshift.evaluation.metrics.morph_score import read_morpheme_specs
    from vocabshift.text.corpus import Corpus
    from vocabshift.text.spec import parse_spec

    if not args.text and not args.morphemes:
        raise UsageError(
            "nothing to measure on: give --text, or --morphemes (see: vocabshift evaluate --help)"
        )
    if args.leading_space and not args.morphemes:
        raise UsageError("--leading-space is about the words of --morphemes; leave it out")
    corpus = Corpus.from_specs(args.text) if args.text else None
    frequencies = Corpus.from_specs(args.frequencies) if args.frequencies else None
    sources = [*args.tokenizers, *([args.base] if args.base else [])]
    texts = [path for read in (corpus, frequencies) if read is not None for path in read.paths]
    words = [getattr(parse_spec(spec).place, "place", spec) for spec in args.morphemes or ()]
    check_files(args, inputs=[*sources, *texts, *words])
    morphemes = read_morpheme_specs(args.morphemes) if args.morphemes else None
    loaded = load_any(sources, args.pattern)
    base = loaded.pop() if args.base else None
    named = dict(zip(subject_names(args.tokenizers), loaded, strict=True))
    with progress_bar() as progress:
        results = evaluate(
            named,
            corpus,
            args.metrics,
            base=base,
            reference=args.reference,
            frequencies=frequencies,
            renyi_alpha=args.renyi_alpha,
            parallel=args.parallel,
            code_switch=args.code_switch or (),
            morphemes=morphemes,
            leading_space=args.leading_space,
            threads=threads(args),
            progress=progress,
            note=lambda text: print_line(f"note: {text}"),
        )
    args.written = write_files(args, results, named, corpus)
    comparisons = _comparisons(results, is_asked=args.compare_subjects)
    return {"results": results.to_dicts(), "comparisons": comparisons}


def _order(text: str) -> float:
    """A number above 0, as argparse's `type`."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def _comparisons(results: Results, *, is_asked: bool) -> list[dict[str, Any]]:
    """Pairs of subjects over languages; none without scipy, unless it was asked for."""
    from vocabshift.evaluation.significance import compare_subjects

    try:
        return [pair.to_dict() for pair in compare_subjects(results)]
    except ImportError:
        if is_asked:
            raise
        return []


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """One table for each metric, then the comparisons that were asked for."""
    from vocabshift.evaluation.significance import SubjectComparison
    from vocabshift.report.tables import subject_comparisons, to_rich
    from vocabshift.results import Result, Results

    results = Results(Result(**row) for row in result["results"])
    has_room = len(results.distinct("subject")) <= _WIDE
    for metric in results.distinct("metric"):
        console.print(to_rich(results, metric, intervals=has_room))
    if args.compare_subjects:
        pairs = [SubjectComparison(**row) for row in result["comparisons"]]
        for metric in dict.fromkeys(pair.metric for pair in pairs):
            console.print(subject_comparisons(pairs, metric))
        if not pairs:
            console.print(
                "no comparisons: two tokenizers and five languages are needed, none with lost text"
            )
    for path in args.written.values():
        console.print(f"written: {path}", markup=False, soft_wrap=True)
