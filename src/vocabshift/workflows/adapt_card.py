"""The card of an adapted model: figures before and after, as values and as Markdown.

Owns what is measured on held-out text and how it is written. Every figure by language is a Result,
and the tables are built from these. Knows nothing of how the model was made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import printable
from vocabshift.evaluation.evaluate import evaluate
from vocabshift.evaluation.scoring.score import score
from vocabshift.extension.named_tokens import AnyKind
from vocabshift.models.contents import CONFIG, config_file
from vocabshift.models.load import load_causal_model, load_configs, load_model, torch_device
from vocabshift.models.quantized import quantization_method
from vocabshift.report.tables import to_markdown, to_rich
from vocabshift.results import Result, Results
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer

if TYPE_CHECKING:
    from rich.table import Table

FILE = "adapt.md"
BEFORE, AFTER = "before", "after"
SAMPLE = 20
"""Tokens shown of those added and removed."""

_BATCH_TOKENS = 1024
"""Whose logits are held at once: half a gigabyte for 128,000 rows in float32."""


@dataclass(frozen=True)
class Side:
    """The size of a model, before or after."""

    rows: int
    parameters: int | None  # as stored; None unless in safetensors
    weights_bytes: int  # on disk


@dataclass(frozen=True)
class AdaptationCard:
    """The figures before and after; counts are of tokens."""

    model: str
    before: Side
    after: Side
    n_kept: int
    n_moved: int  # of these, tokens whose id changed
    n_added: int
    n_removed: int
    n_relearned: int
    added_sample: tuple[str, ...]  # text, most useful first
    removed_sample: tuple[str, ...]  # text, sampled evenly by id
    init: str
    judged_on: str  # the held-out text, described in words
    scored_on: str  # the part that the models read, or why none
    results: Results  # bytes_per_token and bits_per_byte of "before" and "after"
    left_out: Mapping[str, str] = field(default_factory=dict)  # file of the model -> why

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "results": self.results.to_dicts()}

    def to_markdown(self) -> str:
        """Render the card as Markdown, for a file in the model's folder."""
        lines = [
            f"# {_plain(self.model)}, adapted",
            "",
            f"{self.n_removed:,} tokens that the text does not need made room for "
            f"{self.n_added:,} new ones (`vocabshift adapt`); {self.n_kept:,} kept their rows, and "
            f"{self.n_moved or 'none'} of these moved to another id. {self.n_relearned:,} were "
            f"taken out and learned again. New rows: `{self.init}`. Not trained since.",
            "",
            "| | before | after |",
            "| --- | ---: | ---: |",
            *(f"| {name} | {old} | {new} |" for name, old, new in self.sizes()),
            "",
            f"Bytes per token: {self.judged_on}. Bits per byte: {self.scored_on}.",
            "",
            to_markdown(self.results),
            f"New, for example: {_samples(self.added_sample)}",
            "",
            f"Gone, for example: {_samples(self.removed_sample)}",
            *(["", "Files of the model that were left out:", ""] if self.left_out else []),
            *(f"- {_plain(name)}: {reason}" for name, reason in self.left_out.items()),
        ]
        return "\n".join(lines) + "\n"

    def sizes(self) -> list[tuple[str, str, str]]:
        """Rows of (quantity, before, after), formatted for display."""
        sides = (self.before, self.after)
        counted = ("–" if side.parameters is None else f"{side.parameters:,}" for side in sides)
        return [
            ("rows", *_pair(f"{side.rows:,}" for side in sides)),
            ("parameters, as stored", *_pair(counted)),
            ("bytes of weights", *_pair(f"{side.weights_bytes:,}" for side in sides)),
        ]


def tables_of(card: Mapping[str, Any]) -> list[Table]:
    """One table per metric from a card's results, given as plain JSON values."""
    results = Results(Result(**row) for row in card["results"])
    return [to_rich(results, metric) for metric in results.distinct("metric")]


def measure_tokens(old: AnyKind, new: AnyKind, text: Corpus, *, threads: int = 1) -> Results:
    """Bytes per token of both tokenizers on all of `text`, by language."""
    return evaluate({BEFORE: old, AFTER: new}, text, "bytes_per_token", threads=threads)


def measure_bits(
    folder: Path,
    tokenizer: AnyKind,
    texts: Mapping[str, Sequence[str]],
    subject: str,
    *,
    device: str | None = None,
) -> tuple[Results, str]:
    """Bits per byte of the model in a folder, by language, and the reason if there are none, or "".

    The model is loaded whole (on `device`, by default the CPU; a quantized one on a GPU if there
    is one) and freed afterwards. A quantized one that cannot be loaded here is no error.
    """
    if config_file(folder).name != CONFIG:
        return Results(), "none: transformers does not load GLiNER's models"
    if quantization_method(load_configs(folder)[0]) is None:
        model = load_model(folder)
    else:
        torch_device(device or "auto")  # an error of the caller
        try:
            model = load_causal_model(folder, dtype="auto", device=device or "auto")
        except ValueError as error:
            return Results(), f"none: {error}"
        device = None  # it is there
    if model.config.is_encoder_decoder or not model.can_generate():
        return Results(), f"none: {type(model).__name__} does not predict text from left to right"
    if device is not None:
        try:
            model.to(device)
        except (RuntimeError, AssertionError) as error:  # no such device, or too little memory
            raise ValueError(f"the model cannot be scored on {device!r}: {error}") from None
    rows = score(model, tokenizer, texts, subject=subject, batch_tokens=_BATCH_TOKENS)
    finite = [row for row in rows if _is_finite(row)]
    if len(finite) < len(rows):
        lost = ", ".join(row.language for row in rows if not _is_finite(row))
        return Results(finite), f"none for {lost}: the model's logits are not finite there"
    return rows, ""


def sample_texts(
    tokenizer: AnyTokenizer, tokens: Sequence[str], *, evenly: bool
) -> tuple[str, ...]:
    """The text of some tokens, in order or sampled evenly."""
    step = max(1, len(tokens) // SAMPLE) if evenly else 1
    data, vocab = tokenizer.token_bytes, tokenizer.vocab
    special = {token.content: token.content.encode() for token in tokenizer.added_tokens}
    chosen = tokens[::step][:SAMPLE]
    spelled = (special.get(token) or data[vocab[token]] for token in chosen)
    return tuple(each.decode("utf-8", "backslashreplace") for each in spelled)


def _pair(cells: Iterable[str]) -> tuple[str, str]:
    first, second = cells
    return first, second


def _is_finite(row: Result) -> bool:
    return all(math.isfinite(v) for v in (row.value, row.ci_low, row.ci_high) if v is not None)


def _samples(texts: Sequence[str]) -> str:
    return ", ".join(map(_code, texts)) or "none"


def _code(text: str) -> str:
    """A token as quoted Markdown code, with its spaces visible and markup escaped."""
    quoted = printable(text)
    fence = "``" if "`" in quoted else "`"
    return f'{fence}"{quoted}"{fence}'


def _plain(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
