"""LoRA in a model that is trained: where adapters go, putting them in, and merging them.

PEFT puts the adapters in place of the linear layers. New rows are not left to PEFT: it would put a
layer in place of embeddings and head, which copies the table at every step and hides the head from
the lean loss. The rows stay in the table, masked as in the phase "new-rows" (`NewRows`), and only
the file has them in PEFT's form (`trainable_token_indices`), so that PEFT loads them.

Also owns which modules are a model's layers. Adapters have one name, `ADAPTER`, in a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.state import Tensors, part_like, whole
from vocabshift.models.adapter import ROWS, Adapter, change, is_transposed

if TYPE_CHECKING:
    import torch

ADAPTER = "default"
_A, _B = f".lora_A.{ADAPTER}.weight", f".lora_B.{ADAPTER}.weight"


# Where adapters go.


def layers(model: Any) -> list[torch.nn.Module]:
    """The layers of the decoder (or encoder), the first one first.

    They are the largest list of modules that is as long as the config's number of layers.
    ValueError where there is none.
    """
    import torch

    wanted = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    lists = [
        list(module)
        for module in _body(model).modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == wanted
    ]
    if not lists:
        raise ValueError(
            f"{type(model).__name__} has no list of {wanted} layers (num_hidden_layers of its "
            "config), so its first and last ones are not known; train 'embeddings' or 'all'"
        )
    return max(lists, key=lambda found: sum(p.numel() for each in found for p in each.parameters()))


# What PEFT refuses to adapt, by name and model type (peft.tuners.tuners_utils).
_FUSED = "out_proj"
_WITH_FUSED = ("falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h")


def targets(model: Any, names: Sequence[str] = ()) -> dict[str, torch.nn.Module]:
    """The linear layers that get an adapter, by their names in the plain model.

    `names`: full names, or their last parts ("q_proj", "mlp.down_proj"); none: every linear layer
    of the decoder, and not the head, nor Mamba's `out_proj`, whose kernels read the weight beside
    the layer. ValueError for a name that no such layer has.
    """
    reads_weight = _FUSED if model.config.model_type in _WITH_FUSED else None
    inside = {id(module) for module in _body(model).modules()}
    head = model.get_output_embeddings()
    found = {
        name.replace(".base_layer", ""): module
        for name, module in model.named_modules()
        if id(module) in inside and module is not head
        if _is_linear(module) and ".lora_" not in name
        if name.replace(".base_layer", "").rpartition(".")[2] != reads_weight
    }
    if not names:
        if not found:
            raise ValueError(f"{type(model).__name__} has no linear layers that LoRA could change")
        return found
    chosen: dict[str, Any] = {}
    for wanted in names:
        fitting = {name: each for name, each in found.items() if f".{name}".endswith(f".{wanted}")}
        if not fitting:
            known = ", ".join(sorted({name.rpartition(".")[2] for name in found}))
            raise ValueError(
                f"lora_targets: no linear layer of {type(model).__name__} is called {wanted!r}; "
                f"there are {known} (embeddings and head are trained by rows, see new_ids)"
            )
        chosen |= fitting
    return {name: found[name] for name in found if name in chosen}


def _body(model: Any) -> Any:
    """The part that reads text: of a multimodal model not the eye."""
    import torch

    body = model.get_decoder() if hasattr(model, "get_decoder") else model
    tables = [module.weight for module in body.modules() if isinstance(module, torch.nn.Embedding)]
    # transformers goes by the attribute's name, and ModernBERT's `decoder` is its head.
    reads_ids = any(table is model.get_input_embeddings().weight for table in tables)
    return body if reads_ids else model.base_model


def _is_linear(module: Any) -> bool:
    """Whether its output is its input times its weight; of most subclasses of Linear it is not."""
    import torch

    is_plain = type(module) is torch.nn.Linear or type(module).__name__ == "FalconLinear"
    return is_plain or is_transposed(module)


# Adapters in a model.


def parameters(model: Any) -> list[torch.nn.Parameter]:
    """The parameters of the adapters in a model; empty for a plain one."""
    return [value for name, value in model.named_parameters() if is_part(name)]


def is_part(name: str) -> bool:
    """Whether this is the name of an adapter's parameter."""
    return name.endswith((_A, _B))


def insert(
    model: Any, names: Sequence[str], *, rank: int, alpha: int, dropout: float, seed: int
) -> dict[str, Any]:
    """Put fresh adapters into the model, which computes as before; return PEFT's config of them.

    `names`, as for `targets`. `seed` is that of the matrices A. ImportError without PEFT.
    """
    import torch

    require_peft()
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    chosen = targets(model, names)
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules=_short(model, chosen),
        fan_in_fan_out=all(is_transposed(module) for module in chosen.values()),
        task_type="CAUSAL_LM" if type(model).__name__.endswith("ForCausalLM") else None,
    )
    device = model.get_input_embeddings().weight.device
    asked = {parameter: parameter.requires_grad for parameter in model.parameters()}
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        LoraModel(model, {ADAPTER: config}, ADAPTER)
    del model.peft_config
    for parameter, is_asked in asked.items():  # PEFT has frozen them all
        parameter.requires_grad_(is_asked)
    plain: Any = config
    about: dict[str, Any] = plain.to_dict()
    about["target_modules"] = sorted(about["target_modules"])
    about |= {"inference_mode": True, "peft_type": "LORA", "task_type": config.task_type}
    return about


def require_peft() -> None:
    """ImportError with install instructions if PEFT is missing."""
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "a phase 'lora' needs peft; install it with: pip install 'vocabshift[hf]'"
        ) from error


def _short(model: Any, chosen: Mapping[str, Any]) -> list[str]:
    """The last parts of the names, which other programs know, where these choose the same."""
    last = {name.rpartition(".")[2] for name in chosen}
    fitting = {name for name, _ in model.named_modules() if name.rpartition(".")[2] in last}
    return sorted(last if fitting == set(chosen) else chosen)


@contextmanager
def inserted(model: Any, names: Sequence[str], **settings: Any) -> Iterator[dict[str, Any]]:
    """Adapters within the block, as `insert` makes them; afterwards they are merged and gone."""
    about = insert(model, names, **settings)
    try:
        yield about
    finally:
        merge(model)
        for name, module in list(model.named_modules()):
            if hasattr(module, "base_layer"):
                parent, _, last = name.rpartition(".")
                setattr(model.get_submodule(parent), last, module.base_layer)


def merge(model: Any) -> None:
    """Add the adapters to the weights, in place, and set B to 0: the model computes as before.

    The model may be divided by FSDP2; all processes call this together.
    """
    import torch

    named = dict(model.named_parameters())
    with torch.no_grad():
        for name in [name for name in named if name.endswith(_A)]:
            a, b = named[name], named[name.removesuffix(_A) + _B]
            layer = model.get_submodule(name.removesuffix(_A))
            is_turned = is_transposed(layer.base_layer)
            added = change(whole(a), whole(b), layer.scaling[ADAPTER], is_transposed=is_turned)
            layer.base_layer.weight.add_(part_like(added, layer.base_layer.weight))
            b.zero_()


def add_to(weights: Tensors, parts: Tensors, model: Any, scaling: float | None = None) -> None:
    """Add adapters to `weights` (by plain names, changed in place); `parts`: by `is_part` names.

    `scaling`: for a `model` that has no adapters itself.
    """
    for name in [name for name in parts if name.endswith(_A)]:
        module = name.removesuffix(_A)
        b = parts[module + _B]
        if b.any():  # not before its phase, nor after it
            layer = model.get_submodule(module)
            factor = layer.scaling[ADAPTER] if scaling is None else scaling
            is_turned = is_transposed(getattr(layer, "base_layer", layer))
            weights[f"{module}.weight"] += change(parts[name], b, factor, is_transposed=is_turned)


def capture(
    about: Mapping[str, Any], parts: Tensors, tables: Tensors, ids: Sequence[int]
) -> Adapter:
    """The adapters in `parts` (by `is_part` names) and rows `ids` of `tables` as a value.

    `tables`: the weights of input embeddings and, where it is not tied, head, by module.
    """
    modules: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in parts.items():
        module, _, part = name.replace(f".{ADAPTER}.", ".").rpartition(".lora_")
        modules.setdefault(module, {})[f"lora_{part}"] = tensor
    config = dict(about)
    if ids:
        config["trainable_token_indices"] = {name: list(ids) for name in tables}
        modules |= {name: {ROWS: table[list(ids)]} for name, table in tables.items()}
    return Adapter(config, modules)
