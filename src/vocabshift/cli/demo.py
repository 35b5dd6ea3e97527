"""`vocabshift demo`: the whole pipeline on text that comes with the package."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_output, add_verb

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_FOLDER = "vocabshift-demo"


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "demo",
        "train, transfer, continue and measure, on text in the package",
        "Train an IST tokenizer on sample text in the package, move a small Llama onto it, "
        "continue\nits training and print what changed. Needs the [hf] extra and a few minutes.",
        "  vocabshift demo\n  vocabshift demo -o walk --force --json\n",
    )
    add_output(parser, what=f"folder to write (default: {DEFAULT_FOLDER})", required=False)
    parser.set_defaults(out=DEFAULT_FOLDER, run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the demo, which reports its own progress."""
    from vocabshift.demo.walk import run_demo

    return dict(run_demo(args.out, force=args.force, json=args.json))


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print nothing: the demo has printed its own summary."""
