"""The text that a verb learns from: `--corpus` with its kin, or `--counts`.

Owns these flags and the way from them to a corpus or a folder of counts. What is done with it is
the verb's business.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vocabshift.cli.options import UsageError, add_many

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus
    from vocabshift.text.count_folder import CountFolder


def add_source(parser: argparse.ArgumentParser) -> None:
    """`--corpus`, `--counts`, `--languages` and `--documents`."""
    add_many(parser, "--corpus", metavar="SPEC", help="[lang=]PATH|DIR|GLOB|hf:DATASET[@WEIGHT]")
    parser.add_argument(
        "--counts",
        metavar="DIR",
        help="a folder that `vocabshift count` wrote, instead of a corpus",
    )
    add_many(parser, "--languages", metavar="L", help="use only these labels of the corpus")
    parser.add_argument("--documents", choices=("line", "file"), help="a .txt is one per line/file")


def require_source(args: argparse.Namespace, see: str) -> None:
    """UsageError unless there is a corpus or a folder of counts; `see` names the help."""
    if not (args.corpus or args.counts):
        raise UsageError(f"--corpus (or --counts) is required {see}")


def source_of(args: argparse.Namespace) -> Corpus | CountFolder:
    """The corpus of the specs, cut down to the languages asked for, or the folder of counts."""
    if args.counts:
        for flag in ("corpus", "languages", "documents"):
            if getattr(args, flag):
                raise UsageError(f"--counts stands for the whole corpus; leave --{flag} out")
        from vocabshift.text.count_folder import CountFolder

        return CountFolder.open(args.counts)
    from vocabshift.text.corpus import Corpus

    corpus = Corpus.from_specs(args.corpus, documents=args.documents or "line")
    return corpus.select(args.languages) if args.languages else corpus
