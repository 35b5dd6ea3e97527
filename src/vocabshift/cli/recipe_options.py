"""Which options each recipe of `vocabshift train` takes, and what it cannot do without."""

from __future__ import annotations

import argparse
from typing import Any

from vocabshift.cli.options import UsageError

_COMMON = (
    "vocab_size",
    "pre_tokenizer",
    "max_token_bytes",
    "min_frequency",
    "normalizer",
    "sampling_alpha",
    "grapheme_safe",
    "special_tokens",
    "special_tokens_from",
)
_TWO_STAGES = (*_COMMON, "transition", "stage2_pre_tokenizer", "max_words")
_BALANCED = (*(name for name in _TWO_STAGES if name != "sampling_alpha"), "balance")
_MATRA = (*_TWO_STAGES, "alpha", "word_weight", "variant")

_BOUNDLESS = (*_COMMON, "stage2_pre_tokenizer", "max_words", "merge_pattern")
_PICKY = (*_COMMON, "threshold")
_OVERLAP = (*_COMMON, "high_resource", "overlap_alpha", "overlap_power")
_STACKED = (*_COMMON, "budgets")
_ON_TOP = (
    *("base", "n_tokens", "vocab_size", "stage2_pre_tokenizer", "max_words"),
    *("max_token_bytes", "min_frequency", "sampling_alpha"),
)

_UNIGRAM = (
    *("vocab_size", "character_coverage", "max_piece_length"),
    *("normalizer", "sampling_alpha", "special_tokens"),
)
_CLUSTER = ("cluster_by", "n_clusters", "language_vocab_size", "seed")

RECIPES = {
    "bpe": _COMMON,
    "superbpe": _TWO_STAGES,
    "ist": _TWO_STAGES,
    "matra": _MATRA,
    "vocabshift": _BALANCED,
    "boundless": _BOUNDLESS,
    "picky": _PICKY,
    "overlap": _OVERLAP,
    "stacked": _STACKED,
    "on-top": _ON_TOP,
    "unigram": _UNIGRAM,
    "cluster": (*_UNIGRAM, *_CLUSTER),
    "cluster-bpe": (*(name for name in _COMMON if name != "grapheme_safe"), *_CLUSTER),
}
"""Options that each recipe takes, by the trainer's names."""


def recipe_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options given, by the trainer's names; UsageError where one is missing or foreign."""
    see = f"(see: {args.parser.prog} --help)"
    for flag, value in (
        ("--recipe", args.recipe),
        ("--corpus (or --counts)", args.corpus or args.counts),
        *_required(args),
        ("-o DIR", args.out),
    ):
        if not value:
            raise UsageError(f"{flag} is required {see}")
    if args.recipe not in RECIPES:
        raise UsageError(f"unknown recipe {args.recipe!r}; known are: {', '.join(RECIPES)}")
    every = dict.fromkeys(name for names in RECIPES.values() for name in names)
    given = {name: getattr(args, name) for name in every}
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in RECIPES[args.recipe]:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"recipe {args.recipe} does not take {flag}; leave it out {see}")
    return options


def _required(args: argparse.Namespace) -> list[tuple[str, Any]]:
    """What must be given to say how large the vocabulary is to be."""
    if args.recipe != "on-top":
        return [("--vocab-size", args.vocab_size)]
    if args.n_tokens and args.vocab_size:
        raise UsageError("--n-tokens and --vocab-size say the same; give one of them")
    return [("--base", args.base), ("--n-tokens", args.n_tokens or args.vocab_size)]
