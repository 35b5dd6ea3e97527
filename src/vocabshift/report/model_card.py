"""A model card of a model that vocabshift made, from Results and its provenance alone.

Owns how such a model came about (each folder's `vocabshift.json` names the model before it) and the
content of its card. What it shares with a tokenizer's card is in `card.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.evaluation.metrics.registry import BITS_PER_BYTE
from vocabshift.models.contents import config_file
from vocabshift.models.facts import number_of_parameters, size_of_weights
from vocabshift.report.card import bullets, eval_results, fenced, figures, rows_of
from vocabshift.report.card_facts import (
    TOKENIZER_FILE,
    Source,
    plain_table,
    sha256_of,
    training_text,
)
from vocabshift.report.table_formats import escape_markdown
from vocabshift.results import WHOLE, Results
from vocabshift.storage import outcome
from vocabshift.storage.hub import is_hub_name

_PATHS = {
    *("model", "tokenizer", "donor", "teacher", "teacher_logprobs", "adapter", "base", "evaluate"),
    *("data", "held_out", "control", "control_data", "evaluate_tasks_data", "new_ids", "corpus"),
}
"""Keys of requests whose values are paths or SPECs, of which a card shows the last part alone."""

_MOVING = ("transfer", "adapt")
"""Verbs that give a model another vocabulary."""

_CLASSES = {"ForCausalLM": "text-generation", "ForMaskedLM": "fill-mask"}
"""End of an architecture's name -> the Hub's name of its task."""


@dataclass(frozen=True, slots=True)
class Step:
    """One verb that had a part in a model."""

    operation: str
    version: str  # of vocabshift
    config: Mapping[str, Any]  # without the folders of paths
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """How a model folder came about, and what is in it."""

    name: str
    base: str | None  # Hub name of the model before the first step, or the name of its folder
    is_base_on_hub: bool
    steps: tuple[Step, ...]  # the oldest first
    architecture: str
    parameters: int | None  # as stored; None unless in safetensors
    weights_bytes: int
    sha256: str  # of tokenizer.json
    n_bytes: int  # of tokenizer.json

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def read_model_facts(folder: str | Path) -> ModelFacts:
    """The facts of a model folder that `vocabshift` wrote; InvalidTokenizerError for any other.

    The folders of earlier steps are read where they still are; the card begins with the oldest.
    """
    path = Path(folder)
    if not all((path / name).is_file() for name in (TOKENIZER_FILE, outcome.FILE)):
        raise InvalidTokenizerError(
            f"{path} needs {TOKENIZER_FILE} and {outcome.FILE}, as vocabshift writes them beside a "
            "model: a card says how a model came about"
        )
    try:
        steps, base, is_on_hub = _steps(path)
        for step in steps:
            _done(step)  # what a damaged record lacks is an error here, not in the card
        config = json.loads(config_file(path).read_text(encoding="utf-8"))
        architecture = str((config.get("architectures") or ["an unnamed architecture"])[0])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidTokenizerError(f"the records in {path} cannot be read: {error!r}") from None
    return ModelFacts(
        path.resolve().name,
        base if base is None or is_on_hub else Path(base).name,
        is_on_hub,
        tuple(steps),
        architecture,
        number_of_parameters(path),
        size_of_weights(path),
        sha256_of(path / TOKENIZER_FILE),
        (path / TOKENIZER_FILE).stat().st_size,
    )


def _steps(folder: Path) -> tuple[list[Step], str | None, bool]:
    """The steps that led to a folder, the oldest first; the model before them, and if it is on the
    Hub."""
    records = list(outcome.read_history(folder))[::-1]
    steps = []
    for record in records:
        source = None if outcome.is_model_before_on_hub(record) else outcome.model_before(record)
        config = {
            key: Path(value).name if value and value == source else _bare(key, value)
            for key, value in record["config"].items()
        }
        steps.append(Step(record["operation"], record["version"], config, record["figures"]))
    return steps, outcome.model_before(records[0]), outcome.is_model_before_on_hub(records[0])


def _bare(key: str, value: Any) -> Any:
    """A value of a request without the folders that its paths lie in, which are nobody's business.

    Names on the Hub stay whole.
    """
    if isinstance(value, list | tuple):
        return [_bare(key, item) for item in value]
    if not isinstance(value, str) or (key not in _PATHS and not Path(value).is_absolute()):
        return value
    label, sign, path = value.partition("=")
    if not sign or "/" in label:  # then it is of the name of a folder
        label, sign, path = "", "", value
    is_name = path.startswith("hf:") or (is_hub_name(path) and not Path(path).exists())
    return label + sign + (path if is_name else Path(path).name)


def render_model_card(
    results: Results,
    facts: ModelFacts,
    *,
    subject: str | None = None,
    base: str | None = None,
    sources: Sequence[Source] = (),
    languages: Sequence[str] = (),
    license: str | None = None,
    evaluated_on: str = "",
    rebuild: str = "",
    limits: Sequence[str] = (),
) -> str:
    """The card as Markdown with its metadata in front.

    `results`: of `score`, `harness` or `evaluate`. `subject`: the model's name in them, by default
    that of its folder; other subjects are compared with it. `base`: Hub name of the model that it
    was made of, where the records do not name one. The others are as for `render_card`. ValueError
    if the results lack the subject.
    """
    name = facts.name if subject is None else subject
    own = rows_of(results, name)
    base = base or (facts.base if facts.is_base_on_hub else None)
    sections = [
        f"# {escape_markdown(facts.name)}",
        _what_it_is(facts, base),
        "## How it was made\n\n"
        + plain_table(["step", "what it did"], [[s.operation, _done(s)] for s in facts.steps], 2),
        f"## Use\n\n{_use(facts)}",
        training_text(sources),
        figures(results, own, name, evaluated_on, units="lines, documents or questions"),
        "## Limits\n\n" + bullets([*limits, *_limits(results, own, name, sources)]),
        _rebuild(facts, rebuild),
    ]
    body = "\n\n".join(section.strip() for section in sections if section)
    given: dict[str, Any] = {"language": list(languages) or None, "license": license}
    if base:
        given |= {"base_model": base, "base_model_relation": "finetune"}
    data = _metadata(own, facts, evaluated_on, **given)
    return f"---\n{data}\n---\n\n{body}\n"


def _metadata(own: Results, facts: ModelFacts, evaluated_on: str, **given: Any) -> str:
    """The YAML of the card, without its fences; `given`: fields of ModelCardData."""
    from huggingface_hub import ModelCardData

    shown = Results(
        row
        for row in own
        if row.language != WHOLE and (row.metric == BITS_PER_BYTE.name or "/" in row.metric)
    )
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag=_task(facts),
        tags=["vocabshift"],
        model_name=facts.name,
        eval_results=eval_results(shown, evaluated_on),
        **given,
    )
    return str(data.to_yaml()).strip()


def _task(facts: ModelFacts) -> str | None:
    return next((t for end, t in _CLASSES.items() if facts.architecture.endswith(end)), None)


def _what_it_is(facts: ModelFacts, base: str | None) -> str:
    named = base or facts.base
    made_of = f"`{named}`" if named else "a model that its records do not name"
    weights = f"{facts.weights_bytes:,} bytes of weights"
    if facts.parameters is not None:
        weights = f"{facts.parameters:,} parameters, {weights}"
    has_moved = any(step.operation in _MOVING for step in facts.steps)
    made = f"{made_of} with another vocabulary, made" if has_moved else f"Made of {made_of}"
    return (
        f"{made} by `vocabshift`. {escape_markdown(weights)}, "
        f"{escape_markdown(facts.architecture)}. It loads without vocabshift."
    )


def _use(facts: ModelFacts) -> str:
    end = next((end for end in _CLASSES if facts.architecture.endswith(end)), "")
    lines = [
        f"from transformers import AutoModel{end}, AutoTokenizer",
        "",
        'folder = "…"  # this folder, or its name on the Hub',
        "tokenizer = AutoTokenizer.from_pretrained(folder)",
        f"model = AutoModel{end}.from_pretrained(folder)",
    ]
    return "\n".join(fenced("\n".join(lines), "python"))


def _done(step: Step) -> str:
    """What a step did, in a few words; "" where its records have no figure for it."""
    found = step.figures
    said = []
    if step.operation in _MOVING and isinstance(found.get("n_copied"), int):
        onto = step.config.get("tokenizer")
        said.append(f"onto the tokenizer {onto}" if onto else "onto another vocabulary")
        said.append(f"{found['n_copied']:,} rows kept")
        said.append(f"{found['n_initialized']:,} made by {found['init']}")
    phases = step.config.get("phases") or []
    for asked, phase in zip(phases, found.get("phases") or [], strict=False):
        said.append(
            f"{phase['trained']} trained on {phase['n_bytes']:,} bytes "
            f"({phase['n_tokens']:,} tokens, {phase['n_steps']:,} steps, learning rate "
            f"{asked['learning_rate']:g})"
        )
    if phases:
        said.append(f"objective {step.config['objective']}")
        said += [f"teacher {step.config['teacher']}"] if step.config.get("teacher") else []
    return "; ".join(said)


def _limits(results: Results, own: Results, name: str, sources: Sequence[Source]) -> Iterator[str]:
    """What follows from the figures alone: above all, where the model became worse."""
    for other in results.distinct("subject"):
        theirs = {
            row.language: row.value
            for row in results.where(subject=other, metric=BITS_PER_BYTE.name)
        }
        worse = [
            f"{row.language} (+{row.value - theirs[row.language]:.3f})"
            for row in own.where(metric=BITS_PER_BYTE.name)
            if row.language != WHOLE
            and round(row.value - theirs.get(row.language, row.value), 3) > 0
        ]
        if other != name and worse:
            yield f"It pays more bits per byte than {other} for {', '.join(worse)}."
    yield (
        "The intervals say how much a figure would vary with other text of the same kind; they say "
        "nothing of another run of the training, nor of text of another kind."
    )
    yield (
        "Nothing here measures whether what it writes is true, safe or fair; what its base model "
        "was trained on and what that model must not be used for hold for it too."
    )
    if not sources:
        yield "Where the text of its training comes from is not recorded."


def _rebuild(facts: ModelFacts, command: str) -> str:
    lines = ["## Rebuild", ""]
    if command:
        lines += ["These commands made it:", "", *fenced(command.strip(), "sh"), ""]
    rows = [["sha256 of tokenizer.json", facts.sha256], ["its size, bytes", f"{facts.n_bytes:,}"]]
    lines += [plain_table(["", ""], rows, 2), "", "What each step was asked for:", ""]
    asked = [{"verb": s.operation, "vocabshift": s.version, **s.config} for s in facts.steps]
    return "\n".join([*lines, *fenced(json.dumps(asked, ensure_ascii=False, indent=2), "json")])
