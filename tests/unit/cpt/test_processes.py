"""Several processes and micro-batches: the gradient is that of one big batch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vocabshift.cpt.checkpoints import StepCheckpoints
from vocabshift.cpt.loop import LoopConfig, Phase, pretrain
from vocabshift.cpt.processes import check_launch, new_accelerator, padded, require_same, shares
from vocabshift.tokenizer.tokenizer import Tokenizer

TEXTS = [f"line {number} of a small text; दूसरा वाक्य" for number in range(17)]
CONFIG = LoopConfig(sequence_length=24, batch_size=7)
PHASES = [
    Phase(n_bytes=400, trained="embeddings"),
    Phase(n_bytes=300, trained="new-rows"),
    Phase(n_bytes=300, trained="lora", lora_rank=4),
    Phase(n_bytes=500),
]

WORKER = """
import contextlib, json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.state import PartialState
from accelerate.utils import DistributedType
from vocabshift.models.token_loss import Tail, tail_of
from vocabshift.cpt.checkpoints import write_model
import test_processes as cases


def work():
    out = Path(sys.argv[2])
    accelerator = Accelerator(cpu=True)
    assert accelerator.num_processes == 2

    def tell(name, model, steps):
        how = {"dtype": "float32", "source": out}
        write_model(model, out / f"{name}-kept", accelerator, **how, is_kept=True)
        write_model(model, out / name, accelerator, **how)
        if accelerator.is_main_process:
            facts = [[step.loss, step.gradient_norm, step.n_tokens] for step in steps]
            (out / name / "steps.json").write_text(json.dumps(facts))

    model = cases.tiny_llama(tied=True)
    tell("ddp", model, cases.train(model, accelerator=accelerator))
    model = cases.tiny_llama(tied=True)
    tell("ddp-matched", model, cases.train(model, accelerator=accelerator, **cases.matched()))

    # accelerate offers FSDP2 on GPUs only; torch does it with gloo too.
    accelerator.state.distributed_type = DistributedType.FSDP
    # Subtle: every AcceleratorState() takes its type from here, and would put MULTI_CPU back.
    PartialState._shared_state["distributed_type"] = DistributedType.FSDP
    accelerator.state.fsdp_plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", reshard_after_forward=True
    )
    first = []
    with contextlib.suppress(cases.KilledError):
        cases.train(
            cases.tiny_llama(tied=False),
            accelerator=accelerator,
            checkpoints=cases.checkpoints(out),
            on_step=lambda step: cases.die_after(first, step, 5),
        )
    model = cases.tiny_llama(tied=False)
    rest = cases.train(model, accelerator=accelerator, checkpoints=cases.checkpoints(out))
    assert {type(parameter).__name__ for parameter in model.parameters()} == {"DTensor"}
    assert tail_of(model) == Tail()  # and the logits were not made
    tell("fsdp2", model, first[:4] + rest)
    model = cases.tiny_llama(tied=False)
    tell("fsdp2-matched", model, cases.train(model, accelerator=accelerator, **cases.matched()))

    half = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap")
    half.set_mixed_precision("bf16")  # as accelerate does it
    accelerator.state.fsdp_plugin = half
    model = cases.tiny_llama(tied=False)
    tell("bf16", model, cases.train(model, accelerator=accelerator, phases=cases.PHASES[:1]))
    assert half.mixed_precision_policy.param_dtype == torch.bfloat16
    assert half.mixed_precision_policy.reduce_dtype == torch.float32
    accelerator.end_training()

# Everything is imported once, and then there are two: importing takes longer than the work.
cases.tiny_llama()
children = []
for rank in range(2):
    child = os.fork()
    if child == 0:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        work()
        sys.exit(0)
    children.append(child)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


class KilledError(Exception):
    """As if the machine had gone away."""


def die_after(steps: list[Any], step: Any, n_steps: int) -> None:
    steps.append(step)
    if len(steps) == n_steps:
        raise KilledError


def checkpoints(folder: Path) -> StepCheckpoints:
    return StepCheckpoints(folder / "run", {}, every_steps=1, every_seconds=None)


def tiny_llama(*, tied: bool = True) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=257,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=32,
            bos_token_id=256,
            eos_token_id=256,
            pad_token_id=None,
            tie_word_embeddings=tied,
        )
    )


def bytes_and_end() -> Tokenizer:
    from vocabshift.tokenizer import byte_level
    from vocabshift.tokenizer.added_tokens import AddedToken
    from vocabshift.tokenizer.model import BpeModel

    part = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    vocab = {image: i for i, image in enumerate(byte_level.ALPHABET)}
    added = (AddedToken("<|end|>", 256),)
    return Tokenizer(BpeModel(vocab, ()), pre_tokenizer=part, decoder=part, added_tokens=added)


def train(model: Any, **options: Any) -> Any:
    options = {"config": CONFIG, "phases": PHASES, "new_ids": range(128, 200), **options}
    return pretrain(model, bytes_and_end(), TEXTS, **options)


def matched() -> dict[str, Any]:
    """Options of a phase of likelihood matching, with another model as the teacher."""
    from vocabshift.workflows.teach import live_teacher

    teacher = tiny_llama()
    for parameter in teacher.parameters():
        parameter.data *= 1.5
    config = replace(CONFIG, objective="likelihood-matching", boundary_threshold=0.001)
    return {
        "config": config,
        "phases": PHASES[2:],
        "teacher": live_teacher(teacher, bytes_and_end(), context=32, overlap=8),
    }


def two_processes(folder: Path) -> None:
    """Run the worker in two processes, with the variables that accelerate launch sets."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = folder / "worker.py"
    script.write_text(WORKER)
    here = str(Path(__file__).parent)
    environment = {
        **os.environ,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true",
        "CUDA_VISIBLE_DEVICES": "",  # else barriers want a GPU for each process
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run(
        [sys.executable, str(script), here, str(folder)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_two_processes_are_one(tmp_path: Path) -> None:
    """Losses, norms and weights within float error, with DDP and with FSDP2, in every phase.

    Some steps do not divide by two. The run with FSDP2 is killed and goes on; one process alone
    goes on from its checkpoints too.
    """
    import torch
    from safetensors.torch import load_file

    two_processes(tmp_path)
    for name, tied in (
        *(("ddp-matched", True), ("fsdp2-matched", False)),
        *(("ddp", True), ("fsdp2", False)),
    ):
        model = tiny_llama(tied=tied)
        steps = train(model, **(matched() if "matched" in name else {}))
        expected = [[s.loss, s.gradient_norm, s.n_tokens] for s in steps]
        got = json.loads((tmp_path / name / "steps.json").read_text())
        assert [step[2] for step in got] == [step[2] for step in expected]
        np.testing.assert_allclose(np.array(got), np.array(expected), rtol=2e-5)
        weights = load_file(tmp_path / name / "model.safetensors")
        kept = load_file(tmp_path / f"{name}-kept" / "model.safetensors")
        assert weights.keys() == kept.keys()
        assert all(torch.equal(value, weights[each]) for each, value in kept.items())
        for parameter, value in model.named_parameters():
            torch.testing.assert_close(weights[parameter], value.detach(), rtol=1e-4, atol=1e-5)
    model = tiny_llama(tied=False)
    assert train(model, checkpoints=checkpoints(tmp_path)) == []
    assert all(torch.equal(weights[name], value) for name, value in model.named_parameters())

    half = json.loads((tmp_path / "bf16/steps.json").read_text())
    full = [step[:2] for step in expected[: len(half)]]
    np.testing.assert_allclose([step[:2] for step in half], full, rtol=0.02)
    # Sums of hundreds of nats in bfloat16 would be whole numbers.
    assert any(abs(loss * n - round(loss * n)) > 0.01 for loss, _, n in half)
    assert {value.dtype for value in load_file(tmp_path / "bf16/model.safetensors").values()} == {
        torch.float32
    }


@pytest.mark.parametrize("micro_batch_size", [1, 3])
@pytest.mark.parametrize("is_matched", [False, True])
def test_accumulation_is_one_big_batch(micro_batch_size: int, is_matched: bool) -> None:
    """The gradient before clipping and the weights after, within float error."""
    import torch

    one, other = tiny_llama(), tiny_llama()
    options = matched() if is_matched else {"config": CONFIG}
    expected = train(one, **options)
    options["config"] = replace(options["config"], micro_batch_size=micro_batch_size)
    got = train(other, **options)
    for step, wanted in zip(got, expected, strict=True):
        assert step.loss == pytest.approx(wanted.loss, rel=1e-5)
        assert step.gradient_norm == pytest.approx(wanted.gradient_norm, rel=1e-4)
    for value, wanted in zip(other.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-4, atol=1e-5)


def test_the_mean_is_over_targets() -> None:
    """Rows of unlike length count by their targets: as in a plain torch loop over one batch."""
    import torch

    from vocabshift.cpt.packing import PADDING, pack

    model, plain = tiny_llama(), tiny_llama()
    config = LoopConfig(sequence_length=24, batch_size=100, micro_batch_size=2)
    (step,) = train(model, config=config, phases=[Phase(n_bytes=500)])
    encoder = bytes_and_end().backend

    def encode(texts: Any) -> Any:
        ids = [encoder.encode(text).ids for text in texts]
        offsets = np.cumsum([0, *map(len, ids)])
        return np.concatenate(ids).astype(np.int32), offsets

    from vocabshift.cpt.packing import take

    rows = torch.tensor(
        pack(take(TEXTS, 500), encode, separator=(256,), length=24).rows.astype(np.int64)
    )
    assert (rows == PADDING).any()
    logits = plain(input_ids=rows[:, :-1].clamp(min=0)).logits
    targets = rows[:, 1:].reshape(-1)
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(len(targets), -1), targets, ignore_index=PADDING
    )
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
    assert step.loss == pytest.approx(loss.item(), rel=1e-5)
    assert step.gradient_norm == pytest.approx(norm.item(), rel=1e-4)


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8])
@pytest.mark.parametrize("micro", [None, 1, 3])
@pytest.mark.parametrize("n_processes", [1, 2, 3])
def test_shares(n_rows: int, micro: int | None, n_processes: int) -> None:
    """Every row once, as many micro-batches for all, none larger than asked for."""
    batch = np.arange(n_rows) + 10
    parts = shares(batch, micro, n_processes)
    assert len(parts) == n_processes
    assert len({len(part) for part in parts}) == 1
    rows = [row for part in parts for piece in part for row in piece.tolist()]
    assert sorted(rows) == batch.tolist()
    assert all(len(piece) <= (micro or n_rows) for part in parts for piece in part)


def test_accumulation_of_the_launcher_changes_nothing() -> None:
    """`accelerate launch --gradient_accumulation_steps 8` would divide the gradient by 8."""
    expected = train(tiny_llama())
    with new_accelerator(cpu=True, gradient_accumulation_steps=8) as accelerator:
        assert train(tiny_llama(), accelerator=accelerator) == expected


def test_the_launch_is_checked() -> None:
    """Precisions, divisions and offloading that would train something else."""
    from torch.distributed.fsdp import CPUOffloadPolicy

    with (
        new_accelerator(cpu=True, mixed_precision="fp16") as accelerator,
        pytest.raises(ValueError, match="launched with mixed_precision fp16"),
    ):
        train(tiny_llama(), accelerator=accelerator)
    plugin = SimpleNamespace(cpu_ram_efficient_loading=False, cpu_offload=None)

    def launched(kind: str, *, is_fsdp2: bool = False, **changes: Any) -> Any:
        return SimpleNamespace(
            mixed_precision="bf16",
            distributed_type=SimpleNamespace(value=kind),
            is_fsdp2=is_fsdp2,
            state=SimpleNamespace(fsdp_plugin=SimpleNamespace(**{**vars(plugin), **changes})),
        )

    check_launch(launched("NO"))
    check_launch(launched("MULTI_GPU"))
    check_launch(launched("FSDP", is_fsdp2=True))
    for accelerator, message in (
        (launched("DEEPSPEED"), "with DEEPSPEED"),
        (launched("FSDP"), "FSDP, version 1"),
        (launched("FSDP", is_fsdp2=True, cpu_offload=CPUOffloadPolicy()), "offload_params"),
        (launched("FSDP", is_fsdp2=True, cpu_ram_efficient_loading=True), "ram_efficient"),
    ):
        with pytest.raises(ValueError, match=message):
            check_launch(accelerator)


def test_processes_on_different_disks_are_refused() -> None:
    """One would go on from a checkpoint that the other does not see."""
    import torch

    def seen(*steps: int) -> Any:
        return SimpleNamespace(
            num_processes=len(steps),
            device="cpu",
            gather=lambda own: torch.cat([own, torch.tensor(steps[1:])]),
        )

    require_same(seen(3, 3), 3, "the step")
    require_same(seen(3), 3, "the step")
    with pytest.raises(ValueError, match=r"differ in the step \(3, 0\).*same disk"):
        require_same(seen(3, 0), 3, "the step")


def test_padded() -> None:
    rows = np.ones((1, 4), dtype=np.int32)
    assert padded(rows, 1, 3) is rows
    assert padded(rows, 2, 3).tolist() == [[1] * 4, [-1] * 4]
    assert padded(rows[:0], 1, 3).tolist() == [[-1] * 4]


@pytest.mark.parametrize(
    "changes", [{"activation_checkpointing": True}, {"step_tokens": 24 * 7 + 5}]
)
def test_what_changes_no_number(changes: dict[str, Any]) -> None:
    """Activation checkpointing computes the same again; step_tokens is rounded to sequences."""
    expected = train(tiny_llama())
    model = tiny_llama()
    got = train(
        model, config=replace(CONFIG, batch_size=16 if "step_tokens" in changes else 7, **changes)
    )
    assert got == expected
    assert not any(getattr(part, "gradient_checkpointing", False) for part in model.modules())


def test_bf16(make_model: Callable[..., Any]) -> None:
    """Weights stay float32, losses are near, and the next run is in full precision again."""
    import torch

    expected = train(tiny_llama())
    model = tiny_llama()
    got = train(model, config=replace(CONFIG, mixed_precision="bf16"))
    assert {value.dtype for value in model.parameters()} == {torch.float32}
    assert got != expected
    assert [s.loss for s in got] == pytest.approx([s.loss for s in expected], rel=0.02)
    assert train(tiny_llama()) == expected
