"""Reports the steps of a run: the values, the lines of `log.jsonl`, and the utilization.

Owns the values that pass between the loop and its callers, the records of the log, and how a log
continues after an interruption: lines of steps that are repeated are removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

LOG = "log.jsonl"

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one optimizer step; the argument of `on_step`."""

    phase: int  # index
    trained: str  # name of the phase: what it trains
    step: int  # within the phase, from 1
    n_steps: int  # of the phase, as far as is known
    loss: float  # what is trained, per token, before the step: nats, unless likelihoods are matched
    bits_per_byte: float  # the nats of the batch over its bytes
    learning_rate: float  # of this step
    gradient_norm: float  # before clipping
    n_bytes: int  # bytes of text seen in this phase, this step included
    n_tokens: int  # tokens predicted in this phase, this step included
    run_bytes: int  # bytes of text seen in all phases, this step included
    seconds: float = field(default=0.0, compare=False)  # of the step alone
    tokens_per_second: float = field(default=0.0, compare=False)  # of this step
    bytes_per_second: float = field(default=0.0, compare=False)  # of this step
    mfu: float | None = field(default=None, compare=False)  # see `flops`; None: peak not known
    matching_loss: float | None = None  # per token; these four are of likelihood matching
    next_token_loss: float | None = None  # nats per token
    chunks: int | None = None  # chunks that were compared with the teacher's
    matched_share: float | None = None  # of the tokens, those in chunks


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of `evaluate`, and its position; the argument of `on_evaluation`."""

    phase: int  # index
    step: int  # within the phase; 0: before its first
    run_bytes: int  # bytes of text seen in all phases
    values: Mapping[str, float]
    run_steps: int = 0  # steps of all phases


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Callbacks between steps; every process calls them."""

    on_step: Callable[[Step], None] | None = None
    evaluate: Callable[[Any], Mapping[str, float]] | None = None
    evaluate_bytes: int | None = None  # of text between two evaluations; None: first and last
    on_evaluation: Callable[[Evaluation], None] | None = None
    on_adapter: Callable[[Any], None] | None = None  # at the end of "lora"; first process alone


class Rows(Protocol):
    """Packed rows of a phase."""

    @property
    def row_bytes(self) -> NDArray[np.int64]:
        """Bytes of text of each row, shape (n_rows,)."""
        ...

    @property
    def n_bytes(self) -> int:
        """Bytes of raw text in all rows."""
        ...

    def take(self, indexes: NDArray[np.int64]) -> NDArray[np.int32]:
        """These rows, shape (len(indexes), length + 1)."""
        ...


# The log of a run.


class RunLog:
    """JSON lines of one run; a line is on disk when `add` returns."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_cut = False

    def add(self, record: Record) -> None:
        """Append a record; the first one replaces all later records of the run."""
        if not self._is_cut:
            self._cut(_place(record))
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def records(self) -> Iterator[Record]:
        """All records, also of earlier processes; a line that a crash cut off is skipped."""
        if not self._file.exists():
            return
        with self._file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                yield record

    def _cut(self, first: tuple[int, int, int]) -> None:
        self._is_cut = True
        kept = [record for record in self.records() if _place(record) < first]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in kept]
        partial.write_text("".join(lines), encoding="utf-8")
        partial.replace(self._file)


def step_record(step: Step) -> Record:
    """The step's fields, without those that are None."""
    record = {"kind": "step", **asdict(step)}
    return {key: value for key, value in record.items() if value is not None}


def evaluation_record(evaluation: Evaluation) -> Record:
    """Bits per byte of the held-out text at this point."""
    plain = asdict(evaluation)
    bits = dict(plain.pop("values"))
    return {"kind": "evaluation", **plain, "bits_per_byte": bits}


def summary(records: Iterator[Record]) -> dict[str, Any]:
    """Totals of a run: steps, bytes, tokens, loss, seconds, bits per byte before and after."""
    last: dict[int, Mapping[str, Any]] = {}  # of each phase
    evaluations: list[Mapping[str, float]] = []
    n_steps, seconds = 0, 0.0
    first_loss = None
    for record in records:
        if record["kind"] == "evaluation":
            evaluations.append(record["bits_per_byte"])
            continue
        first_loss = record["loss"] if first_loss is None else first_loss
        n_steps += 1
        seconds += record["seconds"]
        last[record["phase"]] = record
    n_bytes = sum(record["n_bytes"] for record in last.values())
    ends = list(last.values())
    return {
        "n_steps": n_steps,
        "n_bytes": n_bytes,
        "n_tokens": sum(record["n_tokens"] for record in ends),
        "first_loss": first_loss,
        "loss": ends[-1]["loss"] if ends else None,
        "bits_per_byte": [
            {"language": language, "before": before, "after": evaluations[-1].get(language)}
            for language, before in (evaluations[0] if evaluations else {}).items()
        ],
        "phases": [
            {key: record[key] for key in ("trained", "n_steps", "n_bytes", "n_tokens", "loss")}
            for record in ends
        ],
        "seconds": round(seconds, 3),
        "bytes_per_second": n_bytes / max(seconds, 1e-9),
    }


def _place(record: Mapping[str, Any]) -> tuple[int, int, int]:
    """Sort key of a record in a run: by phase and step, evaluations after their step."""
    return record["phase"], record["step"], 1 if record["kind"] == "evaluation" else 0


# Model FLOPs utilization: how much of a device's arithmetic goes into the model.
#
# After PaLM (arXiv 2204.02311, appendix B): a token costs 6 N + 12 L H Q T, for N weights that are
# multiplied by, L layers of H heads of Q numbers, and T tokens. Recomputation to save memory does
# not count: this is the utilization of the model, not of the hardware. As in PaLM, attention counts
# over the whole sequence, although only the causal half is needed. We differ in four points, for
# accuracy: embedding lookups are free (a tied matrix counts once, as the head); experts count as
# often as a token visits them; a window bounds T; a frozen weight costs 4 instead of 6, since it
# needs no gradient.

# Dense bfloat16 products with float32 accumulation, FLOP/s, from the vendors' data sheets (half of
# the figure with sparsity). The first matching name wins.
_PEAKS = (
    (r"\bGB200", 2.5e15),
    (r"\bB200", 2.25e15),
    (r"\bH200 NVL|\bH100 NVL", 835e12),
    (r"\bH100 PCIe", 756e12),
    (r"\bGH200|\bH200|\bH100", 989e12),
    (r"\bA100", 312e12),
    (r"\bL40S", 362e12),
    (r"\bL4\b", 121e12),
    (r"\bA40\b", 149.7e12),
    (r"\bRTX 4090\b(?! Laptop)", 165.2e12),
    (r"\bMI300X", 1307e12),
)

_SEQUENTIAL = ("linear_attention", "mamba", "mamba2", "recurrent", "conv")  # layers without T


def model_flops_per_token(model: Any, sequence_length: int) -> float:
    """FLOPs of one token in training, forward and backward, at `sequence_length`.

    Parameters that currently require no gradient count as frozen. For models with a language
    model's config. Layers without attention count by their weights only.
    """
    import torch

    if sequence_length < 1:
        raise ValueError(f"sequence_length is {sequence_length}; at least 1 token is needed")
    looked_up = {
        id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)
    }
    head = model.get_output_embeddings()
    multiplied = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.ndim >= 2
        and (id(parameter) not in looked_up or (head is not None and parameter is head.weight))
    }
    settings = model.config.get_text_config()
    total = 0.0
    for name, parameter in multiplied.items():
        uses = parameter.numel() * _share_of_experts(name, parameter, settings)
        total += (6 if parameter.requires_grad else 4) * uses
    return total + _attention_flops(settings, sequence_length)


def peak_flops(device_name: str) -> float | None:
    """Peak FLOP/s of a device in bfloat16; None if the name is not known.

    `device_name` as returned by `torch.cuda.get_device_name`.
    """
    for pattern, peak in _PEAKS:
        if re.search(pattern, device_name):
            return peak
    return None


def device_peak(device: Any) -> float | None:
    """Peak FLOP/s of a torch device in bfloat16; None for a CPU."""
    import torch

    if torch.device(device).type != "cuda":
        return None
    return peak_flops(torch.cuda.get_device_name(device))


def mfu(
    tokens_per_second: float, flops_per_token: float, peak: float | None, *, n_devices: int = 1
) -> float | None:
    """Model FLOPs per second as a share of the peak, 0-1; None if the peak is not known.

    `tokens_per_second` is over all devices, `peak` is of one.
    """
    if peak is None:
        return None
    if not (peak > 0 and n_devices > 0):
        raise ValueError(f"peak is {peak} and n_devices {n_devices}; both must be above 0")
    return tokens_per_second * flops_per_token / (peak * n_devices)


def _share_of_experts(name: str, parameter: Any, settings: Any) -> float:
    """Share of stacked experts that a token visits; 1 for other parameters."""
    visited = getattr(settings, "num_experts_per_tok", None)
    if visited is None or ".experts." not in name or parameter.ndim != 3:
        return 1.0
    return min(1.0, float(visited) / int(parameter.shape[0]))


def _attention_flops(settings: Any, length: int) -> float:
    """12 L H Q T: the products of queries with keys and of their shares with values."""
    heads = getattr(settings, "num_attention_heads", None)
    if not heads:
        return 0.0  # a model without attention
    size = getattr(settings, "head_dim", None) or settings.hidden_size // heads
    if getattr(settings, "qk_nope_head_dim", None):  # latent attention, DeepSeek
        both = settings.qk_nope_head_dim + settings.qk_rope_head_dim + settings.v_head_dim
    else:
        both = 2 * size
    window = getattr(settings, "sliding_window", None) or length
    kinds = getattr(settings, "layer_types", None)
    if kinds is None:
        has_windows = getattr(settings, "use_sliding_window", True)
        kinds = ["sliding_attention" if has_windows else ""] * settings.num_hidden_layers
    seen = 0
    for kind in kinds:
        if kind not in _SEQUENTIAL:
            seen += min(window, length) if kind == "sliding_attention" else length
    return float(6 * heads * both * seen)
