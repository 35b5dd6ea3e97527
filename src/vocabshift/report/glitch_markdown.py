"""A glitch report as Markdown: facts, what to do, classes, the curve, the most suspect tokens.

Takes the plain values that `--json` has. Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vocabshift.report.escape import markdown

Row = Mapping[str, Any]

_MOST_LISTED = 50


def glitch_markdown(summary: Row, tokens: Sequence[Row]) -> str:
    """The document; names of others are shown as they are and never obeyed."""
    reference, threshold = summary["reference"], summary["threshold"]
    tied = "tied" if summary["tied"] else "untied"
    bias = ", head with bias" if summary["head_bias"] else ""
    parts = [
        f"# Glitch tokens of {markdown(summary['model'])}",
        f"- model: {summary['rows']:,} rows of {summary['width']:,} numbers ({summary['dtype']}), "
        f"{tied}{bias}, {summary['padding']:,} rows of padding; embeddings "
        f"`{summary['embeddings']}`, tokenizer `{summary['tokenizer']}`",
        f"- indicator: {summary['indicator']}, {_number(summary['mean'])} ± "
        f"{_number(summary['std'])} over {summary['n_judged']:,} tokens that text yields",
        f"- reference: {reference['why'] if reference else 'none is known'}",
        f"- threshold: {_number(threshold['value'])}, {threshold['why']}",
        f"- **suspect: {summary['n_suspect']:,}**",
    ]
    parts += [f"- note: {note}" for note in summary["notes"]]
    if summary["drift"] is not None:
        drift = summary["drift"]
        parts.append(f"- drift: {drift['n_matched']:,} rows matched, {drift['how']}")
    if summary["verification"] is not None:
        verdicts = summary["verification"]["verdicts"]
        said = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in verdicts.items())
        parts.append(f"- verification of {summary['verification']['n_tokens']:,} tokens: {said}")
    groups = [
        (g["action"], g["class"], g["tokens"], g["why"], " ".join(map(repr, g["examples"][:5])))
        for g in summary["groups"]
    ]
    parts += ["\n## What to do\n", _table(("do", "class", "tokens", "why", "for example"), groups)]
    classes = [
        (row["class"], row["tokens"], row["suspect"], _number(row["mean"]))
        for row in summary["classes"]
    ]
    parts += ["\n## Classes\n", _table(("class", "tokens", "suspect", "mean"), classes)]
    if summary["curve"]:
        rows = [(row["k"], row["last_tenth"], row["superwords"]) for row in summary["curve"]]
        parts += [
            "\n## Of the K nearest to unused rows\n",
            _table(("K", "last 10 % of ids", "superwords"), rows),
        ]
    wanted = [row for row in tokens if row["is_suspect"] or row["action"]]
    listed = [row for row in wanted if row["class"] != "dummy"][:_MOST_LISTED]
    cells = [
        (
            *(row["id"], _name(row), row["class"], _number(row["indicator"])),
            *(_number(row["z"]), "–" if row["count"] is None else row["count"]),
            *(_number(row["max_probability"]), row["action"] or "–"),
        )
        for row in listed
    ]
    heads = ("id", "token", "class", "indicator", "z", "count", "probability", "do")
    parts += ["\n## The most suspect tokens\n", _table(heads, cells)]
    return "\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return "There is none."
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    lines += [
        f"| {' | '.join(f'{c:,}' if isinstance(c, int) else markdown(str(c)) for c in row)} |"
        for row in rows
    ]
    return "\n".join(lines)


def _name(row: Row) -> str:
    """A token as text where it is text, else as the vocabulary spells it."""
    return repr(row["token"] if row["text"] is None else row["text"])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
