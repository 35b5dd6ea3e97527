"""Our losses in `transformers.Trainer` and what derives from it, such as TRL's `SFTTrainer`.

`compute_loss_func` of a Trainer gets finished logits, when their memory is spent. `LeanLoss`
overrides `compute_loss` instead: the model runs as the Trainer wrapped it (accelerate, DDP), and
within its forward pass the head is replaced by the chunked loss (`models.token_loss`). What a
Trainer expects of a loss (the mean over all targets of all micro-batches and processes) is
reproduced from transformers 4.57 and 5.23. The class is mixed in by the caller, so transformers is
not imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from vocabshift.cpt.likelihood_matching import boundary_mask, matching_loss
from vocabshift.cpt.packed_dataset import LOGPROBS, NUMBERS, MatchedDataset
from vocabshift.cpt.packing import RowChunks
from vocabshift.models.cross_entropy import IGNORED
from vocabshift.models.token_loss import tail_of, token_loss

_SHIFTED = ("shift_labels", "num_items_in_batch")  # inputs that are of another loss


class LeanLoss:
    """A mix-in for trainers: next-token loss without logits. `class T(LeanLoss, Trainer): pass`.

    The loss is that of the trainer up to rounding, for training and evaluation; so is its mean over
    accumulated micro-batches and processes. Labels are a batch's `labels`, not shifted, -100 where
    there is no target. For models whose head cannot be taken apart (adapters on the head, quantized
    heads) the loss is computed from their logits. ValueError, when the trainer is made, for what
    would be another loss: label smoothing, `compute_loss_func`, router losses of experts, losses of
    TRL other than "nll", models that are not causal; and for `torch.nn.DataParallel` and
    torch.compile, which do not let a head be replaced.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments as for the trainer that this is mixed into."""
        super().__init__(*args, **kwargs)
        _check(self)
        # `num_items_in_batch` is then counted and passed, and the loss not divided once more.
        self.model_accepts_loss_kwargs = True

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Nats per target; with `return_outputs` as the trainer computes it, logits included."""
        trainer: Any = super()
        if return_outputs or "labels" not in inputs:
            given = {"num_items_in_batch": num_items_in_batch}
            return trainer.compute_loss(model, inputs, return_outputs=return_outputs, **given)
        nats, n_targets = self.batch_nats(_Wrapped(model, _plain(self, model)), dict(inputs))
        return (
            nats
            * _scale(self, num_items_in_batch)
            / _at_least_1(n_targets if num_items_in_batch is None else num_items_in_batch)
        )

    def batch_nats(
        self, model: Any, inputs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor | int]:
        """Sum of the nats of a batch, and its number of targets; for subclasses to override.

        `model`: to be called as `token_loss` calls one; `inputs`: the batch, which may be changed.
        """
        targets = next_targets(inputs.pop("labels"))
        for name in (*_SHIFTED, "use_cache"):
            inputs.pop(name, None)
        nats = token_loss(model, inputs.pop("input_ids"), targets, **inputs)
        return nats, (targets != IGNORED).sum()

    def prediction_step(
        self,
        model: Any,
        inputs: dict[str, Any],
        prediction_loss_only: bool,
        ignore_keys: list[str] | None = None,
    ) -> tuple[Any, Any, Any]:
        """Loss, logits and labels; where the loss alone is wanted, there are no logits."""
        trainer: Any = self
        if not prediction_loss_only or "labels" not in inputs:
            above: Any = super()
            found: tuple[Any, Any, Any] = above.prediction_step(
                model, inputs, prediction_loss_only, ignore_keys
            )
            return found
        inputs = trainer._prepare_inputs(inputs)
        count = trainer._get_num_items_in_batch([inputs], trainer.args.device)
        with torch.no_grad(), trainer.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs, num_items_in_batch=count)
        return loss.detach().mean(), None, None

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: Any) -> Any:
        """As the trainer counts, but never the first label of a row, which is no target.

        transformers 4.57 counts it.
        """
        counted = [
            {**batch, "labels": _without_first(batch["labels"])} if "labels" in batch else batch
            for batch in batch_samples
        ]
        trainer: Any = super()
        return trainer._get_num_items_in_batch(counted, device)


class LikelihoodMatching(LeanLoss):
    """`LeanLoss` that matches a teacher's likelihoods where the data has them (arXiv 2503.20083).

    The trainer's `train_dataset` is a `matched_dataset`. The loss of its batches is that of
    `LoopConfig(objective="likelihood-matching")` for each target; other batches, as those of an
    `eval_dataset` of plain rows, have the next-token loss. The data collator gets these alone: rows
    with chunks are of one length. ValueError for another training set.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments as for the trainer that this is mixed into."""
        given = kwargs.get("train_dataset")
        if isinstance(given, MatchedDataset) and _is_of_trl(self):
            kwargs["train_dataset"] = _stand_in()
        super().__init__(*args, **kwargs)
        own: Any = self
        if isinstance(given, MatchedDataset):
            own.train_dataset = given
        self._matched: Any = getattr(self, "train_dataset", None)
        if not isinstance(self._matched, MatchedDataset):
            raise ValueError(
                f"train_dataset is {type(self._matched).__name__}; give what matched_dataset makes"
            )
        # Others drop the chunks (TRL's), or take the padding of the last row for a target.
        own.data_collator = partial(_collated, own.data_collator)
        self._boundary: torch.Tensor | None = None

    def batch_nats(
        self, model: Any, inputs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor | int]:
        """As for `LeanLoss`, of the divergences and the weighted nats."""
        if NUMBERS not in inputs:
            return super().batch_nats(model, inputs)
        config, special = self._matched.config, self._matched.special
        if self._boundary is None:
            self._boundary = boundary_mask(model, special)
        chunks = RowChunks(inputs[NUMBERS], inputs[LOGPROBS])
        rows = inputs["input_ids"]
        found = matching_loss(model, rows, chunks, config, special, boundary=self._boundary)
        return found.loss, found.n_targets

    def _set_signature_columns_if_needed(self) -> None:
        trainer: Any = super()
        trainer._set_signature_columns_if_needed()
        own: Any = self
        own._signature_columns = [*dict.fromkeys([*own._signature_columns, NUMBERS, LOGPROBS])]


def _is_of_trl(trainer: Any) -> bool:
    return any(base.__module__.split(".")[0] == "trl" for base in type(trainer).__mro__)


def _stand_in() -> Any:
    """A row for TRL to prepare: it takes no data but that of `datasets`, and maps a copy of it."""
    import datasets

    return datasets.Dataset.from_dict({"input_ids": [[0, 0]], "labels": [[0, 0]]})


def _collated(others: Callable[[Any], Any], rows: Sequence[Mapping[str, Any]]) -> Any:
    """A batch: rows with chunks as they are, and what `others` makes of rows without."""
    if NUMBERS not in rows[0]:
        return others(rows)
    return {name: torch.stack([torch.as_tensor(row[name]) for row in rows]) for name in rows[0]}


class _Wrapped:
    """A model that is called through its wrapper, and is itself in everything else."""

    def __init__(self, wrapper: Any, model: Any) -> None:
        self._wrapper, self._model = wrapper, model
        tail_of(model)  # a probe of the model itself, made once

    def __call__(self, **inputs: Any) -> Any:
        return self._wrapper(**inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def next_targets(labels: torch.Tensor) -> torch.Tensor:
    """The label of the token after each, (batch, length) as `labels`; -100 after the last."""
    after = labels.new_full((*labels.shape[:-1], 1), IGNORED)
    return torch.cat([labels[..., 1:], after], dim=-1)


def _without_first(labels: torch.Tensor) -> torch.Tensor:
    first = labels.new_full((*labels.shape[:-1], 1), IGNORED)
    return torch.cat([first, labels[..., 1:]], dim=-1)


def _at_least_1(count: Any) -> Any:
    return count.clamp(min=1) if isinstance(count, torch.Tensor) else max(count, 1)


def _scale(trainer: Any, num_items_in_batch: Any) -> int:
    """What makes up for the mean over processes that DDP takes of gradients."""
    if num_items_in_batch is None or not trainer.args.average_tokens_across_devices:
        return 1
    tensor_parallel = getattr(trainer, "get_tp_size", lambda: 1)()
    return int(trainer.accelerator.num_processes // tensor_parallel)


def _plain(trainer: Any, wrapped: Any) -> Any:
    return trainer.accelerator.unwrap_model(wrapped)


def _check(trainer: Any) -> None:
    """ValueError for settings that this loss would silently leave out."""
    args, model = trainer.args, _plain(trainer, trainer.model)
    config = model.config.get_text_config()
    advice = "leave it out, or train without LeanLoss"
    if args.n_gpu > 1:
        raise ValueError(
            f"the trainer would run {args.n_gpu} GPUs in one process (torch.nn.DataParallel); "
            f"start it with torchrun --nproc_per_node {args.n_gpu}, or show it one GPU"
        )
    if getattr(model.config, "is_encoder_decoder", False) or "MaskedLM" in type(model).__name__:
        raise ValueError(f"{type(model).__name__} is no causal language model; {advice}")
    for is_given, what in (
        (args.label_smoothing_factor, "label_smoothing_factor"),
        (trainer.compute_loss_func is not None, "compute_loss_func"),
        (args.torch_compile, "torch_compile"),
        (getattr(args, "loss_type", None) not in (None, "nll", "chunked_nll"), "loss_type"),
        (getattr(config, "output_router_logits", False), "output_router_logits of the model"),
    ):
        if is_given:
            raise ValueError(f"{what} makes another loss than LeanLoss; {advice}")
