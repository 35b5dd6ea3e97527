"""`vocabshift train`: learn a tokenizer from text.

Owns the verb's flags. A TOML file and key=value words may stand in for them: see `cli.config`.
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import (
    add_config,
    add_many,
    add_output,
    add_threads,
    add_verb,
    fill_from_config,
    positive,
    share,
    size,
    threads,
)
from vocabshift.cli.recipe_options import RECIPES, recipe_options
from vocabshift.cli.source import add_source, source_of
from vocabshift.text.normalize import NORMALIZER_HELP

if TYPE_CHECKING:
    from rich.console import Console


# What `vocabshift train` tells people at the end.


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Summary for people."""
    from vocabshift.checks.vocabulary_report import VocabularyReport
    from vocabshift.cli.console import show_summary
    from vocabshift.report.tables import vocabulary_table

    merges = f"{result['merges']:,}"
    if result["stage2_merges"]:
        merges += f" ({result['stage1_merges']:,} + {result['stage2_merges']:,} in stage 2)"
    facts = {
        "written to": result["out"],
        "recipe": result["recipe"],
        "vocabulary": result["vocab_size"],
        "merges": merges,
        "superwords": result["superwords"],
        "tokens of the corpus": result["training_tokens"],
        **_boundless_facts(result),
        **_picky_facts(result),
        **_overlap_facts(result),
        **_on_top_facts(result),
        "unreachable tokens": result["unreachable"],
        **_memory_facts(result),
        "seconds": f"{sum(phase['seconds'] for phase in result['phases']):.1f}",
        "config hash": result["config_hash"],
    }
    then = (
        f"vocabshift evaluate {result['out']} --text SPEC    or    vocabshift check {result['out']}"
    )
    console.print(vocabulary_table(VocabularyReport.from_rows(result["vocabulary"])))
    show_summary(console, "train", facts, then)


def _memory_facts(result: dict[str, Any]) -> dict[str, Any]:
    """What a memory budget took away; nothing where the result is exact."""
    facts: dict[str, Any] = {}
    if result.get("dropped_words"):
        facts["words left out for want of memory"] = result["dropped_words"]
        facts["how often these stand in the text"] = result["dropped_occurrences"]
        facts["each of them counts less than"] = result["dropped_below"]
    if result["stopped_because"] == "memory":
        facts["stopped early"] = "the memory budget has no room for rarer superwords"
        facts["pairs missing count less than"] = result["stopped_below"]
    return facts


def _boundless_facts(result: dict[str, Any]) -> dict[str, Any]:
    """How far the exported tokenizer is from BoundlessBPE itself."""
    if "boundless_tokens" not in result:
        return {}
    return {
        "tokens by BoundlessBPE itself": result["boundless_tokens"],
        "documents that differ": f"{result['documents_differing']:.1%}",
    }


def _picky_facts(result: dict[str, Any]) -> dict[str, Any]:
    """How far the exported tokenizer is from PickyBPE itself."""
    if "removals" not in result:
        return {}
    words = max(result["words"], 1)
    per_word = (result["training_tokens"] / words, result["replayed_tokens"] / words)
    return {
        "tokens removed / written all the same": f"{result['removals']:,} / {result['returned']:,}",
        "kept tokens without room": result["left_out"],
        "tokens by PickyBPE itself": result["replayed_tokens"],
        "tokens per word, as written / by PickyBPE": "{:.4f} / {:.4f}".format(*per_word),
        "words / tokens that differ": f"{result['words_differing']:.2%} / "
        f"{result['tokens_differing']:.2%}",
    }


def _overlap_facts(result: dict[str, Any]) -> dict[str, Any]:
    """Who was to share with whom."""
    if "high_resource" not in result:
        return {}
    return {
        "high-resource languages": ", ".join(result["high_resource"]),
        "low-resource languages": ", ".join(result["low_resource"]),
    }


def _on_top_facts(result: dict[str, Any]) -> dict[str, Any]:
    """What the new walls alone changed in the base, and what other walls would have."""
    if "tokens_lost" not in result:
        return {}
    names = (f"{c['name']} {c['changed_tokens']:.2%}" for c in result["candidates"])
    changed = (
        f"{language} {share:.1%} / {result['changed_tokens'][language]:.2%}"
        for language, share in result["changed_lines"].items()
    )
    return {
        "superwords on top of": f"{result['base']} ({result['new_tokens']:,} new tokens)",
        "pattern": result["stage2_pre_tokenizer"],
        "tokens that each pattern changes": ", ".join(names),
        "lines / tokens changed by walls alone": ", ".join(changed),
        "tokens of the base lost": len(result["tokens_lost"]),
    }


# ---


def add_parser(subparsers: Any) -> None:
    """Add the verb; what a TOML may give instead is not required by the parser itself."""
    parser = add_verb(
        subparsers,
        "train",
        "learn a tokenizer from text",
        "Learn a tokenizer from text and write it as a Hugging Face folder. Options may also\n"
        "come from a TOML file and key=value words, given before the flags. A flag overrides\n"
        "key=value, and key=value overrides the file.",
        "  vocabshift train --recipe ist --corpus hi=hindi.txt en=english.jsonl.gz "
        "--vocab-size 32000 -o ist\n"
        "  vocabshift train ist.toml vocab_size=64000 --corpus "
        "ta=hf:wikimedia/wikipedia:20231101.ta -j 4 -o ist-ta --json\n",
    )
    add_config(parser, keys="these options, without the hyphens in front")
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
    from vocabshift.storage.output import check_free

    fill_from_config(args)
    options = recipe_options(args)
    out = check_free(Path(args.out), force=args.force)
    source = source_of(args)
    from vocabshift.trainers.recipes import train_to_folder

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
