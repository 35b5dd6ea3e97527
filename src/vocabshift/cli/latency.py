"""`vocabshift latency`: how fast models read and generate text, in bytes and in tokens."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_many, add_verb, natural, positive
from vocabshift.cli.source import add_errors, text_of
from vocabshift.cli.subjects import defaults_of
from vocabshift.workflows.measure_models import DTYPES, measure_latency

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "latency",
        "time models: first token, tokens and bytes per second",
        "Time causal models on prompts of each language: seconds to the first token, then\n"
        "tokens, bytes and characters a second, tokens of a prompt, peak memory. Prompts are cut\n"
        "by bytes, answers are greedy and of a fixed number of tokens, models take turns. Needs\n"
        "the [hf] extra, or with --server an OpenAI-compatible server such as vLLM.",
        "  vocabshift latency models/llama llama-ist --text hi=hindi.txt en=english.txt\n"
        "  vocabshift latency llama llama-ist --server http://localhost:8000/v1 "
        "http://localhost:8001/v1 --text hi=hindi.txt --json\n",
    )
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="model folder or Hub name; with --server the name that the server knows",
    )
    add_many(parser, "--text", metavar="SPEC", required=True, help="text to make prompts of")
    add_errors(parser)
    add_many(
        parser, "--server", metavar="URL", help="ask servers: one for all models, or one for each"
    )
    numbers = (
        ("n_prompts", positive, "prompts of each language"),
        ("prompt_bytes", positive, "bytes of a prompt"),
        ("max_new_tokens", positive, "tokens of an answer"),
        ("repeats", positive, "rounds over all prompts"),
        ("warmup", natural, "requests to each model that are not timed"),
    )
    for name, kind, what in numbers:
        parser.add_argument(
            "--" + name.replace("_", "-"),
            metavar="N",
            type=kind,
            default=defaults_of(measure_latency)[name],
            help=f"{what} (default: %(default)s)",
        )
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    parser.add_argument("--dtype", choices=DTYPES, help="of the weights (default: float32)")
    parser.add_argument(
        "--trust-remote-code", action="store_true", help="run Python code that a model brings"
    )
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Time the models, and write the rows if requested."""
    from vocabshift.cli.console import progress_bar

    corpus = text_of(args.text, args)
    with progress_bar() as progress:
        found = measure_latency(
            args.models,
            corpus,
            servers=args.server or (),
            n_prompts=args.n_prompts,
            prompt_bytes=args.prompt_bytes,
            max_new_tokens=args.max_new_tokens,
            repeats=args.repeats,
            warmup=args.warmup,
            device=args.device,
            dtype=args.dtype,
            trust_remote_code=args.trust_remote_code,
            output=args.output,
            force=args.force,
            progress=progress,
        )
    return {
        "results": found.results.to_dicts(),
        "spread": found.spread,
        "requests": [request.to_dict() for request in found.requests],
    }


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print one table, and the spread of the repeats."""
    from vocabshift.results import Result, Results
    from vocabshift.workflows.measure_models import latency_table

    results = Results(Result(**row) for row in result["results"])
    console.print(latency_table(results))
    values = [
        (row["sd"], results.value(row["subject"], row["language"], row["metric"]))
        for row in result["spread"]
    ]
    shares = [sd / value for sd, value in values if value]  # 0: tokens without text
    if shares:
        console.print(
            f"±: half the 95 % interval over {args.repeats} repeats; the standard deviation "
            f"between repeats is up to {max(shares):.0%} of a value"
        )
    if args.output is not None:
        console.print(f"written: {args.output}", markup=False, soft_wrap=True)
