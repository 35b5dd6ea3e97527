"""`--html` and `--figures` of `evaluate`: flags, early checks, and writing.

Knows nothing of metrics.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabshift.results import Results
    from vocabshift.text.corpus import Corpus


def add_files(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("--html", metavar="FILE", help="also write a report as one HTML file")
    parser.add_argument(
        "--figures", metavar="DIR", help="also write figures as SVG and PNG (needs [plots])"
    )


def check_files(args: argparse.Namespace) -> None:
    """Complain now about what could not be written after the work."""
    from vocabshift.cli.html_file import free_file
    from vocabshift.output_folder import check_free
    from vocabshift.report.figures import check_drawing

    free_file(args.html, force=args.force)
    if args.figures is not None:
        check_free(args.figures, force=args.force)
        check_drawing()


def write_files(
    args: argparse.Namespace,
    results: Results,
    tokenizers: Mapping[str, Any],
    corpus: Corpus | None,
) -> dict[str, str]:
    """Write what was asked for; {flag: path}. The corpus is read once more for the lines shown;
    there is none where only morphemes were measured."""
    if args.html is None and args.figures is None:
        return {}
    from vocabshift.evaluation.texts import read_lines
    from vocabshift.evaluation.views import language_name, token_views

    lines = read_lines(corpus) if corpus is not None else {}
    written = {}
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
