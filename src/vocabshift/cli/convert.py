"""`vocabshift convert`: a GGUF file as a plain Hugging Face folder, and the other way round."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_errors, text_of
from vocabshift.cli.options import UsageError, add_many, add_output, add_verb

if TYPE_CHECKING:
    from rich.console import Console

_DTYPES = ("bfloat16", "float16", "float32")
_TYPES = ("F32", "F16", "BF16", "Q8_0")


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "convert",
        "write the model in a GGUF file as a Hugging Face folder, or a folder as a GGUF file",
        "Write the model in a GGUF file as a plain Hugging Face folder: weights, dequantized,\n"
        "config, tokenizer with the pre-tokenizer that the file names, and chat template. Or\n"
        "write a folder as a GGUF file, for llama.cpp: -o FILE.gguf. Its tokenizer is compared\n"
        "with what llama.cpp will make of it, by ids; where none of llama.cpp's pre-tokenizers\n"
        "fits, nothing is written, and the lines that would teach it one are printed.\n"
        "Architectures: llama (with Mistral), mistral3, qwen2, qwen3, gemma, gemma2, gemma3.",
        "  vocabshift convert SmolLM2-135M-Instruct.Q4_1.gguf -o smollm2\n"
        "  vocabshift convert smollm2 --dtype Q8_0 --text hi=hindi.txt -o smollm2-q8.gguf\n",
    )
    parser.add_argument("source", metavar="FILE.gguf|DIR", help="the file, or the model's folder")
    parser.add_argument(
        "--dtype",
        choices=(*_DTYPES, *_TYPES),
        help=f"of the weights. Of a folder {', '.join(_DTYPES)} (default: {_DTYPES[0]}; on a CPU "
        f"without bf16 instructions, float32 is faster); of a file {', '.join(_TYPES)} (default: "
        "as the folder has them)",
    )
    parser.add_argument(
        "--pattern",
        metavar="NAME|REGEX",
        help="pre-tokenizer, where the file names one that is not known",
    )
    parser.add_argument(
        "--pre",
        metavar="NAME",
        help="for a file: write this name of a pre-tokenizer of llama.cpp, and compare no ids",
    )
    add_many(parser, "--text", metavar="SPEC", help="for a file: more text to compare ids on")
    add_errors(parser)
    add_output(parser, what="folder to write; a file, where it ends in .gguf")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Convert and write the output."""
    to_file = Path(args.out).suffix == ".gguf"
    if Path(args.source).is_dir() and not to_file:
        raise UsageError(f"{args.source} is a folder; name a file to write: -o FILE.gguf")
    known, others = (_TYPES, _DTYPES) if to_file else (_DTYPES, _TYPES)
    what = "file" if to_file else "folder"
    if args.dtype in others:
        raise UsageError(
            f"--dtype {args.dtype} is not of a {what}; it must be one of {', '.join(known)}"
        )
    wrong = ["--pattern"] if to_file and args.pattern else []
    if not to_file:
        wrong += [name for name in ("pre", "text") if getattr(args, name)]
    if wrong:
        raise UsageError(f"--{wrong[0].removeprefix('--')} is of no use where a {what} is written")
    return _to_file(args) if to_file else _to_folder(args)


def _to_folder(args: argparse.Namespace) -> dict[str, Any]:
    from vocabshift import convert_gguf
    from vocabshift.cli.console import progress_bar

    dtype: Any = args.dtype or _DTYPES[0]
    with progress_bar(in_bytes=True) as progress:
        return convert_gguf(
            args.source,
            args.out,
            dtype=dtype,
            pattern=args.pattern,
            force=args.force,
            progress=progress,
        )


def _to_file(args: argparse.Namespace) -> dict[str, Any]:
    from vocabshift import convert_to_gguf
    from vocabshift.cli.console import print_text, progress_bar
    from vocabshift.errors import NoPreTokenizerError

    try:
        with progress_bar(in_bytes=True) as progress:
            return convert_to_gguf(
                args.source,
                args.out,
                dtype=args.dtype or "auto",
                pre=args.pre,
                text=text_of(args.text, args) if args.text else None,
                force=args.force,
                progress=progress,
            )
    except NoPreTokenizerError as error:
        print_text(error.patch)
        raise


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import shell_line, show_summary

    types = ", ".join(f"{count} {kind}" for kind, count in result["types"].items())
    to_file = "chkhsh" in result
    facts = {
        "written to": result["out"],
        "architecture": result["architecture"],
        "parameters": result["n_parameters"],
        "tensors": types,
        "weights": f"{result['dtype']}, {result['bytes_after'] / 1e6:,.1f} MB",
        "the folder" if to_file else "the file": f"{result['bytes_before'] / 1e6:,.1f} MB",
        "tokens": result["n_tokens"],
        "embedding rows": result["vocab_size"],
        "pre-tokenizer": result["pre_tokenizer"] or "none (SentencePiece)",
        "embeddings": "tied" if result["tied"] else "not tied",
        "chat template": "yes" if result["has_chat_template"] else "none",
    }
    if to_file:
        facts["texts with equal ids"] = result["n_texts_compared"] or "none were compared"
        facts["converter's hash"] = result["chkhsh"]
    for number, warning in enumerate(result.get("warnings", ()), 1):
        facts[f"warning {number}"] = warning
    words = ("llama-cli", "-m") if to_file else ("vocabshift", "check")
    show_summary(console, "convert", facts, shell_line(*words, result["out"]))
