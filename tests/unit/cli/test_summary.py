"""The command that a verb prints last, to be pasted into a shell."""

from __future__ import annotations

import shlex
from collections import defaultdict

import pytest

from vocabshift.cli.config import parse_key
from vocabshift.cli.console import stdout
from vocabshift.cli.main import build_parser

SCORE = "vocabshift score PATH --text SPEC"
MERGE = "vocabshift merge PATH -o DIR"
CHECK = "vocabshift check PATH    or    vocabshift transfer MODEL PATH"
TEACH = "vocabshift cpt CONFIG objective=likelihood-matching teacher_logprobs=PATH"
NO_FILES = {"files": {}, "left_out": {}, "notes": []}
PLANNED = {
    "model": None,
    "rows": [defaultdict(int, by_language={}, pre_tokenizer="repaired")],
    "ceilings": {},
    "suggested": {"n_tokens": 9, "pre_tokenizer": "repaired", "n_characters": 0},
}
TRAINED = {"recipe": "bpe", "vocabulary": [], "phases": []}
PRUNED = {"removed_by_script": [], "languages": []}
SIZES = {"parameters": 0, "weights_bytes": 0}
CARD = {"results": [], "before": SIZES, "judged_on": "", "scored_on": ""}
CARD |= {"added_sample": [], "removed_sample": []}
CASES = [
    (
        "plan PATH --corpus hi=PATH --documents file --max-tokens 100",
        PLANNED,
        "vocabshift extend PATH --corpus hi=PATH --documents file --n-tokens 9 "
        "--pre-tokenizer repaired -o DIR",
    ),
    ("prune m -o PATH", PRUNED, "vocabshift transfer MODEL PATH -o DIR"),
    ("transfer m t -o PATH", NO_FILES, f"{SCORE}, and vocabshift cpt to train it"),
    ("transfer m t -o PATH", {"tables": {}}, "llama-cli -m PATH"),
    ("transfer m t -o PATH", {"tables": {}, "n_rows_moved": 1, **NO_FILES}, MERGE),
    ("merge m -o PATH", NO_FILES, SCORE),
    ("extend m -o PATH", {}, CHECK),
    ("cpt --export m -o PATH", {}, SCORE),
    ("cpt CONFIG", {"n_steps": 1, "phases": []}, SCORE),
    ("cpt CONFIG", {"n_steps": 1, "phases": [], "adapter": "adapter"}, SCORE),
    ("cpt CONFIG", {"n_steps": 1, "phases": [], "adapter": "."}, MERGE),
    (
        "language-pack m --base PATH -o PATH",
        NO_FILES,
        "vocabshift language-pack --apply PATH --base PATH -o DIR",
    ),
    (
        "language-pack --info PATH",
        NO_FILES,
        "vocabshift language-pack --apply PATH --base BASE -o DIR",
    ),
    ("language-pack --apply p --base b -o PATH", NO_FILES, SCORE),
    (
        "adapt m --corpus x -o PATH",
        {"card": CARD, **NO_FILES},
        f"{SCORE}, and vocabshift cpt to train it",
    ),
    ("adapt m --corpus x -o PATH", {}, CHECK),
    (
        "draft-vocab m --corpus x --n-tokens 9 -o PATH",
        {"coverage": {}, "coverage_by_size": {}, "files": ["map.pt"]},
        "SGLang: --speculative-token-map PATH/map.pt",
    ),
    ("count x -o PATH", {}, "vocabshift train --counts PATH ..."),
    (
        "count x --runs --counts PATH -o PATH",
        {"runs": 1},
        "vocabshift train --counts PATH --runs PATH ...",
    ),
    (
        "train -o PATH",
        TRAINED,
        "vocabshift evaluate PATH --text SPEC    or    vocabshift check PATH",
    ),
    ("convert m -o PATH", {"types": {}}, "vocabshift check PATH"),
    ("convert m -o PATH", {"types": {}, "chkhsh": "x"}, "llama-cli -m PATH"),
    ("teach m x -o PATH", {}, TEACH),
]


@pytest.mark.parametrize(("words", "result", "expected"), CASES)
@pytest.mark.parametrize("path", ["plain/folder", "with space/it's"])
def test_the_next_command_can_be_pasted(path: str, words, result, expected: str, capsys) -> None:
    """The shell reads back every path, and simple paths and placeholders have no quotes."""
    args = build_parser().parse_args([word.replace("PATH", path) for word in words.split()])
    args.show(args, defaultdict(int, {"out": path, **result}), stdout())
    said = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ")
    assert [word.replace("PATH", path) for word in expected.split()] == shlex.split(said)
    if path == "plain/folder":
        assert expected.replace("PATH", path) == said


def test_cpt_takes_what_teach_prints() -> None:
    """As strings, although neither value is valid TOML."""
    keys = dict(map(parse_key, TEACH.split()[3:]))
    assert {"objective": "likelihood-matching", "teacher_logprobs": "PATH"} == keys
