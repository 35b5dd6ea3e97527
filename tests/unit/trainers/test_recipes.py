"""The registry of recipes: a line is enough for a trainer to be trained by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from vocabshift.cli.main import main
from vocabshift.trainers import recipes
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.recipes import RECIPES, Recipe


@dataclass(frozen=True, kw_only=True)
class ToyTrainer(BpeTrainer):
    """Byte-pair encoding that has a toy."""

    toy_size: int = 3
    """How large the toy is."""

    recipe: ClassVar[str] = "toy"


def test_one_line_makes_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its flags, its help and its checks come from the class."""
    monkeypatch.setitem(recipes.RECIPES, "toy", Recipe(ToyTrainer))  # type: ignore[arg-type]
    (tmp_path / "a.txt").write_text("the cat and the other cat\n", encoding="utf-8")
    words = ["--corpus", str(tmp_path / "a.txt"), "--vocab-size", "260"]
    words += ["-o", str(tmp_path / "out")]
    assert 2 == main(["train", "--recipe", "bpe", "--toy-size", "5", *words])
    assert "recipe bpe does not take --toy-size" in capsys.readouterr().err
    assert 0 == main(["train", "--recipe", "toy", "--toy-size", "5", *words])
    written = (tmp_path / "out" / "vocabshift.json").read_text(encoding="utf-8")
    assert '"toy_size": 5' in written
    assert 0 == main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "toy: Byte-pair encoding that has a toy" in shown
    assert "--toy-size N toy: how large the toy is (default: 3)" in shown


def test_names_and_options_are_those_of_the_command_line_contract() -> None:
    assert [
        *("bpe", "superbpe", "ist", "matra", "vocabshift", "boundless", "picky", "overlap"),
        *("parity", "stacked", "on-top", "unigram", "cluster", "cluster-bpe"),
    ] == list(RECIPES)
    assert "variant" in RECIPES["matra"].options
    for name, refused in (("vocabshift", "sampling_alpha"), ("cluster-bpe", "grapheme_safe")):
        assert refused not in RECIPES[name].options
    assert {"vocab_size"} == {name for each in ("bpe", "cluster") for name in required(each)}
    assert ("base",) == RECIPES["on-top"].required
    assert ("n_tokens", "vocab_size") == RECIPES["on-top"].one_of


def required(recipe: str) -> tuple[str, ...]:
    return RECIPES[recipe].required


def test_what_is_left_out_is_refused_by_the_trainer_too() -> None:
    """`without` hides an option; it does not change what the trainer says of it."""
    for name, option in (
        ("vocabshift", {"sampling_alpha": 0.3}),
        ("cluster-bpe", {"grapheme_safe": True}),
        ("parity", {"grapheme_safe": True}),
    ):
        with pytest.raises(ValueError, match="leave"):
            RECIPES[name].make({"vocab_size": 400, **option})
