"""`teach`, and `cpt` with a teacher: from two models and text to a model folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import small_models
from vocabshift.cli.main import main

torch = pytest.importorskip("torch")

TEXT = {
    "en": [
        f"the cat {number} and the other cat sat by the heater {number}" for number in range(20)
    ],
    "hi": [f"बिल्ली {number} और दूसरी बिल्ली वहाँ बैठी थी" for number in range(12)],
}
LONG = " ".join(["another day, another letter and the other heater"] * 8)

Verb = Callable[..., Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Text, a model, and the same model with another tokenizer."""
    from vocabshift.surgery.transfer import transfer_folder

    folder = tmp_path_factory.mktemp("matching")
    for label, lines in TEXT.items():
        (folder / f"{label}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "en.txt").open("a") as file:
        file.write(LONG + "\n")
    old = small_models.old_tokenizer()
    small_models.save(small_models.build("llama", old), old, folder / "old")
    transfer_folder(folder / "old", small_models.new_tokenizer(), folder / "new")
    return folder


@pytest.fixture
def run(capsys) -> Verb:
    """Run a verb with --json: its result, or its one line of error."""

    def go(*words: Any, status: int = 0) -> Any:
        code = main([*map(str, words), "--json"])
        streams = capsys.readouterr()
        assert code == status, streams.err
        return json.loads(streams.out) if status == 0 else streams.err.splitlines()[-1]

    return go


@pytest.fixture
def cpt(run: Verb, place: Path, tmp_path: Path) -> Verb:
    """Run `cpt` by likelihood matching."""

    def go(*words: str, status: int = 0, **keys: Any) -> Any:
        given = {
            "model": str(place / "new"),
            "data": specs(place),
            "out": str(tmp_path / "out"),
            "objective": "likelihood-matching",
            "boundary_threshold": 0.01,
            "n_bytes": 2500,
            "learning_rate": 1e-2,
            "sequence_length": 32,
            "batch_size": 8,
            "cpu": True,
            **keys,
        }
        file = tmp_path / "cpt.toml"
        file.write_text("".join(f"{key} = {json.dumps(v)}\n" for key, v in given.items()))
        return run("cpt", file, *words, status=status)

    return go


def specs(place: Path) -> list[str]:
    return [f"en={place / 'en.txt'}", f"hi={place / 'hi.txt'}"]


def records(out: Path) -> list[dict[str, Any]]:
    """The log, without what depends on the clock."""
    lines = (out / "log.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if "second" not in k} for line in lines]


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


@pytest.fixture(scope="module")
def taught(place: Path) -> Path:
    """What the model before its transfer has read."""
    out = place / "taught"
    code = main(["teach", str(place / "old"), *specs(place), "-o", str(out)])
    assert code == 0
    return out


def test_a_stored_teacher_and_one_that_runs_along(
    cpt: Verb, place: Path, taught: Path, tmp_path: Path
) -> None:
    """The same losses; the teacher is found by the model's provenance; both parts are logged."""
    stored = cpt(teacher_logprobs=str(taught), held_out=[f"en={place / 'en.txt'}"])
    live = cpt("out=" + str(tmp_path / "live"))
    assert stored["matched_share"] > 0.5
    one, other = (
        [r for r in records(Path(r["out"])) if r["kind"] == "step"] for r in (stored, live)
    )
    assert len(one) == len(other) >= 5
    for a, b in zip(one, other, strict=True):
        assert a["chunks"] == b["chunks"] > 0
        assert a["loss"] == pytest.approx(a["matching_loss"] + a["next_token_loss"])
        assert a["loss"] == pytest.approx(b["loss"], rel=2e-3)
    assert stored["bits_per_byte"][0]["after"] < stored["bits_per_byte"][0]["before"]
