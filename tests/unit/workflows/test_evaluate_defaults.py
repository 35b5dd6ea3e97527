"""What is not said is the same for the function that measures and for the one that writes files.

The flags of the command line take their defaults from the latter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from vocabshift.cli.main import build_parser
from vocabshift.evaluation.compare import compare
from vocabshift.evaluation.evaluate import evaluate
from vocabshift.evaluation.glitch.find import find_glitch_tokens
from vocabshift.evaluation.harness.run import run_harness
from vocabshift.evaluation.latency import latency
from vocabshift.evaluation.scoring.score_models import score_models
from vocabshift.report.card import render_card
from vocabshift.workflows.compare import compare_to_file
from vocabshift.workflows.evaluate import evaluate_to_files
from vocabshift.workflows.glitch import glitch_to_files
from vocabshift.workflows.harness import harness_to_file
from vocabshift.workflows.measure_models import measure_latency, score_to_file
from vocabshift.workflows.publish import write_card

PAIRS = [
    (evaluate_to_files, evaluate),
    (compare_to_file, compare),
    (glitch_to_files, find_glitch_tokens),
    (harness_to_file, run_harness),
    (score_to_file, score_models),
    (measure_latency, latency.measure_latency),
    (measure_latency, latency.cut_prompts),
    (write_card, render_card),
]
NO_DEFAULT = inspect.Parameter.empty
OTHERWISE = {"morphemes", "sources"}  # names of files there, what was read from them here


def defaults(function: Callable[..., object]) -> dict[str, object]:
    parameters = inspect.signature(function).parameters
    return {name: own.default for name, own in parameters.items() if own.default is not NO_DEFAULT}


@pytest.mark.parametrize(("writes", "measures"), PAIRS)
def test_defaults_are_the_same(
    writes: Callable[..., object], measures: Callable[..., object]
) -> None:
    of_one, of_other = defaults(writes), defaults(measures)
    shared = of_one.keys() & of_other.keys() - OTHERWISE
    assert shared
    assert {name: of_other[name] for name in shared} == {name: of_one[name] for name in shared}


@pytest.mark.parametrize(
    ("words", "function", "renamed"),
    [
        (["evaluate", "a", "--text", "x"], evaluate_to_files, {}),
        (["compare", "a", "b", "--text", "x"], compare_to_file, {"lines": "n_lines"}),
        (["compare", "a", "b", "--text", "x"], compare_to_file, {"changes": "n_changes"}),
        (["score", "m", "--text", "x"], score_to_file, {}),
        (["latency", "m", "--text", "x"], measure_latency, {}),
        (["harness", "m", "--tasks", "x"], harness_to_file, {}),
        (["glitch", "m"], glitch_to_files, {}),
    ],
)
def test_flags_that_are_left_out_change_nothing(
    words: list[str], function: Callable[..., object], renamed: dict[str, str]
) -> None:
    """Where a flag has a default at all, it is the function's."""
    given = vars(build_parser().parse_args(words))
    own = defaults(function)
    for flag, value in given.items():
        name = renamed.get(flag, flag)
        if name in own and value is not None:
            assert own[name] == value, flag
