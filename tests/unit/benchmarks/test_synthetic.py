"""Synthetic text has the words, neighbours and shares of its corpus, and the seed decides it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import programs

PROGRAM = "benchmarks/synthetic.py"

HINDI = ["राम घर गया।", "सीता घर आई।", "राम  आया", "राम और सीता घर पर हैं।"]
CODE = [
    "    return a + 1;",
    "\treturn b",
    "if a:",
    "x = 'अ '",
    "a_very_long_name_of_a_function()",
]


@pytest.fixture(scope="module")
def synthetic() -> ModuleType:
    return programs.load(PROGRAM)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "hi.txt").write_text("\n".join(HINDI) + "\n", encoding="utf-8")
    (tmp_path / "code.txt").write_text("\n".join(CODE) + "\n", encoding="utf-8")
    return [f"hi={tmp_path}/hi.txt", f"{tmp_path}/code.txt"]


def run(*arguments: object) -> bytes:
    command = [sys.executable, programs.ROOT / PROGRAM, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def units(lines: list[str]) -> list[list[str]]:
    """Words of each line with the spaces before them, its end included, done slowly."""
    found = []
    for line in lines:
        words, word = [], ""
        for character, after in pairwise(line + "\n"):
            word += character
            if (character == " ") < (after == " ") or after == "\n":
                words.append(word)
                word = ""
        found.append(["\n", *words, "\n"])
    return found


def test_the_same_seed_gives_the_same_bytes(files: list[str], tmp_path: Path) -> None:
    first = run(*files, "--gb", "0.0001", "--seed", "7")
    run(*files, "--gb", "0.0001", "--seed", "7", "-o", tmp_path / "out.txt")
    assert first == (tmp_path / "out.txt").read_bytes()
    assert first != run(*files, "--gb", "0.0001", "--seed", "8")


def test_the_size_is_met_at_the_end_of_a_line(files: list[str]) -> None:
    for size in (1, 500, 100_000):
        text = run(*files, "--gb", size / 1e9)
        assert text.endswith(b"\n")
        assert size <= len(text) < size + 100
        assert text[size:-1].count(b"\n") == 0


def test_every_pair_of_words_is_one_of_the_corpus(files: list[str]) -> None:
    """Spaces, tabs and long words come back, and languages do not mix."""
    known = [{pair for line in units(of) for pair in pairwise(line)} for of in (HINDI, CODE)]
    lines = run(*files, "--gb", "0.0001").decode().splitlines()
    seen: set[tuple[str, str]] = set()
    for line in units(lines):
        pairs = set(pairwise(line))
        assert pairs <= known[0] or pairs <= known[1]
        seen |= pairs
    assert known[0] | known[1] == seen


def test_frequencies_and_shares_are_those_of_the_corpus(files: list[str]) -> None:
    """Of 2 MB of text: how often words follow each other, and how much there is of each file."""
    lines = run(*files, "--gb", "0.002").decode().splitlines()
    expected, found = (
        Counter(pair for line in units(of) for pair in pairwise(line))
        for of in ([*HINDI, *CODE], lines)
    )
    n_expected, n_found = expected.total(), found.total()
    for pair, count in expected.items():
        assert found[pair] / n_found == pytest.approx(count / n_expected, rel=0.1), pair
    hindi = sum(len(line.encode()) + 1 for line in lines if "।" in line or "आया" in line)
    in_corpus = [sum(len(line.encode()) + 1 for line in of) for of in (HINDI, CODE)]
    share = hindi / sum(len(line.encode()) + 1 for line in lines)
    assert share == pytest.approx(in_corpus[0] / sum(in_corpus), rel=0.05)


def test_blocks_do_not_change_what_a_chain_knows(synthetic: ModuleType) -> None:
    text = "\n".join([*HINDI, *CODE, ""]).encode()
    whole = synthetic.Chain.of([text])
    in_parts = synthetic.Chain.of(line + b"\n" for line in text.split(b"\n")[:-1])
    assert whole.followers.tolist() == in_parts.followers.tolist()
    assert whole.first.tolist() == in_parts.first.tolist()
    assert len(text) == whole.n_bytes == in_parts.n_bytes
    assert len(HINDI) + len(CODE) == whole.n_lines


def test_words_of_any_length_are_spelled(synthetic: ModuleType) -> None:
    words = [b"x" * length for length in range(1, 70)]
    ids = synthetic.np.arange(len(words), dtype=synthetic.np.int32)[::-1].repeat(2)
    spelled = synthetic.Spelling.of(words).spell(ids)
    assert b"".join(words[i] for i in ids) == spelled


def test_a_size_of_nothing_is_refused(files: list[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        run(*files, "--gb", "0")
    assert b"above 0" in error.value.stderr
