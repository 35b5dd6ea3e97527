"""`--output`, `--html` and `--figures` of `evaluate`: flags, early checks, and writing.

Knows nothing of metrics.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError
from vocabshift.cli.output_file import check_free_file, write_whole

if TYPE_CHECKING:
    from vocabshift.results import Results
    from vocabshift.text.corpus import Corpus


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
    from vocabshift.output_folder import check_free
    from vocabshift.report.figures import check_drawing

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
    from vocabshift.evaluation.texts import read_lines
    from vocabshift.evaluation.views import language_name, token_views

    lines = read_lines(corpus) if corpus is not None else {}
    if args.html is not None:
        from vocabshift.report.html_report import write_html

        written["html"] = str(write_html(results, token_views(tokenizers, lines), args.html))
    if args.figures is not None:
        from vocabshift.output_folder import atomic_folder
        from vocabshift.report.figures import write_figures

        names = {label: language_name(label) for label in lines}
        with atomic_folder(args.figures, force=args.force) as folder:
            write_figures(results, folder, names=names)
        written["figures"] = args.figures
    return written
