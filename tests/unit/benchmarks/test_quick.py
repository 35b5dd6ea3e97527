"""Each benchmark that has `--quick` runs with it: what it calls in the package is still there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import programs

FOLDER = programs.ROOT / "benchmarks"
QUICK = [
    file.name
    for file in sorted(FOLDER.glob("*.py"))
    if '"--quick"' in file.read_text(encoding="utf-8") and file.name != "cpt_gpu.py"
]
"""`cpt_gpu.py` has tests of its own."""


@pytest.mark.nightly
@pytest.mark.parametrize("program", QUICK)
def test_it_prints_a_table(program: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / program), "--quick", "--runs", "1"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 0 == ran.returncode, ran.stderr
    assert ran.stdout.count("\n|") > 2, ran.stdout
