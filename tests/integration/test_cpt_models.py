"""Evaluating a run of `cpt` along the way: saved models, tasks on them, exported checkpoints."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_models
from saved_models import are_equal, weights
from vocabshift.cli.main import main
from vocabshift.cpt import run as run_module
from warm_python import WarmPython

torch = pytest.importorskip("torch")

# Reading the names of all its tasks takes nine seconds, once in a worker.
pytestmark = pytest.mark.xdist_group("lm-eval")

Cpt = Callable[..., Any]

PHASES = """
[[phases]]
trained = "embeddings"
n_bytes = 800
learning_rate = 1e-2

[[phases]]
n_bytes = 800
"""
TOPICS = (
    *("science/technology", "travel", "politics", "sports", "health", "entertainment"),
    "geography",
)
TASKS = ["sib200:en"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text, a model with dropout, and the files of a task."""
    place = tmp_path_factory.mktemp("cpt-models")
    text = [f"this is sentence {number}, and it is small." for number in range(40)]
    (place / "en.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    tokenizer = small_models.old_tokenizer()
    model = small_models.build(
        "llama", tokenizer, attention_dropout=0.2, max_position_embeddings=1024
    )
    small_models.save(model, tokenizer, place / "model")
    for split, times in (("train", 2), ("dev", 1), ("test", 2)):
        rows = [
            f"{number}\t{TOPICS[number % 7]}\t{line}\n"
            for number, line in enumerate(text[:7] * times)
        ]
        file = place / "tasks" / "sib200" / "en" / f"{split}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("index_id\tcategory\ttext\n" + "".join(rows), encoding="utf-8")
    return place


def toml_file(place: Path, folder: Path, **keys: Any) -> Path:
    given = {
        "model": str(place / "model"),
        "data": [f"en={place / 'en.txt'}"],
        "out": str(folder / "out"),
        "sequence_length": 32,
        "batch_size": 4,
        "cpu": True,
        **keys,
    }
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in given.items()]
    file = folder / "cpt.toml"
    file.write_text("".join(lines) + PHASES, encoding="utf-8")
    return file


@pytest.fixture
def cpt(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cpt:
    """Runs the verb on a TOML file; its JSON, or its last line of error."""

    def go(*words: str, status: int = 0, **keys: Any) -> Any:
        file = toml_file(place, tmp_path, **keys)
        code = main(["cpt", str(file), *words, "--json"])
        streams = capsys.readouterr()
        assert code == status, streams.err
        return json.loads(streams.out) if status == 0 else streams.err.splitlines()[-1]

    return go


@pytest.fixture
def with_tasks(place: Path) -> dict[str, Any]:
    pytest.importorskip("lm_eval")
    return {
        "evaluate_tasks": TASKS,
        "evaluate_tasks_data": str(place / "tasks"),
        "evaluate_tasks_limit": 5,
        "evaluate_bytes": 500,
        "held_out": [f"en={place / 'en.txt'}"],
    }


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Lines of the log, without what depends on the clock."""
    found = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [
        {key: value for key, value in each.items() if "second" not in key}
        for each in found
        if each["kind"] == kind
    ]


def kill_after(monkeypatch: pytest.MonkeyPatch, phase: int, step: int) -> None:
    whole = run_module.Run._step

    def signalled(self: Any, stretch: Any, batch: Any) -> Any:
        done = whole(self, stretch, batch)
        if (done.phase, done.step) == (phase, step):
            os.kill(os.getpid(), signal.SIGTERM)
        return done

    monkeypatch.setattr(run_module.Run, "_step", signalled)


def test_evaluating_along_the_way_changes_nothing(
    cpt: Cpt, place: Path, tmp_path: Path, with_tasks: dict[str, Any], capsys
) -> None:
    """The weights of a run without it, bit for bit; the last saved model is the output."""
    keys = {**with_tasks, "save_models": True, "dtype": "bfloat16"}  # training is in float32
    cpt(f"out={tmp_path / 'plain'}", dtype="bfloat16")
    state = random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state()
    result = cpt(**keys)
    assert state[0] == random.getstate()
    assert state[1] == np.random.get_state()[1].tolist()
    assert torch.equal(state[2], torch.random.get_rng_state())
    out = tmp_path / "out"
    assert are_equal(tmp_path / "plain", out)
    assert records(tmp_path / "plain", "step") == records(out, "step")
    evaluations = records(out, "evaluation")
    assert len(evaluations) >= 4
    names = [f"models/step-{each['run_steps']:09}" for each in evaluations]
    assert names == [each["model"] for each in evaluations]
    assert sorted(names) == sorted(f"models/{each.name}" for each in (out / "models").iterdir())
    first = weights(out / names[0])
    assert all(
        torch.equal(value.to(torch.bfloat16), first[name])
        for name, value in weights(place / "model").items()
    )
    assert are_equal(out, out / names[-1])
    assert not are_equal(out, out / names[1])
    assert (out / "config.json").read_bytes() == (out / names[-1] / "config.json").read_bytes()
    changes = result["tasks"][0]
    assert "sib200/acc/en" in changes["task"]
    assert changes["before"] == evaluations[0]["tasks"][0]["value"]
    assert changes["after"] == evaluations[-1]["tasks"][0]["value"]


def test_saved_models_are_opened_by_the_verbs(
    cpt: Cpt, place: Path, tmp_path: Path, with_tasks: dict[str, Any], capsys
) -> None:
    """score and harness give the log's own figures; glitch opens the folder too."""
    cpt(save_models=True, **with_tasks)
    last = records(tmp_path / "out", "evaluation")[1]
    folder = str(tmp_path / "out" / last["model"])
    text = f"en={place / 'en.txt'}"
    assert 0 == main(["score", folder, "--text", text, "--context", "32", "--json"])
    [row, *_] = json.loads(capsys.readouterr().out)["results"]
    assert row["value"] == pytest.approx(last["bits_per_byte"]["en"], rel=1e-6)
    words = ["--data", str(place / "tasks"), "--limit", "5", "--json", "--device", "cpu"]
    assert 0 == main(["harness", folder, "--tasks", *TASKS, *words])
    rows = json.loads(capsys.readouterr().out)["results"]
    for row in rows:
        del row["subject"]
    assert rows == last["tasks"]
    assert 0 == main(["glitch", folder, "--json"])


def test_tasks_without_saved_models(cpt: Cpt, tmp_path: Path, with_tasks: dict[str, Any]) -> None:
    """Nothing is left of the folders that the tasks ran on; no held-out text is needed."""
    del with_tasks["held_out"]
    cpt(**with_tasks)
    out = tmp_path / "out"
    evaluations = records(out, "evaluation")
    assert all(each["tasks"] and "model" not in each for each in evaluations)
    assert all({} == each["bits_per_byte"] for each in evaluations)
    assert [] == list(out.rglob("*step-*"))


def test_a_resumed_run_saves_the_same_models(
    cpt: Cpt, tmp_path: Path, with_tasks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of an uninterrupted run; models of steps that are done again do not stay."""
    keys = {**with_tasks, "save_models": True, "keep_models": 2}
    cpt(f"out={tmp_path / 'whole'}", **keys)
    kill_after(monkeypatch, 1, 2)
    line = cpt(status=130, **keys)
    assert "vocabshift cpt --export" in line
    stale = tmp_path / "out.partial/checkpoints/models/step-000000999"
    shutil.copytree(tmp_path / "whole", stale)
    monkeypatch.undo()
    cpt(**keys)
    one, other = tmp_path / "whole", tmp_path / "out"
    assert records(one, "evaluation") == records(other, "evaluation")
    names = sorted(each.name for each in (one / "models").iterdir())
    assert 2 == len(names)
    assert names == sorted(each.name for each in (other / "models").iterdir())
    assert all(are_equal(one / "models" / name, other / "models" / name) for name in names)


def test_a_checkpoint_becomes_a_model_folder(
    cpt: Cpt, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """The model of that step, bit for bit, by the command that the checkpoint names."""
    keys = {"save_models": True, "evaluate_bytes": 1, "dtype": "bfloat16"}
    cpt(f"out={tmp_path / 'whole'}", **keys)
    kill_after(monkeypatch, 1, 2)
    cpt(status=130, **keys)
    monkeypatch.undo()
    partial = tmp_path / "out.partial"
    training = partial / "checkpoints" / "training"
    before = sorted(partial.rglob("*"))
    command = json.loads((training / "export.json").read_text())["command"]
    assert f"vocabshift cpt --export {training} -o DIR" == command
    [*_, step] = sorted((training / "steps").iterdir())
    for number, checkpoint in enumerate((partial, training, step)):
        out = tmp_path / f"export-{number}"
        assert 0 == main(["cpt", "--export", str(checkpoint), "-o", str(out), "--json"])
        result = json.loads(capsys.readouterr().out)
        assert {"out": str(out), "phase": 1}.items() <= result.items()
        assert step.name == f"step-{result['run_steps']:09}"
        assert are_equal(out, tmp_path / "whole" / "models" / step.name)
    assert before == sorted(partial.rglob("*"))
    assert 0 == main(["score", str(out), "--text", f"en={place / 'en.txt'}"])
    assert 0 == main(["cpt", "--export", str(step), "-o", str(out), "--force"])
    assert "after steps" in capsys.readouterr().out
    assert 2 == main(["cpt", "--export", str(step), "-o", str(out)])
    assert "exists already" in capsys.readouterr().err


def test_what_cannot_be_exported(
    cpt: Cpt, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """No checkpoint, another model than the run's, damage; and words that say nothing."""
    out = str(tmp_path / "export")

    def refused(*words: str) -> str:
        assert 2 == main(["cpt", *words])
        [line] = capsys.readouterr().err.splitlines()
        return line

    assert "holds no checkpoint" in refused("--export", str(tmp_path), "-o", out)
    assert "no CONFIG.toml" in refused("--export", str(tmp_path))
    assert "no CONFIG.toml" in refused("cpt.toml", "--export", str(tmp_path), "-o", out)
    assert "belongs to --export" in refused("cpt.toml", "-o", out)
    model = tmp_path / "model"
    shutil.copytree(place / "model", model)
    kill_after(monkeypatch, 1, 2)
    cpt(status=130, model=str(model))
    partial = tmp_path / "out.partial"
    config = (model / "config.json").read_bytes()
    (model / "config.json").write_bytes(config + b" ")
    assert "has changed since the run began (config.json)" in refused(
        "--export", str(partial), "-o", out
    )
    (model / "config.json").write_bytes(config)
    [file] = partial.rglob("weights.safetensors")
    file.write_bytes(file.read_bytes()[:-1])
    assert "damaged" in refused("--export", str(partial), "-o", out)
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"evaluate_tasks": ["sib200:xx"]}, "sib200"),
        ({"evaluate_tasks": ["no_such_task"]}, "no_such_task"),
        ({"evaluate_tasks_data": "nowhere"}, "nowhere is no folder"),
        ({"evaluate_tasks": ["xcopa:ta"]}, "evaluate_tasks: xcopa:ta fails"),
        ({"evaluate_tasks_limit": 0}, "evaluate_tasks_limit is 0"),
        ({"keep_models": 0}, "keep_models is 0"),
        ({"objective": "masked", "held_out": []}, "needs a causal language model"),
    ],
)
def test_tasks_are_refused_before_the_first_step(
    cpt: Cpt, tmp_path: Path, with_tasks: dict[str, Any], keys: dict[str, Any], message: str
) -> None:
    assert message in cpt(status=2, **{**with_tasks, **keys})
    log = tmp_path / "out.partial/checkpoints/log.jsonl"
    assert not log.exists()


def test_a_task_that_fails_later_does_not_end_the_run(
    cpt: Cpt, tmp_path: Path, with_tasks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours of training are worth more than one figure; the log says what failed."""
    from vocabshift.evaluation.harness import run as harness

    whole = harness.run_harness
    n_calls = 0

    def failing(*args: Any, **options: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        report = whole(*args, **options)
        if n_calls != 2:
            return report
        failure = harness.Failure("step", "sib200:en", "out of luck")
        return harness.HarnessReport(harness.Results(), (failure,), ())

    monkeypatch.setattr(harness, "run_harness", failing)
    cpt(**with_tasks)
    first, second, *_ = records(tmp_path / "out", "evaluation")
    assert "task_failures" not in first
    assert [{"task": "sib200:en", "reason": "out of luck"}] == second["task_failures"]
    assert [] == second["tasks"]


def test_people_see_tasks_and_saved_models(
    cpt: Cpt, place: Path, tmp_path: Path, with_tasks: dict[str, Any], capsys
) -> None:
    """Each evaluation on stderr as it is made; before and after in a table."""
    cpt(save_models=True, **with_tasks)
    shutil.rmtree(tmp_path / "out")
    assert 0 == main(["cpt", str(tmp_path / "cpt.toml")])
    streams = capsys.readouterr()
    assert "sib200/acc/en" in streams.out
    assert f"saved: {tmp_path}/out.partial/checkpoints/models/step-000000000" in streams.err
    assert "; sib200/acc en " in streams.err


def test_two_processes_write_once(
    place: Path, tmp_path: Path, with_tasks: dict[str, Any], warm_python: WarmPython
) -> None:
    """One model and one set of figures at each evaluation; the last model is the output."""
    file = toml_file(place, tmp_path, save_models=True, **with_tasks)
    launch(warm_python, ["cpt", str(file), "--json"])
    out = tmp_path / "out"
    evaluations = records(out, "evaluation")
    assert all(each["tasks"] for each in evaluations)
    names = [each["model"] for each in evaluations]
    assert sorted(names) == sorted(f"models/{each.name}" for each in (out / "models").iterdir())
    assert are_equal(out, out / names[-1])


def launch(python: WarmPython, words: list[str]) -> None:
    """Run the command line in two processes, with the variables that accelerate launch sets."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
    }
    started = [
        python.start(
            ["-m", "vocabshift", *words],
            {**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]
    for process in started:
        _, said = process.communicate()
        assert 0 == process.returncode, said
