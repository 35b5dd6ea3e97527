"""`vocabshift train`: learn a tokenizer from text.

Owns the verb's flags, and the flat TOML that may stand in for them. Paths in a TOML are taken from
the current folder, as on the command line.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from vocabshift.cli.options import (
    add_many,
    add_output,
    add_threads,
    add_verb,
    positive,
    share,
    size,
    threads,
)
from vocabshift.cli.recipe_options import RECIPES, recipe_options
from vocabshift.cli.source import add_source, source_of
from vocabshift.cli.train_summary import show
from vocabshift.text.normalize import NORMALIZER_HELP


def add_parser(subparsers: Any) -> None:
    """Add the verb; what a TOML may give instead is not required by the parser itself."""
    parser = add_verb(
        subparsers,
        "train",
        "learn a tokenizer from text",
        "Learn a tokenizer from text and write it as a Hugging Face folder.",
        "  vocabshift train --recipe ist --corpus hi=hindi.txt en=english.jsonl.gz "
        "--vocab-size 32000 -o ist\n"
        "  vocabshift train --config ist.toml --corpus ta=hf:wikimedia/wikipedia:20231101.ta "
        "-j 4 -o ist-ta --json\n",
    )
    parser.add_argument("--recipe", metavar="RECIPE", help="one of: " + ", ".join(RECIPES))
    add_source(parser)
    parser.add_argument(
        "--vocab-size", metavar="N", type=positive, help="tokens, special tokens not counted"
    )
    parser.add_argument("--base", metavar="TOKENIZER", help="on-top: what gets the superwords")
    parser.add_argument("--n-tokens", metavar="N", type=positive, help="on-top: superwords to add")
    parser.add_argument(
        "--transition", metavar="T", type=share, help="share of the vocabulary learned in stage 1"
    )
    parser.add_argument("--pre-tokenizer", metavar="NAME|REGEX", help="pattern (of stage 1)")
    parser.add_argument("--stage2-pre-tokenizer", metavar="NAME|REGEX", help="pattern of stage 2")
    parser.add_argument("--max-words", metavar="N", type=positive, help="longest superword")
    parser.add_argument("--merge-pattern", metavar="REGEX", help="boundless: words that may join")
    parser.add_argument(
        "--threshold",
        metavar="T",
        type=share,
        help="picky: a token goes when a merge takes more than this share of it (0.9)",
    )
    add_many(
        parser,
        "--high-resource",
        metavar="LANG",
        help="overlap: default the larger half of the languages by bytes",
    )
    parser.add_argument(
        "--overlap-alpha", metavar="A", type=share, help="overlap: weight of the plain count (0.5)"
    )
    parser.add_argument(
        "--overlap-power",
        metavar="P|min",
        type=mean_power,
        help="overlap: power of the mean of two counts, below 0 (-2)",
    )
    add_many(parser, "--budgets", metavar="SCRIPT=SHARE", help="stacked: default by corpus bytes")
    parser.add_argument("--max-token-bytes", metavar="N", type=positive, help="longest token")
    parser.add_argument("--min-frequency", metavar="N", type=positive, help="rarest pair to merge")
    parser.add_argument("--normalizer", metavar="STEP[+STEP…]", help=NORMALIZER_HELP)
    parser.add_argument(
        "--sampling-alpha",
        metavar="A",
        type=share,
        help="languages count in proportion to bytes ** A: 1 as they are, 0.3 nearly alike",
    )
    parser.add_argument(
        "--grapheme-safe",
        action="store_true",
        default=None,
        help="tokens of several orthographic syllables hold whole ones",
    )
    parser.add_argument("--alpha", metavar="A", type=share, help="matra: words weigh 1/A (0.75)")
    parser.add_argument(
        "--word-weight", choices=("constant", "smoothed", "none"), help="matra: default constant"
    )
    parser.add_argument(
        "--variant",
        choices=("A", "B", "C", "D", "E"),
        help="matra: no weights, no stage 2, no constraint, constraint only, all (default)",
    )
    parser.add_argument(
        "--balance",
        metavar="B",
        type=float,
        help="vocabshift: power of a language's tokens per character in its weight (2)",
    )
    parser.add_argument(
        "--character-coverage",
        metavar="S",
        type=share,
        help="unigram: share of characters with a piece of their own (0.9999)",
    )
    parser.add_argument(
        "--max-piece-length", metavar="N", type=positive, help="unigram: in characters (16)"
    )
    parser.add_argument(
        "--cluster-by",
        choices=("kmeans", "family", "script"),
        help="cluster, cluster-bpe: what groups languages (kmeans)",
    )
    parser.add_argument(
        "--n-clusters", metavar="K", type=positive, help="of kmeans: 4, or as many as languages"
    )
    parser.add_argument(
        "--language-vocab-size", metavar="N", type=positive, help="of one language alone (8000)"
    )
    parser.add_argument("--seed", metavar="N", type=int, help="of kmeans (0)")
    add_many(parser, "--special-tokens", metavar="T", help="added after the vocabulary")
    parser.add_argument(
        "--special-tokens-from", metavar="TOKENIZER", help="its special tokens and chat template"
    )
    parser.add_argument(
        "--reserve-dummies",
        metavar="N",
        type=positive,
        help="also add N special tokens that no text has: the reference of `vocabshift glitch`",
    )
    parser.add_argument("--config", metavar="F.toml", help="flat TOML of these options; flags win")
    parser.add_argument(
        "--memory", metavar="SIZE", type=size, help="budget such as 8GB (default: no limit)"
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh where a run was cut short"
    )
    add_output(parser, what="folder to write", required=False)
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def mean_power(text: str) -> float | str:
    """A number below 0, or "min", as argparse's `type`."""
    if text == "min":
        return text
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not -math.inf < value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number below 0 nor min")
    return value


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Train and write the folder."""
    from pathlib import Path

    from vocabshift.cli.console import progress_bar
    from vocabshift.output_folder import check_free

    if args.config:
        from vocabshift.cli.config import fill_from_toml

        fill_from_toml(args, args.parser, args.config)
    options = recipe_options(args)
    out = check_free(Path(args.out), force=args.force)
    source = source_of(args)
    from vocabshift.trainers.run import train_to_folder  # heavy: after everything that is cheap

    with progress_bar() as progress:
        result: dict[str, Any] = train_to_folder(
            args.recipe,
            source,
            options,
            out,
            threads=threads(args),
            memory_bytes=args.memory or 0,
            force=args.force,
            resume=not args.no_resume,
            reserve_dummies=args.reserve_dummies or 0,
            progress=progress,
        )
    return result
