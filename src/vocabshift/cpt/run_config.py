"""Configuration of `vocabshift cpt`: the keys of its TOML file as one checked value.

Owns the keys, their kinds and the message for one that does not exist. Opens no file.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from vocabshift.cpt.config import LORA, MATCHING, NEW_ROWS, LoopConfig, Phase

TRACKERS = {"tensorboard": ("tensorboard", "tensorboardX"), "wandb": ("wandb",)}
"""Name of a tracker -> the packages of which one is needed."""

DTYPES = ("auto", "float32", "bfloat16", "float16")

_COUNTS = (
    *("evaluate_bytes", "checkpoint_steps", "keep_checkpoints", "keep_models"),
    *("evaluate_tasks_limit", "evaluate_tasks_batch_size"),
)
_PHASE = {each.name: each for each in dataclasses.fields(Phase)}
_LOOP = {each.name: each for each in dataclasses.fields(LoopConfig)}


@dataclass(frozen=True, kw_only=True)
class CptConfig:
    """One run of continual pre-training; `from_mapping` builds it from the keys of a TOML file."""

    model: str  # folder or Hub name, with its tokenizer
    data: tuple[str, ...]  # a folder of `vocabshift encode`, .idx files of Megatron, or SPECs
    out: str  # folder to write
    phases: tuple[Phase, ...]
    held_out: tuple[str, ...] = ()  # SPECs, for bits per byte per language
    evaluate_bytes: int | None = None  # of text between two evaluations; None: first and last
    save_models: bool = False  # a model folder at each evaluation, in OUT/models
    keep_models: int | None = None  # number of newest ones kept; None: all
    evaluate_tasks: tuple[str, ...] = ()  # of lm-eval, as `harness` names them; at each evaluation
    evaluate_tasks_limit: int | None = None  # only the first questions of each task
    evaluate_tasks_data: str | None = None  # folder with the tasks' files; None: from the Hub
    evaluate_tasks_batch_size: int = 1  # questions run at once
    control: str | None = None  # the model before its tokenizer was changed
    control_data: tuple[str, ...] = ()  # if `data` is packed: the same text, for the control
    teacher: str | None = None  # of likelihood matching; None: the model before its transfer
    teacher_logprobs: str | None = None  # folder of `teach`; None: the teacher runs along
    documents: str = "line"  # of a .txt: "line" or "file"
    errors: str = "strict"  # of bytes that are not UTF-8: "strict" or "replace"
    new_ids: tuple[int, ...] | None = None  # None: from the token map in the model's folder
    adapter_only: bool = False  # write the adapter of the last phase, and no model
    dtype: str = "auto"  # of the output; "auto": that of the model's stored weights
    cpu: bool = False  # even if there is a GPU
    checkpoint_minutes: float = 15.0  # between two checkpoints
    checkpoint_steps: int | None = None  # steps between two checkpoints, in addition
    keep_checkpoints: int = 2  # number of newest ones kept
    trackers: tuple[str, ...] = ()  # of accelerate: "tensorboard", "wandb", …
    loop: LoopConfig = dataclasses.field(default_factory=LoopConfig)  # what all phases share

    def __post_init__(self) -> None:
        _check_choice("documents", self.documents, ("line", "file"))
        _check_choice("errors", self.errors, ("strict", "replace"))
        _check_choice("dtype", self.dtype, DTYPES)
        for tracker in self.trackers:
            _check_choice("trackers", tracker, tuple(TRACKERS))
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; at least 1 is needed")
        if not self.checkpoint_minutes >= 0:  # also refuses NaN
            raise ValueError(f"checkpoint_minutes is {self.checkpoint_minutes}; 0 or more")
        if self.loop.objective != MATCHING and (self.teacher or self.teacher_logprobs):
            raise ValueError(
                f"a teacher is named and the objective is {self.loop.objective!r}; only "
                f"{MATCHING!r} has one"
            )
        if not (self.data and self.phases):
            raise ValueError("data and phases are empty: there is nothing to train")
        if self.adapter_only and not self.has_adapter:
            raise ValueError(
                "adapter_only needs a last phase 'lora' after phases 'new-rows' alone: what other "
                "phases train is in no adapter"
            )

    @property
    def has_adapter(self) -> bool:
        """Whether the base model and the adapter of the last phase are the trained model."""
        *before, last = (phase.trained for phase in self.phases)
        return last == LORA and set(before) <= {NEW_ROWS}

    @classmethod
    def from_mapping(cls, table: Mapping[str, Any]) -> CptConfig:
        """From the keys of a TOML file; those of LoopConfig are at the same level.

        `trained`, `n_bytes` and `learning_rate` at the top are the defaults of all phases; without
        `phases` they define the only one. ValueError for a missing key, one of the wrong type, or
        an unknown one; the message then names the nearest known key.
        """
        own = {each.name: each for each in dataclasses.fields(cls) if each.name != "loop"}
        known = {**own, **_LOOP, **_PHASE}
        values = {
            key: _of_kind(key, value, known[_known(key, known)].type)
            for key, value in table.items()
            if key != "phases"
        }
        shared = {key: value for key, value in values.items() if key in _PHASE}
        phases = _phases(table.get("phases", [{}]), shared)
        loop = LoopConfig(**{key: value for key, value in values.items() if key in _LOOP})
        given = {key: value for key, value in values.items() if key in own}
        for name in ("model", "data", "out"):
            if name not in given:
                raise ValueError(f"the key {name!r} is missing")
        return cls(**given, phases=phases, loop=loop)

    def as_control(self) -> CptConfig:
        """The control run: the model with its old tokenizer, the same bytes of text, OUT-control.

        It has no new rows, so phases that train new rows train all embeddings instead.
        """
        if self.control is None:
            raise ValueError("the key 'control' is missing: the model with its old tokenizer")
        phases = tuple(
            dataclasses.replace(phase, trained="embeddings")
            if phase.trained == "new-rows"
            else phase
            for phase in self.phases
        )
        runs_along = self.loop.objective == MATCHING and self.teacher_logprobs is None
        return dataclasses.replace(
            self,
            model=self.control,
            teacher=self.teacher or (self.control if runs_along else None),
            data=self.control_data or self.data,
            out=f"{self.out.rstrip('/')}-control",
            phases=phases,
            new_ids=None,
            adapter_only=False,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, by the keys of a file."""
        plain = dataclasses.asdict(self)
        loop = plain.pop("loop")
        return {key: _plain(value) for key, value in {**plain, **loop}.items()}


def _phases(tables: Any, shared: Mapping[str, Any]) -> tuple[Phase, ...]:
    if not isinstance(tables, list) or not all(isinstance(each, Mapping) for each in tables):
        raise ValueError("phases: tables [[phases]] are needed")
    phases = []
    for number, each in enumerate(tables):
        own = {
            key: _of_kind(f"phases.{number}.{key}", value, _PHASE[_known(key, _PHASE)].type)
            for key, value in each.items()
        }
        values = {**shared, **own}
        if "n_bytes" not in values:
            raise ValueError("the key 'n_bytes' is missing: the bytes of text to train on")
        phases.append(Phase(**values))
    return tuple(phases)


def _known(key: str, known: Mapping[str, Any]) -> str:
    if key not in known:
        nearest = get_close_matches(key.replace("-", "_"), known, n=1, cutoff=0.0)
        raise ValueError(f"unknown key {key!r}; the nearest that exists is {nearest[0]!r}")
    return key


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; known are {', '.join(choices)}")


def _of_kind(key: str, value: Any, annotation: Any) -> Any:
    """Check the value against the field's annotation and return it; lists become tuples."""
    hint = _HINTS[annotation] if annotation in _HINTS else _HINTS[str(annotation)]
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        item = typing.get_args(kind)[0] if typing.get_origin(kind) is tuple else None
        if item is not None:
            values = [value] if isinstance(value, str) and item is str else value
            if isinstance(values, list | tuple) and all(_is(each, item) for each in values):
                return tuple(values)
        elif _is(value, kind):
            return value
    names = " or ".join(_name_of(kind) for kind in kinds if kind is not type(None))
    raise ValueError(f"{key} is {value!r}; {names} is needed")


def _name_of(kind: Any) -> str:
    if typing.get_origin(kind) is not tuple:
        return _NAMES[kind]
    item = _NAMES[typing.get_args(kind)[0]]
    return f"a list of {item.removeprefix('a ')}s"


def _is(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


_NAMES: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
}

_HINTS: Mapping[str, Any] = {
    "str": str,
    "str | None": str | None,
    "int": int,
    "int | None": int | None,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": tuple[str, ...],
    "tuple[int, ...] | None": tuple[int, ...] | None,
    "tuple[float, float]": tuple[float, float],
    "Objective": str,
    "Divergence": str,
    "Schedule": str,
}
"""Type by the text of a field's annotation."""
