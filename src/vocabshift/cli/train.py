"""`vocabshift train`: learn a tokenizer from text.

The flags of a recipe come from the registry of recipes. A TOML file and key=value words may
replace flags: see `cli.config`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.config import add_config, fill_from_config
from vocabshift.cli.fields import add_recipe_flags, given
from vocabshift.cli.inputs import add_source, source_of
from vocabshift.cli.options import (
    Parser,
    UsageError,
    add_output,
    add_threads,
    add_verb,
    check_inputs_stay,
    positive,
    size,
    threads,
)

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb; argparse does not require arguments that a TOML file may supply."""
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
        "ta=hf:wikimedia/wikipedia:20231101.ta -j 4 -o ist-ta --json\n"
        "  vocabshift train --recipe parity --corpus hi=hindi.txt en=english.txt --parallel "
        "hi=dev.hi.txt en=dev.en.txt --vocab-size 32000 -o parity\n",
    )
    parser.later(_add_options)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def _add_options(parser: Parser) -> None:
    from vocabshift.workflows.train import RECIPES

    add_config(parser, keys="these options, without the hyphens in front")
    listed = "; ".join(f"{each.name}: {each.summary.rstrip('.')}" for each in RECIPES.values())
    parser.add_argument("--recipe", metavar="RECIPE", help=listed.replace("%", "%%"))
    add_source(parser)
    parser.add_argument(
        "--runs",
        metavar="DIR",
        help="a folder that `vocabshift count --runs` wrote for the words of --counts: superwords "
        "without the text",
    )
    add_recipe_flags(parser, RECIPES)
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


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Train and write the output folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.train import train_to_folder

    fill_from_config(args)
    options = recipe_options(args)
    if args.force:
        check_inputs_stay(args.out, vars(args).values())
    source = source_of(args)
    with progress_bar() as progress:
        return train_to_folder(
            args.recipe,
            source,
            options,
            args.out,
            threads=threads(args),
            memory_bytes=args.memory or 0,
            force=args.force,
            resume=not args.no_resume,
            reserve_dummies=args.reserve_dummies or 0,
            progress=progress,
        )


def recipe_options(args: argparse.Namespace) -> dict[str, Any]:
    """The given options by the trainer's names; UsageError for a missing or unknown option."""
    from vocabshift.workflows.train import RECIPES

    see = f"(see: {args.parser.prog} --help)"
    _require(see, recipe=args.recipe)
    if args.recipe not in RECIPES:
        raise UsageError(f"unknown recipe {args.recipe!r}; known are: {', '.join(RECIPES)}")
    recipe = RECIPES[args.recipe]
    if not (args.corpus or args.counts):
        raise UsageError(f"--corpus (or --counts) is required {see}")
    options = given(args, dict.fromkeys(n for each in RECIPES.values() for n in each.options))
    _require(see, **{name: options.get(name) for name in recipe.required})
    if recipe.one_of:
        found = [name for name in recipe.one_of if name in options]
        if len(found) > 1:
            flags = " and ".join(map(_flag, found))
            raise UsageError(f"{flags} say the same; give one of them")
        _require(see, **{recipe.one_of[0]: found})
    if not args.out:
        raise UsageError(f"-o DIR is required {see}")
    if args.runs and not args.counts:
        raise UsageError(f"--runs needs the words of the same text: give --counts too {see}")
    for name in options:
        if name not in recipe.options:
            raise UsageError(
                f"recipe {recipe.name} does not take {_flag(name)}; leave it out {see}"
            )
    return options


def _require(see: str, **values: Any) -> None:
    for name, value in values.items():
        if not value:
            raise UsageError(f"{_flag(name)} is required {see}")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import deployable_facts, shell_line, show_deployable, show_summary
    from vocabshift.workflows.train import RECIPES, table_of

    merges = f"{result['merges']:,}"
    if result["stage2_merges"]:
        merges += f" ({result['stage1_merges']:,} + {result['stage2_merges']:,} in stage 2)"
    of_recipe = RECIPES[result["recipe"]].facts
    facts = {
        "written to": result["out"],
        "recipe": result["recipe"],
        **deployable_facts(result),
        "tokens of the model": result["vocab_size"],
        "merges": merges,
        "superwords": result["superwords"],
        "tokens of the corpus": result["training_tokens"],
        **({} if of_recipe is None else of_recipe(result)),
        "unreachable tokens": result["unreachable"],
        **_early_stop_facts(result),
        "seconds": f"{sum(phase['seconds'] for phase in result['phases']):.1f}",
        "config hash": result["config_hash"],
    }
    then = shell_line("vocabshift", "evaluate", result["out"], "--text", "SPEC") + "    or    "
    then += shell_line("vocabshift", "check", result["out"])
    if "deployable" in result:
        show_deployable(console, result["deployable"])
    console.print(table_of(result["vocabulary"]))
    show_summary(console, "train", facts, then)


def _early_stop_facts(result: dict[str, Any]) -> dict[str, Any]:
    """What the memory budget dropped, and why there are fewer tokens than asked for; else empty."""
    facts: dict[str, Any] = {}
    if result.get("dropped_words"):
        facts["words left out for want of memory"] = result["dropped_words"]
        facts["how often these stand in the text"] = result["dropped_occurrences"]
        facts["each of them counts less than"] = result["dropped_below"]
    if result["stopped_because"] == "memory":
        facts["stopped early"] = "the memory budget has no room for rarer superwords"
        facts["pairs missing count less than"] = result["stopped_below"]
    elif result["stopped_because"] == "no_pair_left":
        facts["stopped early"] = "no pair is left to merge: more tokens need more text"
    return facts
