"""`vocabshift count --runs`: its flags, which are those of a recipe, and its summary."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.fields import add_recipe_flags, given
from vocabshift.cli.inputs import corpus_of
from vocabshift.cli.options import Parser, UsageError, positive, threads

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift.workflows.prepare import SparkOptions

_OF_WORDS = ("normalizer", "special_tokens", "special_tokens_from")  # as they were counted
_OWN = ("counts", "recipe", "bound")
_REFUSED = ("join", "pattern", "normalizer", "special_tokens")


def add_run_flags(parser: Parser) -> None:
    """Add `--runs` and what goes with it."""
    from vocabshift.workflows.train import RECIPES, TAKE_RUNS

    group = parser.add_argument_group(
        "runs of tokens, for superwords",
        "Stage 1 is learned from the words; the options are those of train.",
    )
    group.add_argument("--runs", action="store_true", help="count runs, under these options")
    group.add_argument(
        "--counts",
        metavar="DIR",
        help="the words of the text, counted under the patterns of both stages, such as "
        "--pattern ist-stage2+o200k",
    )
    group.add_argument("--recipe", choices=TAKE_RUNS, help="recipe of the training")
    group.add_argument(
        "--bound",
        metavar="N",
        type=positive,
        help="cut at pairs that count less, weighted (default: found by trial)",
    )
    add_recipe_flags(group, {name: RECIPES[name] for name in TAKE_RUNS}, without=_OF_WORDS)


def refuse_run_flags(args: argparse.Namespace) -> None:
    """Raise UsageError for a flag that goes with `--runs`."""
    for name in (*(name for name in _OWN if getattr(args, name)), *_recipe_options(args)):
        raise UsageError(f"{_flag(name)} is for --runs; give both, or neither")


def run_count_runs(args: argparse.Namespace, spark: SparkOptions | None) -> dict[str, Any]:
    """Count runs, and write the output folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.count_runs import count_runs_to_folder

    options = _options_of(args)
    corpus = corpus_of(args.corpus, args)
    with progress_bar() as progress:
        return count_runs_to_folder(
            corpus,
            args.counts,
            args.recipe,
            options,
            args.out,
            bound=args.bound,
            memory_bytes=args.memory or 0,
            threads=threads(args),
            spark=spark,
            force=args.force,
            progress=progress,
        )


def _options_of(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the recipe; UsageError for flags that do not go together."""
    from vocabshift.workflows.train import RECIPES

    for name in _REFUSED:
        if getattr(args, name):
            raise UsageError(
                f"--runs takes this from the words of --counts; leave {_flag(name)} out"
            )
    for name in ("counts", "recipe", "vocab_size", "corpus"):
        if not getattr(args, name):
            raise UsageError(f"--runs needs {'SPEC...' if name == 'corpus' else _flag(name)}")
    options = _recipe_options(args)
    for name in options:
        if name not in RECIPES[args.recipe].options:
            raise UsageError(f"recipe {args.recipe} does not take {_flag(name)}; leave it out")
    return options


def _recipe_options(args: argparse.Namespace) -> dict[str, Any]:
    """The given options of all recipes, by their names."""
    from vocabshift.workflows.train import RECIPES, TAKE_RUNS

    every = dict.fromkeys(name for recipe in TAKE_RUNS for name in RECIPES[recipe].options)
    return given(args, [name for name in every if name not in _OF_WORDS])


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def show_count_runs(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import shell_line, show_summary

    facts = {
        "written to": result["out"],
        "bytes": result["bytes"],
        "tokens of stage 1": result["tokens"],
        "distinct runs": result["runs"],
        "cut at pairs that count less than": result["bound"],
    }
    if "superwords" in result:  # not known where runs were added up
        facts["superwords that can be learned"] = result["superwords"]
    words = ["--counts", args.counts or "WORDS", "--runs", result["out"], "..."]
    then = shell_line("vocabshift", "train", *words)
    show_summary(console, "count", facts, then)
