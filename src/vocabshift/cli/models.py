"""The verbs that look into language models: `vocabshift glitch` and `vocabshift latency`.

`glitch` finds tokens that a model never learned; `latency` measures how fast models read and
generate text, in bytes and in tokens.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_errors, defaults_of, text_of
from vocabshift.cli.options import add_many, add_threads, add_verb, natural, positive, threads
from vocabshift.workflows.glitch import DTYPES, INDICATORS, glitch_to_files
from vocabshift.workflows.measure_models import measure_latency

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 15


def add_glitch(subparsers: Any) -> None:
    """Add the verb `glitch`."""
    parser = add_verb(
        subparsers,
        "glitch",
        "find tokens that a model never learned",
        "Find under-trained (glitch) tokens of a saved model: by its embeddings, which are read\n"
        "from the safetensors without loading the model, and with --verify by asking it.\n"
        "With --json `tokens` has every token, the most suspect first (--top N: so many).",
        "  vocabshift glitch models/llama --corpus hi=hindi.txt --html glitch.html\n"
        "  vocabshift glitch llama-ist-trained --initial llama-ist --indicator drift --verify 100 "
        "--json\n",
    )
    defaults = defaults_of(glitch_to_files)
    parser.add_argument("model", metavar="MODEL", help="model folder or Hub name")
    parser.add_argument(
        "--initial", metavar="MODEL", help="the model before it was trained: how far rows moved"
    )
    parser.add_argument(
        "--indicator",
        choices=INDICATORS,
        default=defaults["indicator"],
        help="what decides. norm: of the input embeddings; cosine, centred, without-component, "
        "distance: of the head's rows to unused ones; bias: of the head; drift: from --initial. "
        "auto (default): norm, or cosine where embeddings and head are tied",
    )
    add_many(
        parser,
        "--reference",
        metavar="ID|TOKEN",
        help="rows known to be unused, ids, ranges (5-9) or tokens; default: dummies of "
        "--reserve-dummies, else rows beyond the tokenizer, impossible bytes, unused tokens",
    )
    add_many(parser, "--corpus", metavar="SPEC", help="text in which tokens are counted")
    add_errors(parser)
    parser.add_argument(
        "--verify",
        metavar="N",
        type=positive,
        help="ask the model for the N most suspect tokens (loads it; needs [hf])",
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default=defaults["dtype"],
        help="of the loaded model (default: %(default)s)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=positive,
        help=f"so many tokens (default: {_SHOWN} suspect ones, or all with --json)",
    )
    parser.add_argument("--output", metavar="FILE", help="also write all tokens as JSON lines")
    parser.add_argument("--markdown", metavar="FILE", help="also write a report as Markdown")
    parser.add_argument("--html", metavar="FILE", help="also write a report as one HTML file")
    parser.add_argument(
        "--prune-list",
        metavar="FILE",
        help="also write the tokens that are to stay, for `vocabshift prune --keep file:FILE`",
    )
    parser.add_argument("--force", action="store_true", help="replace what exists already")
    add_threads(parser)
    parser.set_defaults(run=run_glitch, show=show_glitch, status=lambda *_: 0)


def run_glitch(args: argparse.Namespace) -> dict[str, Any]:
    """Search, and write the requested files."""
    from vocabshift.cli.console import progress_bar

    corpus = text_of(args.corpus, args) if args.corpus else None
    with progress_bar() as progress:
        args.found = glitch_to_files(
            args.model,
            initial=args.initial,
            reference=args.reference or (),
            indicator=args.indicator,
            corpus=corpus,
            n_verify=args.verify or 0,
            dtype=args.dtype,
            output=args.output,
            markdown=args.markdown,
            html=args.html,
            prune_list=args.prune_list,
            force=args.force,
            threads=threads(args),
            progress=progress,
        )
    tokens = args.found.tokens
    return {
        "tokens": tokens[: args.top] if args.top else tokens,
        "summary": args.found.summary,
    }


def show_glitch(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the classes, what to do, and the most suspect tokens."""
    from rich.table import Table
    from rich.text import Text

    facts = result["summary"]
    title = Text(f"glitch tokens of {facts['model']}", style="bold")
    table = Table("class", title=title, title_justify="left")
    for column in ("tokens", "suspect", f"mean {facts['indicator']}"):
        table.add_column(column, justify="right")
    for row in facts["classes"]:
        mean = "–" if row["mean"] is None else f"{row['mean']:.4g}"
        table.add_row(row["class"], f"{row['tokens']:,}", f"{row['suspect']:,}", mean)
    console.print(table)
    reference = facts["reference"]
    tied = "tied" if facts["tied"] else "untied"
    for line in (
        f"model: {tied}, {facts['rows']:,} rows; {facts['n_suspect']:,} of {facts['n_judged']:,} "
        f"tokens that text yields are suspect by {facts['indicator']}",
        f"reference: {reference['why'] if reference else 'none; nothing is known to be unused'}",
        f"threshold: {facts['threshold']['value']:.4g}, {facts['threshold']['why']}",
    ):
        console.print(line, markup=False, soft_wrap=True)
    for note in facts["notes"]:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if facts["groups"]:
        table = Table("do", "class", title=Text("what to do", style="bold"), title_justify="left")
        table.add_column("tokens", justify="right")
        table.add_column("why")
        for group in facts["groups"]:
            table.add_row(group["action"], group["class"], f"{group['tokens']:,}", group["why"])
        console.print(table)
    console.print(_suspects(args.found.tokens, args.top or _SHOWN))
    if facts.get("prune_with"):
        console.print(f"next: {facts['prune_with']}", markup=False, soft_wrap=True)
    for file in args.found.written:
        console.print(f"written: {file}", markup=False, soft_wrap=True)


def _suspects(tokens: list[dict[str, Any]], n: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("token", title=Text("the most suspect", style="bold"), title_justify="left")
    for column in ("id", "class", "indicator", "z", "count", "probability", "do"):
        table.add_column(column, justify="right")
    shown = [row for row in tokens if row["is_suspect"] and row["class"] != "dummy"][:n]
    for row in shown:
        count = "–" if row["count"] is None else f"{row['count']:,}"
        said = "–" if row["max_probability"] is None else f"{row['max_probability']:.3g}"
        cells = (f"{row['indicator']:.4g}", f"{row['z']:.2f}", count, said, row["action"] or "–")
        name = row["token"] if row["text"] is None else row["text"]
        table.add_row(Text(repr(name)), str(row["id"]), row["class"], *cells)
    return table


def add_latency(subparsers: Any) -> None:
    """Add the verb `latency`."""
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
    parser.set_defaults(run=run_latency, show=show_latency, status=lambda *_: 0)


def run_latency(args: argparse.Namespace) -> dict[str, Any]:
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


def show_latency(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
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
