"""`vocabshift compare`: two tokenizers side by side on real text.

Owns the verb's flags; values are `evaluation.compare`'s, pictures `report`'s.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_threads, add_verb, positive, threads
from vocabshift.cli.subjects import add_pattern, load_any

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "compare",
        "see what changes in text between two tokenizers",
        "Show two tokenizers side by side on text: tokens and bytes per token of each language,\n"
        "the stretches of text that became shorter and longer, and the lines that changed most,\n"
        "with every token coloured and superwords and cut syllables marked.",
        "  vocabshift compare meta-llama/Llama-3.2-1B ist --text hi=hindi.txt ta=tamil.txt\n"
        "  vocabshift compare old.json new.json --text eval/*.txt --html compare.html --force\n",
    )
    parser.add_argument("tokenizer_a", metavar="TOKENIZER_A", help="folder, file or Hub name")
    parser.add_argument("tokenizer_b", metavar="TOKENIZER_B", help="what it is compared with")
    add_many(
        parser, "--text", metavar="SPEC", required=True, help="[lang=]PATH|DIR|GLOB|hf:DATASET"
    )
    parser.add_argument(
        "--lines", metavar="N", type=positive, help="lines shown of each language (default: 2)"
    )
    parser.add_argument(
        "--changes", metavar="N", type=positive, help="stretches shown that changed (default: 20)"
    )
    parser.add_argument("--html", metavar="FILE", help="also write it as one HTML file")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.add_argument(
        "--ascii", action="store_true", help="tell tokens apart by ASCII signs, not by colours"
    )
    add_pattern(parser)
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Compare, and write the page where that is asked for."""
    from vocabshift.evaluation.compare import N_CHANGES, N_LINES, compare, to_dict
    from vocabshift.evaluation.lines.subject import subject_names
    from vocabshift.storage.output import check_free_file
    from vocabshift.text.corpus import Corpus

    sources = [args.tokenizer_a, args.tokenizer_b]
    corpus = Corpus.from_specs(args.text)
    page = None
    if args.html is not None:
        page = check_free_file(args.html, force=args.force, inputs=[*sources, *corpus.paths])
    a, b = load_any(sources, args.pattern)
    name_a, name_b = subject_names(sources)
    comparison = compare(
        a,
        b,
        corpus,
        names=(name_a, name_b),
        n_lines=args.lines or N_LINES,
        n_changes=args.changes or N_CHANGES,
        threads=threads(args),
    )
    if page is not None:
        from vocabshift.report.html.compare import write_comparison

        write_comparison(comparison, page)
    args.comparison = comparison  # for `show`: the object of --json holds no pieces
    return {**to_dict(comparison), "html": None if page is None else str(page)}


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Tables, and lines whose tokens are told apart by colours, or by signs without colours."""
    from vocabshift.report.compare_text import ASCII, UNICODE, to_rich

    plain = args.ascii or console.no_color or console.color_system is None
    marks = ASCII if args.ascii else UNICODE
    for part in to_rich(args.comparison, plain=plain, marks=marks):
        console.print(part)
    if result["html"]:
        console.print(f"written: {result['html']}", markup=False, soft_wrap=True)
