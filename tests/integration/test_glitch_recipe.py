"""The glitch experiments run from one command to their tables, here on our own sample texts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import vocabshift as vs
from warm_python import WarmPython

pytestmark = pytest.mark.no_tsan

ROOT = Path(__file__).resolve().parents[2]


def test_both_experiments_write_their_tables(tmp_path: Path, warm_python: WarmPython) -> None:
    source = str(Path(vs.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    known = {key: value for key, value in os.environ.items() if key not in ("DATA", "SEEDS")}
    environment = {**known, "PYTHONPATH": path, "OUT": str(tmp_path)}
    environment["PYTHON"] = str(warm_python.executable)
    done = subprocess.run(
        ["bash", ROOT / "recipes" / "glitch" / "run.sh", "--smoke"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "planted.jsonl").read_text().splitlines()]
    assert {("tied", "cosine"), ("untied", "norm")} < {(r["kind"], r["indicator"]) for r in rows}
    for row in rows:
        assert row["planted"] <= row["unseen"] < row["tokens"]
        # Little is learned here; what was never seen is at least among the suspects.
        assert row["recall"] > 0.5
    curves = [json.loads(line) for line in (tmp_path / "superwords.jsonl").read_text().splitlines()]
    bpe, ist = curves
    assert ("bpe", 0) == (bpe["tokenizer"], bpe["superwords"])
    assert ist["superwords"] > 0
    for point in ist["curve"]:
        assert point["superwords"] <= point["last_tenth"] <= point["k"]
    for name in ("planted", "superwords"):
        assert (tmp_path / f"{name}.md").read_text() in done.stdout
