"""The command line of `cpt`: a key may stand anywhere."""

import pytest

from vocabshift.cli.cpt import keys_behind_config
from vocabshift.cli.main import build_parser


@pytest.mark.parametrize(
    "words",
    [
        "c.toml a=1 phases.0.b=2 --control -j 2",
        "c.toml --control a=1 -j 2 phases.0.b=2",
        "-j 2 a=1 --control c.toml phases.0.b=2",
        "a=1 phases.0.b=2 --threads 2 c.toml --control",
    ],
)
def test_keys_may_stand_anywhere(words: str) -> None:
    """Before, behind and between flags they mean the same."""
    args = build_parser().parse_args(keys_behind_config(["cpt", *words.split()]))
    assert ("c.toml", ["a=1", "phases.0.b=2"], True, 2) == (
        args.config,
        args.keys,
        args.control,
        args.threads,
    )


def test_other_verbs_are_left_alone() -> None:
    """SPECs hold equals signs too."""
    words = ["encode", "t", "hi=a.txt", "--json", "en=b.txt"]
    assert words == keys_behind_config(words)
