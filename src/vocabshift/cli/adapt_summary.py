"""What `vocabshift adapt` tells people at the end: what was exchanged, and what it brought."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """What was exchanged and what it brought."""
    from vocabshift.cli.console import show_summary

    pruning = result["pruning"]
    for warning in pruning["warnings"]:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    facts = {
        "written to": result["out"],
        "tokens taken out": result["n_removed"],
        "new tokens": result["n_added"],
        "taken out and learned again": result["n_relearned"],
        "removals decided by ties": pruning["n_decided_by_ties"],
        "vocabulary": result["vocab_size"],
        "rows of a model": result["rows"],
    }
    out = result["out"]
    if "card" in result:
        _show_card(result, facts, console)
        then = f"vocabshift evaluate {out} --text SPEC"
    else:
        console.print(_table(result))
        then = f"vocabshift check {out}    or    vocabshift transfer MODEL {out}"
    show_summary(console, "adapt", facts, then)


def _table(result: dict[str, Any]) -> Any:
    """Bytes per token of the corpus, from the tokenizer given to the one written."""
    from rich.table import Table
    from rich.text import Text

    from vocabshift.bpe.drift import UNLABELLED

    table = Table(title=Text("bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    for name in ("before", "after", "ceiling", "new tokens used", "share of its tokens"):
        table.add_column(name, justify="right")
    pruned = {row["language"] or UNLABELLED: row for row in result["pruning"]["languages"]}
    for row in result["extension"]["languages"]:
        shrunk, prune_first = pruned[row["language"]], result["first"] == "prune"
        before = (shrunk if prune_first else row)["bytes_per_token_before"]
        after = row["bytes_per_token"] if prune_first else shrunk["bytes_per_token_after"]
        table.add_row(
            Text(row["language"]),
            f"{before:.3f}",
            Text(f"{after:.3f}", style="bold"),
            f"{row['ceiling_bytes_per_token']:.2f}",
            f"{row['new_tokens_used']:,}",
            f"{row['new_tokens_share']:.1%}",
        )
    return table


def _show_card(result: dict[str, Any], facts: dict[str, Any], console: Console) -> None:
    """Tables of before and after on held-out text, and what the model has to say beside them."""
    from vocabshift.report.tables import to_rich
    from vocabshift.results import Result, Results

    card = result["card"]
    results = Results(Result(**row) for row in card["results"])
    for metric in results.distinct("metric"):
        console.print(to_rich(results, metric))
    facts["exchange"] = f"{result['n_tokens']:,} tokens" + (
        ", by the curve of plan" if result["n_tokens_is_planned"] else ", as asked for"
    )
    facts["ids of kept tokens that moved"] = result["n_moved"] or "none"
    facts[f"rows made ({result['init']})"] = result["n_initialized"]
    if "tried" in result:
        facts["tried, bits per byte"] = ", ".join(
            f"{row['init']} {row['bits_per_byte']:.4f}" for row in result["tried"]
        )
    facts["output head"] = "tied to the embeddings" if result["tied"] else "of its own"
    for name, key in (("parameters", "parameters"), ("bytes of weights", "weights_bytes")):
        if card["before"][key]:
            facts[name] = f"{card['before'][key]:,} before, {card['after'][key]:,} after"
    facts["bytes per token"] = card["judged_on"]
    facts["bits per byte"] = card["scored_on"]
    for name in ("added", "removed"):
        facts[f"{name}, for example"] = " ".join(
            f'"{text}"' for text in card[f"{name}_sample"][:8] if text.isprintable()
        )
    for number, note in enumerate(result["notes"], 1):
        facts[f"note {number}"] = note
