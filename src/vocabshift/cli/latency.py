"""`vocabshift latency`: how fast models read and write text, in bytes as well as in tokens."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError, add_many, add_verb, positive

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift.evaluation.latency.latency import Responder
    from vocabshift.results import Results

DTYPES = ("float32", "bfloat16", "float16")


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
    add_many(
        parser, "--server", metavar="URL", help="ask servers: one for all models, or one for each"
    )
    numbers = (
        ("--n-prompts", 20, "prompts of each language"),
        ("--prompt-bytes", 512, "bytes of a prompt"),
        ("--max-new-tokens", 64, "tokens of an answer"),
        ("--repeats", 10, "rounds over all prompts"),
    )
    for flag, default, what in numbers:
        parser.add_argument(
            flag, metavar="N", type=positive, default=default, help=f"{what} (default: {default})"
        )
    parser.add_argument(
        "--warmup",
        metavar="N",
        type=_warmup,
        default=5,
        help="requests to each model that are not timed (default: 5)",
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
    """Time them, and write the rows where that is asked for."""
    from pathlib import Path

    from vocabshift.cli.console import progress_bar
    from vocabshift.evaluation.latency.latency import cut_prompts, measure_latency
    from vocabshift.storage.output import check_free_file, write_whole
    from vocabshift.text.corpus import Corpus

    corpus = Corpus.from_specs(args.text)
    if args.output is not None:
        check_free_file(args.output, force=args.force, inputs=corpus.paths)
    prompts = cut_prompts(corpus, n_prompts=args.n_prompts, prompt_bytes=args.prompt_bytes)
    responders = _responders(args)
    with progress_bar() as progress:
        found = measure_latency(
            responders, prompts, warmup=args.warmup, repeats=args.repeats, progress=progress
        )
    if args.output is not None:
        write_whole(Path(args.output), found.results.to_jsonl())
    return {
        "results": found.results.to_dicts(),
        "spread": found.spread,
        "requests": [request.to_dict() for request in found.requests],
    }


def _responders(args: argparse.Namespace) -> dict[str, Responder]:
    """What answers, by the name that its rows carry."""
    from vocabshift.evaluation.lines.subject import subject_names

    names = subject_names(args.models)
    if not args.server:
        from vocabshift.evaluation.latency.local import load_local

        options = {"max_new_tokens": args.max_new_tokens, "device": args.device or "auto"}
        options |= {"dtype": args.dtype or "float32", "trust_remote_code": args.trust_remote_code}
        return {
            name: load_local(model, **options)
            for name, model in zip(names, args.models, strict=True)
        }
    if args.device or args.dtype or args.trust_remote_code:
        raise UsageError("--device, --dtype and --trust-remote-code are the server's own matter")
    if len(args.server) not in (1, len(args.models)):
        raise UsageError(
            f"{len(args.server)} addresses after --server for {len(args.models)} models; give one, "
            "or one for each"
        )
    from vocabshift.evaluation.latency.server import ServedModel

    servers = args.server * (len(args.models) if len(args.server) == 1 else 1)
    return {
        name: ServedModel(url, model, max_new_tokens=args.max_new_tokens)
        for name, model, url in zip(names, args.models, servers, strict=True)
    }


def _warmup(text: str) -> int:
    """0 or more, as argparse's `type`."""
    return 0 if text == "0" else positive(text)


_COLUMNS = {  # heading and what a value is multiplied with, by metric
    "input_tokens": ("input tokens", 1),
    "ttft_seconds": ("first token, ms", 1e3),
    "output_tokens_per_second": ("tokens/s", 1),
    "output_bytes_per_second": ("bytes/s", 1),
    "output_characters_per_second": ("characters/s", 1),
    "text_bytes_per_second": ("bytes of text/s", 1),
    "peak_memory_bytes": ("memory, MB", 1e-6),
}


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """One table, models under each language: values with half the 95 % interval."""
    from rich.table import Table
    from rich.text import Text

    from vocabshift.report import escape
    from vocabshift.results import Result, Results

    results = Results(Result(**row) for row in result["results"])
    shown = [metric for metric in _COLUMNS if results.where(metric=metric)]
    table = Table(title=Text("latency", style="bold"), title_justify="left")
    for heading in ("language", "model"):
        table.add_column(heading)
    for metric in shown:
        table.add_column(_COLUMNS[metric][0], justify="right")
    for language in results.distinct("language"):
        for subject in results.distinct("subject"):
            rows = results.where(subject=subject, language=language)
            cells = [_cell(rows.where(metric=m), _COLUMNS[m][1]) for m in shown]
            names = (escape.visible(language), escape.visible(subject))
            table.add_row(*map(Text, (*names, *cells)))
        table.add_section()
    console.print(table)
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


def _cell(rows: Results, unit: float) -> str:
    """Three digits or more."""
    if not rows:
        return "–"
    [row] = rows
    value = row.value * unit
    decimals = max(0, 2 - len(f"{int(abs(value))}") + 1)
    text = f"{value:,.{decimals}f}"
    if row.ci_low is not None and row.ci_high is not None:
        text += f" ±{(row.ci_high - row.ci_low) / 2 * unit:,.{decimals}f}"
    return text
