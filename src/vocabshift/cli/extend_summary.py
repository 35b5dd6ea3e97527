"""What `vocabshift extend` shows people: its tables, and advice about the pre-tokenizer.

Knows the verb's result and nothing else.
"""

from __future__ import annotations

from typing import Any

REASONS = {
    "n_tokens": "as many as asked for",
    "min_frequency": "no pair is left that occurs often enough",
    "no_token_left": "the auxiliary tokenizer has no more",
    "no_pair_left": "no pair is left in this text: every pre-token is one token",
}

LIFTS = 1.1
"""The repaired pre-tokenizer is worth a word where it lifts the ceiling by this factor."""


def language_table(result: dict[str, Any]) -> Any:
    """Bytes per token before and after, by language, with the most that is possible."""
    from rich.table import Table
    from rich.text import Text

    other = result["other_pre_tokenizer"]
    is_repaired = result["pre_tokenizer"] == "repaired"
    table = Table(title=Text("bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    before = ("as it was", "repaired, no new token") if is_repaired else ("before",)
    for name in (*before, "after", "ceiling", "new tokens used", "share of its tokens"):
        table.add_column(name, justify="right")
    for row in result.get("languages", ()):
        label = row["language"]
        cells = [f"{other['bytes_per_token'][label]:.3f}"] if is_repaired and other else []
        table.add_row(
            label,
            *cells,
            f"{row['bytes_per_token_before']:.3f}",
            Text(f"{row['bytes_per_token']:.3f}", style="bold"),
            f"{row['ceiling_bytes_per_token']:.2f}",
            f"{row['new_tokens_used']:,}",
            f"{row['new_tokens_share']:.1%}",
        )
    return table


def superword_table(effect: dict[str, Any]) -> Any:
    """What lifting the space wall changed, and what the superwords brought, by language."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("superwords: bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    for name in ("new words alone", "with superwords", "lines / tokens changed by walls alone"):
        table.add_column(name, justify="right")
    for row in effect["languages"]:
        label = row["language"]
        changed = effect["changed_lines"].get(label, 0.0)
        tokens = effect["changed_tokens"].get(label, 0.0)
        table.add_row(
            label,
            f"{row['bytes_per_token_before']:.3f}",
            Text(f"{row['bytes_per_token']:.3f}", style="bold"),
            f"{changed:.1%} / {tokens:.2%}",
        )
    return table


def advice(result: dict[str, Any]) -> list[str]:
    """What people should know about the pre-tokenizer."""
    other = result["other_pre_tokenizer"]
    if not other:
        return []
    lines = []
    if other["pre_tokenizer"] == "repaired":
        lifted = [
            f"{label} {ceiling:.2f} -> {other['ceilings'][label]:.2f}"
            for label, ceiling in result["ceilings"].items()
            if other["ceilings"][label] > LIFTS * ceiling
        ]
        if lifted:
            lines.append(
                "The pre-tokenizer cuts words at combining marks, and no token reaches across. "
                "--pre-tokenizer repaired lifts the ceiling, in bytes per token: "
                + ", ".join(lifted)
                + "."
            )
    drift = result.get("drift")
    if drift:
        changed = ", ".join(
            f"{label} {lines_:.1%} of lines, {drift['changed_tokens'][label]:.2%} of tokens"
            for label, lines_ in drift["changed_lines"].items()
        )
        lines.append(f"The repaired pre-tokenizer alone changes old text: {changed}.")
    return lines
