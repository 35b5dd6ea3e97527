"""What `vocabshift train` tells people at the end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Summary for people."""
    from vocabshift.bpe.vocabulary_report import VocabularyReport
    from vocabshift.cli.console import show_summary

    merges = f"{result['merges']:,}"
    if result["stage2_merges"]:
        merges += f" ({result['stage1_merges']:,} + {result['stage2_merges']:,} in stage 2)"
    facts = {
        "written to": result["out"],
        "recipe": result["recipe"],
        "vocabulary": result["vocab_size"],
        "merges": merges,
        "superwords": result["superwords"],
        "tokens of the corpus": result["training_tokens"],
        **_boundless_facts(result),
        **_picky_facts(result),
        **_overlap_facts(result),
        **_on_top_facts(result),
        "unreachable tokens": result["unreachable"],
        **_memory_facts(result),
        "seconds": f"{sum(phase['seconds'] for phase in result['phases']):.1f}",
        "config hash": result["config_hash"],
    }
    then = (
        f"vocabshift evaluate {result['out']} --text SPEC    or    vocabshift check {result['out']}"
    )
    console.print(VocabularyReport.from_rows(result["vocabulary"]).to_rich())
    show_summary(console, "train", facts, then)


def _memory_facts(result: dict[str, Any]) -> dict[str, Any]:
    """What a memory budget took away; nothing where the result is exact."""
    facts: dict[str, Any] = {}
    if result.get("dropped_words"):
        facts["words left out for want of memory"] = result["dropped_words"]
        facts["how often these stand in the text"] = result["dropped_occurrences"]
        facts["each of them counts less than"] = result["dropped_below"]
    if result["stopped_because"] == "memory":
        facts["stopped early"] = "the memory budget has no room for rarer superwords"
        facts["pairs missing count less than"] = result["stopped_below"]
    return facts


def _boundless_facts(result: dict[str, Any]) -> dict[str, Any]:
    """How far the exported tokenizer is from BoundlessBPE itself."""
    if "boundless_tokens" not in result:
        return {}
    return {
        "tokens by BoundlessBPE itself": result["boundless_tokens"],
        "documents that differ": f"{result['documents_differing']:.1%}",
    }


def _picky_facts(result: dict[str, Any]) -> dict[str, Any]:
    """How far the exported tokenizer is from PickyBPE itself."""
    if "removals" not in result:
        return {}
    words = max(result["words"], 1)
    per_word = (result["training_tokens"] / words, result["replayed_tokens"] / words)
    return {
        "tokens removed / written all the same": f"{result['removals']:,} / {result['returned']:,}",
        "kept tokens without room": result["left_out"],
        "tokens by PickyBPE itself": result["replayed_tokens"],
        "tokens per word, as written / by PickyBPE": "{:.4f} / {:.4f}".format(*per_word),
        "words / tokens that differ": f"{result['words_differing']:.2%} / "
        f"{result['tokens_differing']:.2%}",
    }


def _overlap_facts(result: dict[str, Any]) -> dict[str, Any]:
    """Who was to share with whom."""
    if "high_resource" not in result:
        return {}
    return {
        "high-resource languages": ", ".join(result["high_resource"]),
        "low-resource languages": ", ".join(result["low_resource"]),
    }


def _on_top_facts(result: dict[str, Any]) -> dict[str, Any]:
    """What the new walls alone changed in the base, and what other walls would have."""
    if "tokens_lost" not in result:
        return {}
    names = (f"{c['name']} {c['changed_tokens']:.2%}" for c in result["candidates"])
    changed = (
        f"{language} {share:.1%} / {result['changed_tokens'][language]:.2%}"
        for language, share in result["changed_lines"].items()
    )
    return {
        "superwords on top of": f"{result['base']} ({result['new_tokens']:,} new tokens)",
        "pattern": result["stage2_pre_tokenizer"],
        "tokens that each pattern changes": ", ".join(names),
        "lines / tokens changed by walls alone": ", ".join(changed),
        "tokens of the base lost": len(result["tokens_lost"]),
    }
