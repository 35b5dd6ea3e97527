"""Phases: which parameters of a model are trained; all others are frozen.

The phase "embeddings" follows ReTok and IST section 4.6: after a tokenizer swap only the rows are
new. "new-rows" trains only the rows of added tokens, and "lora" these and adapters. "ends" is what
arXiv:2406.11477 trains after adding tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vocabshift.cpt import adapters
from vocabshift.cpt.config import LORA, NEW_ROWS, Phase
from vocabshift.cpt.state import part_like

if TYPE_CHECKING:
    import torch


def _embeddings(model: Any, _: Phase | None = None) -> list[torch.nn.Parameter]:
    """Input embeddings and, with its bias if it has one, the head."""
    modules = [model.get_input_embeddings(), model.get_output_embeddings()]
    if modules[1] is None:
        raise ValueError(
            f"{type(model).__name__} has no output head; load it with AutoModelForCausalLM"
        )
    return [parameter for module in modules for parameter in module.parameters()]


def _ends(model: Any, phase: Phase) -> list[torch.nn.Parameter]:
    """Embeddings, head, and the first and last layers."""
    found = adapters.layers(model)
    chosen = found[: phase.end_layers] + found[-phase.end_layers :]
    return _embeddings(model) + [value for layer in chosen for value in layer.parameters()]


def _all(model: Any, _: Phase) -> list[torch.nn.Parameter]:
    return list(model.parameters())


def _lora(model: Any, phase: Phase) -> list[torch.nn.Parameter]:
    return adapters.parameters(model) or _changed_by_lora(model, phase)


def _changed_by_lora(model: Any, phase: Phase) -> list[torch.nn.Parameter]:
    """The weights that the adapters of a phase are merged into."""
    chosen = adapters.targets(model, phase.lora_targets).values()
    return [module.weight for module in chosen]  # type: ignore[misc]


PHASES: Mapping[str, Callable[[Any, Phase], list[torch.nn.Parameter]]] = {
    "embeddings": _embeddings,
    NEW_ROWS: _embeddings,  # `NewRows` then masks the gradient of the old rows
    LORA: _lora,
    "ends": _ends,
    "all": _all,
}
"""Name of a phase -> the parameters that it trains."""


def phase_parameters(
    model: Any, phase: str | Phase, new_ids: Sequence[int] = (), *, is_over: bool = False
) -> list[torch.nn.Parameter]:
    """The parameters that a phase trains; a head tied to the input embeddings appears once.

    `phase`: also by its name, with default settings. "lora" trains the adapters and, where there
    are `new_ids`, embeddings and head. `is_over`: what a phase has changed, once its adapters are
    merged. ValueError for an unknown phase, and for one that trains nothing in this model.
    """
    if isinstance(phase, str):
        phase = Phase(trained=phase, n_bytes=1)
    is_lora = phase.trained == LORA
    choose = _changed_by_lora if is_lora and is_over else PHASES[phase.trained]
    found = choose(model, phase) + (new_row_tables(model) if is_lora and new_ids else [])
    beside = set() if is_lora else {id(parameter) for parameter in adapters.parameters(model)}
    chosen = {id(parameter): parameter for parameter in found if id(parameter) not in beside}
    if not chosen:
        raise ValueError(f"the phase {phase.trained!r} trains nothing of {type(model).__name__}")
    return list(chosen.values())


def check_phases(model: Any, phases: Sequence[Phase], new_ids: Sequence[int]) -> None:
    """ValueError if there is no phase, or one that cannot be trained; ImportError without PEFT."""
    if not phases:
        raise ValueError("there is no phase, and so nothing to train; give at least one")
    for phase in phases:
        trained = phase_parameters(model, phase, new_ids)
        if phase.trained == NEW_ROWS:
            NewRows(trained, new_ids)
        if phase.trained == LORA:
            adapters.require_peft()
            if new_ids:
                NewRows(new_row_tables(model), new_ids)


def new_row_tables(model: Any) -> list[torch.nn.Parameter]:
    """Input embeddings and head, whose new rows "lora" trains; ValueError for a head with a bias.

    PEFT leaves the bias of a head out where it puts rows into it, so it would load another model.
    """
    found = _embeddings(model)
    if any(parameter.ndim < 2 for parameter in found):
        raise ValueError(
            f"the head of {type(model).__name__} has a bias, which PEFT drops where rows of the "
            "head are trained with LoRA; set new_ids = [] in a run of its own after 'new-rows'"
        )
    return list({id(parameter): parameter for parameter in found}.values())


@contextmanager
def trained_parameters(
    model: Any, phase: str | Phase, new_ids: Sequence[int] = ()
) -> Iterator[list[torch.nn.Parameter]]:
    """Freeze all but the parameters of `phase` within the block, and yield these.

    Afterwards `requires_grad` of every parameter is as before.
    """
    chosen = phase_parameters(model, phase, new_ids)
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        for parameter, _ in before:
            parameter.requires_grad_(False)
        for parameter in chosen:
            parameter.requires_grad_(True)
        yield chosen
    finally:
        for parameter, required in before:
            parameter.requires_grad_(required)
            parameter.grad = None


class NewRows:
    """Zeroes the gradient of all rows except those of added tokens.

    AdamW without decay does not change a row that never had a gradient, bit for bit.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], new_ids: Sequence[int]) -> None:
        """`new_ids`: at least one, each a row of every parameter; else ValueError."""
        import torch

        if not new_ids:
            raise ValueError(
                f"the phase {NEW_ROWS!r} would train nothing: no token is new; name the ids with "
                "new_ids, or keep the token map of `extend` or `transfer` beside the model"
            )
        self._parameters = list(parameters)
        self._masks: dict[tuple[int, int], torch.Tensor] = {}
        for parameter in self._parameters:
            n_rows = parameter.shape[0]
            if not 0 <= min(new_ids) <= max(new_ids) < n_rows:
                raise ValueError(
                    f"new_ids reach from {min(new_ids)} to {max(new_ids)}, and the model has "
                    f"{n_rows} rows"
                )
            key = (n_rows, parameter.ndim)
            if key not in self._masks:
                mask = torch.zeros(n_rows, *[1] * (parameter.ndim - 1), dtype=torch.bool)
                mask[list(new_ids)] = True
                self._masks[key] = part_like(mask, parameter)

    def keep_only(self) -> None:
        """Set the gradient of every other row to 0."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                mask = self._masks[parameter.shape[0], parameter.ndim]
                parameter.grad.mul_(mask)


def decay_groups(
    model: Any, parameters: list[torch.nn.Parameter], weight_decay: float
) -> list[dict[str, Any]]:
    """Optimizer groups: `weight_decay` for matrices, none for embeddings, head, norms and biases.

    Embedding rows are not decayed: a row whose token never occurs has no gradient to counter the
    decay, so it would shrink towards zero without any cause in the data. The same holds for
    position embeddings (GPT-2, OPT, BERT) beyond the sequence length.
    """
    import torch

    tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    rows = {id(p) for p in _embeddings(model)} | {id(each.weight) for each in tables}
    decayed = [p for p in parameters if p.ndim >= 2 and id(p) not in rows]
    kept = [p for p in parameters if p.ndim < 2 or id(p) in rows]
    groups = [(decayed, weight_decay), (kept, 0.0)]
    return [{"params": group, "weight_decay": decay} for group, decay in groups if group]
