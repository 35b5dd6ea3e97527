"""Checkpoints: a run that was stopped goes on as if it had not been."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vocabshift.cpt.checkpoints import StepCheckpoints
from vocabshift.cpt.loop import LoopConfig, Phase, Step, pretrain
from vocabshift.tokenizer.tokenizer import Tokenizer

TEXTS = [f"line {number} of a small text; दूसरा वाक्य" for number in range(24)]
N_BYTES = sum(len(text.encode()) for text in TEXTS)
CONFIG = LoopConfig(sequence_length=32, batch_size=4, micro_batch_size=3)
PHASES = [
    Phase(trained="embeddings", n_bytes=N_BYTES // 2, learning_rate=1e-2),
    Phase(n_bytes=N_BYTES // 2),
]
FACTS = {"phases": [{"learning_rate": 0.01}, {"learning_rate": 0.001}], "seed": 0}


class _KilledError(Exception):
    pass


@pytest.fixture
def go(make_model: Callable[..., Any], byte_tokenizer: Tokenizer) -> Callable[..., Any]:
    """Train a fresh model on the phases; the model, the steps, the evaluations."""

    def run(folder: Path | None, *, every: int | None = 1, stop: int | None = None) -> Any:
        model = make_model(attention_dropout=0.1)
        steps: list[Step] = []
        seen: list[tuple[int, int, float]] = []

        def on_step(step: Step) -> None:
            steps.append(step)
            if len(steps) == stop:
                raise _KilledError

        def evaluate(view: Any) -> dict[str, float]:
            return {"norm": float(view.get_input_embeddings().weight.detach().norm())}

        checkpoints = None
        if folder is not None:
            checkpoints = StepCheckpoints(folder, FACTS, every_steps=every, every_seconds=None)
        with contextlib.suppress(_KilledError):
            pretrain(
                model,
                byte_tokenizer,
                TEXTS,
                phases=PHASES,
                config=CONFIG,
                on_step=on_step,
                checkpoints=checkpoints,
                evaluate=evaluate,
                evaluate_bytes=400,
                on_evaluation=lambda e: seen.append((e.phase, e.step, e.values["norm"])),
            )
        return model, steps, seen

    return run


def is_same(one: Any, other: Any) -> bool:
    """Whether all weights are, bit for bit."""
    import torch

    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("stop", [1, 3, 4, 6])
def test_resumed_is_uninterrupted(go: Callable[..., Any], tmp_path: Path, stop: int) -> None:
    """Step for step, evaluation for evaluation, weight for weight, in either phase."""
    model, expected, evaluations = go(None)
    assert [step.step for step in expected][-1] == len(expected) - expected[0].n_steps
    _, first, seen = go(tmp_path / "run", stop=stop)
    again, rest, seen_later = go(tmp_path / "run")
    # The step in which it died was not saved, and is done again.
    assert first[:-1] + rest == expected
    kept = [e for e in seen if e[:2] < (rest[0].phase, rest[0].step)]
    kept = [] if stop == 1 else kept  # nothing was saved: it begins anew
    assert kept + seen_later == evaluations
    assert is_same(model, again)


def test_checkpoints_only_now_and_then(go: Callable[..., Any], tmp_path: Path) -> None:
    """Steps since the last checkpoint are done again, to the same effect; the last two stay."""
    model, expected, _ = go(None)
    _, first, _ = go(tmp_path / "run", every=2, stop=6)
    assert sorted(p.name for p in (tmp_path / "run/steps").iterdir()) == [
        "step-000000002",
        "step-000000004",
    ]
    again, rest, _ = go(tmp_path / "run", every=2)
    assert first[:4] + rest == expected
    assert is_same(model, again)


def test_damage_falls_back_to_the_one_before(go: Callable[..., Any], tmp_path: Path) -> None:
    model, expected, _ = go(None)
    go(tmp_path / "run", stop=5)
    file = tmp_path / "run/steps/step-000000004/data/weights.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"nope")
    again, rest, _ = go(tmp_path / "run")
    assert rest == expected[3:]
    assert is_same(model, again)


def test_a_finished_run_does_nothing(go: Callable[..., Any], tmp_path: Path) -> None:
    """All its weights come from the checkpoint."""
    model, _, _ = go(tmp_path / "run")
    again, rest, seen = go(tmp_path / "run")
    assert (rest, seen) == ([], [])
    assert is_same(model, again)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_step(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tmp_path: Path, number: int
) -> None:
    """Then the state is saved, and the run goes on from just there; SIGTERM may come twice."""
    expected = pretrain(make_model(), byte_tokenizer, TEXTS, phases=PHASES, config=CONFIG)
    steps: list[Step] = []

    def on_step(step: Step) -> None:
        steps.append(step)
        if len(steps) == 1:
            for _ in range(2 if number == signal.SIGTERM else 1):
                os.kill(os.getpid(), number)

    def go_on() -> None:
        checkpoints = StepCheckpoints(tmp_path / "run", FACTS)
        pretrain(
            make_model(),
            byte_tokenizer,
            TEXTS,
            phases=PHASES,
            config=CONFIG,
            on_step=on_step,
            checkpoints=checkpoints,
        )

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        go_on()
    assert signal.getsignal(number) is before
    assert len(steps) == 2  # asked after the first, told to all processes in the second
    go_on()
    assert steps == expected


def test_a_full_disk_leaves_what_was_saved(tmp_path: Path, monkeypatch) -> None:
    """safetensors has an error of its own, which says nothing of what to do."""
    import torch
    from safetensors import SafetensorError

    saved = StepCheckpoints(tmp_path / "run", FACTS)
    saved.save(1, {"a": torch.ones(2)}, {}, {"step": 1})

    def full(*_: Any) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError, match=r"the disk is full.*make room"):
        saved.save(2, {"a": torch.zeros(2)}, {}, {"step": 2})
    found = saved.newest()
    assert found is not None
    assert found.info == {"step": 1}
    assert sorted(path.name for path in (tmp_path / "run/steps").iterdir()) == ["step-000000001"]


def test_another_run_is_refused(tmp_path: Path) -> None:
    """The message names what differs; equal facts are no other run."""
    StepCheckpoints(tmp_path, FACTS).save(1, {}, {}, {})
    StepCheckpoints(tmp_path, FACTS)
    other = {"phases": [{"learning_rate": 0.01}, {"learning_rate": 0.5}], "seed": 0}
    message = r"phases\.1\.learning_rate = 0\.5 \(it was 0\.001\).*--no-resume"
    with pytest.raises(ValueError, match=message):
        StepCheckpoints(tmp_path, other)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="--no-resume"):
        StepCheckpoints(tmp_path, FACTS)
    with pytest.raises(ValueError, match="at least 1"):
        StepCheckpoints(tmp_path / "new", FACTS, keep=0)


def test_what_export_needs_is_that_of_the_newest_run(tmp_path: Path) -> None:
    """A resumed run may have another dtype of its output: no fact, but what readers need."""
    for number, dtype in enumerate(("float32", "bfloat16"), 1):
        StepCheckpoints(tmp_path, FACTS, export={"dtype": dtype}).save(number, {}, {}, {})
        assert json.loads((tmp_path / "export.json").read_text()) == {"dtype": dtype}


def test_time_makes_a_checkpoint_due(tmp_path: Path) -> None:
    assert StepCheckpoints(tmp_path, FACTS, every_seconds=0).is_due(1)
    assert not StepCheckpoints(tmp_path, FACTS, every_seconds=900).is_due(1)
    assert not StepCheckpoints(tmp_path, FACTS, every_seconds=None).is_due(1)


def test_divergence_leaves_a_saved_state(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """What is saved are the weights before the bad step."""
    import torch

    model = make_model()

    def spoil(step: Step) -> None:
        if step.step == 2:
            with torch.no_grad():
                model.model.norm.weight[0] = math.nan

    with pytest.raises(ValueError, match=r"diverged.*step 3.*before this step is saved"):
        pretrain(
            model,
            byte_tokenizer,
            TEXTS,
            phases=[Phase(n_bytes=N_BYTES)],
            config=CONFIG,
            on_step=spoil,
            checkpoints=StepCheckpoints(tmp_path, FACTS),
        )
    assert [p.name for p in (tmp_path / "steps").iterdir()] == ["step-000000002"]


def test_settings_that_came_later_keep_the_key_of_an_earlier_run() -> None:
    """At their defaults they are not among the values that two runs must share."""
    later = {"max_masks": 20, "duplication": 2, "power": 2.0}
    assert not later.keys() & LoopConfig(objective="masked").mathematics().keys()
    changed = LoopConfig(objective="masked", **later).mathematics()
    assert later == {name: changed[name] for name in later}
