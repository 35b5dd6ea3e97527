"""`recipes/llama_indic`: from a model and text to a trained model with its card."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import small_models
import vocabshift as vs
from warm_python import WarmPython

pytest.importorskip("accelerate")
pytestmark = pytest.mark.no_tsan

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "DATA",
    "TEXT",
    "SPECS",
    "SIZE",
    "WAY",
    "TOKENS",
    "CONFIG",
    "SETTINGS",
    "SUITE",
    "HARNESS",
    "BASE",
)

Run = Callable[..., str]


@pytest.fixture
def run(warm_python: WarmPython) -> Run:
    return partial(run_with, str(warm_python.executable))


def run_with(python: str, *words: str, status: int = 0, **variables: str) -> str:
    """What the recipe prints on standard error, where its commands are."""
    source = str(Path(vs.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    known = {key: value for key, value in os.environ.items() if key not in NAMES}
    done = subprocess.run(
        ["bash", ROOT / "recipes" / "llama_indic" / "run.sh", *words],
        env={**known, "PYTHON": python, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert status == done.returncode, done.stderr
    return done.stderr


def test_from_a_model_to_its_card(run: Run, tmp_path: Path) -> None:
    old = small_models.old_tokenizer()
    model = small_models.save(small_models.build("llama-tied", old), old, tmp_path / "tiny")
    out = tmp_path / "out"
    variables = {"MODEL": str(model), "OUT": str(out), "BASE": "me/tiny", "TOKENS": "400"}
    run("--smoke", **variables)
    card = (out / "trained" / "README.md").read_text(encoding="utf-8")
    assert "base_model: me/tiny" in card
    assert "embeddings trained on" in card
    assert "; all trained on" in card
    assert vs.load_tokenizer(out / "trained").vocab_size >= 400
    rows = [json.loads(line) for line in (out / "bits.jsonl").read_text("utf-8").splitlines()]
    assert {"tiny", "start", "trained"} == {row["subject"] for row in rows}
    assert {"hi", "ta", "en", "all"} == {row["language"] for row in rows}
    held, kept = (
        {line for file in (out / "text").glob(glob) for line in file.read_bytes().splitlines()}
        for glob in ("held-out/*.jsonl", "*.jsonl")
    )
    assert held
    assert not held & kept
    assert "vocabshift" not in run("--smoke", **variables)  # nothing is made twice


@pytest.mark.real
@pytest.mark.shared
@pytest.mark.slow
def test_a_real_model_on_real_text(
    run: Run, smollm2: Path, shared_data: Path, tmp_path: Path
) -> None:
    """All steps, those of tasks too; so little training leaves no model of use."""
    pytest.importorskip("lm_eval")
    out = tmp_path / "out"
    tasks = {"SUITE": "sib200:hi", "HARNESS": f"--limit 3 --data {shared_data / 'tasks'}"}
    few = {"SETTINGS": "phases.0.n_bytes=3KB phases.1.n_bytes=3KB"}
    run("--smoke", MODEL=str(smollm2), DATA=str(shared_data), OUT=str(out), **tasks, **few)
    rows = [json.loads(line) for line in (out / "tasks.jsonl").read_text("utf-8").splitlines()]
    assert {"smollm2", "trained"} == {row["subject"] for row in rows}
    assert "sib200" in (out / "trained" / "README.md").read_text(encoding="utf-8")
    assert "हैं" in (out / "text" / "hi.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("way", "second", "config"),
    [
        ("swap", "train --recipe ist", "ist.toml"),
        ("extend", "extend", "continued-bpe.toml"),
        ("adapt", "--tokenizer-only", "continued-bpe.toml"),
    ],
)
def test_a_dry_run_prints_every_step(
    run: Run, way: str, second: str, config: str, tmp_path: Path
) -> None:
    commands = run("--dry-run", MODEL="me/mill", WAY=way, OUT=str(tmp_path / "out"))
    verbs = ("text.py take", second, "transfer", "encode", "cpt", "score", "harness", "glitch")
    lines = commands.splitlines()
    assert len(verbs) + 1 == len(lines)
    for verb, line in zip((*verbs, "card"), lines, strict=True):
        assert f"{verb} " in line
    assert config in lines[4]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["ist", "continued-bpe"])
def test_settings_are_those_of_the_papers(name: str) -> None:
    import tomllib

    from vocabshift.cpt.run_config import CptConfig

    file = ROOT / "recipes" / "llama_indic" / f"{name}.toml"
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    sizes = [int(phase["n_bytes"].removesuffix("GB")) * 10**9 for phase in table["phases"]]
    for phase, size in zip(table["phases"], sizes, strict=True):
        phase["n_bytes"] = size
    table["evaluate_bytes"] = int(table["evaluate_bytes"].removesuffix("GB")) * 10**9
    config = CptConfig.from_mapping({"model": "m", "data": "d", "out": "o", **table})
    assert 4096 == config.loop.sequence_length
    rates = {phase.trained: phase.learning_rate for phase in config.phases}
    if name == "ist":
        assert (5e-5, 192) == (rates["embeddings"], config.loop.step_sequences)
    else:
        assert (4e-4, 1024) == (rates["all"], config.loop.step_sequences)
        assert (0.1, 0.1) == (config.loop.warmup, config.loop.final_rate)


def test_what_is_lacking(run: Run, tmp_path: Path) -> None:
    assert "MODEL is not set" in run(status=2, OUT=str(tmp_path))
    assert "swap, extend and adapt are known" in run(
        status=2, MODEL="m", WAY="sell", OUT=str(tmp_path)
    )
    (tmp_path / "empty").mkdir()
    line = run(status=2, MODEL="m", TEXT=str(tmp_path / "empty"), OUT=str(tmp_path / "out"))
    assert "holds no LANG.jsonl" in line
