"""`vocabshift count`: the words of a corpus, counted once, for verbs that take counts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_output, add_threads, add_verb, size, threads
from vocabshift.cli.source import CORPUS, add_choices, corpus_of
from vocabshift.text.normalize import NORMALIZER_HELP

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "count",
        "count the words of a corpus",
        "Count the pre-tokens of a corpus, by language, and write them as sorted Parquet files.\n"
        "The text is read once; what is written does not depend on threads or memory.",
        "  vocabshift count hi=hindi.txt en=english.jsonl.gz --pattern o200k -o counts\n"
        "  vocabshift count ta=hf:wikimedia/wikipedia:20231101.ta --memory 8GB -o counts-ta\n",
    )
    parser.add_argument("corpus", metavar="SPEC", nargs="+", help=CORPUS)
    parser.add_argument(
        "--pattern", metavar="NAME|REGEX", default="o200k", help="pre-tokenizer (default: o200k)"
    )
    parser.add_argument("--normalizer", metavar="STEP[+STEP…]", help=NORMALIZER_HELP)
    add_many(parser, "--special-tokens", metavar="T", help="texts that no word may reach into")
    add_choices(parser)
    parser.add_argument(
        "--memory", metavar="SIZE", type=size, help="budget such as 8GB (default: no limit)"
    )
    add_output(parser, what="folder to write")
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Count, and write the folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.storage.output import atomic_folder, check_free
    from vocabshift.text.count_folder import write_counts
    from vocabshift.text.counting import CorpusReader
    from vocabshift.text.patterns import get_pattern
    from vocabshift.text.records import check_installed

    check_installed("pyarrow", "count (it writes Parquet)")
    corpus = corpus_of(args.corpus, args)
    check_free(args.out, force=args.force, inputs=corpus.paths)
    reader = CorpusReader(
        corpus,
        get_pattern(args.pattern),
        None if args.normalizer == "none" else args.normalizer,
        tuple(args.special_tokens or ()),
        by_language=True,
    )
    with atomic_folder(args.out, force=args.force) as folder, progress_bar() as progress:
        counter = reader.count_words(
            threads=threads(args),
            progress=lambda done, total: progress("count", done, total),
            memory_bytes=args.memory or 0,
            spill_folder=folder,
        )
        write_counts(counter, reader, folder)
    return {
        "out": str(args.out),
        "groups": len(reader.groups),
        "documents": reader.n_documents,
        "bytes": reader.n_bytes,
        "words": sum(counter.size(group) for group in range(counter.group_count)),
        "corpus_fingerprint": reader.fingerprint,
    }


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Summary for people."""
    from vocabshift.cli.console import show_summary

    facts = {
        "written to": result["out"],
        "groups": result["groups"],
        "documents": result["documents"],
        "bytes": result["bytes"],
        "words": result["words"],
        "corpus fingerprint": result["corpus_fingerprint"],
    }
    show_summary(console, "count", facts, f"vocabshift train --counts {result['out']} ...")
