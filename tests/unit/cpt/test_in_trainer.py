"""The lean loss in `transformers.Trainer`: its values and weights, without its logits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vocabshift.cpt.held_rows import hold_old_rows
from vocabshift.cpt.in_trainer import LeanLoss

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

N_ROWS, LENGTH = 8, 12
IDS = torch.randint(0, 257, (N_ROWS, LENGTH), generator=torch.Generator().manual_seed(2))
LABELS = IDS.clone()
for number in range(N_ROWS):  # rows of different numbers of targets, the first label among them
    LABELS[number, : number + number % 2] = -100
ROWS = [{"input_ids": ids, "labels": labels} for ids, labels in zip(IDS, LABELS, strict=True)]


class LeanTrainer(LeanLoss, transformers.Trainer):
    """The lean loss in the plain Trainer."""


def train(kind: Any, model: Any, place: Path, **settings: Any) -> tuple[dict[str, Any], Any]:
    """Weights after two passes, and the trainer."""
    options: dict[str, Any] = {
        "output_dir": str(place),
        "per_device_train_batch_size": 2,
        "per_device_eval_batch_size": 4,
        "num_train_epochs": 2,
        "learning_rate": 0.01,
        "max_grad_norm": 1.0,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 1,
        "use_cpu": True,
        "seed": 3,
        **settings,
    }
    callbacks = options.pop("callbacks", None)
    trainer = kind(
        model=model,
        args=transformers.TrainingArguments(**options),
        train_dataset=ROWS,
        eval_dataset=ROWS[:3],
        callbacks=callbacks,
    )
    trainer.train()
    return {name: value.detach() for name, value in model.state_dict().items()}, trainer


def losses(trainer: Any) -> list[float]:
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


@pytest.fixture
def widths(make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of logits that models return from here on."""
    seen: list[int] = []
    from transformers import LlamaForCausalLM

    forward = LlamaForCausalLM.forward

    @functools.wraps(forward)  # the Trainer reads its signature
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = forward(self, *args, **kwargs)
        seen.append(outputs.logits.numel())
        return outputs

    monkeypatch.setattr(LlamaForCausalLM, "forward", watched)
    return seen


@pytest.mark.parametrize("accumulated", [1, 4])
def test_the_weights_are_those_of_the_trainer(
    make_model: Callable[..., Any], tmp_path: Path, accumulated: int
) -> None:
    """Step for step, with rows of different numbers of targets."""
    settings = {"gradient_accumulation_steps": accumulated, "eval_strategy": "epoch"}
    lean, ours = train(LeanTrainer, make_model(), tmp_path, **settings)
    plain, theirs = train(transformers.Trainer, make_model(), tmp_path, **settings)
    is_exact = transformers.__version__ >= "5"  # 4.57 counts the first label, see below
    assert losses(ours) == pytest.approx(losses(theirs), rel=1e-4 if is_exact else 0.1)
    if is_exact:
        for name, value in plain.items():
            torch.testing.assert_close(lean[name], value, rtol=1e-3, atol=1e-4)
        assert ours.evaluate()["eval_loss"] == pytest.approx(theirs.evaluate()["eval_loss"])


def test_accumulated_batches_are_one_large_batch(
    make_model: Callable[..., Any], tmp_path: Path
) -> None:
    """The mean over tokens, not the mean of means: in every version of transformers."""
    parts, ours = train(LeanTrainer, make_model(), tmp_path, gradient_accumulation_steps=4)
    whole, theirs = train(LeanTrainer, make_model(), tmp_path, per_device_train_batch_size=8)
    assert losses(ours) == pytest.approx(losses(theirs), rel=1e-5)
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-3, atol=1e-5)


def test_the_loss_is_the_mean_over_all_targets(
    make_model: Callable[..., Any], tmp_path: Path
) -> None:
    """By hand, for the first step of one batch in four parts; and the evaluation's."""
    model = make_model().eval()
    with torch.no_grad():
        logits = model(input_ids=IDS).logits[:, :-1].double()
    nats = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), LABELS[:, 1:].flatten(), ignore_index=-100, reduction="sum"
    )
    expected = float(nats) / int((LABELS[:, 1:] != -100).sum())
    settings = {"gradient_accumulation_steps": 4, "learning_rate": 1e-12, "max_steps": 1}
    _, trainer = train(LeanTrainer, model, tmp_path, **settings)
    assert losses(trainer)[0] == pytest.approx(expected, rel=1e-4)


def test_there_are_no_logits(
    make_model: Callable[..., Any], tmp_path: Path, widths: list[int]
) -> None:
    """Neither in training nor in evaluation; where metrics ask for them, there are."""
    _, trainer = train(LeanTrainer, make_model(), tmp_path)
    trainer.evaluate()
    training = [n for n in widths if n != 2 * 257]  # the probe of the head, on two tokens
    assert {1} == set(training)
    widths.clear()
    assert (8, LENGTH, 257) == trainer.predict(ROWS).predictions.shape
    assert widths


def test_old_rows_stay_in_a_trainer(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """Bit for bit, under weight decay and accumulated gradients; frozen weights too."""
    model = make_model(tie_word_embeddings=True)
    before = {name: value.detach().clone() for name, value in model.state_dict().items()}
    held = hold_old_rows(model, [5, 9])
    settings = {"weight_decay": 0.5, "gradient_accumulation_steps": 2, "learning_rate": 0.1}
    after, _ = train(LeanTrainer, model, tmp_path, callbacks=[held.callback()], **settings)
    for name, value in before.items():
        rows = (
            {i for i, _ in (value != after[name]).nonzero().tolist()} if value.ndim == 2 else set()
        )
        is_table = name in ("model.embed_tokens.weight", "lm_head.weight")
        assert ({5, 9} if is_table else set()) == rows, name
        if value.ndim != 2:
            assert torch.equal(value, after[name])


def test_autocast(make_model: Callable[..., Any], tmp_path: Path, widths: list[int]) -> None:
    """In bf16 the loss is the trainer's up to its rounding."""
    _, ours = train(LeanTrainer, make_model(), tmp_path, bf16=True, max_steps=2)
    assert 1 in widths
    _, theirs = train(transformers.Trainer, make_model(), tmp_path, bf16=True, max_steps=2)
    assert losses(ours) == pytest.approx(losses(theirs), rel=0.05)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.* is deprecated")  # PEFT's
@pytest.mark.parametrize("kind", ["PromptTuningConfig", "PrefixTuningConfig"])
def test_virtual_tokens(make_model: Callable[..., Any], tmp_path: Path, kind: str) -> None:
    """PEFT puts tokens of its own in front, which are no targets; nor is a row's first label."""
    peft = pytest.importorskip("peft")
    found = []
    for base in (LeanTrainer, transformers.Trainer):
        options = getattr(peft, kind)(task_type="CAUSAL_LM", num_virtual_tokens=3)
        torch.manual_seed(5)
        model = peft.get_peft_model(make_model(), options)
        found.append(losses(train(base, model, tmp_path, max_steps=2)[1]))
    assert found[0] == pytest.approx(found[1], rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        ({"label_smoothing_factor": 0.1}, {}, "label_smoothing_factor makes another loss"),
        ({}, {"output_router_logits": True}, "output_router_logits of the model"),
        ({}, {"is_encoder_decoder": True}, "no causal language model"),
    ],
)
def test_other_losses_are_refused(
    make_model: Callable[..., Any],
    tmp_path: Path,
    settings: dict[str, Any],
    changes: dict[str, Any],
    message: str,
) -> None:
    model = make_model()
    for name, value in changes.items():
        setattr(model.config, name, value)
    with pytest.raises(ValueError, match=message):
        train(LeanTrainer, model, tmp_path, **settings)


def test_a_loss_function_is_refused(make_model: Callable[..., Any], tmp_path: Path) -> None:
    args = transformers.TrainingArguments(str(tmp_path), report_to=[], use_cpu=True)
    with pytest.raises(ValueError, match="compute_loss_func makes another loss"):
        LeanTrainer(model=make_model(), args=args, compute_loss_func=lambda *_: None)
