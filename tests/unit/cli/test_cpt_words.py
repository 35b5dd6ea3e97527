"""The command line of `cpt`: a key may stand anywhere."""

from pathlib import Path

import pytest

from vocabshift.cli.config import config_first, split_given
from vocabshift.cli.cpt import read_config, run
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
    args = build_parser().parse_args(config_first(["cpt", *words.split()]))
    assert ("c.toml", ["a=1", "phases.0.b=2"]) == split_given(args)
    assert (True, 2) == (args.control, args.threads)


def test_other_verbs_are_left_alone() -> None:
    """SPECs hold equals signs too."""
    words = ["encode", "t", "hi=a.txt", "--json", "en=b.txt"]
    assert words == config_first(words)


def test_hyphens_are_underscores(tmp_path: Path) -> None:
    """In the file, in its phases and on the command line, as for `train`."""
    file = tmp_path / "c.toml"
    file.write_text('sequence-length = 64\n[[phases]]\nn-bytes = "2KB"\nlearning_rate = 1e-3\n')
    table = read_config(str(file), ["batch-size=2", "phases.0.learning-rate=1e-4"])
    assert (64, 2) == (table["sequence_length"], table["batch_size"])
    assert [{"n_bytes": 2000, "learning_rate": 1e-4}] == table["phases"]


def test_flags_may_stand_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`threads`, `force` and `no-resume`, as for `train`; a flag goes before them."""
    asked = {}

    def note(config: object, **options: object) -> None:
        asked.update(options)

    monkeypatch.setattr("vocabshift.workflows.continue_pretraining.continue_pretraining", note)
    file = tmp_path / "c.toml"
    file.write_text('model = "m"\ndata = "d"\nout = "o"\nn_bytes = 5\nforce = true\nthreads = 2\n')
    words = ["cpt", str(file), "no-resume=true", "-j", "1"]
    run(build_parser().parse_args(config_first(words)))
    assert (True, False, 1) == (asked["force"], asked["resume"], asked["threads"])
