"""The recipes of `vocabshift train`: one line per trainer, which defines its name and flags.

To add a trainer, write its file and add a line here. Its class defines its name (`recipe`), its
options (the fields) and its description (the docstring). The command line and `train_to_folder`
read them from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from vocabshift.trainers import balanced, boundless, matra, on_top, overlap, parity, picky
from vocabshift.trainers.byte_level import BpeTrainer, ByteLevelTrainer
from vocabshift.trainers.cluster import ClusterTrainer
from vocabshift.trainers.cluster_bpe import ClusterBpeTrainer
from vocabshift.trainers.stacked import StackedTrainer
from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer
from vocabshift.trainers.unigram import UnigramTrainer

AnyTrainer = ByteLevelTrainer | on_top.SuperwordsOnTopTrainer | UnigramTrainer

Facts = Callable[[Mapping[str, Any]], dict[str, Any]]
"""From the result of `train_to_folder` to what people are shown of this recipe alone."""

VARIANT = "variant"
"""The option that names one of a recipe's `variants`."""


@dataclass(frozen=True)
class Recipe:
    """A trainer under its name."""

    trainer: type[AnyTrainer]
    without: tuple[str, ...] = ()
    """Fields that are no options: the trainer inherits them, and refuses any other value."""
    one_of: tuple[str, ...] = ()
    """Options of which just one must be given."""
    variants: tuple[str, ...] = ()
    """Names for values of several options at once, for the option `VARIANT`."""
    variants_help: str = ""
    """What they are, in the order of their names."""
    of_variant: Callable[[str, Mapping[str, Any]], dict[str, Any]] | None = None
    """From one of these and the options given to all options."""
    facts: Facts | None = None

    @property
    def name(self) -> str:
        """As `--recipe` spells it."""
        return self.trainer.recipe

    @property
    def summary(self) -> str:
        """One line on what the trainer learns."""
        return str(self.trainer.__doc__).partition("\n")[0]

    @property
    def options(self) -> tuple[str, ...]:
        """Names of all options."""
        own = tuple(each.name for each in fields(self.trainer) if each.name not in self.without)
        return (*own, VARIANT) if self.variants else own

    @property
    def required(self) -> tuple[str, ...]:
        """Required options, without those of `one_of`."""
        return tuple(
            each.name
            for each in fields(self.trainer)
            if each.default is MISSING and each.default_factory is MISSING
        )

    def make(self, options: Mapping[str, Any]) -> AnyTrainer:
        """Return the trainer with these options; ValueError for an unknown option.

        Lists, as TOML and the command line pass them, become tuples.
        """
        given = dict(options)
        if self.of_variant is not None and (variant := given.pop(VARIANT, None)) is not None:
            given = self.of_variant(variant, given)
        known = tuple(each.name for each in fields(self.trainer))
        for name, value in given.items():
            if name not in known:
                raise ValueError(
                    f"recipe {self.name} has no option {name!r}; its options are {', '.join(known)}"
                )
            if isinstance(value, list):
                given[name] = tuple(value)
        return self.trainer(**given)


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(BpeTrainer),
        Recipe(SuperBpeTrainer),
        Recipe(SuperwordTrainer),
        Recipe(
            matra.MatraTrainer,
            without=("terminal_prohibition",),
            variants=tuple(matra.VARIANTS),
            variants_help="no weights, no stage 2, no constraint, constraint only, all (default)",
            of_variant=matra.variant_options,
        ),
        Recipe(balanced.BalancedTrainer, without=("sampling_alpha",), facts=balanced.facts),
        Recipe(boundless.BoundlessTrainer, facts=boundless.facts),
        Recipe(picky.PickyTrainer, facts=picky.facts),
        Recipe(overlap.OverlapTrainer, facts=overlap.facts),
        Recipe(parity.ParityTrainer, without=("grapheme_safe",), facts=parity.facts),
        Recipe(StackedTrainer),
        Recipe(
            on_top.SuperwordsOnTopTrainer, one_of=("n_tokens", "vocab_size"), facts=on_top.facts
        ),
        Recipe(UnigramTrainer),
        Recipe(ClusterTrainer),
        Recipe(ClusterBpeTrainer, without=("grapheme_safe",)),
    )
}
"""Every recipe by its name."""


TAKE_RUNS = tuple(
    name for name, recipe in RECIPES.items() if getattr(recipe.trainer, "takes_runs", False)
)
"""Recipes whose second stage is learned from counted runs too."""


def require_takes_runs(recipe: str) -> None:
    """Raise ValueError for a recipe that does not learn from runs."""
    if recipe not in TAKE_RUNS:
        raise ValueError(
            f"recipe {recipe} learns nothing from runs: either it has no second stage, or it needs "
            f"the text itself; the recipes that do are {', '.join(TAKE_RUNS)}"
        )


def make_trainer(recipe: str, options: Mapping[str, Any]) -> AnyTrainer:
    """Return the trainer of a recipe; ValueError for an unknown recipe or option."""
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}; known are: {', '.join(RECIPES)}")
    return RECIPES[recipe].make(options)
