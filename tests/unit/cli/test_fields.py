"""Flags from dataclasses: whatever a field says reaches the command line, and nothing else does."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from vocabshift.cli.fields import add_fields, flags_of, given
from vocabshift.cli.main import main
from vocabshift.cli.options import Parser, UsageError
from vocabshift.text.normalize import NAMES
from vocabshift.trainers.recipes import RECIPES


@dataclass(frozen=True, kw_only=True)
class Toy:
    """Options of a toy."""

    n_wheels: int
    """Wheels that it stands on."""
    speed: Annotated[float, "share"] = 0.5
    """Share of the 100 % that it could do. None: as fast as it likes."""
    colour: Literal["red", "blue"] = "red"
    """What it is painted with."""
    names: Annotated[tuple[str, ...], "NAME"] = ()
    is_loud: bool = False
    """NOISE that it makes."""


@dataclass(frozen=True, kw_only=True)
class Train(Toy):
    """A toy with another speed."""

    speed: Annotated[float, "share"] = 0.25
    n_cars: int | None = None
    """Cars behind it."""


def parse(*words: str) -> dict[str, object]:
    parser = Parser(prog="toy")
    add_fields(parser, Train)
    return given(parser.parse_args(words), flags_of(Train))


def test_only_what_is_given_is_there() -> None:
    """The dataclass alone knows the defaults."""
    assert {} == parse()
    words = ("--n-wheels", "3", "--speed", "0.75", "--colour", "blue", "--is-loud")
    several = ("--names", "a", "b", "--names", "c", "--n-cars", "2")
    assert {
        "n_wheels": 3,
        "speed": 0.75,
        "colour": "blue",
        "is_loud": True,
        "names": ["a", "b", "c"],
        "n_cars": 2,
    } == parse(*words, *several)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--n-wheels", "0"), "at least 1"),
        (("--n-cars", "x"), "at least 1"),
        (("--speed", "1.5"), "above 0 and up to 1"),
        (("--colour", "green"), "invalid choice"),
    ],
)
def test_values_are_checked_by_kind(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(*words)


def test_the_help_is_the_string_under_the_field() -> None:
    """Of a field that a subclass gives another default, the string that it inherits."""
    parser = Parser(prog="toy", formatter_class=argparse.HelpFormatter)
    add_fields(parser, Train)
    shown = " ".join(parser.format_help().split())
    for text in (
        "--n-wheels N wheels that it stands on",
        "--speed SHARE share of the 100 % that it could do. Not given: as fast as it likes "
        "(default: 0.25)",
        "--colour {red,blue} what it is painted with (default: red)",
        "--names NAME [NAME ...]",
        "--is-loud NOISE that it makes",
        "--n-cars N cars behind it",
    ):
        assert text in shown


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_every_option_of_a_recipe_has_a_help(recipe) -> None:
    flags = flags_of(recipe.trainer)
    assert [] == [name for name, flag in flags.items() if not flag.help]
    assert recipe.summary


def test_the_flags_of_train_are_the_options_of_the_recipes(capsys) -> None:
    assert 0 == main(["train", "--help"])
    shown = capsys.readouterr().out
    for recipe in RECIPES.values():
        assert f"{recipe.name}: " in " ".join(shown.split())
        for name in recipe.options:
            assert f"--{name.replace('_', '-')}" in shown
    assert "--terminal-prohibition" not in shown


def test_the_steps_of_a_normalizer_can_be_looked_up(capsys) -> None:
    """`train --help` names the verb whose help lists them."""
    assert 0 == main(["train", "--help"])
    assert "vocabshift normalize" in " ".join(capsys.readouterr().out.split())
    assert 0 == main(["count", "--help"])
    shown = "".join(capsys.readouterr().out.split())  # lines break after hyphens too
    assert set() == {name for name in NAMES if name not in shown}
