"""The verbs that prepare text once for many runs: `vocabshift count` and `vocabshift encode`.

`count` counts the words of a corpus, for all verbs that take counts; `encode` writes packed token
ids for training.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cli.count_runs import (
    add_run_flags,
    refuse_run_flags,
    run_count_runs,
    show_count_runs,
)
from vocabshift.cli.fields import add_fields, given
from vocabshift.cli.inputs import (
    CORPUS,
    add_choices,
    add_pattern,
    corpus_of,
    tokenizer_of,
    words_of,
)
from vocabshift.cli.options import (
    Parser,
    UsageError,
    add_many,
    add_output,
    add_threads,
    add_verb,
    size,
    threads,
)

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift.workflows.prepare import SparkOptions

_SPARK = ("master", "conf", "language_column", "bad_rows")


_PATTERN = "o200k"


def add_count(subparsers: Any) -> None:
    """Add the verb `count`."""
    parser = add_verb(
        subparsers,
        "count",
        "count the words of a corpus",
        "Count the pre-tokens of a corpus, by language, and write them as sorted Parquet files.\n"
        "The text is read once; what is written does not depend on threads, memory or engine.\n"
        "--join adds up counts instead: of such folders, or of any Parquet files with the columns\n"
        "word, count and maybe language. --runs counts, after the words, the runs of tokens that\n"
        "superwords are learned from.",
        "  vocabshift count hi=hindi.txt en=english.jsonl.gz --pattern o200k -o counts\n"
        "  vocabshift count ta=hf:wikimedia/wikipedia:20231101.ta --memory 8GB -o counts-ta\n"
        "  vocabshift count --join counts counts-ta -o counts-all --json\n"
        "  vocabshift count --join spark-out/ --pattern o200k -o counts\n"
        "  vocabshift count hi=s3a://texts/hi/*.parquet --engine spark --master yarn -o counts\n"
        "  vocabshift count hi=hindi.txt --pattern ist-stage2+o200k -o words\n"
        "  vocabshift count hi=hindi.txt --runs --counts words --recipe ist --vocab-size 32000 "
        "-o runs\n"
        "  vocabshift train --recipe ist --vocab-size 32000 --counts words --runs runs -o ist\n",
    )
    parser.later(_add_count_options)
    parser.set_defaults(run=run_count, show=show_count, status=lambda *_: 0)


def _add_count_options(parser: Parser) -> None:
    from vocabshift.workflows.prepare import NORMALIZER_HELP, SparkOptions

    parser.add_argument("corpus", metavar="SPEC", nargs="*", help=CORPUS)
    add_many(
        parser,
        "--join",
        metavar="PART",
        help="add up these counts: folders of `count`, Parquet files or folders of them",
    )
    parser.add_argument(
        "--pattern",
        metavar="NAME|REGEX",
        help="pre-tokenizer, or names of several joined by + "
        f"(default: {_PATTERN}; with --join: that of the parts)",
    )
    parser.add_argument("--normalizer", metavar="STEP[+STEP…]", help=NORMALIZER_HELP)
    add_many(parser, "--special-tokens", metavar="T", help="texts that no word may reach into")
    add_choices(parser)
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=size,
        help="budget such as 8GB (default: no limit; with --join, and on Spark's driver, 1GB)",
    )
    group = parser.add_argument_group("on a cluster (docs/clusters.md)")
    group.add_argument(
        "--engine", choices=("local", "spark"), default="local", help="default: %(default)s"
    )
    add_fields(group, SparkOptions, _SPARK)
    add_run_flags(parser)
    add_output(parser, what="folder to write")
    add_threads(parser)


def _spark_options(args: argparse.Namespace) -> SparkOptions | None:
    """The options of the engine, if it is Spark; UsageError for options of another engine."""
    from vocabshift.workflows.prepare import SparkOptions

    options = given(args, _SPARK)
    if args.engine == "local":
        for name in options:
            raise UsageError(f"--{name.replace('_', '-')} is for --engine spark")
        return None
    if args.threads is not None:
        raise UsageError("-j is for --engine local; on Spark, --master local[N] or --conf says it")
    return SparkOptions(**options)


def run_count(args: argparse.Namespace) -> dict[str, Any]:
    """Count or join, and write the output folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.prepare import count_to_folder, join_counts

    spark = _spark_options(args)
    if args.runs:
        return run_count_runs(args, spark)
    refuse_run_flags(args)
    options: dict[str, Any] = {
        "normalizer": None if args.normalizer == "none" else args.normalizer,
        "special_tokens": args.special_tokens or (),
        "memory_bytes": args.memory or 0,
        "threads": threads(args),
        "force": args.force,
    }
    if not args.join:
        if not args.corpus:
            raise UsageError("name a corpus (SPEC...), or counts to add up (--join PART...)")
        corpus, pattern = corpus_of(args.corpus, args), args.pattern or _PATTERN
        with progress_bar() as progress:
            return count_to_folder(
                corpus, args.out, pattern=pattern, spark=spark, progress=progress, **options
            )
    if spark is not None:
        raise UsageError("--join adds up counts on this machine; leave --engine out")
    if args.corpus:
        raise UsageError("--join adds up counts and reads no text; count the text in a run before")
    if extra := words_of(args):
        raise UsageError(f"{extra[0]} chooses text, and --join reads counts; leave it out")
    with progress_bar() as progress:
        return join_counts(args.join, args.out, pattern=args.pattern, progress=progress, **options)


def show_count(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import shell_line, show_summary

    if "runs" in result:
        return show_count_runs(args, result, console)
    facts = {
        "written to": result["out"],
        "groups": result["groups"],
        "documents": result["documents"],
        "bytes": result["bytes"],
        "words": result["words"],
        "corpus fingerprint": result["corpus_fingerprint"],
    }
    for name, what in (("null_rows", "null texts"), ("bad_rows", "rows that are no text")):
        if result.get(name):
            facts[what] = result[name]
    if result.get("bad_rows"):
        facts["kept in"] = str(Path(result["out"], "bad-rows.jsonl"))
    then = shell_line("vocabshift", "train", "--counts", result["out"], "...")
    show_summary(console, "count", facts, then)
    return None


_NONE = "none"
_FIELDS = ("format", "shard_tokens")


def add_encode(subparsers: Any) -> None:
    """Add the verb `encode`."""
    parser = add_verb(
        subparsers,
        "encode",
        "turn text into packed token ids for training",
        "Encode text once, fast, into files that training maps from disk: uint16 or uint32 ids,\n"
        "document offsets, the EOS behind every document. Documents stay whole and in order; no\n"
        "BOS is added. A run that was killed resumes when it is started again (but not from\n"
        "standard input or the Hub). Special-token strings in the text become special tokens, as\n"
        "with `tokenizers` and datasets.map; for text from the web, --special-as-text.",
        "  vocabshift encode meta-llama/Llama-3.2-1B hi=hindi.txt en=english.jsonl.gz -o packed\n"
        "  vocabshift encode ist 'corpus/*.parquet' --format arrow --eos '</s>' -j 8 -o packed "
        "--json\n"
        "  vocabshift encode ist 'corpus/*.parquet' --format megatron -o packed\n",
    )
    parser.later(_add_encode_options)
    parser.set_defaults(run=run_encode, show=show_encode, status=lambda *_: 0)


def _add_encode_options(parser: Parser) -> None:
    from vocabshift.workflows.prepare import PackOptions

    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, file or Hub name")
    parser.add_argument("specs", metavar="SPEC", nargs="+", help="[lang=]PATH|DIR|GLOB|hf:DATASET")
    add_choices(parser)
    parser.add_argument(
        "--eos", metavar="TOKEN|none", help="after every document (default: the tokenizer's)"
    )
    add_fields(parser, PackOptions, _FIELDS)
    parser.add_argument(
        "--special-as-text",
        action="store_true",
        help="read special-token strings in the text as plain text",
    )
    add_pattern(parser)
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh, whatever an earlier run finished"
    )
    add_output(parser, what="folder to write")
    add_threads(parser)


def run_encode(args: argparse.Namespace) -> dict[str, Any]:
    """Encode and write the output folder."""
    from vocabshift.cli.console import print_line, progress_bar
    from vocabshift.workflows.prepare import encode_to_folder

    corpus = corpus_of(args.specs, args)
    with progress_bar(in_bytes=True) as progress:
        return encode_to_folder(
            tokenizer_of(args),
            corpus,
            args.out,
            eos=None if args.eos == _NONE else args.eos,
            without_eos=args.eos == _NONE,
            parse_special=not args.special_as_text,
            threads=threads(args),
            force=args.force,
            resume=not args.no_resume,
            progress=progress,
            note=lambda message: print_line(f"note: {message}"),
            **given(args, _FIELDS),
        )


def show_encode(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import show_summary

    eos = result["eos"]
    facts = {
        "written to": result["out"],
        "documents": result["n_documents"],
        "tokens": result["n_tokens"],
        "bytes of text": result["n_bytes"],
        "bytes per token": f"{result['bytes_per_token']:.3f}",
        "between documents": "nothing" if eos is None else f"{eos['token']} ({eos['id']})",
        "ids": result["dtype"],
        "shards": result["shards"],
        "seconds": f"{result['seconds']:.1f}",
        "MB/s": f"{result['n_bytes'] / 1e6 / max(result['seconds'], 1e-3):.1f}",
    }
    for row in result["languages"]:
        if row["language"] is not None:
            facts[f"tokens, {row['language']}"] = row["n_tokens"]
    then = f"vocabshift.PackedIds.open({result['out']!r}) in Python, to read it"
    show_summary(console, "encode", facts, then)
