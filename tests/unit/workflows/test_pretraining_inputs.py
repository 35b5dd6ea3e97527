"""What a run of `cpt` is known by: a checkpoint of another run must never be taken over."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from vocabshift.cpt.loop import LoopConfig, Phase
from vocabshift.cpt.run_config import CptConfig
from vocabshift.storage.outcome import write_provenance
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.continue_pretraining import _checkpoints
from vocabshift.workflows.pretraining_inputs import Inputs, _origin_of

MakeTokenizer = Callable[..., Tokenizer]
Run = tuple[CptConfig, Inputs]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that passes for a model, and two texts."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    os.utime(folder / "model.safetensors", ns=(10**18, 10**18))
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"text {name}\n", encoding="utf-8")
    return tmp_path


def of_text(run: Run, place: Path) -> Run:
    return run[0], dataclasses.replace(run[1], data=Corpus.from_specs([str(place / "b.txt")]))


def of_longer_text(run: Run, place: Path) -> Run:
    (place / "a.txt").write_text("text that was edited\n", encoding="utf-8")
    return run


def of_weights(run: Run, place: Path) -> Run:
    """As many bytes, written later."""
    (place / "model" / "model.safetensors").write_bytes(b"WEIGHTS")
    return run


def of_config(run: Run, place: Path) -> Run:
    (place / "model" / "config.json").write_text('{"rope_theta": 5}')
    return run


def of_tokenizer(run: Run, place: Path) -> Run:
    other = dataclasses.replace(run[1].tokenizer, chat_template=None, normalizer={"type": "NFC"})
    return run[0], dataclasses.replace(run[1], tokenizer=other)


def of_new_ids(run: Run, place: Path) -> Run:
    """As many ids, but others."""
    return run[0], dataclasses.replace(run[1], new_ids=(255, 257))


def of_phases(run: Run, place: Path) -> Run:
    phases = (dataclasses.replace(run[0].phases[0], learning_rate=0.5),)
    return dataclasses.replace(run[0], phases=phases), run[1]


def of_loop(run: Run, place: Path) -> Run:
    return dataclasses.replace(run[0], loop=LoopConfig(seed=8)), run[1]


CHANGES = {
    "data": of_text,
    "data ": of_longer_text,
    "model": of_weights,
    "config.json": of_config,
    "tokenizer": of_tokenizer,
    "new_ids": of_new_ids,
    "phases": of_phases,
    "seed": of_loop,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_of_other_inputs_is_refused(
    name: str, place: Path, make_byte_level: MakeTokenizer
) -> None:
    """Resumed with them, the run would be neither the one nor the other, and nobody would see it.

    The message names what differs.
    """
    source = str(place / "a.txt")
    config = CptConfig(
        model=str(place / "model"),
        data=(source,),
        out=str(place / "out"),
        phases=(Phase(n_bytes=99),),
    )
    data = Corpus.from_specs([source])
    tokenizer = make_byte_level("the", "cat")
    inputs = Inputs(place / "model", tokenizer, data, None, (256, 257), "float32")
    accelerator: Any = SimpleNamespace(mixed_precision="no")
    _checkpoints(config, inputs, accelerator, place).save(1, {}, {}, {"step": 1})
    found = _checkpoints(config, inputs, accelerator, place).newest()
    assert found is not None
    assert found.info == {"step": 1}
    with pytest.raises(ValueError, match=rf"{name.strip()}.* \(it was .*--no-resume"):
        _checkpoints(*CHANGES[name]((config, inputs), place), accelerator, place)


@pytest.mark.parametrize(
    ("keys", "teacher"),
    [
        ({}, "old"),
        ({"teacher_logprobs": "taught"}, None),
        ({"teacher_logprobs": "taught", "teacher": "larger"}, "larger"),
    ],
)
def test_the_teacher_of_a_control(keys: dict[str, Any], teacher: str | None) -> None:
    """What a third model has read serves the control too: no other teacher is named then."""
    config = CptConfig.from_mapping(
        {"model": "new", "data": ["a.txt"], "out": "out", "n_bytes": 9, "control": "old"}
        | {"objective": "likelihood-matching"}
        | keys
    )
    assert teacher == config.as_control().teacher
    assert config.as_control().teacher_logprobs == keys.get("teacher_logprobs")


def test_the_teacher_is_the_model_before_its_transfer(tmp_path: Path) -> None:
    """Whatever was done to the model since then: its tokenizer is still the new one."""
    steps = (
        ("old", "train", {}),
        ("new", "transfer", {"model": str(tmp_path / "old")}),
        ("trained", "cpt", {"model": str(tmp_path / "new")}),
        ("merged", "merge", {"base": str(tmp_path / "trained")}),
        ("exported", "cpt-export", {"model": str(tmp_path / "merged")}),
    )
    for name, operation, config in steps:
        (tmp_path / name).mkdir()
        write_provenance(tmp_path / name, operation, config, {})
    origins = {name: _origin_of(tmp_path / name) for name, *_ in steps}
    assert origins.pop("old") is None
    assert set(origins.values()) == {str(tmp_path / "old")}
