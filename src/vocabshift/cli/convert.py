"""`vocabshift convert`: a GGUF file as a plain Hugging Face folder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_output, add_verb

if TYPE_CHECKING:
    from rich.console import Console

_DTYPES = ("bfloat16", "float16", "float32")


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "convert",
        "write the model in a GGUF file as a Hugging Face folder",
        "Write the model in a GGUF file as a plain Hugging Face folder: weights, dequantized,\n"
        "config, tokenizer with the pre-tokenizer that the file names, and chat template.\n"
        "Architectures: llama (with Mistral), mistral3, qwen2, qwen3, gemma, gemma2, gemma3.",
        "  vocabshift convert SmolLM2-135M-Instruct.Q4_1.gguf -o smollm2\n"
        "  vocabshift convert model.gguf --dtype float32 -o model --json\n",
    )
    parser.add_argument("source", metavar="FILE.gguf", help="the file")
    parser.add_argument(
        "--dtype",
        choices=_DTYPES,
        default=_DTYPES[0],
        help="of the weights (default: %(default)s; on a CPU without bf16 instructions, float32 "
        "is faster)",
    )
    parser.add_argument(
        "--pattern",
        metavar="NAME|REGEX",
        help="pre-tokenizer, where the file names one that is not known",
    )
    add_output(parser, what="folder to write")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Convert and write the output folder."""
    from vocabshift import convert_gguf
    from vocabshift.cli.console import progress_bar

    with progress_bar(in_bytes=True) as progress:
        return convert_gguf(
            args.source,
            args.out,
            dtype=args.dtype,
            pattern=args.pattern,
            force=args.force,
            progress=progress,
        )


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import show_summary

    types = ", ".join(f"{count} {kind}" for kind, count in result["types"].items())
    facts = {
        "written to": result["out"],
        "architecture": result["architecture"],
        "parameters": result["n_parameters"],
        "tensors": types,
        "weights": f"{result['dtype']}, {result['bytes_after'] / 1e6:,.1f} MB",
        "the file": f"{result['bytes_before'] / 1e6:,.1f} MB",
        "tokens": result["n_tokens"],
        "embedding rows": result["vocab_size"],
        "pre-tokenizer": result["pre_tokenizer"] or "none (SentencePiece)",
        "embeddings": "tied" if result["tied"] else "not tied",
        "chat template": "yes" if result["has_chat_template"] else "none",
    }
    show_summary(console, "convert", facts, f"vocabshift check {result['out']}")
