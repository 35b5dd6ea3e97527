"""Computes the nats of given targets under a model without materialising the logits.

`model` is the plain Hugging Face model. Within the forward of a wrapper (accelerate, DDP, FSDP2)
its parts and weights may be used directly: autocast and hooks have already done their work.

There is no list of architectures. A probe determines, once per head, what a model does between its
last hidden state and its logits. The model runs on two tokens with a head that returns known
numbers, and its output is compared with the scaling and soft-capping that its config names. If
neither fits (the head is not a plain linear layer, or logits are cut or biased afterwards), the
loss is computed from the logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from vocabshift.models.cross_entropy import linear_cross_entropy
from vocabshift.models.token_nats import (
    choices_of_logits,
    linear_choices,
    linear_token_nats,
    nats_of_logits,
)

if TYPE_CHECKING:
    import torch


_CAPS = ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap")
_SCALES = ("logit_scale", "logits_scaling", "lm_head_multiplier")
_PROBED = 100.0  # the probe's logits run from -100 to 100, far beyond every cap in use


@dataclass(frozen=True, slots=True)
class Tail:
    """What a model does with the output of its head: multiply, then cap."""

    scale: float = 1.0
    softcap: float | None = None

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """The model's logits from those of its head."""
        logits = logits * self.scale
        return logits if self.softcap is None else self.softcap * (logits / self.softcap).tanh()


_tails: WeakKeyDictionary[Any, Tail | None] = WeakKeyDictionary()  # by head


def token_loss(
    model: Any,
    input_ids: torch.Tensor,
    targets: torch.Tensor,
    *,
    kept: torch.Tensor | None = None,
    loss: str = "auto",
    **inputs: Any,
) -> torch.Tensor:
    """Sum of nats of `targets` under `model`: a scalar, equal to that from `model(...).logits`.

    `input_ids` and `targets` (batch, length) int64; targets of -100 are skipped. `kept` are the
    positions in the flattened targets that are not -100. Pass them if they are known and few: the
    head is then applied to them only. `loss` is a name in `cross_entropy.LOSSES`. "plain", and a
    model whose head cannot be taken apart, materialise all logits. `model` is the Hugging Face
    model itself; if it is wrapped (DDP, FSDP2), call this within the wrapper's forward.
    """
    tail = None if loss == "plain" else tail_of(model)
    if tail is None:
        return nats_of_logits(_logits(model, input_ids, inputs), targets.flatten(), None)[0].sum()
    head = model.get_output_embeddings()

    def nats(rows: torch.Tensor) -> torch.Tensor:
        wanted = targets.flatten()
        if kept is not None:
            rows, wanted = rows[kept], wanted[kept]
        return linear_cross_entropy(
            rows,
            head.weight,
            wanted,
            bias=head.bias,
            scale=tail.scale,
            softcap=tail.softcap,
            loss=loss,
        )

    return _at_head(model, nats, input_ids, inputs)


def token_nats(
    model: Any,
    input_ids: torch.Tensor,
    targets: torch.Tensor,
    *,
    kept: torch.Tensor | None = None,
    subset: torch.Tensor | None = None,
    **inputs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Nats of each target under `model`, and of "some token of `subset`" instead; both (n,).

    n: the cells of `targets` (batch, length), flattened, or those at the positions `kept`, to which
    alone the head is then applied; a target of -100 has 0 nats. `subset`
    (vocab,) of bool; without it the second tensor is 0. Each number takes a gradient of its own.
    Otherwise as `token_loss` with the chunked loss: the logits are materialised only for a model
    whose head cannot be taken apart.
    """
    tail = tail_of(model)
    wanted = targets.flatten() if kept is None else targets.flatten()[kept]
    if tail is None:
        logits = _logits(model, input_ids, inputs)
        return nats_of_logits(logits if kept is None else logits[kept], wanted, subset)
    head = model.get_output_embeddings()

    def nats(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return linear_token_nats(
            rows if kept is None else rows[kept],
            head.weight,
            wanted,
            subset=subset,
            bias=head.bias,
            scale=tail.scale,
            softcap=tail.softcap,
        )

    return _at_head(model, nats, input_ids, inputs)


def token_choices(
    model: Any,
    input_ids: torch.Tensor,
    places: torch.Tensor,
    targets: torch.Tensor,
    **inputs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Nats of each target under `model`, and whether it is the likeliest token there; both (n,).

    `places` (n,): positions in the flattened `input_ids` (batch, length) that predict `targets`
    (n,); the head is applied to these alone, in chunks, if it can be taken apart.
    """
    tail = tail_of(model)
    if tail is None:
        return choices_of_logits(_logits(model, input_ids, inputs)[places], targets)
    head = model.get_output_embeddings()

    def choices(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        options = {"bias": head.bias, "scale": tail.scale, "softcap": tail.softcap}
        return linear_choices(rows[places], head.weight, targets, **options)

    return _at_head(model, choices, input_ids, inputs)


Result = TypeVar("Result")


def _at_head(
    model: Any,
    compute: Callable[[torch.Tensor], Result],
    input_ids: torch.Tensor,
    inputs: dict[str, Any],
) -> Result:
    """`compute` of the last hidden states (n, width), called in place of the head."""
    results: list[Result] = []

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        found: Any = compute(hidden.flatten(0, -2))
        results.append(found)
        # Whatever the model does with it. DDP searches it for the weights that were used.
        first: torch.Tensor = found[0] if isinstance(found, tuple) else found
        return first.sum().to(hidden.dtype).reshape(1, 1, 1)

    with replaced_forward(model.get_output_embeddings(), forward):
        model(input_ids=input_ids, use_cache=False, **inputs)
    return results[0]


def tail_of(model: Any) -> Tail | None:
    """What the model does after its head; None if that is unknown or the head is not linear.

    So it is of a view of a model whose weights are sharded: it has no head, and can only be called.
    """
    if not hasattr(model, "get_output_embeddings"):
        return None
    head = model.get_output_embeddings()
    if head not in _tails:
        _tails[head] = _probe(model, head) if _is_linear(head) else None
    return _tails[head]


def _is_linear(head: Any) -> bool:
    """Whether the head multiplies by a matrix, adds at most a bias, and does nothing else."""
    import torch

    return (
        isinstance(head, torch.nn.Linear)
        and type(head).forward is torch.nn.Linear.forward  # not quantized, no adapter
        and "forward" not in vars(head)  # not moved between devices by accelerate
    )


@contextmanager
def replaced_forward(
    module: Any, forward: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[None]:
    """Replace the module's forward within the block; its hooks still run."""
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def _probe(model: Any, head: Any) -> Tail | None:
    """Run two tokens through the model, with known numbers as logits."""
    import torch

    device = head.weight.device
    n_rows = head.weight.shape[0]
    seen: list[tuple[tuple[int, ...], bool]] = []
    numbers = torch.linspace(-_PROBED, _PROBED, n_rows, device=device)

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        # Tensor parallelism shards the head even here; the loss then needs the model's own logits.
        is_whole = type(head.weight.data) is torch.Tensor and len(head.weight) == n_rows
        seen.append((tuple(hidden.shape), is_whole))
        return numbers.to(hidden.dtype).expand(*hidden.shape[:-1], n_rows)

    with probing(model), replaced_forward(head, forward):
        ids = torch.zeros((1, 2), dtype=torch.int64, device=device)
        logits = model(input_ids=ids, use_cache=False).logits
    if seen != [((1, 2, head.in_features), True)] or logits.shape != (1, 2, n_rows):
        return None
    given = numbers.to(logits.dtype).float()
    distances = {tail: _distance(tail(given), logits[0, 0]) for tail in _candidates(model)}
    nearest = min(distances, key=lambda tail: distances[tail])
    # bfloat16 has three digits; a wrong scale or cap differs by more than this.
    return nearest if distances[nearest] < 0.01 else None


def _distance(expected: torch.Tensor, logits: torch.Tensor) -> float:
    """Largest difference, relative to the largest logit."""
    difference = (expected - logits.float()).abs().max()
    return float(difference / expected.abs().max())


def _candidates(model: Any) -> list[Tail]:
    """No change first, then every scale and cap that the model and its config name."""
    config = model.config.get_text_config()
    found = [
        (name, value)
        for name in (*_CAPS, *_SCALES)
        for value in (getattr(config, name, None), getattr(model, name, None))
        if isinstance(value, int | float) and value > 0
    ]
    caps = [None, *(float(value) for name, value in found if name in _CAPS)]
    factors = [float(value) for name, value in found if name in _SCALES]
    scales = [1.0, *factors, *(1 / factor for factor in factors)]
    return [Tail(scale, cap) for scale, cap in product(scales, caps)]


def _logits(model: Any, input_ids: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
    """(batch * length, vocab), without those of tokens that prompt tuning puts in front."""
    logits: torch.Tensor = model(input_ids=input_ids, use_cache=False, **inputs).logits
    return logits[:, -input_ids.shape[1] :].flatten(0, 1)


@contextmanager
def probing(model: Any) -> Iterator[None]:
    """Prepare the model for calls on a few tokens within the block.

    Gradients, dropout and compilation are off. Afterwards the random state and the modes of all
    submodules are restored.
    """
    import torch

    device = model.get_input_embeddings().weight.device
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
            torch.compiler.set_stance("force_eager"),  # do not compile layers for a few tokens
        ):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
