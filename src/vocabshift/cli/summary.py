"""What verbs print after their work: a summary, and the parts of it that several verbs share.

Owns how a result's facts are worded for people. Imports rich on first use.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def show_summary(console: Console, title: str, facts: Mapping[str, Any], then: str) -> None:
    """Print a summary: the figures, the output path and the next command."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in facts.items():
        table.add_row(Text(name), Text(f"{value:,}" if isinstance(value, int) else str(value)))
    console.print(table)
    console.print(Text.assemble("next: ", (then, "bold")), soft_wrap=True)


def shell_line(*words: object) -> str:
    """The words as one line to paste into a shell; placeholders such as DIR stay as they are."""
    return shlex.join(map(str, words))


def file_facts(result: Mapping[str, Any]) -> dict[str, str]:
    """What a summary says about the files of a model: what was done with them or why not."""
    groups: dict[str, list[str]] = {}
    for name, done in sorted(result["files"].items()):
        groups.setdefault(f"files: {done}", []).append(name)
    for name, reason in sorted(result["left_out"].items()):
        groups.setdefault(f"left out: {reason}", []).append(name)
    return {what: ", ".join(names) for what, names in groups.items()}


def show_deployable(console: Console, chosen: Mapping[str, Any]) -> None:
    """Print the patterns of llama.cpp from the highest ceiling down, the chosen one in bold."""
    from rich.table import Table
    from rich.text import Text

    title = Text("patterns of llama.cpp: ceiling in bytes per token", style="bold")
    table = Table(title=title, title_justify="left")
    rows = chosen["candidates"]
    for name in ("pattern", "all", *rows[0]["ceilings"], "ids changed", "refused because"):
        table.add_column(Text(name))
    for row in rows:
        changed = f"{row['changed_tokens']:.2%}" if row["documents"] else "-"
        table.add_row(
            row["name"],
            f"{row['ceiling_bytes_per_token']:.2f}",
            *(f"{ceiling:.2f}" for ceiling in row["ceilings"].values()),
            changed,
            row["refused"],
            style="bold" if row["name"] == chosen["llama_cpp_pre"] else None,
        )
    console.print(table)
    if chosen["nearest"] and not chosen["is_named"]:
        near = next(row for row in rows if row["name"] == chosen["nearest"])
        console.print(
            f"{near['name']} has the ceiling {near['ceiling_bytes_per_token']:.2f} but "
            f"{near['refused']}. --pre-tokenizer {near['name']} takes it all the same.",
            soft_wrap=True,
        )


def deployable_facts(result: Mapping[str, Any]) -> dict[str, str]:
    """The row of a summary that names the chosen pattern; empty where none was asked for."""
    chosen = result.get("deployable")
    return {"pattern of llama.cpp": chosen["llama_cpp_pre"]} if chosen else {}


def lost_facts(result: Mapping[str, Any]) -> dict[str, str]:
    """What a summary says about characters that a tokenizer loses; nothing where it lacks none."""
    lost = result.get("lost_characters")
    if not lost:
        return {}
    facts = {}
    if lost["bytes_added"]:
        facts["bytes added"] = " ".join(lost["bytes_added"])
    if lost["before"] or lost["after"]:
        more = ", …" if lost["after"] > len(lost["names"]) else ""
        named = f" ({', '.join(lost['names'])}{more})" if lost["names"] else ""
        facts["assigned characters lost"] = (
            f"{lost['before']:,} before, {lost['after']:,} after{named}"
        )
    return facts


_HOW = {
    "present": "already one token",
    "merges": "merges",
    "entry": "vocabulary entry",
    "added": "added token",
    "refused": "not added",
}
MOST_WORDS = 40


def show_names(console: Console, result: Mapping[str, Any]) -> dict[str, Any]:
    """Print what became of words and special tokens, and the cost; return facts for the summary.

    Words that are already one token are only counted; of more than MOST_WORDS the first are shown.
    """
    from rich.table import Table
    from rich.text import Text

    words, by_name = result["words"], result["by_name"]
    shown = [row for row in words if row["how"] != "present"]
    is_measured = any("other_tokens_changed" in row for row in shown)
    if shown:
        table = Table(title=Text("words", style="bold"), title_justify="left")
        table.add_column("word")
        table.add_column("how")
        columns = ("tokens alone", "after a space", "new tokens")
        for name in (*columns, *(("changed in other words",) if is_measured else ())):
            table.add_column(name, justify="right")
        table.add_column("why")
        for row in shown[:MOST_WORDS]:
            table.add_row(
                Text(row["word"]),
                _HOW[row["how"]],
                f"{row['alone_before']} -> {row['alone']}",
                f"{row['spaced_before']} -> {row['spaced']}",
                str(len(row["new_tokens"])),
                *((f"{row['other_tokens_changed']:,}",) if is_measured else ()),
                Text(row["reason"]),
            )
        console.print(table)
        if len(shown) > MOST_WORDS:
            console.print(f"and {len(shown) - MOST_WORDS:,} more (--json lists all)")
    facts: dict[str, Any] = {"of them by name": by_name["n_added"]}
    counts = Counter(row["how"] for row in words)
    facts |= {f"words, {_HOW[how]}": counts[how] for how in _HOW if counts[how]}
    if by_name["n_between"]:
        facts["tokens in between, for merges alone"] = by_name["n_between"]
    for row in by_name["effects"]:
        share = row["other_tokens"] / max(row["tokens"], 1)
        facts[f"changed in other words, {row['language']}"] = (
            f"{row['other_tokens']:,} of {row['tokens']:,} tokens ({share:.3%})"
        )
    for row in result["special_tokens"]:
        what = f", {row['role']}" if row["role"] else ""
        about = f": {row['description']}" if row["description"] else ""
        facts[f"special token {row['token']}"] = f"{row['how']}, id {row['id']}{what}{about}"
    return facts
