"""LoRA adapters as files: PEFT's `adapter_config.json` and `adapter_model.safetensors`.

Owns the form, which is read and written without PEFT; the change that an adapter makes to a weight
(LoRA: arXiv:2106.09685, section 4.1; rank-stabilised: arXiv:2312.03732); and the adapters that are
refused, because PEFT does more with them than add such a change. Knows nothing of training.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import regex_bound
from vocabshift.models.contents import CONFIG as MODEL_CONFIG
from vocabshift.models.contents import SMALL_FILES
from vocabshift.models.shards import FLOATS
from vocabshift.storage import hub

if TYPE_CHECKING:
    import torch

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_MOST = 1 << 31  # a rank or alpha; JSON has whole numbers that no float holds
_PREFIX = "base_model.model."
ROWS = "token_adapter.trainable_tokens_delta"
"""The part with the rows of `trainable_token_indices`, which replace the base's."""

_PAIRS = (("lora_A.weight", "lora_B.weight"), ("lora_embedding_A", "lora_embedding_B"))
_MATRICES = (*_PAIRS[0], *_PAIRS[1], ROWS)
_PARTS = (*_MATRICES, "lora_B.bias", "lora_magnitude_vector.weight", "lora_magnitude_vector")
_UNKNOWN = {
    "use_dora": "DoRA also rescales every row of the weight",
    "use_qalora": "QALoRA pools what a layer reads",
    "use_bdlora": "its matrices are blocks on a diagonal",
    "arrow_config": "it chooses between adapters token by token",
    "alora_invocation_tokens": "it works only after certain tokens, so no weight can hold it",
    "layer_replication": "it repeats layers of the base",
    "target_parameters": "it changes parameters that are no layer's weight",
    "megatron_config": "it was trained in Megatron's layers",
    "monteclora_config": "it draws its change at random",
    "kasa_config": "it changes the base's weights when it is loaded",
    "velora_config": "it is not known here",
    "loftq_config": "it was trained on weights that LoftQ had changed",
}
"""Key of a config -> why an adapter that has it is more than a change that is added."""

_PLAIN_STARTS = (True, False, None, "gaussian", "eva", "orthogonal", "mica")
"""`init_lora_weights` that leave the base as it is; the others change it on loading."""


@dataclass(frozen=True, eq=False)
class Adapter:
    """One LoRA adapter."""

    config: Mapping[str, Any]  # as in adapter_config.json
    modules: Mapping[str, Mapping[str, torch.Tensor]]
    """Module of the base model -> part -> tensor. A part is one of PEFT's ("lora_A.weight",
    "token_adapter.trainable_tokens_delta") or, of a module that is saved whole, "weight" or
    "bias"."""

    def rank(self, module: str) -> float:
        """The rank that the config gives a module."""
        return _by_pattern(self.config.get("rank_pattern"), module, self.config["r"])

    def scaling(self, module: str) -> float:
        """The factor of B·A: alpha / r, or alpha / sqrt(r) with `use_rslora`."""
        rank = self.rank(module)
        alpha = _by_pattern(self.config.get("alpha_pattern"), module, self.config["lora_alpha"])
        return float(alpha / (math.sqrt(rank) if self.config.get("use_rslora") else rank))

    def row_ids(self, module: str, embeddings: str) -> list[int]:
        """The tokens whose rows the adapter has for `module`; `embeddings`: the input's module.

        ValueError if they are not as many as the rows.
        """
        given = self.config.get("trainable_token_indices") or {}
        if not isinstance(given, Mapping):
            given = {embeddings: given}
        fitting = [name for name in given if f".{module}".endswith(f".{name}")]
        ids, rows = list(given[fitting[0]]) if fitting else [], self.modules[module][ROWS]
        if len(ids) != len(rows):
            raise ValueError(
                f"the adapter has {len(rows)} rows for {module} and its config names {len(ids)} "
                "(trainable_token_indices): it is damaged"
            )
        return ids

    def save(self, folder: Path) -> None:
        """Write both files into a folder that is there."""
        from safetensors.torch import save_file

        tensors = {
            f"{_PREFIX}{module}.{part}": tensor.contiguous()
            for module, parts in self.modules.items()
            for part, tensor in parts.items()
        }
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        text = json.dumps(self.config, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        (folder / CONFIG).write_text(text, encoding="utf-8")


def change(
    a: torch.Tensor, b: torch.Tensor, scaling: float, *, is_transposed: bool
) -> torch.Tensor:
    """What LoRA adds to a weight, in float32 at least: scaling · B·A.

    `a` (rank, in), `b` (out, rank); the result is (out, in), or (in, out) if `is_transposed`, as
    Conv1D of GPT-2 and embeddings store it. The order of the operations is PEFT's, so that the
    result is PEFT's bit for bit.
    """
    import torch

    kind = torch.promote_types(torch.promote_types(a.dtype, b.dtype), torch.float32)
    product = b.to(kind) @ a.to(kind)
    return (product.T if is_transposed else product) * scaling


def plain_bytes(tensor: torch.Tensor) -> Any:
    """The bytes of a tensor, as an array."""
    import torch

    return tensor.detach().contiguous().view(-1).view(torch.uint8).numpy()


def is_transposed(module: Any) -> bool:
    """Whether a linear layer stores its weight as (in, out): GPT-2's Conv1D."""
    return type(module).__name__ == "Conv1D"


def open_adapter(source: str | Path, *, has_to_merge: bool = True) -> Adapter:
    """The adapter of a folder or Hub name.

    FileNotFoundError where there is none; ValueError for one that is damaged or is no LoRA and, if
    it `has_to_merge`, for one that does more than add a change to weights.
    """
    folder = find_adapter(source)
    config = _read_config(folder)
    reason = _refused(config, has_to_merge=has_to_merge)
    if reason is not None:
        raise ValueError(f"the adapter {source} cannot be used: {reason}")
    import safetensors.torch

    try:
        tensors = safetensors.torch.load_file(folder / WEIGHTS)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{folder / WEIGHTS} is damaged: {error}") from None
    modules: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        module, part = _split(name.removeprefix(_PREFIX))
        modules.setdefault(module, {})[part] = tensor
    adapter = Adapter(config, modules)
    for module, parts in modules.items():
        _check_parts(folder / WEIGHTS, module, parts)
        for a, b in _PAIRS if has_to_merge else ():
            if a in parts and not parts[a].shape[0] == parts[b].shape[1] == adapter.rank(module):
                raise ValueError(
                    f"{folder / WEIGHTS} does not fit its {CONFIG}: A and B of {module} are "
                    f"{list(parts[a].shape)} and {list(parts[b].shape)}, and its rank is "
                    f"{adapter.rank(module)}"
                )
    return adapter


def base_of(adapter: Adapter) -> str | None:
    """The base model that the adapter names, a path or a Hub name."""
    named = adapter.config.get("base_model_name_or_path")
    return str(named) if named else None


def is_adapter(source: str | Path) -> bool:
    """Whether a folder or Hub name is an adapter: it has its config, and no model's.

    Of a Hub name only the list of files is read; without a network, the Hub's cache. False where
    neither knows the name.
    """
    if hub.is_there(source):
        return (Path(source) / CONFIG).is_file() and not (Path(source) / MODEL_CONFIG).is_file()
    if not hub.is_hub_name(source):
        return False
    wanted = "tell whether it is an adapter"
    with suppress(FileNotFoundError):
        names = hub.list_files(str(source), wanted=wanted)
        if names is not None:
            return CONFIG in names and MODEL_CONFIG not in names
    with suppress(FileNotFoundError):  # a file that the repository has was never downloaded
        folder = hub.cached(str(source), [CONFIG, MODEL_CONFIG], wanted=wanted)
        return folder is not None and is_adapter(folder)
    return False


def find_adapter(source: str | Path) -> Path:
    """The folder of an adapter; a Hub name is downloaded. FileNotFoundError where there is none."""
    folder = Path(source)
    if not hub.is_there(source):
        folder = hub.download(str(source), ["adapter_*", *SMALL_FILES], wanted="give the adapter")
    lacking = next((name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()), None)
    if lacking is None:
        return folder
    advice = ""
    if (folder / "adapter_model.bin").is_file():
        advice = "; its adapter_model.bin is a pickle, which is not read: save it with PEFT again"
    elif (folder / "adapter" / CONFIG).is_file():
        advice = f"; {folder / 'adapter'} is one"
    raise FileNotFoundError(f"{source} is no adapter: it holds no {lacking}{advice}")


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_bytes())
        if not isinstance(config, dict):
            raise TypeError("an object is needed")
        if config.get("peft_type") == "LORA":
            _check_values(config)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{folder / CONFIG} is damaged: {error}") from None
    return config


def _check_values(config: Mapping[str, Any]) -> None:
    """TypeError for a rank, an alpha or tokens that no LoRA can have; ValueError for a pattern."""
    for key, pattern in (("r", "rank_pattern"), ("lora_alpha", "alpha_pattern")):
        for name, value in {key: config[key], **(config.get(pattern) or {})}.items():
            _regex(name)
            is_number = isinstance(value, int | float) and abs(value) < _MOST
            if not is_number or (key == "r" and value <= 0):
                raise TypeError(f"{name} is {value!r}")
    ids = config.get("trainable_token_indices") or []
    for own in ids.values() if isinstance(ids, dict) else [ids]:
        if not isinstance(own, list) or any(type(token_id) is not int for token_id in own):
            raise TypeError(f"trainable_token_indices is {ids!r}")


def _refused(config: Mapping[str, Any], *, has_to_merge: bool) -> str | None:
    """Why the adapter of this config is not a LoRA that is added to weights; None if it is."""
    kind = config.get("peft_type")
    if kind != "LORA":
        return f"its peft_type is {kind!r}, and LORA is needed"
    if not has_to_merge:
        return None
    for key, reason in _UNKNOWN.items():
        if config.get(key):
            return f"it was trained with {key}: {reason}"
    start = config.get("init_lora_weights", True)
    if start not in _PLAIN_STARTS:
        return (
            f"its init_lora_weights is {start!r}, with which PEFT changes the base's weights on "
            "loading; let PEFT convert it to a plain LoRA (save_pretrained with "
            "path_initial_model_for_weight_conversion)"
        )
    return None


def _split(name: str) -> tuple[str, str]:
    """Module of the base and part of a tensor's name."""
    for part in _PARTS:
        if name.endswith(f".{part}"):
            return name.removesuffix(f".{part}"), part
    module, _, part = name.rpartition(".")
    return module.removesuffix(".base_layer"), part


def _check_parts(file: Path, module: str, parts: Mapping[str, Any]) -> None:
    """ValueError for parts that no LoRA of one module has."""
    pairs = [pair for pair in _PAIRS if not parts.keys().isdisjoint(pair)]
    if any(name not in parts for pair in pairs for name in pair):
        raise ValueError(f"{file} is damaged: {module} has only one of A and B")
    if len(pairs) > 1:
        raise ValueError(f"{file} is damaged: {module} has two kinds of A and B")
    if unknown := parts.keys() - {*_PARTS, "weight", "bias"}:
        raise ValueError(f"{file} holds {module}.{min(unknown)}, which no LoRA is known to have")
    for name, tensor in parts.items():
        kind, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
        if kind not in FLOATS.values() or len(shape) < 1 + (name in _MATRICES):
            raise ValueError(f"{file} is damaged: {module}.{name} is {kind} of shape {shape}")


def _by_pattern(pattern: Mapping[str, float] | None, module: str, default: float) -> float:
    """The value of the first regex that fits the end of the module's name, as PEFT has it."""
    from tokenizers import pre_tokenizers

    for key, value in (pattern or {}).items():
        with regex_bound():
            if not pre_tokenizers.Split(_regex(key), "removed").pre_tokenize_str(module):
                return value
    return default


def _regex(pattern: str) -> Any:
    """What fits a name that ends in `pattern`: not for `re`, whose steps have no bound."""
    from tokenizers import Regex

    try:
        return Regex(rf"\A(.*\.)?({pattern})\z")
    except Exception as error:  # the class is not public
        raise ValueError(f"{pattern!r} is no regex: {error}") from None
