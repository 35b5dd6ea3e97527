"""The student of a distillation: the model with new tables, of whose rows some are trained.

It shares every other tensor with the model that teaches it. The rows that are trained live in a
compact matrix and enter the model where it looks embeddings up and where its head multiplies, so
gradients and the optimizer's state exist for them alone. Whatever else the model does with its
embeddings (scaling, caps, projections) it does itself. torch is imported when a function runs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from vocabshift.models.cross_entropy import linear_cross_entropy
from vocabshift.models.quantized import quantization_method
from vocabshift.models.tables import Matrices, input_embeddings, output_embeddings
from vocabshift.models.token_loss import Tail, probing, replaced_forward, tail_of
from vocabshift.surgery import initialize
from vocabshift.surgery.rows import InitContext, move_rows

if TYPE_CHECKING:
    import torch

BETAS = (0.9, 0.95)  # a short memory: most rows are seen in few steps
EPSILON = 1e-8


def make_student(model: Any, matrices: Matrices, made: InitContext, n_rows: int) -> Any:
    """A model with tables of new rows; all other tensors are those of `model` itself."""
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    student = copy.deepcopy(model, shared)
    move_rows(student, matrices, made, n_rows)
    return student


def check_teacher(model: Any, layer: int) -> None:
    """ValueError for a model whose hidden states cannot teach, or that lacks this layer."""
    import torch

    name = type(model).__name__
    if quantization_method(model.config) is not None:
        raise ValueError(
            f"init 'distill' needs gradients through {name}, which quantized layers do not give; "
            "distill the unquantized checkpoint and quantize the result"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise ValueError(
            f"init 'distill' compares the hidden states of one stack, and {name} is an encoder "
            "with a decoder; choose another initializer"
        )
    weight = input_embeddings(model).weight
    ids = torch.zeros((1, 2), dtype=torch.int64, device=weight.device)
    with probing(model), _headless(model):
        outputs = _readable(model)(input_ids=ids, output_hidden_states=True, use_cache=False)
    states = getattr(outputs, "hidden_states", None)
    if not states:
        raise ValueError(f"{name} does not give its hidden states; choose another initializer")
    if not -len(states) <= layer < len(states):
        raise ValueError(
            f"layer is {layer}, and {name} has {len(states) - 1} layers: give 0 (the embeddings) "
            f"to {len(states) - 1}, or count from the last with -1 to -{len(states)}"
        )
    if by_token(states[layer]).shape[:2] != (1, 2):
        shape = tuple(states[layer].shape)
        raise ValueError(
            f"{name} does not keep one hidden state for each token in layer {layer} ({shape} for "
            "two tokens); give another layer or another initializer"
        )


def hidden_states(model: Any, inputs: dict[str, Any], layer: int) -> torch.Tensor:
    """(batch, length, width) of one layer; the head is not applied."""
    with _headless(model):
        states = _readable(model)(**inputs, output_hidden_states=True, use_cache=False)
    return by_token(states.hidden_states[layer])


def by_token(states: torch.Tensor) -> torch.Tensor:
    """(batch, length, width) of the states of one layer.

    Where a model carries several for each token, (n, batch, length, width), they stand side by side
    (Gemma 3n).
    """
    return states.movedim(0, -2).flatten(-2) if states.dim() == 4 else states


def _readable(model: Any) -> Any:
    """What to run for hidden states: the body of a classifier, which may ask for a pad token."""
    return model.base_model if output_embeddings(model) is None else model


@contextmanager
def _headless(model: Any) -> Iterator[None]:
    """Let the head return a single zero within the block."""
    head = output_embeddings(model)
    if head is None:
        yield
        return
    with replaced_forward(head, lambda hidden: hidden.new_zeros(1, 1, 1)):
        yield


@contextmanager
def frozen(*models: Any) -> Iterator[None]:
    """No gradients for any parameter, and no dropout, within the block."""
    modules = {module: module.training for model in models for module in model.modules()}
    parameters = [each for model in models for each in model.parameters()]
    needed = [each.requires_grad for each in parameters]
    try:
        for each in parameters:
            each.requires_grad_(False)
        for model in models:
            model.eval()
        yield
    finally:
        for each, was_needed in zip(parameters, needed, strict=True):
            each.requires_grad_(was_needed)
        for module, was_training in modules.items():
            module.training = was_training


def usual_size(weight: torch.Tensor, old_ids: Any) -> float:
    """Root mean square of the numbers in the rows of the old tokens."""
    import torch

    mean, deviation = initialize.mean_and_std(weight, torch.from_numpy(old_ids).to(weight.device))
    return float((mean.square() + deviation.square()).mean().sqrt())


class TrainedRows:
    """The trained rows of one table, with the state of Adam (arXiv 1412.6980) for each."""

    def __init__(self, weight: torch.Tensor, ids: torch.Tensor, size: float) -> None:
        """`weight`: the student's table; `size`: of the numbers of old rows, for the step."""
        import torch

        self._weight, self._ids = weight, ids
        wide = initialize.compute_dtype(weight)
        self.values = weight.index_select(0, ids).to(wide).requires_grad_()
        self._first = torch.zeros_like(self.values, requires_grad=False)
        self._second = torch.zeros_like(self._first)
        self._steps = torch.zeros(len(ids), dtype=wide, device=weight.device)
        self._size = size

    def step(self, rate: float, touched: torch.Tensor | None) -> None:
        """One step along the gradient, which is then dropped; `touched`: (n,) places of rows.

        None: all. A row that is not touched keeps its moments and its count, so that a rare token
        is moved only by its own snippets.
        """
        import torch

        gradient = self.values.grad
        assert gradient is not None
        with torch.no_grad():
            at = slice(None) if touched is None else touched
            own = gradient[at]
            self._steps[at] += 1
            first = self._first[at].lerp_(own, 1 - BETAS[0])
            second = self._second[at].mul_(BETAS[1]).addcmul_(own, own, value=1 - BETAS[1])
            self._first[at], self._second[at] = first, second
            counts = self._steps[at].unsqueeze(1)
            scale = (second / (1 - BETAS[1] ** counts)).sqrt_().add_(EPSILON)
            self.values[at] -= rate * self._size * first / (1 - BETAS[0] ** counts) / scale
            self._weight.index_copy_(0, self._ids, self.values.detach().to(self._weight.dtype))
        self.values.grad = None

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that a resumed run needs."""
        return {
            "values": self.values.detach(),
            "first": self._first,
            "second": self._second,
            "steps": self._steps,
        }

    def restore(self, state: dict[str, torch.Tensor]) -> None:
        """The inverse of `state`."""
        import torch

        with torch.no_grad():
            for name, own in self.state().items():
                own.copy_(state[name])
            self._weight.index_copy_(0, self._ids, self.values.to(self._weight.dtype))


@contextmanager
def looked_up(embeddings: Any, rows: torch.Tensor, slots: torch.Tensor) -> Iterator[None]:
    """Let an embedding module look trained rows up; `slots` (n_rows,): place in `rows`, or -1.

    The module's own forward runs on a table of the ids that occur, so what it does beyond looking
    up (Gemma multiplies) stays.
    """
    import torch

    whole, padding = embeddings.weight, getattr(embeddings, "padding_idx", None)
    own_forward = embeddings.forward

    def forward(ids: torch.Tensor) -> torch.Tensor:
        used, places = torch.unique(ids, return_inverse=True)
        slot = slots[used]
        kept = whole.detach().index_select(0, used)
        trained = rows.index_select(0, slot.clamp(min=0)).to(kept.dtype)
        table = torch.where(slot.unsqueeze(1) >= 0, trained, kept)
        parameter = embeddings._parameters.pop("weight")
        embeddings.weight = table
        if padding is not None:
            embeddings.padding_idx = None  # an id of the whole table; it rules gradients alone
        try:
            found: torch.Tensor = own_forward(places)
        finally:
            del embeddings.weight
            embeddings._parameters["weight"] = parameter
            if padding is not None:
                embeddings.padding_idx = padding
        return found

    with replaced_forward(embeddings, forward):
        yield


@dataclass(frozen=True, eq=False)
class Head:
    """The student's head, for the next-token loss."""

    module: Any
    tail: Tail
    ids: torch.Tensor  # (n_learned,) of the trained rows
    rows: torch.Tensor  # (n_learned, width)
    reaches_body: bool  # tied: the loss teaches the rows as inputs, too

    @contextmanager
    def reading(self, places: torch.Tensor, targets: torch.Tensor) -> Iterator[list[torch.Tensor]]:
        """Within the block the head puts nats of `targets` into the list that is yielded.

        `places` (n,): of the flattened positions that predict them.
        """
        found: list[torch.Tensor] = []

        def forward(hidden: torch.Tensor) -> torch.Tensor:
            flat = hidden.flatten(0, -2)[places]
            found.append(
                linear_cross_entropy(
                    flat if self.reaches_body else flat.detach(),
                    self.module.weight,
                    targets,
                    bias=self.module.bias,
                    scale=self.tail.scale,
                    softcap=self.tail.softcap,
                    rows=(self.ids, self.rows),
                )
            )
            return hidden.new_zeros(1, 1, 1)

        with replaced_forward(self.module, forward):
            yield found


def head_tail(model: Any) -> Tail:
    """What the model does after its head; ValueError where the next-token loss needs more."""
    tail = tail_of(model)
    if tail is None:
        raise ValueError(
            f"the head of {type(model).__name__} is not a plain linear layer, so its rows cannot "
            "be learned; set the weight of the next-token loss to 0"
        )
    return tail
