"""LoRA adapters: `vocabshift merge`, and `vocabshift transfer` of an adapter."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError, add_output, add_verb

if TYPE_CHECKING:
    from rich.console import Console


def add_merge(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "merge",
        "merge a LoRA adapter into its base model",
        "Write a model with a LoRA adapter (of PEFT, or of a phase `lora` of cpt) merged into its\n"
        "weights, as a plain folder. Shards are streamed: the model is never in memory. DoRA and\n"
        "other adapters that do more than add to weights are refused. Needs the [hf] extra.",
        "  vocabshift merge runs/llama-lora/adapter -o llama-merged\n"
        "  vocabshift merge my-adapter --base models/llama -o llama-merged --dry-run\n",
    )
    parser.add_argument("adapter", metavar="ADAPTER", help="adapter folder or Hub name")
    parser.add_argument(
        "--base", metavar="MODEL", help="its base model; left out: the one that the adapter names"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and write nothing"
    )
    parser.add_argument(
        "--hard-links",
        action="store_true",
        help="link shards that do not change instead of copying them, where the disk can",
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh after a run that was killed"
    )
    add_output(parser, what="folder to write")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Merge and write the output folder."""
    from vocabshift import merge_adapter

    return merge_adapter(
        args.adapter,
        args.out,
        base=args.base,
        force=args.force,
        hard_links=args.hard_links,
        resume=not args.no_resume,
        dry_run=args.dry_run,
    )


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import file_facts, shell_line, show_summary

    facts = {
        "written to": result["out"],
        "base": result["base"],
        "layers with LoRA": result["n_lora"],
        "rows of tokens": result["n_rows"],
        "tensors replaced": result["n_replaced"],
        "tensors changed": f"{result['n_changed']:,} of {result['n_tensors']:,}",
        "size": f"{result['n_bytes'] / 1e6:,.1f} MB",
    }
    facts |= file_facts(result)
    if result["dry_run"]:
        facts = {"written": "nothing: a dry run"} | facts
    then = shell_line("vocabshift", "score", result["out"], "--text", "SPEC")
    show_summary(console, "merge", facts, then)


def move_adapter(args: argparse.Namespace, given: list[str]) -> dict[str, Any]:
    """Move the rows of an adapter, for `transfer`; `given`: its flags that were given."""
    from vocabshift import transfer_adapter

    useless = [name for name in given if name != "dry_run"]
    if useless:
        flag = useless[0].replace("_", "-")
        raise UsageError(f"--{flag} is of no use for an adapter, whose rows only move")
    return transfer_adapter(
        args.model, args.tokenizer, args.out, force=args.force, dry_run=args.dry_run
    )


def show_moved(result: dict[str, Any], console: Console) -> None:
    """Print a summary of a moved adapter."""
    from vocabshift.cli.summary import shell_line, show_summary

    facts = {
        "written to": "nothing: a dry run" if result["dry_run"] else result["out"],
        "its base model": result["base"],
        "layers": result["n_layers"],
        "rows of tokens moved": result["n_rows_moved"],
        "rows dropped, of tokens that are gone": result["n_rows_dropped"],
    }
    facts |= {f"note {number}": note for number, note in enumerate(result["notes"], 1)}
    then = shell_line("vocabshift", "merge", result["out"], "-o", "DIR")
    show_summary(console, "transfer", facts, then)
